#pragma once

#include <span>
#include <vector>

namespace flyover {

// The value below which the share `q` of the values lies, linear between neighbours (as numpy's
// default). Requires values and 0 <= q <= 1.
[[nodiscard]] double quantile(std::vector<double> values, double q);

struct WeightedValue {
  double value = 0;
  double weight = 1;
};
// The same where values count unequally: each stands at the middle of its weight, linear between
// neighbours, the outermost values beyond. Requires values, weights above zero and 0 <= q <= 1.
[[nodiscard]] double weighted_quantile(std::vector<WeightedValue> values, double q);

// Spearman's rank correlation: Pearson's of the ranks, equal values sharing their mean rank. 0 when
// either side is constant. Requires equal lengths of 2 or more.
[[nodiscard]] double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace flyover
