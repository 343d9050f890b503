#pragma once

// Draws that are the same on every machine: integers, and doubles made by operations that IEEE 754
// rounds in one way. (std:: distributions, std::log and std::exp differ between libraries.)

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "routing/hash.hpp"

namespace flyover::moe {

// Natural logarithm of a normal number above zero, within a few units in the last place.
[[nodiscard]] constexpr double portable_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int32_t>(bits >> 52U) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffU) | 0x3ff0000000000000U);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh f; f² <= 0.0295, so that the eleventh term is below 1e-17.
  const double f = (m - 1) / (m + 1);
  const double z = f * f;
  double sum = 1.0 / 21;
  for (int n = 19; n >= 1; n -= 2) sum = sum * z + 1.0 / n;
  return exponent * 0.6931471805599453 + 2 * f * sum;
}

// e^-y, y >= 0, with a relative error below 1e-13; 0 beyond y = 700.
[[nodiscard]] constexpr double portable_exp_minus(double y) {
  if (!(y < 700)) return 0;
  const auto halvings = static_cast<std::int32_t>(y * 1.4426950408889634 + 0.5);
  const double r = y - halvings * 0.6931471805599453;
  // |r| <= 0.35: the thirteenth term is below 1e-15.
  constexpr double c[] = {1.0,
                          -1.0,
                          1.0 / 2,
                          -1.0 / 6,
                          1.0 / 24,
                          -1.0 / 120,
                          1.0 / 720,
                          -1.0 / 5040,
                          1.0 / 40320,
                          -1.0 / 362880,
                          1.0 / 3628800,
                          -1.0 / 39916800,
                          1.0 / 479001600};
  const double r2 = r * r;
  const double even =
      c[0] + r2 * (c[2] + r2 * (c[4] + r2 * (c[6] + r2 * (c[8] + r2 * (c[10] + r2 * c[12])))));
  const double odd = c[1] + r2 * (c[3] + r2 * (c[5] + r2 * (c[7] + r2 * (c[9] + r2 * c[11]))));
  return (even + r * odd) *
         std::bit_cast<double>(static_cast<std::uint64_t>(1023 - halvings) << 52U);
}

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
