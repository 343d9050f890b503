#pragma once

// Draws that are the same on every machine: integers, and doubles made by operations that IEEE 754
// rounds in one way. (std:: distributions, std::log and std::exp differ between libraries.)

#include <bit>
#include <cstdint>

#include "routing/hash.hpp"

namespace flyover::moe {

// Natural logarithm of a normal number above zero, within 2 units in the last place.
[[nodiscard]] inline double portable_log(double x) {
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

// e^-y, y >= 0, within a few units in the last place.
[[nodiscard]] inline double portable_exp_minus(double y) {
  if (!(y < 700)) return 0;
  const auto halvings = static_cast<std::int32_t>(y * 1.4426950408889634 + 0.5);
  // ln 2 in two parts, the first short enough for an exact product.
  const double r = (y - halvings * 0x1.62e42feep-1) - halvings * 0x1.a39ef35793c76p-33;
  double sum = 1;
  for (int n = 14; n >= 1; --n) sum = 1 - r * sum / n;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(1023 - halvings) << 52U);
}

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
  double exponential() { return -portable_log(unit()); }

 private:
  std::uint64_t state_;
};

}  // namespace flyover::moe
