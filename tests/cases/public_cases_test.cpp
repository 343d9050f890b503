// Public questions with known answers: shared/cases/cases.json, those that this version can be
// asked. Every answer and tolerance is the file's own; settings that it states in words are built
// here. Of medium confidence, the tolerance is doubled, as its README says. The file is not part of
// the repository: without it the tests say so and pass.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/collective/algorithms.hpp"
#include "flyover/io/presets.hpp"
#include "flyover/io/topology_reader.hpp"
#include "support/cases.hpp"
#include "support/cluster.hpp"
#include "support/clusters.hpp"
#include "support/expert_cluster.hpp"
#include "support/shared.hpp"

using namespace flyover;
using namespace flyover::literals;
using nlohmann::json;
using test::answer_of;
using test::Cluster;
using test::library;

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr Bytes gibibytes(std::int64_t count) {
  return Bytes{count << 30};
}

Topology topology(const std::string& text) {
  return text.starts_with('{') ? io::read_topology(io::Document::parse("case.json", text))
                               : io::load_topology(text);
}

struct Measured {
  double seconds = 0;
  double algbw = 0;  // GB/s
  double busbw = 0;
};

Measured measure(const Cluster& cluster, CollectiveOp op, Bytes bytes,
                 std::vector<std::uint32_t> ranks = {}) {
  if (ranks.empty()) {
    for (std::uint32_t r = 0; r < cluster.topology.gpus.size(); ++r) ranks.push_back(r);
  }
  CollectiveCall call{op, bytes, "fp32", ranks, 0};
  Measured out;
  out.seconds = to_seconds(cluster.cost.choose(call).plan.alone);
  out.algbw = static_cast<double>(bytes.count()) / out.seconds / 1e9;
  out.busbw = out.algbw * bus_factor(op, static_cast<std::uint32_t>(ranks.size()));
  return out;
}

Measured measure(const std::string& text, CollectiveOp op, Bytes bytes,
                 const Variables& variables = {}) {
  return measure(Cluster(topology(text), library("nccl", variables)), op, bytes);
}

std::vector<std::uint32_t> first(std::uint32_t count) {
  std::vector<std::uint32_t> ranks(count);
  for (std::uint32_t r = 0; r < count; ++r) ranks[r] = r;
  return ranks;
}

// Eight DGX-1, on one switch or on two leaves; one ring per NIC.
double dgx1_ring(const std::string& fabric) {
  return measure(fmt::format(R"({{"node": {{"preset": "dgx-1v"}}, "nodes": 8, "fabric": {{{}}}}})",
                             fabric),
                 CollectiveOp::AllReduce, gibibytes(4),
                 {{"NCCL_ALGO", "Ring"}, {"NCCL_MAX_NCHANNELS", "4"}})
      .busbw;
}

}  // namespace

TEST_CASE("a2a-law: alltoall bus bandwidth over N nodes", "[cases]") {
  if (!answer_of("a2a-law")) return;
  const double nic = GENERATE(25.0, 50.0);
  const std::uint32_t nodes = GENERATE(2U, 4U, 8U, 16U);
  const char* no_pxn = GENERATE("0", "1");
  CAPTURE(nic, nodes, no_pxn);
  const Cluster cluster(test::rails(nodes, Bandwidth{1e15}, Bandwidth{nic * 1e9}, 0ns, 0ns),
                        library("ideal", {{"NCCL_PXN_DISABLE", no_pxn}}));

  const double law = nic * nodes / (nodes - 1);
  CHECK(measure(cluster, CollectiveOp::AllToAll, gibibytes(1)).algbw == Approx(law).epsilon(0.01));
}

TEST_CASE("a2a-ndv4-ndv5: alltoall of 1 GiB on two nodes, A100 HDR and H100 NDR", "[cases]") {
  const auto answer = answer_of("a2a-ndv4-ndv5");
  if (!answer) return;
  const char* name = GENERATE("nccl", "mscclpp");
  CAPTURE(name);
  const auto exchange = [&](const char* system) {
    return measure(Cluster(topology(system), library(name)), CollectiveOp::AllToAll, gibibytes(1));
  };
  const Measured a = exchange("azure-ndv4:2");
  const Measured b = exchange("azure-ndv5:2");

  CHECK(a.busbw == Approx((*answer)["A"]["busbw"].get<double>()).epsilon(0.10));
  CHECK(b.busbw == Approx((*answer)["B"]["busbw"].get<double>()).epsilon(0.10));
  CHECK(a.seconds / b.seconds >= 2.0);
  CHECK(a.seconds / b.seconds <= 2.1);
}

