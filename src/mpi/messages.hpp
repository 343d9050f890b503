#pragma once

// What the processes of a sweep say to each other, as bytes (CBOR, which keeps every double). They
// all run the same program: there is no other version to understand.

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "flyover/study/point_runner.hpp"

namespace flyover::mpi {

enum class Tag : int {
  Hello = 1,  // A worker, with its digest.
  Want,       // A worker: so many more points.
  Points,     // The leader: these.
  Results,    // A worker: of some of its points.
  Error,      // A worker cannot go on.
  Stop,       // The leader: 1 all is done, 0 end at once.
  Bye         // A worker: its last.
};

using Bytes = std::vector<std::uint8_t>;

[[nodiscard]] Bytes pack(const PointBatch& batch);
[[nodiscard]] PointBatch unpack_batch(const Bytes& bytes);

[[nodiscard]] Bytes pack(const std::vector<PointResult>& results);
[[nodiscard]] std::vector<PointResult> unpack_results(const Bytes& bytes);

[[nodiscard]] Bytes pack(std::uint64_t number);
[[nodiscard]] std::uint64_t unpack_number(const Bytes& bytes);

[[nodiscard]] Bytes pack(const std::string& text);
[[nodiscard]] std::string unpack_text(const Bytes& bytes);

// The error, as one of the types that main knows; and its like on the other side, in whose message
// `before` stands first.
[[nodiscard]] Bytes pack(const std::exception_ptr& error);
[[noreturn]] void rethrow(const Bytes& bytes, const std::string& before);

}  // namespace flyover::mpi
