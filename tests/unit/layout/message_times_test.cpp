// How long a layout's messages take when all groups of their kind send at once.

#include "flyover/layout/message_times.hpp"

#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "support/topologies.hpp"
#include "support/training.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

Message message(GroupKind group, CollectiveOp op, Bytes bytes) {
  return {group, op, bytes};
}

// What the cost model says of one group that has the cluster to itself.
CollectivePlan alone(const test::Cluster& cluster, CollectiveOp op, Bytes bytes,
                     const std::vector<std::uint32_t>& ranks) {
  return cluster.cost.choose({.op = op, .bytes = bytes, .dtype = {}, .ranks = ranks}).plan;
}

std::vector<std::uint32_t> first(std::uint32_t n) {
  std::vector<std::uint32_t> ranks(n);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Two nodes of eight GPUs on as many NICs as stated.
Topology two_nodes(std::uint32_t nics) {
  NodeSpec node = test::switched_node();
  node.nics = nics;
  return test::cluster(node, 2, FabricKind::FatTree);
}

// Ranks on tensor dimensions of eight fill a node each.
Layout data_between_nodes() {
  Layout layout;
  layout.tensor = 8;
  layout.data = 2;
  return layout;
}

}  // namespace

TEST_CASE("a group that is alone takes what the cost model says", "[message_times]") {
  const test::Cluster cluster(test::crossbar(8, 100_GBps, 1us));
  const MessageTimes times(cluster.topology, cluster.cost);
  Layout layout;
  layout.tensor = 8;
  for (const CollectiveOp op :
       {CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter}) {
    for (const Bytes bytes : {64_KiB, 16_MiB}) {
      const Duration expected = alone(cluster, op, bytes, first(8)).alone;
      CHECK(times.time(layout, message(GroupKind::Tensor, op, bytes)) == expected);
      // Asked again, and several in a row.
      Message thrice = message(GroupKind::Tensor, op, bytes);
      thrice.count = 3;
      CHECK(times.time(layout, thrice) == 3 * expected);
    }
  }
  // Groups of one rank send nothing, nor does anybody without bytes.
  CHECK(times.time(layout, message(GroupKind::Shard, CollectiveOp::AllReduce, 1_MiB)) ==
        Duration{});
  CHECK(times.time(layout, message(GroupKind::Tensor, CollectiveOp::AllReduce, Bytes{})) ==
        Duration{});
}

TEST_CASE("groups within a node that share no link do not slow each other", "[message_times]") {
  const test::Cluster cluster(test::crossbar(8, 100_GBps, 1us));
  const MessageTimes times(cluster.topology, cluster.cost);
  Layout layout;
  layout.tensor = 2;
  layout.data = 4;
  const Bytes bytes = 16_MiB;
  CHECK(times.time(layout, message(GroupKind::Tensor, CollectiveOp::AllReduce, bytes)) ==
        alone(cluster, CollectiveOp::AllReduce, bytes, {0, 1}).alone);
  CHECK(times.time(layout, message(GroupKind::Shard, CollectiveOp::AllReduce, bytes)) ==
        alone(cluster, CollectiveOp::AllReduce, bytes, {0, 2, 4, 6}).alone);
}

TEST_CASE("eight groups with a NIC each are as fast as one of them", "[message_times]") {
  const test::Cluster cluster(two_nodes(8));
  const MessageTimes times(cluster.topology, cluster.cost);
  const Bytes bytes = 64_MiB;
  const Message sum = message(GroupKind::Shard, CollectiveOp::AllReduce, bytes);
  CHECK(to_seconds(times.time(data_between_nodes(), sum)) ==
        Approx(to_seconds(alone(cluster, CollectiveOp::AllReduce, bytes, {0, 8}).alone)));
}

TEST_CASE("groups that share a NIC share its rate", "[message_times]") {
  const Bytes bytes = 64_MiB;
  const Message sum = message(GroupKind::Shard, CollectiveOp::AllReduce, bytes);
  for (const std::uint32_t nics : {4U, 2U}) {
    CAPTURE(nics);
    const test::Cluster cluster(two_nodes(nics));
    const MessageTimes times(cluster.topology, cluster.cost);
    const CollectivePlan one = alone(cluster, CollectiveOp::AllReduce, bytes, {0, 8});
    const Duration flowing = one.alone - one.startup;
    const Duration all = times.time(data_between_nodes(), sum);
    CHECK(to_seconds(all - one.startup) == Approx(8.0 / nics * to_seconds(flowing)));
  }
}

TEST_CASE("what lies nearer is faster, whichever dimension it is", "[message_times]") {
  const test::Cluster cluster(two_nodes(8));
  const MessageTimes times(cluster.topology, cluster.cost);
  const Message sum = message(GroupKind::Tensor, CollectiveOp::AllReduce, 64_MiB);
  Layout layout = data_between_nodes();
  const Duration inside = times.time(layout, sum);
  layout.order = {Dimension::Data, Dimension::Context, Dimension::Expert, Dimension::Tensor,
                  Dimension::Pipeline};
  CHECK(times.time(layout, sum) > 2 * inside);
}

TEST_CASE("a hop between stages is a send, of all ranks at once", "[message_times]") {
  const Bytes bytes = 16_MiB;
  Layout layout;
  layout.tensor = 8;
  layout.pipeline = 2;
  {
    const test::Cluster cluster(two_nodes(8));
    const MessageTimes times(cluster.topology, cluster.cost);
    const CollectivePlan send = cluster.cost.point_to_point(0, 8, bytes);
    const StageHop hop = times.hop(layout, bytes);
    CHECK(to_seconds(hop.mean) == Approx(to_seconds(send.alone)));
    CHECK(hop.slowest == hop.mean);
    CHECK(times.hop(layout, Bytes{}).mean == Duration{});
    layout.pipeline = 1;
    CHECK(times.hop(layout, bytes).mean == Duration{});
  }
  layout.pipeline = 2;
  const test::Cluster cluster(two_nodes(4));
  const MessageTimes times(cluster.topology, cluster.cost);
  const CollectivePlan send = cluster.cost.point_to_point(0, 8, bytes);
  CHECK(to_seconds(times.hop(layout, bytes).mean - send.startup) ==
        Approx(2 * to_seconds(send.alone - send.startup)));
  // Of four stages, two in each node, one boundary in three leaves it.
  layout.tensor = 4;
  layout.pipeline = 4;
  const StageHop hop = times.hop(layout, bytes);
  CHECK(hop.mean < hop.slowest);
  const Duration inside = cluster.cost.point_to_point(0, 4, bytes).alone;
  CHECK(to_seconds(hop.mean) == Approx((2 * to_seconds(inside) + to_seconds(hop.slowest)) / 3));
}