TEST_CASE("ar-two-selene: all-reduce is several times alltoall on the same two nodes", "[cases]") {
  if (!answer_of("ar-two-selene")) return;
  const double ring =
      measure("dgx-a100:2", CollectiveOp::AllReduce, gibibytes(4), {{"NCCL_ALGO", "Ring"}}).busbw;
  const double ratio = ring / measure("dgx-a100:2", CollectiveOp::AllToAll, gibibytes(4)).busbw;

  CHECK(ratio >= 4);
  CHECK(ratio <= 8);
}

TEST_CASE("nvls-vs-ring-by-size: all-reduce of 2 to 8 GPUs of an H100 node", "[cases]") {
  const auto answer = answer_of("nvls-vs-ring-by-size");
  if (!answer) return;
  const std::uint32_t gpus = GENERATE(2U, 3U, 4U, 5U, 6U, 7U, 8U);
  CAPTURE(gpus);
  const Cluster ring(topology("dgx-h100"), library("nccl", {{"NCCL_ALGO", "Ring"}}));
  const Cluster best(topology("dgx-h100"), library("nccl"));

  const double ring_busbw = measure(ring, CollectiveOp::AllReduce, gibibytes(4), first(gpus)).busbw;
  CHECK(ring_busbw >= 365 * 0.95);
  CHECK(ring_busbw <= 370 * 1.05);
  const json& nvls = (*answer)["nvls"][std::to_string(gpus)];
  const double expected = nvls.is_number() ? nvls.get<double>() : 367.5;  // "365-370"
  CHECK(measure(best, CollectiveOp::AllReduce, gibibytes(4), first(gpus)).busbw ==
        Approx(expected).epsilon(0.08));
}

TEST_CASE("tree-2-nodes: the tree beats the NIC on exactly two nodes", "[cases]") {
  if (!answer_of("tree-2-nodes")) return;
  const auto busbw = [](const char* algorithm, int nodes) {
    return measure(fmt::format(R"({{"node": {{"preset": "pcie-8", "nics": {{"count": 1,
                                   "bandwidth": "100 Gb/s"}}}}, "nodes": {}}})",
                               nodes),
                   CollectiveOp::AllReduce, gibibytes(4), {{"NCCL_ALGO", algorithm}})
        .busbw;
  };

  const double ring = busbw("Ring", 2);
  CHECK(ring <= 12.5);
  CHECK(busbw("Tree", 2) / ring > 1);
  CHECK(busbw("Tree", 2) / ring <= 1.875);
  CHECK(busbw("Tree", 2) <= 1.875 * 12.5);
  CHECK(busbw("Tree", 4) <= 12.5);
}

