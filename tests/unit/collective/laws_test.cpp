// Who sends how much to whom: the laws that a simulated time rests on.

#include <map>

#include <catch2/catch.hpp>

#include "unit/collective/shapes.hpp"

namespace flyover {
namespace {

using Catch::Matchers::WithinAbs;
using enum CollectiveOp;

Summary summary_of(CollectiveOp op, AlgorithmId id, const GroupShape& group,
                   std::uint32_t channels = 1, std::uint32_t root = 0) {
  return find_algorithm(op, id)->summarise(test::shape_of(op, group, channels, root));
}

// Bytes that every rank sends and receives, per byte of the collective.
std::vector<double> sent(const Summary& summary) {
  std::vector<double> out(summary.ranks + summary.relays, 0.0);
  for (const EdgeLoad& edge : summary.edges) out[edge.from] += edge.fraction;
  return out;
}
std::vector<double> received(const Summary& summary) {
  std::vector<double> out(summary.ranks + summary.relays, 0.0);
  for (const EdgeLoad& edge : summary.edges) out[edge.to] += edge.fraction;
  return out;
}

TEST_CASE("a ring sends the least that a collective can", "[collective][law]") {
  const auto n = GENERATE(2U, 3U, 8U, 48U);
  const auto channels = GENERATE(1U, 3U, 8U);
  const double share = (n - 1.0) / n;
  for (const auto& [op, laps] : {std::pair{AllReduce, 2}, {AllGather, 1}, {ReduceScatter, 1}}) {
    const Summary ring =
        summary_of(op, AlgorithmId::Ring,
                   test::group(test::domains_of(8, n), test::Order::Shuffled), channels);
    CHECK(ring.steps == static_cast<std::uint32_t>(laps) * (n - 1));
    for (const double bytes : sent(ring)) CHECK_THAT(bytes, WithinAbs(laps * share, 1e-9));
    for (const double bytes : received(ring)) CHECK_THAT(bytes, WithinAbs(laps * share, 1e-9));
  }
}

TEST_CASE("recursive and PAT collectives send the least too", "[collective][law]") {
  const auto [op, id, factor] = GENERATE(
      table<CollectiveOp, AlgorithmId, double>({{AllGather, AlgorithmId::RecursiveDoubling, 1},
                                                {ReduceScatter, AlgorithmId::RecursiveDoubling, 1},
                                                {AllReduce, AlgorithmId::RecursiveDoubling, 2},
                                                {AllGather, AlgorithmId::Pat, 1},
                                                {ReduceScatter, AlgorithmId::Pat, 1}}));
  const Summary summary = summary_of(op, id, test::group({8, 8}), 2);
  CHECK(summary.steps == static_cast<std::uint32_t>(factor) * 4);
  for (const double bytes : sent(summary)) CHECK_THAT(bytes, WithinAbs(factor * 15 / 16, 1e-9));
}

TEST_CASE("all pairs send the least in a domain, in a step for each half", "[collective][law]") {
  const auto n = GENERATE(2U, 3U, 8U, 72U);
  CAPTURE(n);
  const double share = (n - 1.0) / n;
  for (const auto& [op, halves] :
       {std::pair{AllReduce, 2U}, {AllGather, 1U}, {ReduceScatter, 1U}}) {
    const Summary pairs =
        summary_of(op, AlgorithmId::AllPairs, test::group({n}, test::Order::Shuffled));
    REQUIRE(pairs.edges.size() == std::size_t{n} * (n - 1));
    for (const EdgeLoad& edge : pairs.edges) {
      CHECK_THAT(edge.fraction, WithinAbs(double(halves) / n, 1e-12));
      CHECK(edge.messages == halves);
    }
    for (const double bytes : sent(pairs)) CHECK_THAT(bytes, WithinAbs(halves * share, 1e-9));
    for (const double bytes : received(pairs)) CHECK_THAT(bytes, WithinAbs(halves * share, 1e-9));
    CHECK(pairs.steps == halves);
    CHECK(pairs.intra_hops == halves);
    CHECK(pairs.inter_hops == 0);
  }
}

TEST_CASE("all pairs cross between counterparts of their domains only, each with its own shard",
          "[collective][law]") {
  const auto domains = GENERATE(2U, 4U);
  const GroupShape group = test::group(test::domains_of(8, 8 * domains), test::Order::Interleaved);
  const Summary pairs = summary_of(AllReduce, AlgorithmId::AllPairs, group);
  std::vector<double> inside(pairs.ranks, 0.0);
  std::vector<double> across(pairs.ranks, 0.0);
  for (const EdgeLoad& edge : pairs.edges) {
    const bool together = group.domain[edge.from] == group.domain[edge.to];
    if (!together) CHECK(group.rail[edge.from] == group.rail[edge.to]);
    (together ? inside : across)[edge.from] += edge.fraction;
  }
  for (const double bytes : inside) CHECK_THAT(bytes, WithinAbs(2 * 7.0 / 8, 1e-9));
  for (const double bytes : across) {
    CHECK_THAT(bytes, WithinAbs(2.0 * (domains - 1) / domains / 8, 1e-9));
  }
  CHECK(pairs.steps == 4);
  CHECK(pairs.intra_hops == 2);
  CHECK(pairs.inter_hops == 2);
}

TEST_CASE("one shot takes a single step for n-1 times the data", "[collective][law]") {
  const auto sizes = GENERATE(std::vector<std::uint32_t>{2}, std::vector<std::uint32_t>{8},
                              std::vector<std::uint32_t>{8, 3});
  const Summary shot = summary_of(AllReduce, AlgorithmId::OneShot, test::group(sizes));
  for (const double bytes : sent(shot)) CHECK(bytes == shot.ranks - 1.0);
  for (const double bytes : received(shot)) CHECK(bytes == shot.ranks - 1.0);
  CHECK(shot.steps == 1);
  CHECK(shot.intra_hops == (sizes.size() > 1 ? 0U : 1U));
  CHECK(shot.inter_hops == (sizes.size() > 1 ? 1U : 0U));
}

TEST_CASE("PAT sends little over long distances", "[collective][law]") {
  const Summary pat = summary_of(AllGather, AlgorithmId::Pat, test::group({16}));
  for (const EdgeLoad& edge : pat.edges) {
    const std::uint32_t distance = (edge.to + 16 - edge.from) % 16;
    CHECK(edge.messages == 8 / distance);
  }
}

TEST_CASE("a rank inside a tree sends and receives twice the data", "[collective][law]") {
  const Summary chain = summary_of(AllReduce, AlgorithmId::Tree, test::group({8}), 2);
  const auto out = sent(chain);
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    CAPTURE(rank);
    // Two chains, which start at rank 0 and at rank 1 and end at ranks 7 and 0.
    const double expected = rank == 0 || rank == 1 || rank == 7 ? (rank == 0 ? 1.0 : 1.5) : 2.0;
    CHECK_THAT(out[rank], WithinAbs(expected, 1e-9));
  }
  CHECK(chain.intra_hops == 14);
  CHECK(chain.inter_hops == 0);
}

TEST_CASE("in a double binary tree no domain sends more than twice the data", "[collective][law]") {
  const auto domains = GENERATE(2U, 4U, 6U, 16U, 50U, 128U);
  CAPTURE(domains);
  const Summary trees =
      summary_of(AllReduce, AlgorithmId::Tree, test::group(test::domains_of(1, domains)));
  for (const double bytes : sent(trees)) CHECK(bytes <= 2 + 1e-9);
  for (const double bytes : received(trees)) CHECK(bytes <= 2 + 1e-9);
  const auto depth = static_cast<std::uint32_t>(std::ceil(std::log2(domains)));
  CHECK(trees.inter_hops <= 2 * (depth + 1));
}

TEST_CASE("a broadcast root sends the data once, half into each tree", "[collective][law]") {
  const auto domains = GENERATE(3U, 5U, 16U, 33U);
  CAPTURE(domains);
  const Summary trees =
      summary_of(Broadcast, AlgorithmId::Tree, test::group(test::domains_of(1, domains)), 1, 2);
  CHECK_THAT(sent(trees)[2], WithinAbs(1, 1e-9));
  CHECK_THAT(received(trees)[2], WithinAbs(0, 1e-9));
  for (std::uint32_t rank = 0; rank < domains; ++rank) {
    if (rank != 2) CHECK_THAT(received(trees)[rank], WithinAbs(1, 1e-9));
    CHECK(sent(trees)[rank] <= 2);
  }
}

TEST_CASE("a pipelined chain carries the data once over every edge", "[collective][law]") {
  const auto op = GENERATE(Broadcast, Reduce);
  const Summary chain = summary_of(op, AlgorithmId::Ring, test::group({8, 8}), 1, 5);
  REQUIRE(chain.edges.size() == 15);
  for (const EdgeLoad& edge : chain.edges) CHECK(edge.fraction == 1.0);
  CHECK(chain.intra_hops + chain.inter_hops == 15);
  CHECK(chain.inter_hops == 2);
  CHECK(sent(chain)[5] == (op == Broadcast ? 1.0 : 0.0));
}

TEST_CASE("NVLS sends every byte up once, and an n-th of them again", "[collective][law]") {
  const auto channels = GENERATE(1U, 4U);
  const auto n = GENERATE(2U, 8U, 72U);
  const Summary nvls = summary_of(AllReduce, AlgorithmId::Nvls, test::group({n}), channels);
  CHECK(nvls.relays == 1);
  CHECK(nvls.relay_domain == std::vector<std::uint32_t>{100});
  CHECK(nvls.intra_hops == 4);
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    CHECK_THAT(sent(nvls)[rank], WithinAbs(1 + 1.0 / n, 1e-9));
    CHECK_THAT(received(nvls)[rank], WithinAbs(1 + 1.0 / n, 1e-9));
  }
  const Summary gather = summary_of(AllGather, AlgorithmId::Nvls, test::group({n}), channels);
  CHECK_THAT(sent(gather)[0], WithinAbs(1.0 / n, 1e-9));
  CHECK_THAT(received(gather)[0], WithinAbs(1, 1e-9));
  const Summary scatter = summary_of(ReduceScatter, AlgorithmId::Nvls, test::group({n}), channels);
  CHECK_THAT(sent(scatter)[0], WithinAbs(1, 1e-9));
  CHECK_THAT(received(scatter)[0], WithinAbs(1.0 / n, 1e-9));
}

