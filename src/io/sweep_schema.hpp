#pragma once

// The tables of a sweep's database: made, recognised, and read back.

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/io/sweep_store.hpp"
#include "io/sqlite.hpp"

namespace flyover::io {

constexpr std::int64_t sweep_application_id = 0x466c7953;  // "FlyS": `file` and we tell by it.
constexpr std::int64_t sweep_format = 1;

// What SQL cannot tell apart by itself: true is stored as 1.
enum class ColumnHolds : std::uint8_t { Unknown, Booleans, Numbers };

struct SweepColumn {
  bool output = false;
  std::string name;    // In expressions and results.
  std::string column;  // In SQL: the name, or another one where that is taken.
  ColumnHolds holds = ColumnHolds::Unknown;
};

// Inputs, then outputs. SQL ignores case, and has columns of its own.
[[nodiscard]] std::vector<SweepColumn> sweep_columns(const SweepIdentity& identity);

// Creates the tables; call inside of a transaction.
void create_tables(sqlite::Connection& connection, const SweepIdentity& identity,
                   const std::vector<SweepColumn>& columns);

enum class Contents : std::uint8_t { Nothing, Sweep };
// Throws InputError for anything but an empty database and a sweep of a format that we know.
[[nodiscard]] Contents recognise(sqlite::Connection& connection, const std::string& path);

[[nodiscard]] SweepIdentity read_identity(sqlite::Connection& connection);
[[nodiscard]] std::vector<SweepColumn> read_columns(sqlite::Connection& connection);
[[nodiscard]] const char* to_string(ColumnHolds holds);

// "SELECT number, status, reason, cpu_s, ... FROM points", for read_row.
[[nodiscard]] std::string select_rows(const std::vector<SweepColumn>& columns);
[[nodiscard]] PointResult read_row(const sqlite::Statement& row,
                                   const std::vector<SweepColumn>& columns);

// Throws what SQLite's error means for the user. `rows`: how many are safe in the file.
[[noreturn]] void explain(const sqlite::Error& error, int system_error, const std::string& path,
                          std::uint64_t rows);

}  // namespace flyover::io
