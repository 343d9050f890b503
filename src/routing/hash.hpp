#pragma once

#include <cstdint>

namespace flyover::routing {

// A bijection of 64-bit words whose every output bit depends on every input bit: the finaliser of
// SplitMix64 (Steele, Lea, Flood 2014; constants by Stafford, variant 13).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

[[nodiscard]] constexpr std::uint64_t combine(std::uint64_t seed, std::uint64_t value) {
  return mix(seed ^ mix(value));
}

}  // namespace flyover::routing
