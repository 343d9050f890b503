#include "flyover/moe/popularity.hpp"

#include <utility>

#include "flyover/base/error.hpp"
#include "moe/random.hpp"

namespace flyover {

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

}  // namespace flyover
