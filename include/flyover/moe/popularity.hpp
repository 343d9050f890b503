#pragma once

// Popularity of experts: how odds of a first choice and loads are related, and odds that nobody
// measured.

#include <cstdint>
#include <span>
#include <vector>

namespace flyover {

// Zipf's law: the expert of rank r in popularity has odds of r^-exponent; mean 1. Which expert has
// which rank is drawn with the seed. Exponent 0: all alike. Requires exponent >= 0.
[[nodiscard]] std::vector<double> zipf_popularity(std::uint32_t experts, double exponent,
                                                  std::uint64_t seed);

// A token chooses an expert once, so that with k choices the loads of popular experts are less
// uneven than the odds of a first choice:
//
//   load_e = 1 - (1 - odds_e / r)^k   (per token),   r such that the sum is k
//
// Exact for k = 1 and for equal odds; docs/models/moe-routing.md has how near it is in between.
// Of choices without groups.
[[nodiscard]] std::vector<double> loads_of_popularity(std::span<const double> odds,
                                                      std::uint32_t chosen);
// And back: the popularity that brings loads in these proportions. Throws InputError when the load
// of an expert is more than every token can bring it, a 1/k-th of all. Requires numbers of at least
// 0 that are not all 0.
[[nodiscard]] std::vector<double> popularity_of_loads(std::span<const double> loads,
                                                      std::uint32_t chosen);

}  // namespace flyover