TEST_CASE("ar-1-2-4-gpus-per-node: each GPU of two nodes brings its NIC", "[cases]") {
  if (!answer_of("ar-1-2-4-gpus-per-node")) return;
  const Cluster cluster(topology(R"({"node": {"preset": "dgx-h100",
                                     "nics": {"count": 8, "bandwidth": "29.6 Gb/s"}}, "nodes": 2,
                                     "fabric": {"type": "single-switch"}})"),
                        library("nccl"));
  const auto seconds = [&](std::uint32_t gpus) {
    std::vector<std::uint32_t> ranks = first(gpus);
    for (std::uint32_t r = 0; r < gpus; ++r) ranks.push_back(8 + r);
    return measure(cluster, CollectiveOp::AllReduce, Bytes{1'000'000'000}, ranks).seconds;
  };

  for (const std::uint32_t gpus : {1U, 2U}) {
    CAPTURE(gpus);
    CHECK(seconds(gpus) / seconds(2 * gpus) >= 1.8);
    CHECK(seconds(gpus) / seconds(2 * gpus) <= 2.2);
  }
}

TEST_CASE("shared-nic-a2a: eight GPUs behind one 200 Gb/s NIC", "[cases]") {
  if (!answer_of("shared-nic-a2a")) return;
  const std::string node = R"({"node": {"preset": "dgx-a100", "nics": {"count": 1}}, "nodes": 16})";

  CHECK(measure(node, CollectiveOp::AllToAll, gibibytes(4)).algbw == Approx(3.0).epsilon(0.10));
  const double ring =
      measure(node, CollectiveOp::AllReduce, gibibytes(4), {{"NCCL_ALGO", "Ring"}}).busbw;
  CHECK(ring > 0.9 * 25);
  CHECK(ring <= 25);
}

TEST_CASE("acs-a100-vm: a ring over two HDR NICs before and after ACS is off", "[cases]") {
  if (!answer_of("acs-a100-vm")) return;
  const auto busbw = [](double share) {
    return measure(fmt::format(R"({{"node": {{"preset": "dgx-a100", "nics": {{"count": 2}}}},
                                   "nodes": 2,
                                   "overrides": [{{"select": "nic", "factor": {}}}]}})",
                               share),
                   CollectiveOp::AllReduce, gibibytes(4), {{"NCCL_ALGO", "Ring"}})
        .busbw;
  };

  CHECK(busbw(1) == Approx(48).epsilon(0.05));
  CHECK(busbw(0.56 / 0.96) == Approx(28).epsilon(0.05));
}

TEST_CASE("gb200-nvl72: all-reduce inside a rack", "[cases]") {
  const auto answer = answer_of("gb200-nvl72");
  if (!answer) return;
  const Cluster rack(topology("gb200-nvl72"), library("nccl"));
  const int size = GENERATE(1, 2, 4, 8);
  CAPTURE(size);

  const double busbw = measure(rack, CollectiveOp::AllReduce, gibibytes(size)).busbw;
  CHECK(busbw == Approx((*answer)[fmt::format("{}GiB", size)].get<double>()).epsilon(0.10));
  CHECK(busbw < 900);
}

TEST_CASE("pairs-nvlink-pcie: the slowest hop governs the ring", "[cases]") {
  const auto answer = answer_of("pairs-nvlink-pcie");
  if (!answer) return;
  const Cluster pairs(topology(R"({"node": {"preset": "pcie-8-bridged", "gpu": "A100-SXM-80GB",
                                   "pcie": {"bandwidth": "31.5 GB/s"}}})"),
                      library("nccl"));

  const double two = measure(pairs, CollectiveOp::AllReduce, gibibytes(4), first(2)).busbw;
  const double three = measure(pairs, CollectiveOp::AllReduce, gibibytes(4), first(3)).busbw;
  CHECK(two / three ==
        Approx((*answer)["2"].get<double>() / (*answer)["3"].get<double>()).epsilon(0.20));
}

TEST_CASE("one-gpu-four-nics: a GPU uses about one NIC", "[cases]") {
  const auto answer = answer_of("one-gpu-four-nics");
  if (!answer) return;
  const double busbw = measure(R"({"node": {"preset": "dgx-h100", "gpus": 1, "nics": {"count": 4}},
                                   "nodes": 2})",
                               CollectiveOp::AllReduce, gibibytes(4), {{"NCCL_ALGO", "Tree"}})
                           .busbw;

  CHECK(busbw == Approx((*answer)["busbw"].get<double>()).epsilon(0.20));
}

TEST_CASE("hash-collision: two flows on one uplink halve the ring", "[cases]") {
  const auto answer = answer_of("hash-collision");
  if (!answer) return;
  const double one_leaf = dgx1_ring(R"("type": "single-switch")");
  CHECK(one_leaf == Approx((*answer)["A"].get<double>()).epsilon(0.10));
  bool collided = false;
  bool passed = false;
  for (int seed = 0; seed < 16; ++seed) {
    CAPTURE(seed);
    const double ratio =
        dgx1_ring(fmt::format(
            R"("type": "leaf-spine", "nodes_per_unit": 4, "routing": "ecmp", "seed": {})", seed)) /
        one_leaf;
    const bool clear = ratio >= 0.9;
    if (!clear && ratio > 0.34) CHECK(ratio == Approx(0.45).margin(0.1));  // Not three on one.
    (clear ? passed : collided) = true;
  }
  CHECK(collided);
  CHECK(passed);
}

