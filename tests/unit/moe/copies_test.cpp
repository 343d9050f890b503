// Do expected copies equal what the formulas and an enumeration of all choices say?

#include "flyover/moe/copies.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "unit/moe/groups.hpp"

namespace {

using namespace flyover;
using namespace flyover::test;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

struct Known {
  std::string name;
  ExpertRouting routing;
  std::uint32_t ranks = 0;
  double nodes = 0;
  double gpus = 0;
};

TEST_CASE("expected nodes and ranks of a token are those of MOE.md 1.6", "[moe]") {
  const auto known = GENERATE(values<Known>({
      {"EP8", top_k(256, 8), 8, 1, 5.2947},
      {"EP16 unrestricted", top_k(256, 8), 16, 1.9930, 6.5233},
      {"EP32 unrestricted", top_k(256, 8), 32, 3.6142, 7.2668},
      {"EP64 unrestricted", top_k(256, 8), 64, 5.2947, 7.6758},
      {"EP16 test", grouped(Gate::GroupMax, 256, 8, 2, 2), 16, 1.9930, 6.5233},
      {"EP32 test", grouped(Gate::GroupMax, 256, 8, 4, 4), 32, 3.6142, 7.2668},
      {"EP64 test", grouped(Gate::GroupMax, 256, 8, 8, 4), 64, 3.9831, 7.4711},
      {"EP128 test", grouped(Gate::GroupMax, 256, 8, 16, 4), 128, 3.9995, 7.6374},
      {"V4-Flash EP16", top_k(256, 6), 16, 1.9706, 5.1800},
      {"V4-Flash EP32", top_k(256, 6), 32, 3.3021, 5.6010},
      {"V4-Flash EP64", top_k(256, 6), 64, 4.4400, 5.8254},
      {"V4-Pro EP16", top_k(384, 6), 16, 1.9700, 5.1656},
      {"V4-Pro EP32", top_k(384, 6), 32, 3.2974, 5.5840},
      {"V4-Pro EP64", top_k(384, 6), 64, 4.4298, 5.8069},
      {"V4-Pro EP64 by hash",
       [] {
         ExpertRouting routing = top_k(384, 6);
         routing.gate = Gate::Hash;
         return routing;
       }(),
       64, 4.4298, 5.8069},
  }));
  CAPTURE(known.name);

  const ExpertCopies copies =
      expert_copies(exchange_of(known.routing, 4096), nodes_of(8, known.ranks));

  CHECK_THAT(sum_of_row(copies.to_node, 0) / 4096, WithinAbs(known.nodes, 5.1e-5));
  CHECK_THAT(sum_of_row(copies.to_rank, 0) / 4096, WithinAbs(known.gpus, 5.1e-5));
  CHECK(copies.balanced);
  CHECK(copies.basis == "expected, closed form");
}

// MOE.md's are drawn, with a standard error of 5e-4; ours are integrals.
TEST_CASE("expected nodes and ranks of the V3 gate are those of MOE.md 1.6", "[moe]") {
  const auto known = GENERATE(values<Known>({
      {"EP8, a group per rank", {}, 8, 1, 3.9538},
      {"EP16", {}, 16, 1.9660, 5.7279},
      {"EP32", {}, 32, 3.1165, 6.8555},
      {"EP64", {}, 64, 3.9538, 7.4903},
  }));
  CAPTURE(known.name);
  const ExpertRouting routing = grouped(Gate::GroupSumOfTwo, 256, 8, 8, 4);

  const ExpertCopies copies = expert_copies(exchange_of(routing, 4096), nodes_of(8, known.ranks));

  CHECK_THAT(sum_of_row(copies.to_node, 0) / 4096, WithinAbs(known.nodes, 1e-3));
  CHECK_THAT(sum_of_row(copies.to_rank, 0) / 4096, WithinAbs(known.gpus, 1e-3));
  CHECK(copies.balanced);
  CHECK(copies.basis == "expected, closed form");
}

// MOE.md 1.7: T r and T v times 7392 and 14336 bytes; MB with one decimal. Those of the V3 gate
// are drawn.
TEST_CASE("payload per GPU and layer is that of MOE.md 1.7", "[moe]") {
  struct Row {
    std::string name;
    ExpertRouting routing;
    std::uint32_t ranks = 0;
    double network_dispatch = 0;
    double nvlink_dispatch = 0;
    double network_combine = 0;
    double nvlink_combine = 0;
    double within = 0.051;
  };
  const ExpertRouting v3 = grouped(Gate::GroupSumOfTwo, 256, 8, 8, 4);
  const auto row = GENERATE_COPY(values<Row>({
      {"EP8", top_k(256, 8), 8, 0, 140.3, 0, 272.0},
      {"EP16", top_k(256, 8), 16, 30.2, 172.8, 58.5, 335.2},
      {"EP32", top_k(256, 8), 32, 82.1, 192.5, 159.2, 373.4},
      {"EP64", top_k(256, 8), 64, 140.3, 203.4, 272.0, 394.4},
      {"EP64 test", grouped(Gate::GroupMax, 256, 8, 8, 4), 64, 105.5, 197.9, 204.7, 383.9},
      {"EP128 test", grouped(Gate::GroupMax, 256, 8, 16, 4), 128, 113.5, 202.3, 220.2, 392.4},
      {"EP16 V3", v3, 16, 29.8, 151.8, 57.7, 294.3, 0.08},
      {"EP32 V3", v3, 32, 70.8, 181.6, 137.3, 352.2, 0.08},
      {"EP64 V3", v3, 64, 104.7, 198.4, 203.1, 384.9, 0.08},
  }));
  CAPTURE(row.name);

  const ExpertGroup group = nodes_of(8, row.ranks);
  const ExpertCopies copies = expert_copies(exchange_of(row.routing, 4096), group);

  // Copies whose destination has the source's index stay on the GPU that forwards.
  const double to_nodes = sum_of_row(copies.to_node, 0) - copies.to_node.at(0, 0);
  double to_ranks = 0;
  for (std::uint32_t rank = 0; rank < row.ranks; ++rank) {
    if (group.index[rank] != 0) to_ranks += copies.to_rank.at(0, rank);
  }
  CHECK_THAT(to_nodes * 7392 / 1e6, WithinAbs(row.network_dispatch, row.within));
  CHECK_THAT(to_ranks * 7392 / 1e6, WithinAbs(row.nvlink_dispatch, row.within));
  CHECK_THAT(to_nodes * 14336 / 1e6, WithinAbs(row.network_combine, row.within));
  CHECK_THAT(to_ranks * 14336 / 1e6, WithinAbs(row.nvlink_combine, row.within));
}

// All orders of all experts, by the words of the gate; replicas chosen in every way.
struct Enumerated {
  std::vector<double> node;
  std::vector<double> rank;
  std::vector<double> pairs;
};

Enumerated enumerate(const ExpertRouting& routing, const ExpertGroup& group,
                     const std::vector<std::vector<std::uint32_t>>& homes) {
  Enumerated sum{std::vector<double>(group.nodes(), 0), std::vector<double>(group.ranks(), 0),
                 std::vector<double>(group.ranks(), 0)};
  const std::uint32_t size =
      routing.groups == 0 ? routing.experts : routing.experts / routing.groups;
  std::vector<std::uint32_t> order(routing.experts);
  std::iota(order.begin(), order.end(), 0U);
  double orders = 0;
  do {
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t e : order) {
      if (routing.gate != Gate::GroupMax) break;
      if (std::ranges::find(kept, e / size) == kept.end() && kept.size() < routing.groups_chosen) {
        kept.push_back(e / size);
      }
    }
    std::vector<std::uint32_t> chosen;
    for (const std::uint32_t e : order) {
      const bool may =
          routing.gate != Gate::GroupMax || std::ranges::find(kept, e / size) != kept.end();
      if (may && chosen.size() < routing.chosen) chosen.push_back(e);
    }
    std::vector<std::uint32_t> to;
    const std::function<void(std::size_t, double)> go = [&](std::size_t i, double weight) {
      if (i < chosen.size()) {
        const auto& home = homes[chosen[i]];
        for (const std::uint32_t rank : home) {
          to.push_back(rank);
          go(i + 1, weight / static_cast<double>(home.size()));
          to.pop_back();
        }
        return;
      }
      for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
        const auto times = std::ranges::count(to, rank);
        sum.pairs[rank] += weight * static_cast<double>(times);
        if (times > 0) sum.rank[rank] += weight;
      }
      for (std::uint32_t node = 0; node < group.nodes(); ++node) {
        if (std::ranges::any_of(to, [&](std::uint32_t rank) { return group.node[rank] == node; })) {
          sum.node[node] += weight;
        }
      }
    };
    go(0, 1);
    ++orders;
  } while (std::ranges::next_permutation(order).found);
  for (auto* of : {&sum.node, &sum.rank, &sum.pairs}) {
    for (double& value : *of) value /= orders;
  }
  return sum;
}

