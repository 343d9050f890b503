#pragma once

// Where ranks lie: sizes and strides of the dimensions, dense and of experts. See Groups in
// layout.hpp.

#include <array>
#include <cstddef>
#include <cstdint>

#include "flyover/layout/layout.hpp"

namespace flyover {

// The size of every dimension, in the order of the enumeration.
using Sizes = std::array<std::uint32_t, 5>;

inline std::uint32_t& size_of(Sizes& sizes, Dimension dimension) {
  return sizes[static_cast<std::size_t>(dimension)];
}
inline std::uint32_t size_of(const Sizes& sizes, Dimension dimension) {
  return sizes[static_cast<std::size_t>(dimension)];
}

// Copies of every parameter that lie on the ranks of one pipeline.
[[nodiscard]] inline std::uint32_t copies_in_pipeline(const Layout& layout) {
  return goes_both_ways(layout.schedule) ? 2 : 1;
}

[[nodiscard]] Sizes dense_sizes(const Layout& layout);
[[nodiscard]] Sizes expert_sizes(const Layout& layout);

// By how much a rank's number grows with its place in the dimension.
[[nodiscard]] std::uint32_t stride(const Layout& layout, const Sizes& sizes, Dimension dimension);

}  // namespace flyover
