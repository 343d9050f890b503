#pragma once

// Functions that give the same bits on every machine: only operations that IEEE 754 rounds in one
// way. (std::log, std::exp and their kin differ between libraries.)

#include <bit>
#include <cstdint>

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
  const double up = y * 1.4426950408889634 + 0.5;
  const auto halvings = static_cast<std::int32_t>(up);  // y / ln 2, rounded.
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

// 0 <= x <= pi / 2.
[[nodiscard]] constexpr double portable_cos(double x) {
  double sum = 1;
  for (int n = 24; n > 0; n -= 2) sum = 1 - x * x / (n * (n - 1)) * sum;
  return sum;
}

[[nodiscard]] constexpr double power(double x, std::uint32_t n) {
  double out = 1;
  for (; n > 0; n >>= 1U) {
    if ((n & 1U) != 0) out *= x;
    x *= x;
  }
  return out;
}

}  // namespace flyover::moe
