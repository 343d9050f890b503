#include "io/sweep_schema.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <sqlite3.h>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover::io {

namespace {

using sqlite::literal;
using sqlite::quoted;

constexpr const char* own_columns[] = {"number", "status", "reason",  "version",
                                       "seed",   "cpu_s",  "finished"};

// As SQLite compares names: only ASCII letters have a case.
std::string folded(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

ColumnHolds holds_of(const std::string& text) {
  if (text == to_string(ColumnHolds::Booleans)) return ColumnHolds::Booleans;
  if (text == to_string(ColumnHolds::Numbers)) return ColumnHolds::Numbers;
  return ColumnHolds::Unknown;
}

PointStatus status_of(const std::string& text) {
  for (const PointStatus status : {PointStatus::Done, PointStatus::Refused, PointStatus::Invalid,
                                   PointStatus::Excluded, PointStatus::Failed}) {
    if (text == to_string(status)) return status;
  }
  throw InputError(fmt::format("a row has the status \"{}\", which is not Flyover's", text));
}

}  // namespace

const char* to_string(ColumnHolds holds) {
  switch (holds) {
    case ColumnHolds::Unknown:
      return "";
    case ColumnHolds::Booleans:
      return "booleans";
    case ColumnHolds::Numbers:
      return "numbers";
  }
  return "";
}

std::vector<SweepColumn> sweep_columns(const SweepIdentity& identity) {
  std::set<std::string> taken(std::begin(own_columns), std::end(own_columns));
  std::vector<SweepColumn> columns;
  const auto add = [&](const std::string& name, bool output) {
    std::string column = name;
    if (name.empty() || taken.contains(folded(column))) {
      column = (output ? "output_" : "input_") + name;
    }
    while (!taken.insert(folded(column)).second) column += '_';
    columns.push_back({.output = output, .name = name, .column = std::move(column)});
  };
  for (const std::string& name : identity.inputs) add(name, false);
  for (const std::string& name : identity.outputs) add(name, true);
  return columns;
}

void create_tables(sqlite::Connection& connection, const SweepIdentity& identity,
                   const std::vector<SweepColumn>& columns) {
  connection.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};",
                             sweep_application_id, sweep_format));
  connection.run(
      "CREATE TABLE sweep (format INTEGER NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,"
      " version TEXT NOT NULL, seed INTEGER NOT NULL, config TEXT NOT NULL)");
  // The columns of values have no type, so that SQLite changes none of them.
  std::string values;
  for (const SweepColumn& each : columns) values += ", " + quoted(each.column);
  connection.run(
      fmt::format("CREATE TABLE points (number INTEGER PRIMARY KEY, status TEXT NOT NULL,"
                  " reason TEXT NOT NULL{}, version TEXT NOT NULL, seed INTEGER NOT NULL,"
                  " cpu_s REAL NOT NULL, finished TEXT NOT NULL)",
                  values));
  connection.run(
      "CREATE TABLE columns (position INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,"
      " \"column\" TEXT NOT NULL, holds TEXT NOT NULL)");
  connection.run(fmt::format(
      "CREATE VIEW results AS SELECT number, status, reason{}, version, seed FROM points"
      " ORDER BY number",
      values));

  sqlite::Statement sweep(connection, "INSERT INTO sweep VALUES (?, ?, ?, ?, ?, ?)");
  sweep.bind(0, sweep_format);
  sweep.bind(1, identity.name);
  sweep.bind(2, identity.digest);
  sweep.bind(3, identity.version);
  sweep.bind(4, static_cast<std::int64_t>(identity.seed));
  sweep.bind(5, identity.config);
  sweep.step();
  sqlite::Statement column(connection, "INSERT INTO columns VALUES (?, ?, ?, ?, '')");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    column.bind(0, static_cast<std::int64_t>(i));
    column.bind(1, std::string_view(columns[i].output ? "output" : "input"));
    column.bind(2, columns[i].name);
    column.bind(3, columns[i].column);
    column.step();
    column.reset();
  }
}