TEST_CASE("closed forms equal the mean over all orders of scores", "[moe]") {
  struct Tiny {
    std::string name;
    ExpertRouting routing;
    std::uint32_t slots = 0;
    std::vector<std::uint32_t> domain;
  };
  const auto tiny = GENERATE(values<Tiny>({
      {"top 3 of 8", top_k(8, 3), 0, {0, 0, 1, 1}},
      {"uneven nodes", top_k(8, 3), 0, {0, 0, 0, 1}},
      {"nodes not in a row", top_k(8, 2), 0, {0, 1, 0, 1}},
      {"all of 4", top_k(4, 4), 0, {0, 1}},
      {"max, a group per node", grouped(Gate::GroupMax, 8, 3, 4, 2), 0, {0, 1, 2, 3}},
      {"max, two groups per node", grouped(Gate::GroupMax, 8, 3, 4, 2), 0, {0, 0, 1, 1}},
      {"max, two nodes per group", grouped(Gate::GroupMax, 8, 4, 2, 1), 0, {0, 1, 2, 3}},
      {"max, ranks across groups", grouped(Gate::GroupMax, 6, 3, 3, 2), 0, {0, 1}},
      {"max, uneven nodes", grouped(Gate::GroupMax, 8, 4, 4, 3), 0, {0, 0, 0, 1}},
      {"max, all groups", grouped(Gate::GroupMax, 6, 3, 3, 3), 0, {0, 1, 2}},
      {"redundant", top_k(6, 3), 9, {0, 1, 1}},
      {"redundant, max", grouped(Gate::GroupMax, 6, 3, 3, 2), 8, {0, 1, 1, 2}},
      {"three of each", top_k(3, 2), 9, {0, 0, 1}},
  }));
  CAPTURE(tiny.name);
  ExpertExchange exchange = exchange_of(tiny.routing, 10);
  exchange.routing.slots = tiny.slots;
  const ExpertGroup group = expert_group(tiny.domain);
  const std::uint32_t slots = tiny.slots == 0 ? tiny.routing.experts : tiny.slots;
  std::vector<std::vector<std::uint32_t>> homes(tiny.routing.experts);
  for (std::uint32_t s = 0; s < slots; ++s) {
    homes[s % tiny.routing.experts].push_back(s / (slots / group.ranks()));
  }

  const ExpertCopies copies = expert_copies(exchange, group);

  const Enumerated all = enumerate(tiny.routing, group, homes);
  for (std::uint32_t row = 0; row < group.ranks(); ++row) {
    for (std::uint32_t node = 0; node < group.nodes(); ++node) {
      CHECK_THAT(copies.to_node.at(row, node), WithinRel(10 * all.node[node], 1e-12));
    }
    for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
      CHECK_THAT(copies.to_rank.at(row, rank), WithinRel(10 * all.rank[rank], 1e-12));
      CHECK_THAT(copies.pairs.at(row, rank), WithinRel(10 * all.pairs[rank], 1e-12));
    }
  }
}

