#pragma once

// Quantities as people write them: a number and its unit. b is bits and B is bytes; k, M, G, T, P,
// E are powers of ten, Ki, Mi, Gi, Ti, Pi, Ei powers of two. A bare number is refused: a unit is
// what keeps "400" from being wrong eightfold. All parsers throw InputError (without a place; the
// reader adds it) for unknown or missing units, NaN, negative values and overflow, and say what was
// expected.
//
// Whole quantities (bytes, picoseconds) are read exactly, never through a double; rates and
// operation counts are the double nearest to what is written.

#include <string>
#include <string_view>

#include "flyover/base/units.hpp"

namespace flyover {

// "400 Gb/s", "400Gbps", "400 Gbit/s", "50 GB/s", "1.8 TB/s", "2 GiB/s". Above zero, at most 1
// EB/s.
[[nodiscard]] Bandwidth parse_bandwidth(std::string_view text);
// "1.2 us", "1.2 µs", "500 ns", "3 ms", "2 s", "0 ps". Zero or more; a fraction of a picosecond
// rounds up.
[[nodiscard]] Duration parse_duration(std::string_view text);
// "1 GiB", "128 MB", "8 B". Zero or more; must come to a whole number of bytes.
[[nodiscard]] Bytes parse_bytes(std::string_view text);
// A size as nccl-tests users write it: "8", "64K", "1M", "16G" (powers of two), or as parse_bytes.
[[nodiscard]] Bytes parse_message_size(std::string_view text);
// "989 TFLOPS" or "989 TFLOP/s". Above zero.
[[nodiscard]] FlopRate parse_flop_rate(std::string_view text);
// "2.1 TFLOP", "350 GFLOP". Zero or more.
[[nodiscard]] Flops parse_flops(std::string_view text);

// Short forms that parse back to the same value, with the unit that a person would pick. Negative
// durations and sizes (differences) print with a minus and do not parse back.
[[nodiscard]] std::string to_string(Bandwidth bandwidth);  // "50 GB/s"
[[nodiscard]] std::string to_string(Duration duration);    // "1.2 us"
[[nodiscard]] std::string to_string(Bytes bytes);          // "128 MiB", "1000 B", "1 GB"
[[nodiscard]] std::string to_string(FlopRate rate);        // "989 TFLOPS"
[[nodiscard]] std::string to_string(Flops flops);          // "2.1 TFLOP"

}  // namespace flyover
