// Does every way to describe a system become the cluster that was meant?

#include <numeric>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "records.hpp"

namespace flyover::study_test {
namespace {

const NodeSpec& node_of(const MeasuredCluster& cluster) {
  return cluster.cluster.nodes.front().spec;
}

bool assumes(const MeasuredCluster& cluster, const std::string& text) {
  return std::ranges::any_of(cluster.assumptions, [&](const std::string& assumption) {
    return assumption.find(text) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("GPUs go to the nodes that hold them", "[study]") {
  const auto [gpu, per_node, node] = GENERATE(table<std::string, std::uint32_t, std::string>({
      {"V100-SXM2-32GB", 8, "dgx-1v"},
      {"V100", 16, "dgx-2"},
      {"A100-SXM4-80GB", 8, "dgx-a100"},
      {"A800-SXM4", 8, "hgx-a800"},
      {"NVIDIA H100 80GB HBM3", 8, "dgx-h100"},
      {"H800-SXM5-80GB", 8, "hgx-h800"},
      {"H200-SXM5-141GB", 8, "hgx-h200"},
      {"H20-96GB", 8, "hgx-h20"},
      {"B200-SXM-180GB", 8, "dgx-b200"},
      {"B300-SXM", 8, "dgx-b300"},
      {"GB200", 4, "gb200-nvl72"},
      {"gb300", 4, "gb300-nvl72"},
      {"RUBIN-VR200", 4, "vr-nvl72"},
      {"Rubin", 8, "hgx-rubin-nvl8"},
      {"GH200-96GB", 4, "gh200"},
      {"H100-PCIe", 8, "h100-pcie-pcie"},
      {"A100-PCIe-80GB", 4, "a100-sxm-80gb-pcie"},
      {"L40S", 8, "l40s-pcie"},
      {"MI250X (8 GCDs per node)", 8, "mi250x-8"},
      {"MI300X VF", 8, "mi300x-8"},
      {"MI325X", 8, "mi325x-8"},
      {"MI350X", 8, "mi350x-8"},
      {"MI355X", 8, "mi355x-8"},
      {"TPU-v5p", 1, "tpu-v5p"},
  }));
  CAPTURE(gpu);
  const MeasuredCluster cluster = built(record(gpu, per_node, 1));

  CHECK(node_of(cluster).name == node);
  CHECK(cluster.ranks.size() == per_node);
  CHECK(cluster.not_comparable.empty());
  CHECK(cluster.cluster.fabric.kind == FabricKind::None);
  // Two and sixty-four of them can be timed, too, over whatever network.
  for (const char* fabric : {"", "InfiniBand", "RoCE", "EFA"}) {
    const Measurement two = over(record(gpu, per_node, 2), fabric);
    const Measurement many = over(record(gpu, per_node, 64), fabric, "", 400_Gbps);
    for (const ValidatedSet& set : predict(std::vector{two, many}, catalogue())) {
      CAPTURE(fabric, set.gpus);
      CHECK(set.skipped.value_or("") == "");
      REQUIRE(!set.rows.empty());
      CHECK(set.rows.front().predicted_us > 0);
    }
  }
}

TEST_CASE("bridges and PCIe are told from the fabric's words", "[study]") {
  const auto bridged = built(over(record("H100-PCIe", 2, 1), "NVLink bridge between two"));
  CHECK(node_of(bridged).scale_up == ScaleUp::Pairs);
  CHECK(bridged.ranks == std::vector<std::uint32_t>{0, 1});
  const auto a40 = built(over(record("A40", 2, 1), "NVLink bridge pair (NV4)"));
  CHECK(node_of(a40).mesh_lanes == 4);
  CHECK(node_of(a40).lane_bandwidth == Bandwidth{14.0625e9});
  CHECK(node_of(a40).pcie_bandwidth == Bandwidth{31.5e9});
  const auto plain = built(over(record("A40", 2, 1), "PCIe"));
  CHECK(node_of(plain).scale_up == ScaleUp::None);
}

TEST_CASE("a node keeps its preset's GPUs when fewer take part", "[study]") {
  Measurement five = record("H200", 8, 1);
  five.gpus = 5;
  CHECK(node_of(built(five)).gpus == 8);
  CHECK(built(five).ranks == std::vector<std::uint32_t>{0, 1, 2, 3, 4});

  const auto pairs = built(over(record("B200", 2, 2), "RoCE", "2x400G", 400_Gbps));
  CHECK(pairs.ranks == std::vector<std::uint32_t>{0, 1, 8, 9});
  CHECK(node_of(pairs).nics == 8);

  Measurement visible = record("H100", 4, 2);
  visible.environment = "CUDA_VISIBLE_DEVICES=0,2,4,6 NCCL_CROSS_NIC=0";
  CHECK(built(visible).ranks == std::vector<std::uint32_t>{0, 2, 4, 6, 8, 10, 12, 14});
}

TEST_CASE("a node of more GPUs than its preset grows where switches join them", "[study]") {
  const auto sixteen = built(record("A100", 16, 1));
  CHECK(node_of(sixteen).gpus == 16);
  CHECK(node_of(sixteen).nics == 16);
  CHECK(assumes(sixteen, "dgx-a100 with 16 GPUs instead of 8"));
  CHECK_THROWS_WITH(built(record("MI300X", 16, 1)), "16 GPUs do not fit into one mi300x-8 of 8");
}

TEST_CASE("trays of a rack share one NVLink domain where the fabric says so", "[study]") {
  const auto domains = [](const std::string& fabric, std::uint32_t nodes) {
    return built(over(record("GB300", 4, nodes), fabric)).cluster.nodes.front().count;
  };
  CHECK(domains("NVL72 rack (MNNVL)", 16) == 1);
  CHECK(domains("2x NVL72 racks + RoCEv2", 32) == 2);
  CHECK(domains("NVL72", 32) == 2);
  CHECK(domains("two NVLink domains joined by RoCE", 2) == 2);
  CHECK(domains("EFA; MNNVL off in this check", 2) == 2);
  CHECK(domains("InfiniBand", 4) == 4);
  CHECK(domains("", 4) == 1);

  const auto two = built(over(record("GB200", 4, 32), "2x NVL72"));
  REQUIRE(two.ranks.size() == 128);
  CHECK(two.ranks[63] == 63);
  CHECK(two.ranks[64] == 72);
}

TEST_CASE("NICs are the preset's, those counted in the text, or one per GPU", "[study]") {
  const auto counted = built(over(record("A100", 8, 2), "RoCE", "ConnectX-5 16x100G", 200_Gbps));
  CHECK(node_of(counted).nics == 16);  // Two where the preset has one of twice the rate.
  const auto few = built(over(record("V100", 8, 2), "RoCE", "ConnectX-5 2x100G", 25_Gbps));
  CHECK(node_of(few).nics == 2);
  CHECK(node_of(few).nic_bandwidth == 100_Gbps);
  CHECK(few.cluster.fabric.preset == "roce-100");
  const auto bare = built(over(record("H100", 8, 2), "RoCE", "", 200_Gbps));
  CHECK(node_of(bare).nics == 8);
  CHECK(node_of(bare).nic_bandwidth == 200_Gbps);
  CHECK(assumes(bare, "one NIC of 200 Gb/s per GPU"));
  const auto unsaid = built(over(record("H100", 8, 2), "RoCE"));
  CHECK(assumes(unsaid, "NICs of dgx-h100: 8 x 400 Gb/s a node"));
}

TEST_CASE("the network's generation is that of the NICs", "[study]") {
  const auto [fabric, rate, preset] = GENERATE(table<std::string, double, std::string>({
      {"InfiniBand NDR", 400, "ndr"},
      {"InfiniBand", 200, "hdr"},
      {"RoCEv2", 400, "roce-400"},
      {"AWS EFA v2", 400, "efa-v2"},
      {"Slingshot-11", 200, "slingshot-11"},
      {"TCPXO", 200, "tcpx-200"},
      {"", 800, "xdr"},
  }));
  CAPTURE(fabric);
  const auto cluster = built(over(record("H100", 8, 4), fabric, "", Bandwidth{rate * 1e9 / 8}));
  CHECK(cluster.cluster.fabric.preset == preset);
  CHECK(assumes(cluster, "the network is not stated") == fabric.empty());
}

TEST_CASE("peers that may not talk become domains of their own", "[study]") {
  const auto forced = built(
      over(record("H100", 2, 1), "two ranks through the NICs, P2P off", "400G per NIC", 400_Gbps));
  CHECK(forced.cluster.nodes.front().count == 2);
  CHECK(node_of(forced).gpus == 1);
  CHECK(node_of(forced).nics == 1);
  CHECK(node_of(forced).scale_up == ScaleUp::None);
}

TEST_CASE("the environment steers the library", "[study]") {
  Measurement forced = record("H100", 8, 1);
  forced.environment = "NCCL_ALGO=RING, NCCL_IB_DISABLE=0,NCCL_PROTO=LL128";
  const auto cluster = built(forced);
  const std::vector<std::pair<std::string, std::string>> expected = {{"NCCL_ALGO", "RING"},
                                                                     {"NCCL_PROTO", "LL128"}};
  CHECK(cluster.variables == expected);
  CHECK(assumes(cluster, "no effect here: NCCL_IB_DISABLE"));
  forced.environment = "NCCL_TREE_THRESHOLD=0";
  CHECK(built(forced).variables.front().second == "Ring");
  forced.environment = "NVLSTree selected";
  CHECK(built(forced).variables.front().second == "NVLSTree");
  forced.environment = "NCCL_ALGO=Spiral";
  CHECK(built(forced).variables.empty());
  CHECK(assumes(built(forced), "no effect here: NCCL_ALGO=Spiral"));
}

TEST_CASE("the record tells how collectives were started", "[study]") {
  Measurement told = record("H100", 8, 1);
  CHECK(built(told).stack.empty());
  told.notes = "one process drives all GPUs, has outliers";
  CHECK(built(told).stack == "one-process");
  told.notes = "nccl-tests with -g 8";
  CHECK(built(told).stack == "one-process");
  told.notes = "one process per GPU";
  CHECK(built(told).stack.empty());
  told.notes = "CUDA graph";
  CHECK(built(told).stack == "graph");

  // The benchmark of a book on training, which is timed from Python.
  told.source = "stas00/ml-engineering network/README.md";
  told.notes = "";
  CHECK(built(told).stack == "pytorch");
  told.source = "somewhere";
  told.notes = "all_reduce_bench.py, 5 warm-ups";
  CHECK(built(told).stack == "pytorch");
  // PyTorch's calls timed on the GPU start as any others do (h100-allreduce-8gpu-td57: 19 us).
  told.notes = "NCCL through torch.distributed";
  CHECK(built(told).stack.empty());
  // RCCL has no such stack and keeps its usual one.
  Measurement amd = record("MI300X", 8, 1);
  amd.source = "stas00/ml-engineering network/README.md";
  CHECK(built(amd).stack.empty());
}

TEST_CASE("the library follows the vendor, and other kernels do not count", "[study]") {
  CHECK(built(record("H100", 8, 1)).library.starts_with("nccl"));
  CHECK(built(record("MI300X", 8, 1)).library.starts_with("rccl"));
  CHECK(built(record("TPU-v4", 1, 64)).library == "ideal");
  CHECK(built(record("TPU-v4", 1, 64)).cluster.fabric.torus == std::vector<std::uint32_t>{4, 4, 4});
  Measurement other = record("H100", 8, 1);
  other.library = "PyTorch symm_mem";
  CHECK(built(other).not_comparable == "kernels of PyTorch symm_mem");
  other.library = "pynccl";
  CHECK(built(other).not_comparable.empty());
}

TEST_CASE("MSCCL++ has its own library, of which two kernels are not in", "[study]") {
  Measurement record_of = record("H100", 8, 1);
  record_of.notes = "CUDA graph, custom kernel";
  record_of.nccl = "2.21.5";
  record_of.library = GENERATE("MSCCL++", "MSCCL++ NVLS zero copy", "mscclpp 0.7");
  const MeasuredCluster cluster = built(record_of);
  CHECK(cluster.library == "mscclpp-0.7");
  CHECK(cluster.not_comparable.empty());

  record_of.library = "MSCCL++ NVLS with scratch copy";
  CHECK(built(record_of).library == "mscclpp-0.7");
  CHECK(built(record_of).not_comparable ==
        "copies through a scratch buffer, zero copy is predicted");

  Measurement amd = record("MI300X", 8, 1);
  amd.library = "MSCCL++";
  CHECK(built(amd).library.starts_with("rccl"));
  CHECK(built(amd).not_comparable == "kernels of MSCCL++");
}

TEST_CASE("the version of the library is the stated one, else that of the record's date",
          "[study]") {
  const auto [stated, date, library, says] =
      GENERATE(table<std::string, std::string, std::string, std::string>(
          {{"2.19.3+cuda12.2", "2026-01", "nccl-2.19", ""},
           {"2.20.5", "2026-01", "nccl-2.19", "nccl-2.19 stands for 2.20.5"},
           {"2.19.x patched", "", "nccl-2.19", ""},
           {"2.4.8+cuda10.0", "", "nccl-2.8", "nccl-2.8 stands for 2.4.8+cuda10.0"},
           {"2.31.2", "", "nccl-2.30", "nccl-2.30 stands for 2.31.2"},
           {"not stated (new nccl-tests format, >=2.27)", "2024-05", "nccl-2.21", "after the date"},
           {"not stated (nccl-tests 2.17+ format)", "2023-07", "nccl-2.18", "after the date"},
           {"", "2023-2024 (repo)", "nccl-2.19", "after the date"},
           {"", "2019", "nccl-2.8", "after the date"},
           {"", "", "nccl-2.30", "the version of NCCL is not stated: nccl-2.30"}}));
  CAPTURE(stated, date);
  Measurement measurement = record("H100", 8, 1);
  measurement.nccl = stated;
  measurement.date = date;
  const MeasuredCluster cluster = built(measurement);
  CHECK(cluster.library == library);
  if (!says.empty()) CHECK(assumes(cluster, says));
}

TEST_CASE("NICs are those that the source counts when it counts two for each of the preset's",
          "[study]") {
  const auto nics = [](const std::string& words) {
    return built(over(record("A100-SXM4-40GB", 8, 2), "RoCE", words, 200_Gbps))
        .cluster.nodes.front()
        .spec.nics;
  };
  CHECK(nics("ConnectX-5 16x100G RoCE per node") == 16);
  CHECK(nics("8x200G") == 8);
  CHECK(nics("RoCE") == 8);
}

TEST_CASE("a GPU that is one of several counts only when they are alike", "[study]") {
  CHECK(built(record("H100 or B200", 8, 1)).not_comparable ==
        "\"H100 or B200\" is taken as dgx-h100");
  CHECK(built(record("MI300X or MI325X", 8, 1)).not_comparable.empty());
  CHECK(assumes(built(record("MI300X or MI325X", 8, 1)), "is taken as mi300x-8"));
  Measurement unsaid = record("", 8, 1);
  unsaid.system.nvlink_generation = 5;
  CHECK(built(unsaid).not_comparable == "the GPU is not stated, dgx-b200 is assumed");
}

TEST_CASE("what cannot be built says why", "[study]") {
  CHECK_THROWS_WITH(built(record("MetaX C500", 8, 1)),
                    "there are no hardware facts of the GPU \"MetaX C500\"");
  CHECK_THROWS_WITH(built(record("", 8, 1)), "the GPU is not stated");
  Measurement wrong = record("H100", 8, 1);
  wrong.gpus = 9;
  CHECK_THROWS_WITH(built(wrong), "9 GPUs contradict 1 nodes of 8");
}

}  // namespace flyover::study_test