TEST_CASE("NVLS trees stay on their rails and share the data out among them", "[collective][law]") {
  const GroupShape group = test::group({8, 8, 8, 8});
  const Summary summary = summary_of(AllReduce, AlgorithmId::NvlsTree, group);
  CHECK(summary.relays == 4);
  std::vector<double> up(32, 0.0);
  std::vector<double> network(32, 0.0);
  for (const EdgeLoad& edge : summary.edges) {
    if (edge.to >= 32) {
      up[edge.from] += edge.fraction;
    } else if (edge.from < 32) {
      CHECK(group.rail[edge.from] == group.rail[edge.to]);
      network[edge.from] += edge.fraction;
    }
  }
  for (std::uint32_t rank = 0; rank < 32; ++rank) {
    CHECK_THAT(up[rank], WithinAbs(1 + 1.0 / 8, 1e-9));
    CHECK(network[rank] <= 2.0 / 8 + 1e-9);
  }
  CHECK(summary.intra_hops == 4);
}

TEST_CASE("where the network reduces, a head sends its share once, however many domains there are",
          "[collective][law]") {
  const auto id =
      GENERATE(AlgorithmId::CollnetDirect, AlgorithmId::CollnetChain, AlgorithmId::Nvls);
  const auto domains = GENERATE(2U, 4U, 32U);
  CAPTURE(to_string(id), domains);
  const Summary summary =
      summary_of(AllReduce, id, test::group(test::domains_of(8, 8 * domains)), 8);
  const std::uint32_t network = summary.ranks + summary.relays - 1;
  CHECK(summary.relay_domain.back() == network_relay);
  std::vector<double> into(summary.ranks, 0.0);
  std::vector<double> out_of(summary.ranks, 0.0);
  for (const EdgeLoad& edge : summary.edges) {
    if (edge.to == network) into[edge.from] += edge.fraction;
    if (edge.from == network) out_of[edge.to] += edge.fraction;
  }
  for (std::uint32_t rank = 0; rank < summary.ranks; ++rank) {
    CHECK_THAT(into[rank], WithinAbs(1.0 / 8, 1e-9));
    CHECK_THAT(out_of[rank], WithinAbs(1.0 / 8, 1e-9));
  }
  CHECK(summary.inter_hops == 2);
}

