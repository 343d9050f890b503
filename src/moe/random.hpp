#pragma once

// Draws that are the same on every machine: integers, and doubles made of them by moe/portable.hpp.
// (std:: distributions differ between libraries.)

#include <array>
#include <cstddef>
#include <cstdint>

#include "moe/portable.hpp"
#include "routing/hash.hpp"

namespace flyover::moe {

// The ziggurat of e^-x with 256 layers of equal area (Marsaglia & Tsang 2000): right edges,
// beginning with the width that the lowest would have without its tail, and e^-edge.
struct Ziggurat {
  static constexpr double tail = 7.69711747013104972;
  static constexpr double area = 0.0039496598225815571993;
  std::array<double, 257> edge{};
  std::array<double, 257> height{};

  constexpr Ziggurat() {
    edge[0] = area / portable_exp_minus(tail);
    edge[1] = tail;
    for (std::size_t i = 2; i < 256; ++i) {
      edge[i] = -portable_log(area / edge[i - 1] + portable_exp_minus(edge[i - 1]));
    }
    edge[256] = 0;
    for (std::size_t i = 0; i < 257; ++i) height[i] = portable_exp_minus(edge[i]);
  }
};
inline constexpr Ziggurat ziggurat;

// SplitMix64 (Steele, Lea, Flood 2014) from a place of its own for every seed and stream.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : state_(routing::combine(seed, stream)) {}

  std::uint64_t next() {
    const std::uint64_t drawn = routing::mix(state_);
    state_ += 0x9e3779b97f4a7c15U;
    return drawn;
  }
  // 0 .. n - 1, without bias (Lemire 2019).
  std::uint32_t below(std::uint32_t n) {
    std::uint64_t product = (next() >> 32U) * n;
    if (static_cast<std::uint32_t>(product) < n) {
      const std::uint32_t unfair = (0U - n) % n;
      while (static_cast<std::uint32_t>(product) < unfair) product = (next() >> 32U) * n;
    }
    return static_cast<std::uint32_t>(product >> 32U);
  }
  // Above 0 and below 1.
  double unit() { return (static_cast<double>(next() >> 12U) + 0.5) * 0x1p-52; }
  // With mean 1.
  double exponential() {
    double beyond = 0;
    for (;;) {
      const std::uint64_t bits = next();
      const auto layer = static_cast<std::size_t>(bits & 0xffU);
      const double x = static_cast<double>(bits >> 11U) * 0x1p-53 * ziggurat.edge[layer];
      if (x < ziggurat.edge[layer + 1]) return beyond + x;
      if (layer == 0) {  // The tail is a whole one moved.
        beyond += Ziggurat::tail;
        continue;
      }
      const double low = ziggurat.height[layer];
      const double y = low + unit() * (ziggurat.height[layer + 1] - low);
      if (y < portable_exp_minus(x)) return beyond + x;
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace flyover::moe