TEST_CASE("balanced says whether every rank sends and gets the same", "[moe]") {
  const ExpertRouting routing = grouped(Gate::GroupSumOfTwo, 256, 8, 8, 4);
  ExpertExchange exchange = exchange_of(routing, 64);

  SECTION("alike: equal to the last bit") {
    const ExpertCopies copies = expert_copies(exchange, nodes_of(8, 64));
    CHECK(copies.balanced);
    for (const CopyTable* table : {&copies.to_node, &copies.to_rank, &copies.pairs}) {
      CHECK(std::ranges::count(table->counts, table->counts[0]) ==
            static_cast<std::ptrdiff_t>(table->counts.size()));
    }
  }
  SECTION("not with nodes of different size") {
    std::vector<std::uint32_t> domain(8, 0);
    domain.insert(domain.end(), 24, 1);
    CHECK_FALSE(expert_copies(exchange, expert_group(domain)).balanced);
  }
  SECTION("not with tokens that differ, which scale rows") {
    exchange.tokens = 0;
    exchange.rank_tokens = std::vector<std::uint32_t>(16, 100);
    exchange.rank_tokens[3] = 0;
    exchange.rank_tokens[4] = 250;
    const ExpertCopies copies = expert_copies(exchange, nodes_of(8, 16));
    CHECK_FALSE(copies.balanced);
    CHECK(sum_of_row(copies.pairs, 3) == 0);
    CHECK_THAT(copies.to_rank.at(4, 9), WithinRel(2.5 * copies.to_rank.at(5, 9), 1e-14));
  }
  SECTION("not with copies of some experts only") {
    exchange.routing.slots = 288;
    CHECK_FALSE(expert_copies(exchange, nodes_of(8, 32)).balanced);
  }
  SECTION("not when sampled") {
    exchange.routing.sampled = true;
    CHECK_FALSE(expert_copies(exchange, nodes_of(8, 32)).balanced);
  }
  SECTION("popularity that is equal is none") {
    exchange.routing.popularity.assign(256, 3.5);
    CHECK(expert_copies(exchange, nodes_of(8, 32)).balanced);
  }
}

