// Reduction in the network's switches: who may use it, what it loads, and the best possible plan.

#include <catch2/catch.hpp>

#include "clusters.hpp"
#include "flyover/base/error.hpp"
#include "flyover/topology/builders.hpp"

namespace flyover::cost_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;
using Variables = std::vector<std::pair<std::string, std::string>>;

Topology quantum(const NodeSpec& node, std::uint32_t nodes, std::uint32_t unit = 32) {
  ClusterSpec spec;
  spec.name = node.name;
  spec.nodes.push_back({node, nodes});
  spec.fabric.kind = FabricKind::RailOptimized;
  spec.fabric.preset = "ndr";
  spec.fabric.in_network_reduction = true;
  spec.fabric.link_latency = 500000_ps;
  spec.fabric.nodes_per_unit = unit;
  return build_topology(spec);
}

// Bytes per byte of the call on the links from NICs to leaves, and between switches.
struct Loads {
  double out_of_nics = 0;
  double most_of_a_nic = 0;
  double trunks = 0;
};
Loads loads(const Bench& bench, const CollectivePlan& plan) {
  Loads sums;
  for (const Hop& hop : *plan.loads) {
    const Link& link = bench.topology.links[hop.link];
    if (link.kind == LinkKind::LeafSpine) sums.trunks += hop.share;
    if (link.kind != LinkKind::HostLeaf) continue;
    if (bench.topology.vertices[link.from].kind != VertexKind::Nic) continue;
    sums.out_of_nics += hop.share;
    sums.most_of_a_nic = std::max(sums.most_of_a_nic, hop.share);
  }
  return sums;
}

