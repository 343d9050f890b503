#include "flyover/io/sweep_store.hpp"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <sqlite3.h>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "io/file_lock.hpp"
#include "io/number_set.hpp"
#include "io/sqlite.hpp"
#include "io/sweep_schema.hpp"

namespace flyover::io {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto longest_wait = std::chrono::milliseconds(250);
constexpr std::uint64_t largest_batch = 4096;
// For people who change the file with a tool of their own meanwhile.
constexpr const char* patience = "PRAGMA busy_timeout = 10000";

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// Throws InputError when it cannot be a file.
bool exists(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InputError(Place{path, 0, 0, ""}, "is a folder; name a file");
  }
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

void check_identity(const SweepIdentity& there, const SweepIdentity& ours,
                    const std::string& path) {
  const Place place{path, 0, 0, ""};
  if (there.digest != ours.digest) {
    throw InputError(
        place, fmt::format("belongs to another configuration (\"{}\", digest {}) than this one "
                           "(\"{}\", digest {}), or a file that it reads has changed since; choose "
                           "another file, or restore what was changed",
                           there.name, there.digest, ours.name, ours.digest));
  }
  if (there.version != ours.version) {
    throw InputError(place,
                     fmt::format("was begun by Flyover {}, whose results need not agree with "
                                 "those of this one, {}; go on with that, or begin anew in "
                                 "another file",
                                 there.version, ours.version));
  }
  if (there.seed != ours.seed || there.inputs != ours.inputs || there.outputs != ours.outputs) {
    throw InputError(place,
                     "has another seed or other columns than this configuration; choose another "
                     "file");
  }
}

}  // namespace

struct SweepStore::Impl {
  Impl(const std::string& file, const SweepIdentity& of, StoreOpening opening)
      : path(file),
        identity(of),
        lock(file) {
    const bool is_there = exists(path);
    if (is_there && opening == StoreOpening::Create) {
      throw InputError(Place{path, 0, 0, ""},
                       "exists already; --resume goes on with it, or choose another file");
    }
    try {
      open();
    } catch (...) {
      insert.reset();
      connection.reset();
      if (!is_there) {
        for (const char* end : {"", "-wal", "-shm", "-journal"}) {
          std::error_code ignored;
          std::filesystem::remove(path + end, ignored);
        }
      }
      throw;
    }
    timer = std::thread([this] { commit_in_time(); });
  }

  ~Impl() {
    {
      const std::lock_guard guard(mutex);
      closing = true;
    }
    wake.notify_all();
    timer.join();
    try {
      if (!failed) {
        commit();
        insert.reset();
        // Then what is left is one plain file, which can be read from a medium that takes no
        // writes. Not while somebody reads it: then it stays as it is.
        connection->run("PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE");
      }
    } catch (const std::exception&) {
      // What was not committed is evaluated again by --resume.
    }
    insert.reset();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void open() {
    try {
      connection.emplace(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX);
      connection->run(patience);
      const Contents contents = recognise(*connection, path);
      if (connection->read_only()) {
        throw InputError(Place{path, 0, 0, ""}, "cannot be written: the file is read-only");
      }
      columns = sweep_columns(identity);
      const auto most = static_cast<std::size_t>(connection->limit(SQLITE_LIMIT_COLUMN));
      if (columns.size() + 7 > most) {
        throw InputError(Place{path, 0, 0, ""},
                         fmt::format("a sweep with {} inputs and outputs has more columns than the "
                                     "{} of an SQLite table",
                                     columns.size(), most));
      }
      if (contents == Contents::Sweep) {
        const std::string found = connection->text("PRAGMA quick_check(1)");
        if (found != "ok") throw sqlite::Error(SQLITE_CORRUPT, found);
        check_identity(read_identity(*connection), identity, path);
        columns = read_columns(*connection);
        sqlite::Statement row(*connection, "SELECT number FROM points ORDER BY number");
        while (row.step()) numbers.insert(static_cast<std::uint64_t>(row.whole(0)));
      }
      // Readers and the writer do not wait for each other. FULL: what is committed survives the
      // machine too, which at four commits a second costs little.
      connection->run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
      if (contents == Contents::Nothing) {
        connection->run("BEGIN IMMEDIATE");
        create_tables(*connection, identity, columns);
        connection->run("COMMIT");
      }
      std::string marks = "?, ?, ?, ?, ?, ?, ?";
      for (std::size_t i = 0; i < columns.size(); ++i) {
        marks += ", ?";
        auto& names = columns[i].output ? output_columns : input_columns;
        names.emplace(columns[i].name, i);
      }
      insert.emplace(*connection, "INSERT INTO points VALUES (" + marks + ")");
    } catch (const sqlite::Error& error) {
      explain(error, connection ? connection->system_error() : 0, path, numbers.size());
    }
  }

  void add(const PointResult& result) {
    const std::lock_guard guard(mutex);
    if (failed) std::rethrow_exception(failed);
    require(!numbers.contains(result.number), "SweepStore: a point is added once");
    guarded([&] {
      if (pending == 0) {
        connection->run("BEGIN IMMEDIATE");
        oldest = Clock::now();
      }
      insert->bind(0, static_cast<std::int64_t>(result.number));
      insert->bind(1, to_string(result.status));
      insert->bind(2, result.reason);
      bind(result.inputs, input_columns);
      bind(result.outputs, output_columns);
      int at = 3 + static_cast<int>(columns.size());
      insert->bind(at++, identity.version);
      insert->bind(at++, static_cast<std::int64_t>(identity.seed));
      insert->bind(at++, result.seconds);
      const std::string finished = utc_now();
      insert->bind(at, finished);
      insert->step();
      insert->reset();
      numbers.insert(result.number);
      if (++pending == 1) wake.notify_all();
      if (pending >= largest_batch) commit_locked();
    });
  }

  void bind(const SweepValues& values, const std::map<std::string, std::size_t>& names) {
    for (const auto& [name, value] : values) {
      const auto found = names.find(name);
      require(found != names.end(), "SweepStore: every value has a column");
      SweepColumn& column = columns[found->second];
      const int at = 3 + static_cast<int>(found->second);
      if (const bool* boolean = std::get_if<bool>(&value)) {
        note(column, ColumnHolds::Booleans);
        insert->bind(at, static_cast<std::int64_t>(*boolean));
      } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
        note(column, ColumnHolds::Numbers);
        insert->bind(at, *whole);
      } else if (const auto* real = std::get_if<double>(&value)) {
        require(!std::isnan(*real), "SweepStore: values are numbers");
        insert->bind(at, *real);
      } else {
        insert->bind(at, std::string_view(std::get<std::string>(value)));
      }
    }
  }