TEST_CASE("inside a domain CollNet moves twice the data, NVLS once and its share",
          "[collective][law]") {
  const auto inside = [](AlgorithmId id) {
    const Summary summary = summary_of(AllReduce, id, test::group({8, 8}), 8);
    std::vector<double> out(summary.ranks, 0.0);
    for (const EdgeLoad& edge : summary.edges) {
      if (edge.from < summary.ranks && edge.to != summary.ranks + summary.relays - 1) {
        out[edge.from] += edge.fraction;
      }
    }
    return out;
  };
  for (const double bytes : inside(AlgorithmId::CollnetDirect)) {
    CHECK_THAT(bytes, WithinAbs(2 * 7.0 / 8, 1e-9));
  }
  for (const double bytes : inside(AlgorithmId::CollnetChain)) {
    CHECK_THAT(bytes, WithinAbs(2 * 7.0 / 8, 1e-9));
  }
  for (const double bytes : inside(AlgorithmId::Nvls)) CHECK_THAT(bytes, WithinAbs(9.0 / 8, 1e-9));
  const auto hops = [](AlgorithmId id) {
    return summary_of(AllReduce, id, test::group({8, 8}), 8).intra_hops;
  };
  CHECK(hops(AlgorithmId::CollnetDirect) == 2);
  CHECK(hops(AlgorithmId::CollnetChain) == 14);
  CHECK(hops(AlgorithmId::Nvls) == 4);
}

