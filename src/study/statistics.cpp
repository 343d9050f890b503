#include "flyover/study/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + end - 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
    begin = end;
  }
  return ranks;
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  require(!values.empty() && q >= 0 && q <= 1, "values and a share of them");
  std::ranges::sort(values);
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double share = position - static_cast<double>(below);
  return values[below] + share * (values[above] - values[below]);
}

double weighted_quantile(std::vector<WeightedValue> values, double q) {
  require(!values.empty() && q >= 0 && q <= 1, "values and a share of them");
  std::ranges::stable_sort(values, {}, &WeightedValue::value);
  double total = 0;
  for (const WeightedValue& v : values) total += v.weight;
  double before = 0;  // Weight of the values passed.
  double last_position = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(values[i].weight > 0, "weights above zero");
    const double position = (before + values[i].weight / 2) / total;
    if (q <= position) {
      if (i == 0) return values[i].value;
      const double share = (q - last_position) / (position - last_position);
      return std::lerp(values[i - 1].value, values[i].value, share);
    }
    before += values[i].weight;
    last_position = position;
  }
  return values.back().value;
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  require(a.size() == b.size() && a.size() >= 2, "two or more pairs");
  const std::vector<double> x = mean_ranks(a);
  const std::vector<double> y = mean_ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace flyover