TEST_CASE("gb300-ecmp: spraying removes the collision loss", "[cases]") {
  if (!answer_of("gb300-ecmp")) return;
  const auto busbw = [](const std::string& routing) {
    return measure(fmt::format(R"({{"node": {{"preset": "gb300-nvl72", "gpus": 4,
                                     "nics": {{"count": 4, "rail": [0, 1, 2, 3]}},
                                     "pcie": {{"switches": 0, "sockets": 2}}}}, "nodes": 16,
                                   "fabric": {{"type": "leaf-spine", "preset": "roce-800",
                                               "nodes_per_unit": 4, "routing": {}}}}})",
                               routing),
                   CollectiveOp::AllReduce, gibibytes(16))
        .busbw;
  };

  const double sprayed = busbw(R"("adaptive")");
  std::vector<double> gains;
  for (int seed = 0; seed < 15; ++seed) {
    gains.push_back(sprayed / busbw(fmt::format(R"("ecmp", "seed": {})", seed)));
  }
  std::ranges::sort(gains);
  CHECK(gains[gains.size() / 2] >= 1.5);
  CHECK(gains[gains.size() / 2] <= 2.0);
}

TEST_CASE("chunk-step-cost: chunks of a connection at a fixed cost each", "[cases]") {
  const auto answer = answer_of("chunk-step-cost");
  if (!answer) return;
  // A step takes 10 us, or its bytes' time where that is longer.
  const Library steps = io::read_library(io::Document::parse("steps.json", R"({
    "format": "flyover-library-1", "name": "steps", "version": "1", "choice": "fastest",
    "summary": "10 us for every chunk",
    "protocols": { "Simple": { "wire_bytes": 1, "source": "the case" } },
    "algorithms": { "sendrecv": ["direct"] },
    "latencies": [ { "base": "0 us", "network_hop": "10 us", "network_wire": "1 ms",
                     "overlap": 64, "source": "the case" } ] })"));
  const Cluster pair(topology(R"({"node": {"preset": "dgx-h100",
                                  "nics": {"count": 8, "bandwidth": "392 Gb/s"}}, "nodes": 2})"),
                     steps);
  const auto throughput = [&](std::int64_t kibibytes) {
    const int chunks = 64;
    const Duration time = pair.time(fmt::format(
        R"({{"ranks": 16, "programs": [
             {{"ranks": "0", "repeat": {0}, "ops": [{{"id": "s", "op": "send", "peer": 8, "bytes": "{1} KiB"}}]}},
             {{"ranks": "8", "repeat": {0}, "ops": [{{"id": "r", "op": "recv", "peer": 0, "bytes": "{1} KiB"}}]}}
           ]}})",
        chunks, kibibytes));
    return static_cast<double>(chunks * (kibibytes << 10)) / to_seconds(time) / 1e9;
  };

  CHECK(throughput(128) == Approx(13.1).epsilon(0.20));
  // What the issue reports of larger chunks is more than the line carries.
  CHECK(throughput(1024) <= 49);
  CHECK(throughput(1024) > 0.9 * 49);
}

TEST_CASE("mscclpp-latency: MSCCL++'s all-reduce of 8 to 72 KB on 8 and 16 A100", "[cases]") {
  const auto answer = answer_of("mscclpp-latency");
  if (!answer) return;
  const auto microseconds = [](const char* system, int kilobytes) {
    return measure(Cluster(topology(system), library("mscclpp")), CollectiveOp::AllReduce,
                   Bytes{std::int64_t{kilobytes} << 10})
               .seconds *
           1e6;
  };
  for (const int kilobytes : {8, 24, 48, 72}) {
    CAPTURE(kilobytes);
    const double measured = (*answer)[fmt::format("{}KB", kilobytes)].get<double>();
    CHECK(microseconds("azure-ndv4", kilobytes) == Approx(measured).epsilon(0.20));
    CHECK(microseconds("dgx-a100", kilobytes) == Approx(measured).epsilon(0.20));
  }
  CHECK(microseconds("azure-ndv4:2", 8) ==
        Approx((*answer)["8KB_2nodes"].get<double>()).epsilon(0.20));
}