TEST_CASE("a single ring over ranks in order is the ring 0, 1, 2, ...", "[collective][law]") {
  const auto sizes =
      GENERATE(std::vector<std::uint32_t>{16}, std::vector<std::uint32_t>{8, 8},
               std::vector<std::uint32_t>{1, 5, 2, 8}, std::vector<std::uint32_t>(16, 1));
  const Summary ring = summary_of(AllReduce, AlgorithmId::Ring, test::group(sizes));
  REQUIRE(ring.edges.size() == 16);
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    CHECK(ring.edges[rank].from == rank);
    CHECK(ring.edges[rank].to == (rank + 1) % 16);
  }
}

TEST_CASE("a ring visits every domain once, whatever the order of the ranks", "[collective][law]") {
  const auto order =
      GENERATE(test::Order::InOrder, test::Order::Interleaved, test::Order::Shuffled);
  const GroupShape group = test::group({8, 3, 5, 8, 1}, order);
  const Summary ring = summary_of(AllGather, AlgorithmId::Ring, group, 8);
  std::map<std::uint32_t, std::uint32_t> crossings;
  for (const EdgeLoad& edge : ring.edges) {
    if (group.domain[edge.from] != group.domain[edge.to]) ++crossings[edge.channel];
  }
  REQUIRE(crossings.size() == 8);
  for (const auto& [channel, count] : crossings) CHECK(count == 5);
}

TEST_CASE("as many rings as rails use every NIC of every domain alike", "[collective][law]") {
  const auto order = GENERATE(test::Order::InOrder, test::Order::Shuffled);
  const GroupShape group = test::group({8, 8, 8}, order);
  const Summary ring = summary_of(AllReduce, AlgorithmId::Ring, group, 8);
  std::vector<int> entries(24, 0);
  for (const EdgeLoad& edge : ring.edges) {
    if (group.domain[edge.from] == group.domain[edge.to]) continue;
    CHECK(group.rail[edge.to] == edge.channel);
    ++entries[edge.to];
  }
  CHECK(entries == std::vector<int>(24, 1));
}

TEST_CASE("a domain of fewer members uses their rails in turn", "[collective][law]") {
  const GroupShape group{.domain = {0, 0, 0, 0, 1, 1}, .rail = {0, 1, 2, 3, 1, 3}};
  const Summary ring = summary_of(AllReduce, AlgorithmId::Ring, group, 4);
  std::vector<std::uint32_t> entry_rails;
  for (const EdgeLoad& edge : ring.edges) {
    if (edge.from < 4 && edge.to >= 4) entry_rails.push_back(group.rail[edge.to]);
  }
  CHECK(entry_rails == std::vector<std::uint32_t>{1, 3, 1, 3});
}

