// Do the fast generators draw what a gate with one score per expert would choose?

#include "moe/gate_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include <catch2/catch.hpp>

#include "flyover/moe/popularity.hpp"
#include "moe/count_law.hpp"
#include "unit/moe/groups.hpp"

namespace {

using namespace flyover;
using namespace flyover::test;
using moe::GateSampler;
using moe::Random;

using Chosen = std::vector<std::uint32_t>;
using Counts = std::map<Chosen, double>;

// As the gate's definition says: a score for every expert, groups ranked, the best of those kept.
Chosen plain(const ExpertRouting& routing, Random& random) {
  std::vector<double> score;
  for (std::uint32_t e = 0; e < routing.experts; ++e) {
    const double weight = routing.popularity.empty() ? 1 : routing.popularity[e];
    score.push_back(std::pow(random.unit(), 1 / weight));
  }
  std::vector<bool> kept(routing.experts, true);
  if (routing.gate == Gate::GroupMax || routing.gate == Gate::GroupSumOfTwo) {
    const std::uint32_t size = routing.experts / routing.groups;
    std::vector<std::pair<double, std::uint32_t>> groups;
    for (std::uint32_t g = 0; g < routing.groups; ++g) {
      std::vector<double> best(score.begin() + g * size, score.begin() + (g + 1) * size);
      std::ranges::sort(best, std::greater<>());
      groups.emplace_back(routing.gate == Gate::GroupMax ? best[0] : best[0] + best[1], g);
    }
    std::ranges::sort(groups, std::greater<>());
    kept.assign(routing.experts, false);
    for (std::uint32_t i = 0; i < routing.groups_chosen; ++i) {
      std::fill_n(kept.begin() + groups[i].second * size, size, true);
    }
  }
  Chosen order;
  for (std::uint32_t e = 0; e < routing.experts; ++e) {
    if (kept[e]) order.push_back(e);
  }
  std::ranges::sort(order, std::greater<>(), [&](std::uint32_t e) { return score[e]; });
  order.resize(routing.chosen);
  return order;
}

// Chi squared of two samples of the same size, in standard deviations above its mean.
double difference(const Counts& a, const Counts& b) {
  Counts both = a;
  for (const auto& [chosen, n] : b) both[chosen] += n;
  double sum = 0;
  double freedom = -1;
  double rare_a = 0;
  double rare_b = 0;
  for (const auto& [chosen, n] : both) {
    const double in_a = a.contains(chosen) ? a.at(chosen) : 0;
    if (n < 20) {
      rare_a += in_a;
      rare_b += n - in_a;
      continue;
    }
    const double d = in_a - (n - in_a);
    sum += d * d / n;
    ++freedom;
  }
  if (rare_a + rare_b >= 20) {
    sum += (rare_a - rare_b) * (rare_a - rare_b) / (rare_a + rare_b);
    ++freedom;
  }
  return (sum - freedom) / std::sqrt(2 * freedom);
}

TEST_CASE("fast draws have the distribution of plain scores", "[moe]") {
  struct Tried {
    std::string name;
    ExpertRouting routing;
  };
  auto tried = GENERATE(values<Tried>({
      {"top 3 of 8", top_k(8, 3)},
      {"all of 4", top_k(4, 4)},
      {"max", grouped(Gate::GroupMax, 8, 3, 4, 2)},
      {"max, group of one node", grouped(Gate::GroupMax, 8, 3, 2, 1)},
      {"sum of two", grouped(Gate::GroupSumOfTwo, 8, 3, 4, 2)},
      {"sum of two of three", grouped(Gate::GroupSumOfTwo, 9, 4, 3, 2)},
      {"sum of two, all that is kept", grouped(Gate::GroupSumOfTwo, 8, 4, 4, 2)},
  }));
  const bool popular = GENERATE(false, true);
  CAPTURE(tried.name, popular);
  ExpertRouting& routing = tried.routing;
  if (popular) {
    // One that is drawn again and again, which draws by rejection must survive.
    routing.popularity = {0.3, 1, 0.1, 2, 40, 0.7, 1, 0.02, 3};
    routing.popularity.resize(routing.experts);
    // Scores are of popularity with mean 1.
    const double sum = std::accumulate(routing.popularity.begin(), routing.popularity.end(), 0.0);
    for (double& p : routing.popularity) p *= routing.experts / sum;
  }
  constexpr int tokens = 100'000;

  GateSampler sampler(routing);
  Random fast_random(1, 0);
  Random plain_random(2, 0);
  Counts fast;
  Counts slow;
  Chosen chosen(routing.chosen);
  for (int t = 0; t < tokens; ++t) {
    sampler.draw(fast_random, chosen);
    ++fast[chosen];
    ++slow[plain(routing, plain_random)];
  }

  CHECK(difference(fast, slow) < 4);
}

TEST_CASE("fast draws of V3's gate choose groups as plain scores do", "[moe]") {
  const Gate gate = GENERATE(Gate::TopK, Gate::GroupMax, Gate::GroupSumOfTwo);
  const bool popular = GENERATE(false, true);
  ExpertRouting routing = grouped(gate, 256, 8, 8, 4);
  if (popular) routing.popularity = zipf_popularity(256, 0.8, 5);
  constexpr int tokens = 20'000;

  GateSampler sampler(routing);
  Random fast_random(1, 0);
  Random plain_random(2, 0);
  Counts fast;
  Counts slow;
  Counts fast_expert;
  Counts slow_expert;
  const auto note = [](const Chosen& chosen, Counts& groups, Counts& experts) {
    Chosen by_group(8, 0);
    for (const std::uint32_t e : chosen) {
      ++by_group[e / 32];
      ++experts[{e}];
    }
    ++groups[by_group];
  };
  Chosen chosen(routing.chosen);
  for (int t = 0; t < tokens; ++t) {
    sampler.draw(fast_random, chosen);
    note(chosen, fast, fast_expert);
    note(plain(routing, plain_random), slow, slow_expert);
  }

  CHECK(difference(fast, slow) < 4);
  CHECK(difference(fast_expert, slow_expert) < 4);
}

// The largest of the differences between 400,000 tokens and what is expected, in standard errors.
TEST_CASE("counts by group are drawn as often as their law says", "[moe]") {
  const ExpertRouting routing = GENERATE(
      grouped(Gate::GroupMax, 64, 6, 8, 3), grouped(Gate::GroupSumOfTwo, 256, 8, 8, 4),
      grouped(Gate::GroupSumOfTwo, 8, 3, 4, 2), grouped(Gate::GroupSumOfTwo, 9, 4, 3, 2),
      grouped(Gate::GroupSumOfTwo, 12, 3, 4, 1), grouped(Gate::GroupSumOfTwo, 40, 8, 8, 2),
      grouped(Gate::GroupSumOfTwo, 20, 5, 4, 3), grouped(Gate::GroupSumOfTwo, 8, 4, 4, 2),
      grouped(Gate::GroupSumOfTwo, 6, 1, 3, 1), grouped(Gate::GroupSumOfTwo, 1024, 8, 4, 2));
  CAPTURE(routing.experts, routing.chosen, routing.groups, routing.groups_chosen);
  constexpr double tokens = 400'000;
  GateSampler sampler(routing);
  Random random(11, 0);
  Chosen chosen(routing.chosen);
  Counts seen;
  for (int t = 0; t < static_cast<int>(tokens); ++t) {
    sampler.draw(random, chosen);
    Chosen counts(routing.groups, 0);
    for (const std::uint32_t e : chosen) ++counts[e / (routing.experts / routing.groups)];
    std::ranges::sort(counts, std::greater<>());
    std::erase(counts, 0U);
    ++seen[counts];
  }

  double total = 0;
  double all_seen = 0;
  for (const moe::CountLaw::Outcome& outcome : moe::count_law(routing).outcomes) {
    const double p = outcome.probability;
    const double times = seen.contains(outcome.counts) ? seen.at(outcome.counts) : 0;
    CHECK(p >= -1e-15);
    CHECK(std::abs(times - tokens * p) <= 4 * std::sqrt(tokens * std::abs(p * (1 - p))) + 2);
    total += p;
    all_seen += times;
  }
  CHECK_THAT(total, Catch::Matchers::WithinRel(1.0, 1e-12));
  CHECK(all_seen == tokens);
}

TEST_CASE("generators are within four standard errors of the closed forms", "[moe]") {
  struct Tried {
    std::string name;
    ExpertRouting routing;
    std::uint32_t ranks = 0;
    std::uint32_t slots = 0;
  };
  const auto tried = GENERATE(values<Tried>({
      {"EP64", top_k(256, 8), 64, 0},
      {"EP64 max", grouped(Gate::GroupMax, 256, 8, 8, 4), 64, 0},
      {"EP32 max over two groups per node", grouped(Gate::GroupMax, 256, 8, 8, 4), 32, 0},
      {"EP128 max over half a group per node", grouped(Gate::GroupMax, 256, 8, 8, 4), 128, 0},
      {"EP64 V3", grouped(Gate::GroupSumOfTwo, 256, 8, 8, 4), 64, 0},
      {"EP16 V3", grouped(Gate::GroupSumOfTwo, 256, 8, 8, 4), 16, 0},
      {"EP32, copies of some", top_k(256, 8), 32, 288},
      {"EP32 max, copies of some", grouped(Gate::GroupMax, 256, 8, 8, 4), 32, 288},
  }));
  CAPTURE(tried.name);
  constexpr std::uint32_t tokens = 1000;
  ExpertExchange exchange = exchange_of(tried.routing, tokens);
  exchange.routing.slots = tried.slots;
  const ExpertGroup group = nodes_of(8, tried.ranks);
  const ExpertCopies expected = expert_copies(exchange, group);
  exchange.routing.sampled = true;

  const ExpertCopies sampled = expert_copies(exchange, group);

  // Of all sources together. Each token brings 0 or 1 to a node or rank: a variance of p (1 - p).
  const double all = tokens * tried.ranks;
  double nodes = 0;
  double expected_nodes = 0;
  for (std::uint32_t node = 0; node < group.nodes(); ++node) {
    double here = 0;
    double mean = 0;
    for (std::uint32_t row = 0; row < tried.ranks; ++row) {
      here += sampled.to_node.at(row, node);
      mean += expected.to_node.at(row, node);
    }
    const double p = mean / all;
    CHECK(std::abs(here - mean) <= 4 * std::sqrt(all * p * (1 - p)) + 1e-9);
    nodes += here / all;
    expected_nodes += p;
  }
  // D_n of a token varies by less than 1.2 in all of these.
  CHECK(std::abs(nodes - expected_nodes) <= 4 * 1.2 / std::sqrt(all));
  for (std::uint32_t rank = 0; rank < tried.ranks; ++rank) {
    double here = 0;
    double mean = 0;
    for (std::uint32_t row = 0; row < tried.ranks; ++row) {
      here += sampled.to_rank.at(row, rank);
      mean += expected.to_rank.at(row, rank);
    }
    const double p = mean / all;
    CHECK(std::abs(here - mean) <= 4.5 * std::sqrt(all * p * (1 - p)));
  }
}

// What makes results the same on every machine.
TEST_CASE("a seed draws the same everywhere", "[moe]") {
  Random random(7, 3);
  CHECK(random.next() == 0xc080fc4b9f341341U);
  CHECK(random.below(1000) == 336);
  CHECK(random.exponential() == 0x1.6e40314b97ae1p-1);

  ExpertRouting routing = grouped(Gate::GroupSumOfTwo, 64, 4, 8, 3);
  Chosen chosen(4);
  GateSampler(routing).draw(random, chosen);
  CHECK(chosen == Chosen{55, 3, 14, 13});
  routing.popularity = zipf_popularity(64, 1, 2);
  GateSampler(routing).draw(random, chosen);
  CHECK(chosen == Chosen{23, 62, 56, 1});
}

TEST_CASE("portable functions are those of the standard library", "[moe]") {
  for (double x = 1e-9; x < 1e9; x *= 1.37) {
    CHECK_THAT(moe::portable_log(x), Catch::Matchers::WithinAbs(std::log(x), 1e-13));
  }
  for (double y = 1e-6; y < 690; y *= 1.17) {
    CHECK_THAT(moe::portable_exp_minus(y), Catch::Matchers::WithinRel(std::exp(-y), 1e-13));
  }
  CHECK(moe::portable_exp_minus(0) == 1);
  CHECK(moe::portable_exp_minus(1e9) == 0);
}

TEST_CASE("the ziggurat draws exponential times", "[moe]") {
  Random random(3, 0);
  constexpr int draws = 1'000'000;
  constexpr std::size_t bins = 100;
  std::vector<double> hits(bins, 0);
  double beyond = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = random.exponential();
    // Bins of equal probability.
    ++hits[std::min(bins - 1, static_cast<std::size_t>(bins * (1 - std::exp(-x))))];
    if (x > moe::Ziggurat::tail) ++beyond;
  }
  double chi = 0;
  constexpr double each = static_cast<double>(draws) / bins;
  for (const double n : hits) chi += (n - each) * (n - each) / each;
  CHECK(chi < bins - 1 + 4 * std::sqrt(2.0 * (bins - 1)));
  const double expected = draws * std::exp(-moe::Ziggurat::tail);
  CHECK(std::abs(beyond - expected) < 4 * std::sqrt(expected));
}

}  // namespace