TEST_CASE("nccl-volume: bytes that each GPU sends", "[cases]") {
  if (!answer_of("nccl-volume")) return;
  const std::uint32_t n = GENERATE(2U, 3U, 4U, 8U, 16U, 32U, 64U);
  CAPTURE(n);
  GroupShape group;
  for (std::uint32_t r = 0; r < n; ++r) {
    group.domain.push_back(r);
    group.rail.push_back(0);
  }
  const CollectiveShape shape{CollectiveOp::AllReduce, group, 1, 0, false};
  const auto sent = [&](AlgorithmId algorithm) {
    std::vector<double> bytes(n);
    for (const EdgeLoad& edge :
         find_algorithm(CollectiveOp::AllReduce, algorithm)->summarise(shape).edges) {
      bytes[edge.from] += edge.fraction;
    }
    return bytes;
  };

  for (const double bytes : sent(AlgorithmId::Ring)) {
    CHECK(bytes == Approx(2.0 * (n - 1) / n).epsilon(1e-9));
  }
  // "2S (root S)" holds in the mean of each tree; over both, leaves send less and inner ranks more.
  double total = 0;
  for (const double bytes : sent(AlgorithmId::Tree)) {
    CHECK(bytes <= 2 + 1e-9);
    total += bytes;
  }
  CHECK(total == Approx(2.0 * (n - 1)).epsilon(1e-9));
}

TEST_CASE("tp-vs-pp-2nodes: network time of a step, tensor- or pipeline-parallel", "[cases]") {
  if (!answer_of("tp-vs-pp-2nodes")) return;
  const Cluster pair(test::crossbar(2, Bandwidth{109e9 / 8}, 0ns));
  const auto seconds = [&](const char* op, int count, std::int64_t bytes) {
    return to_seconds(pair.time(
        fmt::format(R"({{"collectives": [{{"op": "{}", "bytes": "{} B", "repeat": {}}}]}})", op,
                    bytes, count)));
  };

  const std::int64_t batch_of_32 = std::int64_t{32} * 12288 * 2;
  const std::int64_t prefill = std::int64_t{2048} * 12288 * 2;
  CHECK(seconds("all_reduce", 192, batch_of_32) == Approx(11.1e-3).epsilon(0.02));
  CHECK(seconds("all_reduce", 192, prefill) == Approx(709e-3).epsilon(0.02));
  CHECK(seconds("broadcast", 1, batch_of_32) == Approx(58e-6).epsilon(0.02));
}

TEST_CASE("unit-check: presets hold bytes, in one direction", "[cases]") {
  const auto answer = answer_of("unit-check");
  if (!answer) return;
  const io::Presets presets;
  const auto nic = [&](const char* node) { return presets.node(node).nic_bandwidth.per_second(); };

  CHECK(nic("dgx-a100") == (*answer)["CX6"].get<double>() * 1e9);
  CHECK(nic("dgx-h100") == (*answer)["CX7"].get<double>() * 1e9);
  CHECK(nic("dgx-b300") == (*answer)["CX8"].get<double>() * 1e9);
  const NodeSpec rack = presets.node("gb200-nvl72");
  CHECK(rack.nic_bandwidth.per_second() * rack.nics / rack.gpus == 50e9);
}

TEST_CASE("nvls-h800: NVLS on half of NVLink", "[cases]") {
  const auto answer = answer_of("nvls-h800");
  if (!answer) return;
  CHECK(measure("hgx-h800", CollectiveOp::AllReduce, gibibytes(16)).busbw ==
        Approx((*answer)["busbw"].get<double>()).epsilon(0.08));
}

