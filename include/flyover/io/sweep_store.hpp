#pragma once

// Results of a sweep in an SQLite file: docs/formats/sweep-database.md has its tables.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flyover/study/sweep.hpp"

namespace flyover::io {

// What a database is about; a database with another digest or of another version is not gone on
// with.
struct SweepIdentity {
  std::string name;
  std::string digest;   // Of the configuration and every file that it reads.
  std::string config;   // Its text.
  std::string version;  // Of Flyover.
  std::uint64_t seed = 0;
  std::vector<std::string> inputs;  // Every name that a result may have, each once, in order.
  std::vector<std::string> outputs;
};

// Resume goes on with what is there, and begins where there is nothing yet, so that a batch script
// can always say --resume.
enum class StoreOpening : std::uint8_t { Create, Resume };

// One writer at a time: a lock that dies with its process. Rows are committed in batches, at most a
// quarter of a second after they were added, whether or not more are; after a kill at any moment
// every row that is there is whole. All errors are InputError or SimulationError with the file and
// what to do: it exists already, is locked by another process, is no database or a corrupt one,
// comes from a newer version, belongs to another configuration, cannot be written (read-only
// folder, disk full). None of them touches what is there.
//
// The destructor commits, but cannot say that it failed: call commit() at the end.
class SweepStore {
 public:
  SweepStore(const std::string& path, const SweepIdentity& identity, StoreOpening opening);
  ~SweepStore();
  SweepStore(SweepStore&&) noexcept;

  [[nodiscard]] bool has(std::uint64_t number) const;  // Of the rows when it was opened, and since.
  [[nodiscard]] std::uint64_t rows() const;
  [[nodiscard]] std::optional<PointResult> row(std::uint64_t number) const;
  void add(const PointResult& result);  // Its number must be new, its values have columns.
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All rows of a finished or unfinished sweep, by number. Needs no lock, and may read while a sweep
// writes. Throws InputError.
struct StoredSweep {
  SweepIdentity identity;
  std::vector<PointResult> rows;
};
[[nodiscard]] StoredSweep read_sweep(const std::string& path);
// The same without keeping them all: calls `use` for one row after the other.
SweepIdentity read_sweep(const std::string& path,
                         const std::function<void(const PointResult&)>& use);

}  // namespace flyover::io
