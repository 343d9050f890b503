// NCCL's own model: the tables of configs/libraries/nccl-2.27.json through its published equations.

#include <catch2/catch.hpp>

#include "clusters.hpp"
#include "flyover/base/error.hpp"

namespace flyover::cost_test {
namespace {

using Catch::Matchers::WithinRel;

const NcclTuning& tuning() {
  static const Library library = load("nccl-2.27");
  return *library.tuning;
}

TunerGroup h100(std::uint32_t ranks, std::uint32_t nodes = 1) {
  TunerGroup group;
  group.ranks = ranks;
  group.nodes = nodes;
  group.local_ranks = ranks / nodes;
  group.architecture = "hopper";
  group.nvlink = true;
  group.node_bandwidth = 18 * 20.6;
  group.nics = nodes > 1 ? ranks / nodes : 0;
  group.nic_bandwidth = 48;
  return group;
}

double time(const TunerGroup& group, AlgorithmId algorithm, Protocol protocol, Bytes bytes,
            CollectiveOp op = CollectiveOp::AllReduce) {
  const auto us =
      tuner_time(tuning(), group, search_graphs(tuning(), group), op, algorithm, protocol, bytes);
  REQUIRE(us);
  return *us;
}

bool considered(const TunerGroup& group, AlgorithmId algorithm, Protocol protocol,
                CollectiveOp op = CollectiveOp::AllReduce) {
  return tuner_time(tuning(), group, search_graphs(tuning(), group), op, algorithm, protocol, 1_MiB)
      .has_value();
}

}  // namespace

TEST_CASE("the graph search fills an H100 node and its NICs", "[cost][tuner]") {
  const TunerGraphs node = search_graphs(tuning(), h100(8));
  CHECK(node.ring.channels == 12);
  CHECK(node.ring.node_speed == 30);
  CHECK(open_channels(tuning(), node.ring) == 24);
  CHECK(node.nvls.channels == 8);
  CHECK(node.nvls.node_speed == 40);

  const TunerGraphs pair = search_graphs(tuning(), h100(16, 2));
  CHECK(pair.ring.channels == 8);
  CHECK(pair.ring.network_speed == 45);
  CHECK(open_channels(tuning(), pair.ring) == 16);
}

TEST_CASE("trees run faster inside a node where the network is slow", "[cost][tuner]") {
  TunerGroup group = h100(16, 2);
  group.nic_bandwidth = 24;
  const TunerGraphs graphs = search_graphs(tuning(), group);
  CHECK(graphs.ring.node_speed == 24);
  CHECK(graphs.tree.node_speed == 48);
  CHECK(graphs.tree.network_speed == 24);
}

TEST_CASE("ring times are the published latencies plus bytes over bandwidth", "[cost][tuner]") {
  const double bytes = static_cast<double>((1_MiB).count());
  CHECK_THAT(time(h100(8), AlgorithmId::Ring, Protocol::LL, 1_MiB),
             WithinRel(6.6 + 14 * 0.6 + bytes / (141e3 * 8 / 14), 1e-12));
  CHECK_THAT(time(h100(8), AlgorithmId::Ring, Protocol::LL128, 1_MiB),
             WithinRel(14 + 14 * 1.9 + bytes / (360e3 * 0.92 * 8 / 14), 1e-12));
  CHECK_THAT(time(h100(8), AlgorithmId::Ring, Protocol::Simple, 1_MiB),
             WithinRel(8.4 + 14 * 3.4 + bytes / (360e3 * 8 / 14), 1e-12));
  // Across nodes: the host's post cost, two network hops, the plateau factor of large messages.
  CHECK_THAT(time(h100(16, 2), AlgorithmId::Ring, Protocol::Simple, 1_MiB),
             WithinRel(1.4 * (8.4 + 28 * 3.4 + 2 * 14) + bytes / (360e3 * 16 / 30), 1e-12));
  CHECK_THAT(time(h100(16, 2), AlgorithmId::Ring, Protocol::LL, 8_B),
             WithinRel(6.6 + 28 * 1.0 + 2 * 2.7 + 8 / (39e3 * 16 / 30), 1e-12));
}

TEST_CASE("tree times carry the correction of their size", "[cost][tuner]") {
  const double bytes = static_cast<double>((64_KiB).count());
  // 64 KiB is 2^10 blocks of 64 B: a factor of 0.6 for LL.
  CHECK_THAT(time(h100(16, 2), AlgorithmId::Tree, Protocol::LL, 64_KiB),
             WithinRel(6.8 + 2 * (7 * 0.6 + 5) + bytes / (39e3 / 2 * 0.6), 1e-12));
}

TEST_CASE("NVLS times are one hop plus five sixths of its channels", "[cost][tuner]") {
  const double bytes = static_cast<double>((1_GiB).count());
  CHECK_THAT(time(h100(8), AlgorithmId::Nvls, Protocol::Simple, 1_GiB),
             WithinRel(25 + bytes / (320e3 * 5 / 6), 1e-12));
}

TEST_CASE("NVLS pays from five GPUs on Hopper and from six on Blackwell", "[cost][tuner]") {
  const auto [architecture, lane, first] = GENERATE(
      table<std::string, double, std::uint32_t>({{"hopper", 20.6, 5}, {"blackwell", 40.1, 6}}));
  CAPTURE(architecture);
  for (std::uint32_t n = 2; n <= 8; ++n) {
    TunerGroup group = h100(n);
    group.architecture = architecture;
    group.node_bandwidth = 18 * lane;
    const double nvls = time(group, AlgorithmId::Nvls, Protocol::Simple, 8_GiB);
    const double ring = time(group, AlgorithmId::Ring, Protocol::Simple, 8_GiB);
    CAPTURE(n, nvls, ring);
    CHECK((nvls < ring) == (n >= first));
  }
}

TEST_CASE("NCCL does not consider what its kernels cannot do", "[cost][tuner]") {
  CHECK_FALSE(considered(h100(8), AlgorithmId::Nvls, Protocol::LL));
  CHECK_FALSE(considered(h100(8), AlgorithmId::NvlsTree, Protocol::Simple));
  CHECK_FALSE(considered(h100(16, 2), AlgorithmId::Nvls, Protocol::Simple));
  CHECK_FALSE(considered(h100(8), AlgorithmId::Pat, Protocol::Simple, CollectiveOp::AllGather));
  CHECK(considered(h100(4, 4), AlgorithmId::Pat, Protocol::Simple, CollectiveOp::AllGather));
  CHECK_FALSE(considered(h100(4, 4), AlgorithmId::NvlsTree, Protocol::Simple));
  CHECK_FALSE(considered(h100(8), AlgorithmId::Tree, Protocol::LL, CollectiveOp::AllGather));
  TunerGroup pcie = h100(8);
  pcie.nvlink = false;
  pcie.node_bandwidth = 24;
  CHECK_FALSE(considered(pcie, AlgorithmId::Ring, Protocol::LL128));
  CHECK(considered(pcie, AlgorithmId::Ring, Protocol::LL));
}

TEST_CASE("hosts of AMD post more slowly and forward LL at another rate", "[cost][tuner]") {
  TunerGroup group = h100(16, 2);
  group.cpu_vendor = "amd";
  CHECK_THAT(time(group, AlgorithmId::Ring, Protocol::LL, 8_B),
             WithinRel(6.6 + 28 * 2.0 + 2 * 2.7 + 8 / (22.5e3 * 16 / 30), 1e-12));
  group.cpu_vendor = "intel";
  CHECK(time(group, AlgorithmId::Ring, Protocol::LL, 8_B) ==
        time(h100(16, 2), AlgorithmId::Ring, Protocol::LL, 8_B));
}

TEST_CASE("versions agree with their own equations", "[cost][tuner]") {
  const double bytes = static_cast<double>((1_GiB).count());
  const auto of = [](const std::string& version, const TunerGroup& group, AlgorithmId algorithm,
                     Protocol protocol, Bytes size) {
    const Library library = load("nccl-" + version);
    const auto us = tuner_time(*library.tuning, group, search_graphs(*library.tuning, group),
                               CollectiveOp::AllReduce, algorithm, protocol, size);
    return us.value_or(-1);
  };
  const TunerGroup node = h100(8);
  CHECK_THAT(of("2.17", node, AlgorithmId::Nvls, Protocol::Simple, 1_GiB),
             WithinRel(40 + bytes / (320e3 * 0.75), 1e-12));
  CHECK_THAT(of("2.19", node, AlgorithmId::Nvls, Protocol::Simple, 1_GiB),
             WithinRel(23 + bytes / (320e3 * 5 / 6), 1e-12));
  CHECK_THAT(of("2.30", node, AlgorithmId::Nvls, Protocol::Simple, 1_GiB),
             WithinRel(25 + bytes / (8e3 * 40 * 0.85 * 7 / 8 * 2 * 8 / 14), 1e-12));
  // A quarter of the ring's 360 GB/s under LL before 2.21, and Hopper's cap was Ampere's.
  CHECK_THAT(of("2.19", node, AlgorithmId::Ring, Protocol::LL, 8_B),
             WithinRel(6.6 + 14 * 0.6 + 8 / (87.7e3 * 8 / 14), 1e-12));
  CHECK_THAT(of("2.21", node, AlgorithmId::Ring, Protocol::LL, 8_B),
             WithinRel(6.6 + 14 * 0.6 + 8 / (141e3 * 8 / 14), 1e-12));
  const TunerGroup pair = h100(16, 2);
  CHECK(of("2.17", pair, AlgorithmId::NvlsTree, Protocol::Simple, 1_GiB) == -1);
  CHECK_THAT(of("2.18", pair, AlgorithmId::NvlsTree, Protocol::Simple, 1_GiB),
             WithinRel(23 + 2 * 19 + bytes / (360e3 * 0.7), 1e-12));
  CHECK_THAT(of("2.19", pair, AlgorithmId::NvlsTree, Protocol::Simple, 1_GiB),
             WithinRel(23 + 2 * 14 + bytes / (360e3 * 5 / 6), 1e-12));
  CHECK_THAT(of("2.30", pair, AlgorithmId::NvlsTree, Protocol::Simple, 1_GiB),
             WithinRel(25 + 2 * 20.9 + bytes / (8e3 * 57.7 * 16 / 30), 1e-12));
  // Rings crossed 2N times, of which 2.23 made 2(N - 1).
  CHECK_THAT(of("2.21", pair, AlgorithmId::Ring, Protocol::LL, 8_B),
             WithinRel(6.6 + 26 * 1.0 + 4 * 2.7 + 8 / (39e3 * 16 / 30), 1e-12));
}

TEST_CASE("CollNet counts one crossing of the network and the GPUs that a NIC serves",
          "[cost][tuner]") {
  TunerGroup group = h100(32, 4);
  group.collnet = true;
  group.switched = true;
  const double bytes = static_cast<double>((1_GiB).count());
  // 8 NICs at 48 GB/s; 40 of them per channel are left inside a node, raised from 48 in vain.
  CHECK_THAT(time(group, AlgorithmId::CollnetDirect, Protocol::Simple, 1_GiB),
             WithinRel(2 * (3.7 + 7 * 0.4) + 31 + bytes / (8e3 * 48 * 0.85 / 2), 1e-12));
  CHECK_THAT(time(group, AlgorithmId::CollnetChain, Protocol::Simple, 1_GiB),
             WithinRel(2 * 7 * 2.8 + 30 + bytes / (8e3 * 48 / 2), 1e-12));
  CHECK_THAT(time(group, AlgorithmId::Nvls, Protocol::Simple, 1_GiB),
             WithinRel(25 + 18 + bytes / (8e3 * 45 * 5 / 6), 1e-12));
  group.switched = false;
  CHECK_FALSE(considered(group, AlgorithmId::CollnetDirect, Protocol::Simple));
  CHECK(considered(group, AlgorithmId::CollnetChain, Protocol::Simple));
  group.collnet = false;
  CHECK_FALSE(considered(group, AlgorithmId::CollnetChain, Protocol::Simple));
  CHECK_FALSE(considered(group, AlgorithmId::Nvls, Protocol::Simple));
}

TEST_CASE("small messages use few channels", "[cost][tuner]") {
  const TunerGroup group = h100(8);
  const auto used = [&](AlgorithmId algorithm, Protocol protocol, Bytes bytes) {
    return used_channels(tuning(), group, algorithm, protocol, bytes, 24);
  };
  CHECK(used(AlgorithmId::Ring, Protocol::LL, 8_B) == 1);
  CHECK(used(AlgorithmId::Ring, Protocol::LL, Bytes{2 * 512 * 8 * 8}) == 2);
  CHECK(used(AlgorithmId::Ring, Protocol::LL, Bytes{2 * 512 * 8 * 8 - 1}) == 1);
  CHECK(used(AlgorithmId::Ring, Protocol::Simple, 1_GiB) == 24);
  CHECK(used(AlgorithmId::Nvls, Protocol::Simple, 8_B) == 24);
}

TEST_CASE("an architecture without tables is an error that names those there are",
          "[cost][tuner]") {
  TunerGroup group = h100(8);
  group.architecture = "hooper";
  CHECK_THROWS_WITH(search_graphs(tuning(), group),
                    "NCCL's model has no tables for the GPU architecture \"hooper\"; it has ada, "
                    "ampere, blackwell, hopper, rubin, turing, volta");
}

}  // namespace flyover::cost_test
