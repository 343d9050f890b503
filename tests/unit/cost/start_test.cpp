// What the software stack and the kind of network add to a collective's start.

#include <cmath>

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::cost_test {
namespace {

using Catch::Matchers::WithinRel;
using namespace std::chrono_literals;

Duration all_reduce(const Topology& topology, const Library& library, Bytes bytes) {
  const Router router(topology, RouterOptions{library.settings.pxn});
  const CostModel model(topology, router, library);
  CollectiveCall call;
  call.bytes = bytes;
  call.ranks.resize(topology.gpus.size());
  std::iota(call.ranks.begin(), call.ranks.end(), 0U);
  return model.choose(call).plan.alone;
}

Topology pair_over(const std::string& network) {
  Topology topology = cluster(dgx_h100(), 2);
  topology.fabric_preset = network;
  return topology;
}

}  // namespace

TEST_CASE("one process for all GPUs costs its host's time, which hides behind long kernels",
          "[cost][stack]") {
  const std::string name = GENERATE("nccl", "rccl");
  CAPTURE(name);
  const Topology topology = cluster(name == "nccl" ? dgx_h100() : mi300x(), 1);
  Library library = load(name);
  CHECK(library.stack == "process-per-gpu");
  const Duration usual_launch = stack_in_use(library)->launch;
  const Duration usual = all_reduce(topology, library, 8_B);
  const double large = to_seconds(all_reduce(topology, library, 4_GiB));

  set_stack(library, "one-process");
  const StackRule& stack = *stack_in_use(library);
  const double small = to_seconds(usual - usual_launch + stack.launch);
  const double host = 8 * to_seconds(stack.issue);
  const double p = stack.overlap;
  CHECK_THAT(to_seconds(all_reduce(topology, library, 8_B)),
             WithinRel(std::pow(std::pow(small, p) + std::pow(host, p), 1 / p), 1e-6));
  CHECK_THAT(to_seconds(all_reduce(topology, library, 4_GiB)), WithinRel(large, 2e-4));
}

TEST_CASE("every call pays one launch", "[cost][stack]") {
  const Topology topology = cluster(dgx_h100(), 1);
  Library library = load("nccl");
  const Duration with = all_reduce(topology, library, 8_B);
  const Duration launch = stack_in_use(library)->launch;
  library.stacks.clear();
  CHECK(std::chrono::abs(with - all_reduce(topology, library, 8_B) - launch) <= 1_ps);
}

TEST_CASE("a process drives no more GPUs than a host has", "[cost][stack]") {
  Library library = load("nccl");
  const Topology topology = cluster(nvl72(64, 400_Gbps), 1);
  const Duration usual = all_reduce(topology, library, 8_B) - stack_in_use(library)->launch;
  set_stack(library, "one-process");
  const StackRule& stack = *stack_in_use(library);
  const double alone = to_seconds(usual + stack.launch);
  const double host = to_seconds(stack.issue) * stack.most_gpus;
  CHECK_THAT(to_seconds(all_reduce(topology, library, 8_B)),
             WithinRel(std::hypot(alone, host), 1e-6));
}

TEST_CASE("small messages wait longer on networks other than InfiniBand", "[cost][network]") {
  const Library library = load("nccl");
  const Duration infiniband = all_reduce(pair_over("ndr"), library, 8_B);
  // Up and down the tree: two network hops.
  for (const std::string network : {"roce-400", "efa-v2", "efa-v1", "tcpx-200"}) {
    CAPTURE(network);
    const NetworkRule& rule = *network_rule(library, network);
    const Duration more = all_reduce(pair_over(network), library, 8_B) - infiniband;
    // The pipeline hardly fills: 8 bytes out of megabytes.
    const double fill =
        to_seconds(rule.fill) * 8 / (8 + static_cast<double>(rule.fill_half.count()));
    CHECK_THAT(to_seconds(more), WithinRel(2 * to_seconds(rule.hop) + fill, 1e-6));
  }
  CHECK(network_rule(library, "ndr") == nullptr);
}

TEST_CASE("a kind of network's pipeline fill counts across domains only", "[cost][network]") {
  Library library = load("nccl");
  set_variable(library.settings, "NCCL_ALGO", "Ring");
  set_variable(library.settings, "NCCL_PROTO", "Simple");
  NetworkRule rule;
  rule.links = {"ndr"};
  rule.evidence.source = "test";
  Library filled = library;
  library.networks = {rule};
  rule.fill = 100us;
  rule.fill_half = 1_MiB;
  filled.networks = {rule};

  const Topology pair = pair_over("ndr");
  Topology single = cluster(dgx_h100(), 1);
  single.fabric_preset = "ndr";
  for (const Bytes bytes : {1_KiB, 1_MiB, 64_MiB}) {
    CAPTURE(bytes.count());
    const double size = static_cast<double>(bytes.count());
    const Duration more = all_reduce(pair, filled, bytes) - all_reduce(pair, library, bytes);
    CHECK(to_microseconds(more) == Approx(100 * size / (size + (1 << 20))).epsilon(1e-4));
    CHECK(all_reduce(single, filled, bytes) == all_reduce(single, library, bytes));
  }
  // A message pays it as well, and only from node to node.
  const Router router(pair, RouterOptions{});
  const CostModel with(pair, router, filled);
  const CostModel without(pair, router, library);
  const auto more = [&](std::uint32_t to) {
    return to_microseconds(with.point_to_point(0, to, 1_MiB).alone -
                           without.point_to_point(0, to, 1_MiB).alone);
  };
  CHECK(more(8) == Approx(50).epsilon(1e-4));
  CHECK(more(1) == 0);
}

TEST_CASE("a network that does not carry a protocol leaves it to others", "[cost][network]") {
  Library library = load("nccl");
  library.networks.front().links = {"ndr"};
  library.networks.front().protocols = {Protocol::Simple};
  const Topology topology = pair_over("ndr");
  const Router router(topology, RouterOptions{});
  const CostModel model(topology, router, library);
  CollectiveCall call;
  call.bytes = 8_B;
  for (std::uint32_t rank = 0; rank < 16; ++rank) call.ranks.push_back(rank);
  CHECK(model.choose(call).plan.protocol == Protocol::Simple);
  // Inside a node the network has no say.
  call.ranks.resize(8);
  CHECK(model.choose(call).plan.protocol == Protocol::LL);

  library.settings.protocols = {Protocol::LL};
  const CostModel forced(topology, router, library);
  call.ranks.push_back(8);
  CHECK_THROWS_WITH(forced.choose(call), Catch::Matchers::Contains("ring LL: not over ndr"));
}

TEST_CASE("a rule may be of one GPU only", "[cost][choice]") {
  NodeSpec node = dgx_h100();
  const double usual = Bench(node, 1, "nccl").busbw(CollectiveOp::AllReduce, 8_GiB);
  node.gpu.name = "H20-SXM";
  CHECK_THAT(Bench(node, 1, "nccl").busbw(CollectiveOp::AllReduce, 8_GiB), WithinRel(362, 0.05));
  CHECK(usual > 450);
}

}  // namespace flyover::cost_test
