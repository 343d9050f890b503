#pragma once

// Popularity of experts that nobody measured.

#include <cstdint>
#include <vector>

namespace flyover {

// Zipf's law: the expert of rank r in popularity has r^-exponent; mean 1. Which expert has which
// rank is drawn with the seed. Exponent 0: all alike. Requires exponent >= 0.
[[nodiscard]] std::vector<double> zipf_popularity(std::uint32_t experts, double exponent,
                                                  std::uint64_t seed);

}  // namespace flyover
