// Do loads follow from popularity and popularity from loads?

#include "flyover/moe/popularity.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "moe/gate_sampler.hpp"

namespace {

using namespace flyover;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

TEST_CASE("Zipf popularity falls with the rank and has mean 1", "[moe]") {
  std::vector<double> popularity = zipf_popularity(256, 0.5, 3);
  CHECK_THAT(std::accumulate(popularity.begin(), popularity.end(), 0.0), WithinRel(256, 1e-12));
  CHECK(popularity != zipf_popularity(256, 0.5, 4));
  std::ranges::sort(popularity, std::greater<>());
  CHECK_THAT(popularity[0] / popularity[99], WithinRel(10, 1e-12));
  CHECK(zipf_popularity(4, 0, 1) == std::vector<double>{1, 1, 1, 1});
}

TEST_CASE("loads are odds for one choice, and equal for equal odds", "[moe]") {
  const std::vector<double> odds = {1, 3, 0, 4};
  const std::vector<double> once = loads_of_popularity(odds, 1);
  for (std::size_t e = 0; e < odds.size(); ++e) CHECK_THAT(once[e], WithinAbs(odds[e] / 8, 1e-15));
  const std::vector<double> alike(16, 2.5);
  for (const double load : loads_of_popularity(alike, 6))
    CHECK_THAT(load, WithinRel(6.0 / 16, 1e-13));
  // Three that can be chosen, and three are.
  for (const std::size_t e : {0U, 1U, 3U})
    CHECK_THAT(loads_of_popularity(odds, 3)[e], WithinRel(1, 1e-12));
}

TEST_CASE("popularity of loads brings those loads", "[moe]") {
  const std::uint32_t chosen = GENERATE(1U, 2U, 8U);
  const std::vector<double> popularity = zipf_popularity(64, 0.7, 1);
  const std::vector<double> loads = loads_of_popularity(popularity, chosen);
  const std::vector<double> back = popularity_of_loads(loads, chosen);
  for (std::size_t e = 0; e < 64; ++e) {
    CHECK_THAT(back[e] / back[0], WithinRel(popularity[e] / popularity[0], 1e-11));
  }
}

// The bound that docs/models/moe-routing.md states.
TEST_CASE("drawn loads are near those of the formula", "[moe]") {
  ExpertRouting routing;
  routing.experts = 256;
  routing.chosen = 8;
  const double exponent = GENERATE(0.5, 1.0);
  routing.popularity = zipf_popularity(256, exponent, 1);
  const std::vector<double> loads = loads_of_popularity(routing.popularity, 8);
  moe::GateSampler sampler(routing);
  moe::Random random(1, 0);
  std::vector<double> drawn(256, 0);
  std::vector<std::uint32_t> chosen(8);
  constexpr int tokens = 200'000;
  for (int t = 0; t < tokens; ++t) {
    sampler.draw(random, chosen);
    for (const std::uint32_t e : chosen) drawn[e] += 1.0 / tokens;
  }
  for (std::size_t e = 0; e < 256; ++e) {
    // 4 % and five standard errors.
    CHECK(std::abs(drawn[e] - loads[e]) < 0.04 * loads[e] + 5 * std::sqrt(loads[e] / tokens));
  }
}

TEST_CASE("no expert can have more than every token", "[moe]") {
  const std::vector<double> loads = {6, 2, 2};
  CHECK_THROWS_WITH(
      popularity_of_loads(loads, 2),
      "expert 0 has 0.6 of all load: with 2 choices, different ones, no more than 0.5 "
      "can be");
  CHECK_THROWS_AS(popularity_of_loads(loads, 2), InputError);
  const std::vector<double> all = {2, 1, 1};
  CHECK(popularity_of_loads(all, 2)[0] == 1);
}

}  // namespace
