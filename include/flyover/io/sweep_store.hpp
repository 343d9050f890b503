#pragma once

// Results of a sweep in an SQLite file: docs/formats/sweep.md has its tables.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flyover/study/sweep.hpp"

namespace flyover::io {

// What a database is about; a database with another digest is not gone on with.
struct SweepIdentity {
  std::string name;
  std::string digest;  // Of the configuration and every file that it reads.
  std::string config;  // Its text.
  std::string version;  // Of Flyover.
  std::uint64_t seed = 0;
  std::vector<std::string> inputs;   // Columns, in order.
  std::vector<std::string> outputs;
};

enum class StoreOpening : std::uint8_t { Create, Resume };

// One writer at a time: a lock that dies with its process. Rows are committed in batches; after a
// kill at any moment every row that is there is whole. All errors are InputError or SimulationError
// with the file and what to do: it exists already, is locked by another process, is no database or
// a corrupt one, comes from a newer version, belongs to another configuration, cannot be written
// (read-only folder, disk full).
class SweepStore {
 public:
  SweepStore(const std::string& path, const SweepIdentity& identity, StoreOpening opening);
  ~SweepStore();
  SweepStore(SweepStore&&) noexcept;

  [[nodiscard]] bool has(std::uint64_t number) const;  // Of the rows when it was opened, and since.
  [[nodiscard]] std::uint64_t rows() const;
  void add(const PointResult& result);  // Its number must be new. Kept until the next commit.
  void commit();                        // Also done by itself some times per second.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All rows of a finished or unfinished sweep, by number. Needs no lock.
struct StoredSweep {
  SweepIdentity identity;
  std::vector<PointResult> rows;
};
[[nodiscard]] StoredSweep read_sweep(const std::string& path);

}  // namespace flyover::io
