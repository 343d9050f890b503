// The stream of a collective against its schedule, replayed message by message.
//
// A stream moves at the pace of its most loaded link from the first byte to the last; messages wait
// for each other. So the schedule is never faster than the stream without its start-up, and slower
// at most by the fill of its pipeline: `slack` states by how much, for the block counts that
// schedules use.

#include <catch2/catch.hpp>

#include "flyover/collective/algorithms.hpp"
#include "flyover/simulate/chunk_replay.hpp"
#include "support/cluster.hpp"
#include "support/clusters.hpp"

using namespace flyover;
using namespace flyover::literals;
using test::Cluster;
using test::crossbar;
using test::library;
using test::rails;

namespace {

struct Case {
  CollectiveOp op;
  AlgorithmId algorithm;
  double slack;
};

std::vector<std::uint32_t> first_ranks(std::uint32_t n) {
  std::vector<std::uint32_t> ranks(n);
  for (std::uint32_t i = 0; i < n; ++i) ranks[i] = i;
  return ranks;
}

CollectivePlan plan_of(const Cluster& c, const Case& which, Bytes bytes) {
  const Choice choice = c.cost.choose(
      {which.op, bytes, "", first_ranks(static_cast<std::uint32_t>(c.topology.gpus.size())), 0});
  REQUIRE(choice.plan.algorithm == which.algorithm);
  return choice.plan;
}

ChunkReplay chunks_of(const Cluster& c, const Case& which, const CollectivePlan& plan,
                      Bytes bytes) {
  const auto ranks = first_ranks(static_cast<std::uint32_t>(c.topology.gpus.size()));
  const Algorithm* algorithm = find_algorithm(which.op, which.algorithm);
  REQUIRE(algorithm != nullptr);
  const CollectiveShape shape{.op = which.op,
                              .group = c.cost.shape(ranks),
                              .channels = plan.channels,
                              .root = 0,
                              .in_switch_reduction = c.router.has_in_switch_reduction(0),
                              .in_network_reduction = c.topology.in_network_reduction};
  return replay_chunks(c.topology, c.router, algorithm->schedule(shape, bytes), ranks);
}

// The messages put on every link what the stream does.
void check_same_bytes(const Cluster& c, const CollectivePlan& plan, const ChunkReplay& chunks,
                      Bytes bytes) {
  std::vector<double> expected(c.topology.links.size(), 0.0);
  for (const Hop& hop : *plan.loads) {
    expected[index(hop.link)] = hop.share * static_cast<double>(bytes.count());
  }
  for (std::size_t link = 0; link < expected.size(); ++link) {
    REQUIRE(chunks.link_bytes[link] == Approx(expected[link]).epsilon(1e-6).margin(1));
  }
}

}  // namespace

TEST_CASE("a ring's stream takes exactly the time of its messages", "[scenario][chunks]") {
  const auto op =
      GENERATE(CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter);
  const auto n = GENERATE(2U, 5U, 8U, 32U);
  const Bytes bytes{std::int64_t{n} * 1'000'000};
  const Cluster c(crossbar(n, 100_GBps, 1us), library("ideal", {{"NCCL_ALGO", "Ring"}}));
  const Case ring{op, AlgorithmId::Ring, 1};
  const CollectivePlan plan = plan_of(c, ring, bytes);
  const ChunkReplay chunks = chunks_of(c, ring, plan, bytes);
  CHECK(to_seconds(chunks.time) == Approx(to_seconds(plan.alone)).epsilon(1e-7));
}

