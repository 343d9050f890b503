#include "moe/arrangements.hpp"

namespace flyover::moe {

Parts::Parts(const Counts& counts) {
  for (const std::uint32_t count : counts) {
    if (value.empty() || value.back() != count) {
      value.push_back(count);
      number.push_back(0);
    }
    ++number.back();
  }
}

double arrangements(std::span<const std::uint32_t> number, std::uint32_t groups) {
  double ways = 1;
  std::uint32_t left = groups;
  for (const std::uint32_t n : number) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (left == 0) return 0;
      ways *= static_cast<double>(left) / (i + 1);
      --left;
    }
  }
  return ways;
}

}  // namespace flyover::moe
