#include "flyover/moe/popularity.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "moe/random.hpp"

namespace flyover {

namespace {

double chosen_by(double odds, double r, std::uint32_t k) {
  return 1 - moe::power(1 - std::min(1.0, odds / r), k);
}

}  // namespace

std::vector<double> zipf_popularity(std::uint32_t experts, double exponent, std::uint64_t seed) {
  require(exponent >= 0, "an exponent of at least 0");
  std::vector<double> popularity;
  double sum = 0;
  for (std::uint32_t rank = 1; rank <= experts; ++rank) {
    popularity.push_back(moe::portable_exp_minus(exponent * moe::portable_log(rank)));
    sum += popularity.back();
  }
  for (double& p : popularity) p *= experts / sum;
  moe::Random random(seed, 0);
  for (std::uint32_t left = experts; left > 1; --left) {
    std::swap(popularity[left - 1], popularity[random.below(left)]);
  }
  return popularity;
}

std::vector<double> loads_of_popularity(std::span<const double> odds, std::uint32_t chosen) {
  double high = 0;  // 1 - (1 - x)^k <= k x: at the sum of odds the loads are k or less.
  for (const double o : odds) high += o;
  double low = 0;
  const auto sum_at = [&](double r) {
    double sum = 0;
    for (const double o : odds) sum += chosen_by(o, r, chosen);
    return sum;
  };
  // Until there is no number between them.
  for (;;) {
    const double r = low + (high - low) / 2;
    if (r <= low || r >= high) break;
    (sum_at(r) > chosen ? low : high) = r;
  }
  std::vector<double> loads;
  for (const double o : odds) loads.push_back(chosen_by(o, high, chosen));
  return loads;
}

std::vector<double> popularity_of_loads(std::span<const double> loads, std::uint32_t chosen) {
  double sum = 0;
  for (const double load : loads) sum += load;
  require(sum > 0, "a load");
  std::vector<double> odds;
  for (std::size_t e = 0; e < loads.size(); ++e) {
    const double each = loads[e] / sum * chosen;
    // Rounding may take the sum of equal loads beyond.
    if (each > 1 + 1e-9) {
      throw InputError(fmt::format(
          "expert {} has {:.3g} of all load: with {} choices, different ones, no more than {:.3g} "
          "can be",
          e, loads[e] / sum, chosen, 1.0 / chosen));
    }
    const double missed = 1 - each;  // (1 - x)^k
    odds.push_back(chosen == 1 ? each
                   : missed < 1e-12
                       ? 1
                       : 1 - moe::portable_exp_minus(-moe::portable_log(missed) / chosen));
  }
  return odds;
}

}  // namespace flyover