Contents recognise(sqlite::Connection& connection, const std::string& path) {
  const std::int64_t application = connection.whole("PRAGMA application_id");
  if (application == 0 && connection.whole("SELECT count(*) FROM sqlite_schema") == 0) {
    return Contents::Nothing;
  }
  if (application != sweep_application_id) {
    throw InputError(Place{path, 0, 0, ""},
                     "is an SQLite database, but not of a sweep; choose another file");
  }
  const std::int64_t format = connection.whole("PRAGMA user_version");
  if (format > sweep_format) {
    throw InputError(
        Place{path, 0, 0, ""},
        fmt::format("was written by a newer Flyover, in format {}; this one, {}, knows format {}",
                    format, FLYOVER_VERSION, sweep_format));
  }
  return Contents::Sweep;
}

SweepIdentity read_identity(sqlite::Connection& connection) {
  SweepIdentity identity;
  sqlite::Statement row(connection, "SELECT name, digest, version, seed, config FROM sweep");
  if (!row.step()) throw sqlite::Error(SQLITE_CORRUPT, "table sweep has no row");
  identity.name = row.text(0);
  identity.digest = row.text(1);
  identity.version = row.text(2);
  identity.seed = static_cast<std::uint64_t>(row.whole(3));
  identity.config = row.text(4);
  for (const SweepColumn& each : read_columns(connection)) {
    (each.output ? identity.outputs : identity.inputs).push_back(each.name);
  }
  return identity;
}

std::vector<SweepColumn> read_columns(sqlite::Connection& connection) {
  std::vector<SweepColumn> columns;
  sqlite::Statement row(connection,
                        "SELECT kind, name, \"column\", holds FROM columns ORDER BY position");
  while (row.step()) {
    columns.push_back({.output = row.text(0) == "output",
                       .name = row.text(1),
                       .column = row.text(2),
                       .holds = holds_of(row.text(3))});
  }
  return columns;
}

std::string select_rows(const std::vector<SweepColumn>& columns) {
  std::string text = "SELECT number, status, reason, cpu_s";
  for (const SweepColumn& each : columns) text += ", " + quoted(each.column);
  return text + " FROM points";
}

PointResult read_row(const sqlite::Statement& row, const std::vector<SweepColumn>& columns) {
  PointResult result;
  result.number = static_cast<std::uint64_t>(row.whole(0));
  result.status = status_of(row.text(1));
  result.reason = row.text(2);
  result.seconds = row.real(3);
  int at = 4;
  for (const SweepColumn& each : columns) {
    SweepValues& values = each.output ? result.outputs : result.inputs;
    switch (row.type(at)) {
      case SQLITE_INTEGER:
        if (each.holds == ColumnHolds::Booleans) {
          values.emplace_back(each.name, row.whole(at) != 0);
        } else {
          values.emplace_back(each.name, row.whole(at));
        }
        break;
      case SQLITE_FLOAT:
        values.emplace_back(each.name, row.real(at));
        break;
      case SQLITE_TEXT:
        values.emplace_back(each.name, row.text(at));
        break;
      default:  // NULL: the point has no such value.
        break;
    }
    ++at;
  }
  std::ranges::sort(result.inputs);
  std::ranges::sort(result.outputs);
  return result;
}

void explain(const sqlite::Error& error, int system_error, const std::string& path,
             std::uint64_t rows) {
  const Place place{path, 0, 0, ""};
  std::string cause = error.what();
  std::ranges::replace(cause, '\n', ' ');
  if (system_error != 0) cause += fmt::format(": {}", std::strerror(system_error));
  switch (error.code()) {
    case SQLITE_NOTADB:
      throw InputError(place, "is no SQLite database; choose another file");
    case SQLITE_CORRUPT:
      throw InputError(place,
                       fmt::format("is corrupt ({}); 'sqlite3 {} .recover' prints what can be "
                                   "saved, a new sweep needs another file",
                                   cause, path));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw InputError(place, "another program is writing to it; let that finish first");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      throw InputError(place, fmt::format("cannot be opened: {}", cause));
    case SQLITE_FULL:
      throw SimulationError(fmt::format(
          "{}: the disk is full. {} points are safe in it; make room, and --resume goes "
          "on with the others",
          path, rows));
    default:
      throw SimulationError(
          fmt::format("{}: cannot be written ({}). {} points are safe in it; once that is mended, "
                      "--resume goes on with the others",
                      path, cause, rows));
  }
}

}  // namespace flyover::io