TEST_CASE("streams move the same bytes over the same links as messages, in a time within the bound",
          "[scenario][chunks]") {
  const auto which = GENERATE(
      Case{CollectiveOp::AllReduce, AlgorithmId::Ring, 1.25},
      Case{CollectiveOp::AllReduce, AlgorithmId::Tree, 2.5},
      Case{CollectiveOp::AllReduce, AlgorithmId::RecursiveDoubling, 2.0},
      Case{CollectiveOp::AllGather, AlgorithmId::Ring, 1.25},
      Case{CollectiveOp::AllGather, AlgorithmId::Pat, 3.0},
      Case{CollectiveOp::ReduceScatter, AlgorithmId::Ring, 1.25},
      Case{CollectiveOp::ReduceScatter, AlgorithmId::Pat, 3.0},
      Case{CollectiveOp::AllToAll, AlgorithmId::Direct, 1.1},
      // Its steps cross between nodes one after the other, with few of the NICs busy in each.
      Case{CollectiveOp::AllToAll, AlgorithmId::Pairwise, 3.0},
      Case{CollectiveOp::AllToAll, AlgorithmId::Hierarchical, 2.5},
      Case{CollectiveOp::Broadcast, AlgorithmId::Ring, 3.5},
      Case{CollectiveOp::Broadcast, AlgorithmId::Tree, 2.5},
      Case{CollectiveOp::Reduce, AlgorithmId::Ring, 3.5},
      Case{CollectiveOp::Reduce, AlgorithmId::Tree, 2.5},
      Case{CollectiveOp::Scatter, AlgorithmId::Direct, 1.1},
      Case{CollectiveOp::Gather, AlgorithmId::Direct, 1.1},
      Case{CollectiveOp::SendRecv, AlgorithmId::Direct, 1.1});
  const auto nodes = GENERATE(1U, 2U, 4U);
  CAPTURE(to_string(which.op), to_string(which.algorithm), nodes);
  const Cluster c(
      nodes == 1 ? crossbar(8, 400_GBps, 0ns) : rails(nodes, 400_GBps, 50_GBps, 0ns, 0ns),
      library("ideal", {{"NCCL_ALGO", std::string(to_string(which.algorithm))},
                        {"NCCL_MAX_NCHANNELS", nodes == 1 ? "1" : "8"}}));
  const Bytes bytes{std::int64_t{nodes} * 8 * 8 * 64 * 10'000};
  const CollectivePlan plan = plan_of(c, which, bytes);
  const ChunkReplay chunks = chunks_of(c, which, plan, bytes);

  check_same_bytes(c, plan, chunks, bytes);
  const double ratio = to_seconds(chunks.time) / to_seconds(plan.alone);
  CAPTURE(ratio);
  CHECK(ratio >= 1 - 1e-6);
  CHECK(ratio <= which.slack);
}

TEST_CASE("sums in the network move the same bytes as streams and as messages",
          "[scenario][chunks]") {
  const auto which = GENERATE(Case{CollectiveOp::AllReduce, AlgorithmId::CollnetDirect, 4.0},
                              Case{CollectiveOp::AllReduce, AlgorithmId::CollnetChain, 10.0},
                              Case{CollectiveOp::AllReduce, AlgorithmId::Nvls, 4.0});
  const auto nodes = GENERATE(2U, 4U);
  CAPTURE(to_string(which.algorithm), nodes);
  Topology topology = rails(nodes, 400_GBps, 50_GBps, 0ns, 0ns);
  topology.in_network_reduction = true;
  for (Node& node : topology.nodes) node.in_switch_reduction = true;
  const Cluster c(std::move(topology),
                  library("ideal", {{"NCCL_ALGO", std::string(to_string(which.algorithm))},
                                    {"NCCL_COLLNET_ENABLE", "1"},
                                    {"NCCL_MIN_NCHANNELS", "8"},
                                    {"NCCL_MAX_NCHANNELS", "8"}}));
  const Bytes bytes{std::int64_t{nodes} * 8 * 8 * 64 * 10'000};
  const CollectivePlan plan = plan_of(c, which, bytes);
  const ChunkReplay chunks = chunks_of(c, which, plan, bytes);
  check_same_bytes(c, plan, chunks, bytes);
  // Blocks are not cut further: gathering, the network and spreading follow one another.
  const double ratio = to_seconds(chunks.time) / to_seconds(plan.alone);
  CAPTURE(ratio);
  CHECK(ratio >= 1 - 1e-6);
  CHECK(ratio <= which.slack);
}

TEST_CASE("NVLS messages go up and down once, its stream does both at once", "[scenario][chunks]") {
  const auto op =
      GENERATE(CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter);
  const Cluster c(crossbar(8, 400_GBps, 0ns, true), library("ideal", {{"NCCL_ALGO", "NVLS"}}));
  const Case nvls{op, AlgorithmId::Nvls, 2.5};
  const Bytes bytes{64'000'000};
  const CollectivePlan plan = plan_of(c, nvls, bytes);
  const ChunkReplay chunks = chunks_of(c, nvls, plan, bytes);
  const double ratio = to_seconds(chunks.time) / to_seconds(plan.alone);
  CAPTURE(to_string(op), ratio);
  CHECK(ratio >= 1 - 1e-6);
  CHECK(ratio <= nvls.slack);
}

TEST_CASE("all pairs and one shot move the same bytes as streams and as messages, at once",
          "[scenario][chunks]") {
  // Inside a domain all links are busy all the time; across, the stages follow one another.
  const auto which = GENERATE(Case{CollectiveOp::AllReduce, AlgorithmId::AllPairs, 3.0},
                              Case{CollectiveOp::AllGather, AlgorithmId::AllPairs, 3.0},
                              Case{CollectiveOp::ReduceScatter, AlgorithmId::AllPairs, 3.0},
                              Case{CollectiveOp::AllReduce, AlgorithmId::OneShot, 1.1});
  const auto nodes = GENERATE(1U, 2U, 4U);
  CAPTURE(to_string(which.op), to_string(which.algorithm), nodes);
  Library ideal = library("ideal");
  ideal.algorithms[which.op] = {which.algorithm};
  const Cluster c(
      nodes == 1 ? crossbar(8, 400_GBps, 0ns) : rails(nodes, 400_GBps, 50_GBps, 0ns, 0ns), ideal);
  const Bytes bytes{std::int64_t{nodes} * 8 * 8 * 64 * 10'000};
  const CollectivePlan plan = plan_of(c, which, bytes);
  const ChunkReplay chunks = chunks_of(c, which, plan, bytes);
  check_same_bytes(c, plan, chunks, bytes);
  const double ratio = to_seconds(chunks.time) / to_seconds(plan.alone);
  CAPTURE(ratio);
  CHECK(ratio >= 1 - 1e-6);
  CHECK(ratio <= (nodes == 1 ? 1 + 1e-6 : which.slack));
}

TEST_CASE("all pairs take the time of their two steps", "[scenario][chunks]") {
  const auto n = GENERATE(2U, 8U, 16U);
  const Bytes bytes{std::int64_t{n} * 1'000'000};
  Library ideal = library("ideal");
  ideal.algorithms[CollectiveOp::AllReduce] = {AlgorithmId::AllPairs};
  const Cluster c(crossbar(n, 100_GBps, 1us), ideal);
  const Case pairs{CollectiveOp::AllReduce, AlgorithmId::AllPairs, 1};
  const CollectivePlan plan = plan_of(c, pairs, bytes);

  const double expected = 2 * 1e-6 + 2 * (n - 1) * 1e6 / 100e9;
  CHECK(to_seconds(plan.alone) == Approx(expected).epsilon(1e-6));
  CHECK(to_seconds(chunks_of(c, pairs, plan, bytes).time) == Approx(expected).epsilon(1e-6));
}