std::string complaint(const Bench& bench) {
  try {
    static_cast<void>(bench.choose(CollectiveOp::AllReduce, 1_MiB));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

}  // namespace

TEST_CASE("in-network reduction must be there and be asked for", "[cost][sharp]") {
  const Variables only = {{"NCCL_ALGO", "CollnetDirect,CollnetChain"}};
  CHECK_THAT(complaint(Bench(quantum(dgx_h100(), 4), "nccl", only)),
             Contains("collnet-direct: NCCL_COLLNET_ENABLE is not set"));
  Variables asked = only;
  asked.emplace_back("NCCL_COLLNET_ENABLE", "1");
  Topology roce = cluster(dgx_h100(), 4);
  roce.fabric_preset = "roce-400";
  CHECK_THAT(complaint(Bench(std::move(roce), "nccl", asked)),
             Contains("collnet-chain: roce-400 switches do not reduce"));
  CHECK_THAT(complaint(Bench(quantum(dgx_h100(), 1), "nccl", asked)),
             Contains("collnet-direct: needs more than one domain"));
  CHECK(complaint(Bench(quantum(dgx_h100(), 4), "nccl", asked)) == "no complaint");
}

TEST_CASE("a fabric that reduces is not used unless NCCL is told to", "[cost][sharp]") {
  const Bench plain(cluster(dgx_h100(), 8), "nccl");
  const Bench able(quantum(dgx_h100(), 8), "nccl");
  for (const Bytes bytes : {8_B, 1_MiB, 1_GiB}) {
    const CollectivePlan a = plain.choose(CollectiveOp::AllReduce, bytes).plan;
    const CollectivePlan b = able.choose(CollectiveOp::AllReduce, bytes).plan;
    CHECK(a.algorithm == b.algorithm);
    CHECK(a.alone == b.alone);
    CHECK_FALSE(b.sharp);
  }
}

TEST_CASE("every NIC sends its share of the data once, whatever the number of nodes",
          "[cost][sharp]") {
  const auto algorithm = GENERATE("CollnetDirect", "CollnetChain", "NVLS");
  const auto nodes = GENERATE(2U, 8U, 32U);
  CAPTURE(algorithm, nodes);
  const Bench bench(
      quantum(dgx_h100(), nodes), "ideal",
      {{"NCCL_ALGO", algorithm}, {"NCCL_COLLNET_ENABLE", "1"}, {"NCCL_MAX_NCHANNELS", "8"}});
  const CollectivePlan plan = bench.choose(CollectiveOp::AllReduce, 1_GiB).plan;
  CHECK(plan.sharp);
  const Loads sums = loads(bench, plan);
  CHECK_THAT(sums.out_of_nics, WithinRel(double(nodes), 1e-9));
  CHECK_THAT(sums.most_of_a_nic, WithinRel(1.0 / 8, 1e-9));
  CHECK(sums.trunks == 0);  // One leaf per rail.
}

TEST_CASE("between switches a sum travels once for all nodes behind it", "[cost][sharp]") {
  // Units of 4 nodes: 4 leaves per rail. On each rail 1/8 of the data climbs from every leaf to the
  // spines and comes down again.
  const Bench bench(quantum(dgx_h100(), 16, 4), "ideal",
                    {{"NCCL_ALGO", "CollnetDirect"}, {"NCCL_COLLNET_ENABLE", "1"}});
  const CollectivePlan plan = bench.choose(CollectiveOp::AllReduce, 1_GiB).plan;
  CHECK_THAT(loads(bench, plan).trunks, WithinRel(2 * 4 * 8 * (1.0 / 8), 1e-9));
}

TEST_CASE(
    "with ideal rates an all-reduce in the network takes S over the rate of the NICs, or what "
    "it moves in a node over NVLink's",
    "[cost][sharp]") {
  const double size = static_cast<double>((8_GiB).count());
  const double seconds = size / (8 * 50e9);
  const auto [algorithm, inside] = GENERATE(table<std::string, double>(
      {{"CollnetDirect", 2 * 7.0 / 8}, {"CollnetChain", 2 * 7.0 / 8}, {"NVLS", 9.0 / 8}}));
  CAPTURE(algorithm);
  const Bench bench(quantum(dgx_h100(), 32), "ideal",
                    {{"NCCL_ALGO", algorithm},
                     {"NCCL_COLLNET_ENABLE", "1"},
                     {"NCCL_MIN_NCHANNELS", "8"},
                     {"NCCL_MAX_NCHANNELS", "8"}});
  const CollectivePlan plan = bench.choose(CollectiveOp::AllReduce, 8_GiB).plan;
  CHECK_THAT(to_seconds(plan.alone - plan.startup),
             WithinRel(std::max(seconds, size * inside / 450e9), 1e-6));
  // A ring's NICs send almost twice as much.
  const Bench ring(quantum(dgx_h100(), 32), "ideal", {{"NCCL_ALGO", "Ring"}});
  const CollectivePlan other = ring.choose(CollectiveOp::AllReduce, 8_GiB).plan;
  CHECK(to_seconds(other.alone - other.startup) > 1.9 * seconds);
}

TEST_CASE("the best possible plan is never slower than the library's", "[cost][sharp]") {
  const auto nodes = GENERATE(1U, 2U, 16U);
  const Bench bench(quantum(dgx_h100(), nodes), "nccl", {{"NCCL_ALGO", "Ring"}});
  const Library open = best_possible(bench.library);
  const CostModel best(bench.topology, *bench.router, open);
  for (const Bytes bytes : {8_B, 64_KiB, 1_MiB, 64_MiB, 8_GiB}) {
    CAPTURE(nodes, bytes.count());
    const CollectiveCall call = bench.call(CollectiveOp::AllReduce, bytes);
    const CollectivePlan own = bench.model->choose(call).plan;
    const CollectivePlan fastest = best.choose(call).plan;
    CHECK(fastest.alone <= own.alone);

    // Told so, the library takes it.
    Library told = bench.library;
    for (const auto& [name, value] : variables_for(told, call.op, fastest)) {
      set_variable(told.settings, name, value);
    }
    const CollectivePlan again = CostModel(bench.topology, *bench.router, told).choose(call).plan;
    CHECK(again.algorithm == fastest.algorithm);
    CHECK(again.protocol == fastest.protocol);
    CHECK(again.alone == fastest.alone);
  }
}

TEST_CASE("the variables of a plan name what the settings would not allow", "[cost][sharp]") {
  const Library library = load("nccl");
  CollectivePlan plan;
  plan.algorithm = AlgorithmId::Nvls;
  CHECK(variables_for(library, CollectiveOp::AllReduce, plan) ==
        Variables{{"NCCL_ALGO", "NVLS"}, {"NCCL_PROTO", "Simple"}});
  plan.sharp = true;
  Library off = library;
  off.settings.nvls = false;
  CHECK(variables_for(off, CollectiveOp::AllReduce, plan) ==
        Variables{{"NCCL_ALGO", "NVLS"},
                  {"NCCL_PROTO", "Simple"},
                  {"NCCL_NVLS_ENABLE", "1"},
                  {"NCCL_COLLNET_ENABLE", "1"}});
  CHECK(variables_for(library, CollectiveOp::AllToAll, plan).empty());
}

TEST_CASE("the best possible plan leaves out what the hardware cannot do", "[cost][sharp]") {
  const Bench bench(pcie_box(), 1, "nccl");
  const Library open = best_possible(bench.library);
  const CostModel best(bench.topology, *bench.router, open);
  const Choice choice = best.choose(bench.call(CollectiveOp::AllReduce, 1_MiB));
  for (const CollectivePlan& plan : choice.alternatives) {
    CHECK(plan.protocol != Protocol::LL128);
    CHECK(plan.algorithm != AlgorithmId::Nvls);
  }
}

TEST_CASE("NCCL 2.19 takes NVLSTree for 4 GiB on eight nodes of p5, as it did", "[cost][sharp]") {
  NodeSpec p5 = dgx_h100();
  p5.nics = 32;
  p5.nic_bandwidth = 100_Gbps;
  p5.cpu_vendor = "amd";
  Topology topology = cluster(p5, 8);
  topology.fabric_preset = "efa-v2";
  const Bench bench(std::move(topology), "nccl-2.19");
  const CollectivePlan plan = bench.choose(CollectiveOp::AllReduce, 4_GiB).plan;
  CHECK(plan.algorithm == AlgorithmId::NvlsTree);
  CHECK(bench.choose(CollectiveOp::AllReduce, 16_GiB).plan.algorithm == AlgorithmId::Ring);
}

TEST_CASE("ports of a card decide between tree and ring over two A100 nodes", "[cost][sharp]") {
  NodeSpec bm4 = dgx_a100();
  bm4.nics = 16;
  bm4.nic_bandwidth = 100_Gbps;
  bm4.cpu_vendor = "amd";
  const auto chosen = [&](const std::string& library) {
    return Bench(bm4, 2, library).choose(CollectiveOp::AllReduce, 8_GiB).plan.algorithm;
  };
  CHECK(chosen("nccl-2.19") == AlgorithmId::Tree);
  CHECK(chosen("nccl-2.29") == AlgorithmId::Ring);
}

}  // namespace flyover::cost_test