TEST_CASE("no copies are lost, however they are counted", "[moe]") {
  ExpertRouting routing = GENERATE(top_k(64, 6), grouped(Gate::GroupMax, 64, 6, 8, 3),
                                   grouped(Gate::GroupSumOfTwo, 64, 6, 8, 3));
  routing.sampled = GENERATE(false, true);
  routing.slots = GENERATE(0U, 80U);
  routing.placement = GENERATE(Placement::InOrder, Placement::Global, Placement::Hierarchical);
  routing.groups = 8;
  if (GENERATE(false, true)) {
    for (std::uint32_t e = 0; e < 64; ++e) routing.popularity.push_back(1.0 / (1 + e * 29 % 64));
    routing.popularity[7] = 0;
  }
  const ExpertGroup group = nodes_of(4, 16);
  const ExpertCopies copies = expert_copies(exchange_of(routing, 500), group);
  CAPTURE(copies.basis);

  for (std::uint32_t row = 0; row < group.ranks(); ++row) {
    CHECK_THAT(sum_of_row(copies.pairs, row), WithinRel(500.0 * 6, 1e-12));
    for (std::uint32_t node = 0; node < group.nodes(); ++node) {
      double most = 0;
      double sum = 0;
      for (const std::uint32_t rank : group.members[node]) {
        CHECK(copies.to_rank.at(row, rank) <= copies.pairs.at(row, rank) * (1 + 1e-12));
        most = std::max(most, copies.to_rank.at(row, rank));
        sum += copies.to_rank.at(row, rank);
      }
      const double here = copies.to_node.at(row, node);
      CHECK(here >= most * (1 - 1e-12));
      CHECK(here <= sum * (1 + 1e-12));
      CHECK(here <= 500 * (1 + 1e-12));
    }
  }
}

TEST_CASE("an expert that is never chosen gets nothing", "[moe]") {
  ExpertRouting routing = GENERATE(top_k(16, 4), grouped(Gate::GroupMax, 16, 4, 4, 2),
                                   grouped(Gate::GroupSumOfTwo, 16, 4, 4, 2));
  routing.sampled = GENERATE(false, true);
  routing.popularity = {1, 2, 1, 0, 1, 2, 1, 0, 5, 9, 0, 1, 1, 1, 1, 1};

  const ExpertCopies copies = expert_copies(exchange_of(routing, 3000), nodes_of(4, 16));

  for (std::uint32_t row = 0; row < 16; ++row) {
    for (const std::uint32_t never : {3U, 7U, 10U}) CHECK(copies.pairs.at(row, never) == 0);
    CHECK(copies.pairs.at(row, 9) > copies.pairs.at(row, 0));
  }
}

