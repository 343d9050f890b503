#pragma once

// The values of one input that varies, as a sweep file has them.

#include "flyover/io/document.hpp"
#include "flyover/study/sweep_space.hpp"

namespace flyover::io {

// A number (whole where it can be), a string, true or false.
[[nodiscard]] SweepValue read_sweep_value(const Field& field);

// Whether an expression can use one in place of the other: two numbers, two strings, true and
// false.
[[nodiscard]] bool same_kind(const SweepValue& a, const SweepValue& b);

// A list, {"values": ...} or {"from": ..., "to": ...}; without its path, name and `when`.
[[nodiscard]] SweepAxis read_sweep_axis(const Field& field, SweepSampling sampling);

}  // namespace flyover::io