  void note(SweepColumn& column, ColumnHolds holds) {
    if (column.holds == holds) return;
    if (column.holds != ColumnHolds::Unknown) {
      throw InputError(Place{path, 0, 0, ""},
                       fmt::format("\"{}\" is true or false in some points and a whole number in "
                                   "others, which SQLite does not tell apart; use one kind",
                                   column.name));
    }
    sqlite::Statement update(*connection, "UPDATE columns SET holds = ? WHERE \"column\" = ?");
    update.bind(0, std::string_view(to_string(holds)));
    update.bind(1, column.column);
    update.step();
    column.holds = holds;
  }

  void commit() {
    const std::lock_guard guard(mutex);
    if (failed) std::rethrow_exception(failed);
    guarded([&] { commit_locked(); });
  }

  void commit_locked() {
    if (pending == 0) return;
    connection->run("COMMIT");
    pending = 0;
  }

  // An error is final: what SQLite rolled back is no longer there to be committed.
  template <class Work>
  void guarded(Work work) {
    try {
      try {
        work();
      } catch (const sqlite::Error& error) {
        explain(error, connection->system_error(), path, numbers.size() - pending);
      }
    } catch (...) {
      failed = std::current_exception();
      throw;
    }
  }

  void commit_in_time() {
    std::unique_lock guard(mutex);
    while (!closing) {
      if (pending == 0 || failed) {
        wake.wait(guard);
      } else if (wake.wait_until(guard, oldest + longest_wait) == std::cv_status::timeout &&
                 pending > 0 && !failed && Clock::now() >= oldest + longest_wait) {
        try {
          guarded([&] { commit_locked(); });
        } catch (const std::exception&) {
          // The next add or commit throws it.
        }
      }
    }
  }

  std::optional<PointResult> row(std::uint64_t number) {
    const std::lock_guard guard(mutex);
    if (!numbers.contains(number)) return std::nullopt;
    std::optional<PointResult> result;
    guarded([&] {
      sqlite::Statement select(*connection, select_rows(columns) + " WHERE number = ?");
      select.bind(0, static_cast<std::int64_t>(number));
      if (select.step()) result = read_row(select, columns);
    });
    return result;
  }

  std::string path;
  SweepIdentity identity;
  FileLock lock;  // Held longer than the connection.
  std::optional<sqlite::Connection> connection;
  std::vector<SweepColumn> columns;
  std::map<std::string, std::size_t> input_columns;
  std::map<std::string, std::size_t> output_columns;
  std::optional<sqlite::Statement> insert;

  std::mutex mutex;  // Of all below, and of the connection once the timer runs.
  NumberSet numbers;
  std::uint64_t pending = 0;  // Rows that are not committed.
  Clock::time_point oldest;   // When the first of them came.
  std::exception_ptr failed;
  bool closing = false;
  std::condition_variable wake;
  std::thread timer;
};

SweepStore::SweepStore(const std::string& path, const SweepIdentity& identity, StoreOpening opening)
    : impl_(std::make_unique<Impl>(path, identity, opening)) {}
SweepStore::~SweepStore() = default;
SweepStore::SweepStore(SweepStore&&) noexcept = default;

bool SweepStore::has(std::uint64_t number) const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->numbers.contains(number);
}

std::uint64_t SweepStore::rows() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->numbers.size();
}

std::optional<PointResult> SweepStore::row(std::uint64_t number) const {
  return impl_->row(number);
}

void SweepStore::add(const PointResult& result) {
  impl_->add(result);
}
void SweepStore::commit() {
  impl_->commit();
}

StoredSweep read_sweep(const std::string& path) {
  StoredSweep sweep;
  sweep.identity =
      read_sweep(path, [&](const PointResult& result) { sweep.rows.push_back(result); });
  return sweep;
}

SweepIdentity read_sweep(const std::string& path,
                         const std::function<void(const PointResult&)>& use) {
  const Place place{path, 0, 0, ""};
  if (!exists(path)) throw InputError(place, "no such file");
  try {
    sqlite::Connection connection(path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX);
    connection.run(patience);
    // One transaction, so that identity and rows are of one moment.
    connection.run("BEGIN");
    if (recognise(connection, path) == Contents::Nothing) {
      throw InputError(place, "has no sweep in it yet");
    }
    SweepIdentity identity = read_identity(connection);
    const std::vector<SweepColumn> columns = read_columns(connection);
    sqlite::Statement row(connection, select_rows(columns) + " ORDER BY number");
    while (row.step()) use(read_row(row, columns));
    return identity;
  } catch (const sqlite::Error& error) {
    explain(error, 0, path, 0);
  }
}

}  // namespace flyover::io