TEST_CASE("sampled copies depend on the seed and on the rank alone", "[moe]") {
  ExpertExchange exchange = exchange_of(top_k(64, 4), 200);
  exchange.routing.sampled = true;
  const ExpertGroup group = nodes_of(8, 16);
  const ExpertCopies first = expert_copies(exchange, group);
  CHECK(first.basis == "sampled, seed 1");
  CHECK(expert_copies(exchange, group).pairs.counts == first.pairs.counts);

  SECTION("other tokens elsewhere change no row but theirs") {
    exchange.rank_tokens.assign(16, 200);
    exchange.rank_tokens[0] = 7;
    exchange.tokens = 0;
    const ExpertCopies other = expert_copies(exchange, group);
    CHECK(other.to_rank.at(0, 5) != first.to_rank.at(0, 5));
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
      CHECK(other.pairs.at(1, rank) == first.pairs.at(1, rank));
    }
  }
  SECTION("another seed") {
    exchange.routing.seed = 2;
    CHECK(expert_copies(exchange, group).pairs.counts != first.pairs.counts);
  }
}

TEST_CASE("routing that cannot be is refused in words", "[moe]") {
  ExpertExchange exchange = exchange_of(grouped(Gate::GroupSumOfTwo, 256, 8, 8, 4), 16);
  std::uint32_t ranks = 16;
  std::string problem;
  ExpertRouting& routing = exchange.routing;

  SECTION("ranks") {
    ranks = 24;
    problem = "256 experts do not divide over 24 ranks";
  }
  SECTION("slots") {
    routing.slots = 260;
    problem = "260 slots do not divide over 16 ranks";
  }
  SECTION("too few slots") {
    routing.slots = 128;
    problem = "128 slots cannot hold 256 experts";
  }
  SECTION("no experts") {
    routing.experts = 0;
    problem = "a token needs experts to choose from, got 8 of 0";
  }
  SECTION("more than all") {
    routing = top_k(8, 9);
    problem = "9 experts cannot be chosen from 8";
  }
  SECTION("groups") {
    routing.groups = 7;
    problem =
        "the gate group-sum-of-two needs groups of equal size: 256 experts do not divide into 7 "
        "groups";
  }
  SECTION("no groups") {
    routing.groups = 0;
    problem = "the gate group-sum-of-two needs groups of experts";
  }
  SECTION("groups chosen") {
    routing.groups_chosen = 9;
    problem = "the gate chooses 1 to 8 of 8 groups, not 9";
  }
  SECTION("more than the groups hold") {
    routing = grouped(Gate::GroupMax, 16, 8, 8, 3);
    problem = "8 experts cannot be chosen from 3 groups of 2";
  }
  SECTION("one score per group") {
    routing = grouped(Gate::GroupSumOfTwo, 16, 2, 16, 4);
    problem =
        "the gate group-sum-of-two adds two scores of each group: 16 groups of 16 experts have one";
  }
  SECTION("hierarchical") {
    routing.placement = Placement::Hierarchical;
    ranks = 128;
    problem =
        "hierarchical placement needs as many groups in each node: 8 groups do not divide over 16 "
        "nodes; \"global\" does not need that";
  }
  SECTION("popularity of others") {
    routing.popularity = {1, 2};
    problem = "the popularity of 2 experts is given, and there are 256";
  }
  SECTION("negative popularity") {
    routing.popularity.assign(256, 1);
    routing.popularity[3] = -1;
    problem = "a popularity must be a number of at least 0, not -1";
  }
  SECTION("nobody popular") {
    routing.popularity.assign(256, 0);
    problem = "some expert must have a popularity above 0";
  }
  SECTION("too few popular") {
    routing.popularity.assign(256, 0);
    for (std::uint32_t e = 0; e < 256; e += 32) routing.popularity[e] = 1;
    problem = "8 experts cannot be chosen when only 4 have a popularity above 0 in some 4 groups";
  }
  SECTION("tokens") {
    exchange.rank_tokens = {1, 2, 3};
    problem = "tokens of 3 ranks are given, and the group has 16";
  }

  CHECK_THROWS_WITH(expert_copies(exchange, nodes_of(8, ranks)),
                    "expert exchange \"layer\": " + problem);
  CHECK_THROWS_AS(expert_copies(exchange, nodes_of(8, ranks)), InputError);
}

}  // namespace