TEST_CASE("members that share a rail are entered in turn", "[collective][law]") {
  const GroupShape group = test::group({4, 4}, test::Order::InOrder, test::Rails::Shared);
  const Summary ring = summary_of(AllReduce, AlgorithmId::Ring, group, 4);
  std::vector<std::uint32_t> entries;
  for (const EdgeLoad& edge : ring.edges) {
    if (edge.from < 4 && edge.to >= 4) entries.push_back(edge.to);
  }
  CHECK(entries == std::vector<std::uint32_t>{4, 6, 5, 7});
}

TEST_CASE("an all-to-all brings every rank what is not its own", "[collective][law]") {
  const auto id = GENERATE(AlgorithmId::Direct, AlgorithmId::Pairwise);
  const Summary summary = summary_of(AllToAll, id, test::group({4, 8}));
  REQUIRE(summary.edges.size() == 12 * 11);
  for (const double bytes : sent(summary)) CHECK_THAT(bytes, WithinAbs(11.0 / 12, 1e-9));
  CHECK(summary.steps == (id == AlgorithmId::Direct ? 1 : 11));
}

TEST_CASE("a hierarchical all-to-all enters the network on the receiver's rail",
          "[collective][law]") {
  const GroupShape group = test::group({4, 4, 4}, test::Order::Interleaved);
  const Summary summary = summary_of(AllToAll, AlgorithmId::Hierarchical, group);
  for (const EdgeLoad& edge : summary.edges) {
    if (group.domain[edge.from] == group.domain[edge.to]) {
      // Its own block, and one for each other domain's member on that rail.
      CHECK(edge.messages == 3);
    } else {
      CHECK(group.rail[edge.from] == group.rail[edge.to]);
      CHECK(edge.messages == 4);
    }
  }
  CHECK(summary.steps == 2);
  CHECK(summary.intra_hops == 1);
  CHECK(summary.inter_hops == 1);
}

TEST_CASE("where a domain has no member on the receiver's rail, blocks go directly",
          "[collective][law]") {
  const GroupShape group{.domain = {0, 0, 1, 1}, .rail = {0, 1, 1, 2}};
  const Summary summary = summary_of(AllToAll, AlgorithmId::Hierarchical, group);
  const auto messages = [&](std::uint32_t from, std::uint32_t to) {
    for (const EdgeLoad& edge : summary.edges) {
      if (edge.from == from && edge.to == to) return edge.messages;
    }
    return 0U;
  };
  CHECK(messages(0, 2) == 0);  // By way of 1.
  CHECK(messages(1, 2) == 2);
  CHECK(messages(0, 3) == 1);
  CHECK(messages(1, 3) == 1);
  CHECK(messages(0, 1) == 2);
}

TEST_CASE("scatter, gather and sendrecv send each block once", "[collective][law]") {
  const Summary scatter = summary_of(Scatter, AlgorithmId::Direct, test::group({3, 3}), 1, 2);
  CHECK_THAT(sent(scatter)[2], WithinAbs(5.0 / 6, 1e-9));
  const Summary gather = summary_of(Gather, AlgorithmId::Direct, test::group({3, 3}), 1, 2);
  CHECK_THAT(received(gather)[2], WithinAbs(5.0 / 6, 1e-9));
  const Summary sendrecv = summary_of(SendRecv, AlgorithmId::Direct, test::group({3, 3}));
  for (const EdgeLoad& edge : sendrecv.edges) {
    CHECK(edge.to == (edge.from + 1) % 6);
    CHECK(edge.fraction == 1.0);
  }
}

TEST_CASE("a barrier is one block up and down one tree", "[collective][law]") {
  const Summary barrier = summary_of(Barrier, AlgorithmId::Tree, test::group({8, 8}), 8);
  CHECK(barrier.edges.size() == 30);
  CHECK(barrier.steps == 16);
  CHECK(barrier.inter_hops == 2);
  for (const EdgeLoad& edge : barrier.edges) {
    CHECK(edge.messages == 1);
    CHECK(edge.channel == 0);
  }
}

}  // namespace
}  // namespace flyover