// The default is not 1: a kernel keeps the SMs that the all-gather's channels leave, and the HBM
// bandwidth that its bytes do. The measured slow-down is larger, as docs/models/replay.md says why.
TEST_CASE("overlap-contention-a100: kernels slow down beside an all-gather, by less than measured",
          "[cases]") {
  const auto answer = answer_of("overlap-contention-a100");
  if (!answer) return;
  const Cluster a100(topology("dgx-a100"), library("nccl"));
  const auto compute_us = [&](const char* kernel, const char* beside) {
    return a100.run(fmt::format(R"({{"ranks": 8, "programs": [{{"ranks": "0-7", "ops": [
                     {{"op": "delay", "duration": "3 ms"}}, {{"op": "compute", {}}}{}]}}]}})",
                                kernel, beside))
               .result.breakdown.compute_us -
           3000;
  };
  struct Kernel {
    const char* name;
    const char* work;
    double alone_us;
    double measured;
    double modelled;
  };
  for (const Kernel& kernel :
       {Kernel{"gemm", R"("flops": "300 GFLOP", "bytes": "200 MB", "efficiency": 0.815)", 1180,
               1.76, 108.0 / 84},
        Kernel{"attention", R"("flops": "39.3 GFLOP", "bytes": "30 MB", "efficiency": 0.7)", 180,
               1.83, 108.0 / 84},
        Kernel{"elementwise", R"("bytes": "36 MB", "memory_efficiency": 0.9)", 20, 2.5, 1.417}}) {
    CAPTURE(kernel.name);
    CHECK((*answer)[kernel.name].get<std::string>().find(fmt::format("{}x", kernel.measured)) !=
          std::string::npos);
    const double alone = compute_us(kernel.work, "");
    CHECK(alone == Approx(kernel.alone_us).epsilon(0.03));
    const double slowdown =
        compute_us(kernel.work, R"(, {"op": "all_gather", "bytes": "4 GB"})") / alone;
    CHECK(slowdown == Approx(kernel.modelled).epsilon(0.01));
    CHECK(slowdown < kernel.measured);
  }
}

TEST_CASE("deepep-normal-h800: which tier binds normal kernels, and at what bandwidth", "[cases]") {
  const auto answer = answer_of("deepep-normal-h800");
  if (!answer) return;
  const std::uint32_t ranks = GENERATE(8U, 16U, 32U, 64U);
  CAPTURE(ranks);
  const Cluster cluster(test::h800_planes(ranks / 8));
  const ExpertExchange exchange = test::deepep_normal(ranks);
  const auto bandwidth = [&](CollectiveOp op) {
    const ExpertPlan plan = test::expert_plan(cluster, exchange, op, ranks);
    CHECK(plan.plan.bottleneck.starts_with(ranks <= 16 ? "nvlink" : "nic"));
    return bottleneck_bandwidth(plan.traffic, plan.plan.alone, ranks > 8);
  };
  const auto expected = [&](const char* op) {  // "153 NVLink"
    return std::stod((*answer)[op][std::to_string(ranks)].get<std::string>());
  };
  CHECK(bandwidth(CollectiveOp::MoeDispatch) == Approx(expected("dispatch")).epsilon(0.10));
  CHECK(bandwidth(CollectiveOp::MoeCombine) == Approx(expected("combine")).epsilon(0.10));
}

TEST_CASE("deepep-lowlatency: latency of low-latency kernels", "[cases]") {
  const auto answer = answer_of("deepep-lowlatency");
  if (!answer) return;
  const std::uint32_t ranks = GENERATE(8U, 16U, 32U, 64U, 128U, 256U);
  CAPTURE(ranks);
  const Cluster cluster(test::h800_planes(ranks / 8));
  const ExpertExchange exchange = test::deepep_low_latency();
  const auto microseconds = [&](CollectiveOp op) {
    return to_microseconds(test::expert_plan(cluster, exchange, op, ranks).plan.alone);
  };
  const auto expected = [&](const char* op) {
    return (*answer)[op][std::to_string(ranks)].get<double>();
  };
  CHECK(microseconds(CollectiveOp::MoeDispatch) == Approx(expected("dispatch_us")).epsilon(0.10));
  CHECK(microseconds(CollectiveOp::MoeCombine) == Approx(expected("combine_us")).epsilon(0.10));
}
