#include "flyover/moe/limits.hpp"

#include <catch2/catch.hpp>

#include "flyover/base/units.hpp"

using namespace flyover;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

TEST_CASE("an exchange hides behind its experts up to 2 d FLOP per byte", "[moe][limits]") {
  CHECK(hidden_flops_per_byte(3072) == 6144);  // V4-Pro: 1 GB/s hides 6.1 TFLOP/s.
  CHECK(hidden_flops_per_byte(2048) == 4096);
}

TEST_CASE("with one copy per node the network hides behind more", "[moe][limits]") {
  // MOE.md 5.2: V3 at EP64, 3.4595 copies, and V4-Pro on nodes of 8, 3.8761.
  const double v3 = hidden_flops_per_network_byte(2048, 8, 3.4595);
  const double v4 = hidden_flops_per_network_byte(3072, 6, 4.4298 * 7 / 8);
  CHECK_THAT(v3, WithinRel(10650.0, 0.001));
  CHECK_THAT(v4, WithinRel(11100.0, 0.002));
  CHECK_THAT(v3 * 50e9 / 1e12, WithinAbs(533, 1));
  CHECK_THAT(v4 * 50e9 / 1e12, WithinAbs(555, 1));
}

TEST_CASE("no token is made faster than its experts are reached", "[moe][limits]") {
  const DecodeLimit ib = decode_limit({}, Bandwidth{50e9});
  CHECK(ib.exchange == Duration{120'960'000});
  CHECK(ib.per_token == Duration{14'757'120'000});  // 14.76 ms
  CHECK_THAT(ib.tokens_per_second, WithinAbs(67.76, 0.01));

  const DecodeLimit nvl72 = decode_limit({}, Bandwidth{900e9});
  CHECK(nvl72.exchange == Duration{6'720'000});
  CHECK(nvl72.per_token == Duration{819'840'000});  // 0.82 ms
  CHECK_THAT(nvl72.tokens_per_second, WithinAbs(1219.8, 0.1));
}

TEST_CASE("waves hide all but one wave of communication", "[moe][limits]") {
  const LayerOverlap overlap = layer_overlap(0.92, 1'000'000);
  CHECK_THAT(overlap.naive, WithinAbs(1.92, 1e-9));
  CHECK_THAT(overlap.naive / overlap.waves, WithinAbs(1.92, 1e-3));
  CHECK_THAT(overlap.naive / overlap.two_stage, WithinAbs(1.50, 0.01));

  CHECK_THAT(layer_overlap(0.92, 16).waves, WithinAbs(1.0575, 1e-9));
  // Communication alone where it is the longer.
  CHECK_THAT(layer_overlap(3, 10).waves, WithinAbs(3.3, 1e-9));
  CHECK_THAT(layer_overlap(3, 10).two_stage, WithinAbs(3, 1e-9));
  // No waves: one after the other.
  CHECK_THAT(layer_overlap(1, 1).waves, WithinAbs(2, 1e-9));
}
