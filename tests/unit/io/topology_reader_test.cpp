#include "flyover/io/topology_reader.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/embedded.hpp"
#include "flyover/io/presets.hpp"
#include "flyover/topology/analysis.hpp"

namespace flyover::io {

namespace {

using namespace flyover::literals;

Topology read(const std::string& text) {
  return read_topology(Document::parse("t.json", text));
}

template <class Act>
std::string input_error(Act act) {
  try {
    (void)act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of(const std::string& text) {
  return input_error([&] { return read(text); });
}

std::string load_error(const std::string& argument) {
  return input_error([&] { return load_topology(argument); });
}

std::map<std::string, std::uint64_t> cables(const Topology& topology) {
  std::map<std::string, std::uint64_t> cables;
  for (const TierInfo& tier : analyse(topology).tiers) {
    cables[std::string(to_string(tier.kind))] = tier.cables;
  }
  return cables;
}

std::uint64_t count(const Topology& topology, VertexKind kind) {
  return static_cast<std::uint64_t>(std::ranges::count(topology.vertices, kind, &Vertex::kind));
}

// Bytes/s that leave a GPU over links of these kinds.
double out_rate(const Topology& topology, VertexId v, std::initializer_list<LinkKind> kinds) {
  double rate = 0;
  for (const LinkId id : topology.out(v)) {
    const Link& link = topology.links[id];
    if (std::ranges::find(kinds, link.kind) != kinds.end()) rate += link.bandwidth.per_second();
  }
  return rate;
}

bool mentions(const std::vector<std::string>& notes, const std::string& words) {
  return std::ranges::any_of(
      notes, [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

}  // namespace

// --- presets -------------------------------------------------------------------------------------

TEST_CASE("every preset has a source and builds a connected cluster of any size",
          "[topology][presets]") {
  const Presets presets;
  for (const PresetKind kind :
       {PresetKind::Gpu, PresetKind::Node, PresetKind::Network, PresetKind::Cluster}) {
    CHECK_FALSE(presets.list(kind).empty());
    for (const PresetInfo& info : presets.list(kind)) {
      CAPTURE(info.name);
      CHECK_FALSE(info.source.empty());
      CHECK_FALSE(info.summary.empty());
    }
  }
  for (const PresetInfo& info : presets.list(PresetKind::Node)) {
    const bool networked = presets.node(info.name).nics > 0;
    for (const std::uint32_t nodes : {1U, 2U, 16U}) {
      if (nodes > 1 && !networked) continue;
      CAPTURE(info.name, nodes);
      const Topology topology = load_topology(info.name + ":" + std::to_string(nodes));
      CHECK(topology.nodes.size() == nodes);
      CHECK(topology.gpus.size() == nodes * presets.node(info.name).gpus);
      CHECK_FALSE(find_disconnected(topology));
      if (nodes == 1) CHECK(topology.fabric == "none");
      if (nodes > 1) CHECK(topology.fabric == "rail-optimized");
      if (nodes > 1) CHECK_FALSE(topology.fabric_preset.empty());
    }
  }
  for (const PresetInfo& info : presets.list(PresetKind::Cluster)) {
    CAPTURE(info.name);
    const Topology topology = load_topology(info.name);
    CHECK(topology.nodes.size() == presets.cluster(info.name).nodes);
    CHECK_FALSE(find_disconnected(topology));
    CHECK_FALSE(topology.fabric_preset.empty());
    if (topology.fabric == "torus") continue;
    for (const std::uint32_t nodes : {1U, 2U, 16U}) {
      CHECK_FALSE(find_disconnected(load_topology(info.name + ":" + std::to_string(nodes))));
    }
  }
}

TEST_CASE("GPUs have the scale-up and NIC rates of their data sheets, per direction",
          "[topology][presets]") {
  struct Fact {
    const char* name;
    double scale_up, network;  // GB/s per GPU.
  };
  const auto fact = GENERATE(
      Fact{"dgx-1v", 150, 6.25}, Fact{"dgx-2", 150, 6.25}, Fact{"dgx-a100", 300, 25},
      Fact{"hgx-a800", 200, 25}, Fact{"dgx-h100", 450, 50}, Fact{"hgx-h100", 450, 50},
      Fact{"hgx-h800", 200, 50}, Fact{"hgx-h200", 450, 50}, Fact{"hgx-h20", 450, 50},
      Fact{"dgx-b200", 900, 50}, Fact{"dgx-b300", 900, 100}, Fact{"gb200-nvl72", 900, 50},
      Fact{"gb300-nvl72", 900, 100}, Fact{"vr-nvl72", 1800, 200}, Fact{"hgx-rubin-nvl8", 1800, 100},
      Fact{"mi300x-8", 448, 50}, Fact{"mi325x-8", 448, 50}, Fact{"mi355x-8", 535.5, 50},
      Fact{"pcie-8", 0, 12.5}, Fact{"pcie-8-bridged", 300, 12.5}, Fact{"aws-p5", 450, 50},
      Fact{"aws-p5en", 450, 50}, Fact{"aws-p4d", 300, 6.25}, Fact{"aws-p6-b200", 900, 50},
      Fact{"aws-p6-b300", 900, 100});
  CAPTURE(fact.name);
  const Topology topology = load_topology(std::string(fact.name) + ":2");
  for (const VertexId gpu : topology.gpus) {
    CHECK(out_rate(topology, gpu, {LinkKind::NvLink, LinkKind::Xgmi}) ==
          Approx(fact.scale_up * 1e9));
  }
  double network = 0;
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    if (topology.vertices[VertexId{v}].kind != VertexKind::Nic) continue;
    const double port = out_rate(topology, VertexId{v}, {LinkKind::HostLeaf});
    // PCIe is no bottleneck of a NIC.
    CHECK(out_rate(topology, VertexId{v}, {LinkKind::Pcie}) >= port);
    network += port;
  }
  CHECK(network == Approx(static_cast<double>(topology.gpus.size()) * fact.network * 1e9));
}

TEST_CASE("announced hardware says so", "[topology][presets]") {
  CHECK(mentions(load_topology("vr-nvl72").notes, "announced"));
  CHECK(mentions(load_topology("hgx-rubin-nvl8").notes, "announced"));
  CHECK_FALSE(mentions(load_topology("dgx-h100").notes, "announced"));
  CHECK(mentions(load_topology("hgx-h800").notes, "derived"));
}

TEST_CASE("the published tables come out of the shipped presets", "[topology][presets]") {
  struct Row {
    const char* argument;
    std::uint64_t leaves, spines, cores, node_leaf, leaf_spine, spine_core;
  };
  const auto row = GENERATE(Row{"superpod-h100:31", 8, 4, 0, 252, 256, 0},
                            Row{"superpod-h100:95", 24, 16, 0, 764, 768, 0},
                            Row{"superpod-b200:127", 32, 16, 0, 1020, 1024, 0},
                            Row{"superpod-h100:512", 128, 128, 64, 4096, 4096, 4096},
                            Row{"superpod-b300-ethernet:64", 16, 8, 0, 512, 512, 0},
                            Row{"superpod-b300-ethernet:1024", 256, 128, 0, 8192, 8192, 0},
                            Row{"superpod-b300-xdr:576", 64, 36, 0, 4608, 4608, 0},
                            Row{"deepseek-mpft:2048", 512, 256, 0, 16384, 16384, 0},
                            Row{"alibaba-hpn:1920", 240, 120, 0, 30720, 14400, 0});
  CAPTURE(row.argument);
  const Topology topology = load_topology(row.argument);
  CHECK(count(topology, VertexKind::Leaf) == row.leaves);
  CHECK(count(topology, VertexKind::Spine) == row.spines);
  CHECK(count(topology, VertexKind::Core) == row.cores);
  auto found = cables(topology);
  CHECK(found["host-leaf"] == row.node_leaf);
  CHECK(found["leaf-spine"] == row.leaf_spine);
  CHECK(found["spine-core"] == row.spine_core);
}

TEST_CASE("names are found by alias and in any case; unknown ones offer the nearest",
          "[topology][presets]") {
  const Presets presets;
  CHECK(presets.node("HGX-H100").name == "dgx-h100");
  CHECK(presets.gpu("h100").name == "H100-SXM");
  CHECK(presets.network("NDR").preset == "ndr");
  CHECK(presets.has(PresetKind::Cluster, "superpod-h100"));
  CHECK_FALSE(presets.has(PresetKind::Node, "superpod-h100"));
  CHECK(input_error([&] { return presets.node("dgx-h10"); }) ==
        "\"dgx-h10\" is not a known node preset, did you mean \"dgx-h100\"?");
  CHECK(input_error([&] { return presets.gpu("quantum"); }) ==
        "\"quantum\" is not a known GPU; see flyover list presets");
  CHECK(input_error([&] { return presets.cluster("superpod-h10"); }) ==
        "\"superpod-h10\" is not a known cluster preset, did you mean \"superpod-h100\"?");
  CHECK(presets.network_for(400_Gbps) == "ndr");
  CHECK(presets.network_for(333_Gbps).empty());
  const auto names = presets.topology_names();
  CHECK(std::ranges::find(names, "hgx-h100") != names.end());
  CHECK(std::ranges::find(names, "deepseek-mpft") != names.end());
}

TEST_CASE("the hybrid cube mesh gives every V100 six links", "[topology][presets]") {
  const Topology topology = load_topology("dgx-1v");
  for (const VertexId gpu : topology.gpus) {
    std::uint32_t lanes = 0;
    for (const LinkId id : topology.out(gpu)) {
      if (topology.links[id].kind == LinkKind::NvLink) lanes += topology.links[id].lanes;
    }
    CHECK(lanes == 6);
  }
}

TEST_CASE("embedded files are those of configs and validation, byte for byte",
          "[topology][presets]") {
  const std::filesystem::path root = FLYOVER_SOURCE_DIR;
  std::size_t compared = 0;
  for (const EmbeddedFile& file : embedded_files()) {
    const bool measured = file.path.starts_with("validation/");
    std::ifstream in((measured ? root : root / "configs") / file.path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    CAPTURE(file.path);
    CHECK(text == file.text);
    CHECK(embedded_file(file.path) == file.text);
    ++compared;
  }
  CHECK(compared >= 4);
}

// --- arguments -----------------------------------------------------------------------------------

TEST_CASE("an argument is a preset with a count, or a file", "[topology][reader]") {
  CHECK(load_topology("dgx-h100").gpus.size() == 8);
  CHECK(load_topology("DGX-H100:3").gpus.size() == 24);
  const TopologyInput input = load_topology_input("superpod-h100:31");
  CHECK(input.topology.nodes.size() == 31);
  CHECK(input.topology.name == "superpod-h100");
  CHECK(input.name == "superpod-h100:31");
  CHECK(input.digest.size() == 16);
  CHECK(input.digest != load_topology_input("superpod-h100:32").digest);
  CHECK(load_topology("superpod-h100").nodes.size() == 127);

  const std::string path = std::filesystem::temp_directory_path() / "flyover_topology_test.json";
  std::ofstream(path) << R"({"node": "dgx-a100", "nodes": 2})";
  CHECK(load_topology(path).gpus.size() == 16);
  std::filesystem::remove(path);
}

TEST_CASE("a wrong argument is refused with the nearest right one", "[topology][reader]") {
  CHECK(load_error("dgx-h10") ==
        "dgx-h10: is neither a preset nor a file, did you mean \"dgx-h100\"?");
  CHECK(load_error("dgx-h10:4") ==
        "dgx-h10:4: is neither a preset nor a file, did you mean \"dgx-h100\"?");
  CHECK(load_error("zzzzzzzz") ==
        "zzzzzzzz: is neither a preset nor a file (flyover list presets shows the presets)");
  for (const char* count : {"0", "", "-1", "2x", "1.5", "99999999999"}) {
    CHECK(load_error(std::string("dgx-h100:") + count) ==
          std::string("dgx-h100:") + count +
              ": expected a number of nodes from 1 to 1000000 after \":\", got \"" + count + "\"");
  }
  CHECK_THAT(load_error("missing.json"), Catch::StartsWith("missing.json: "));
}

TEST_CASE("a straggler is one GPU of its node", "[topology][reader]") {
  const Topology topology = read(R"({"node": "dgx-h100", "nodes": 2, "overrides": [
    {"select": "gpu[node=1,index=3]", "compute_factor": 0.8, "memory_factor": 0.9}]})");
  CHECK(topology.gpu_model(11).compute_factor == 0.8);
  CHECK(topology.gpu_model(11).memory_factor == 0.9);
  CHECK(topology.gpu_model(10) == topology.gpu_model(0));
  CHECK(mentions(topology.notes, "gpu[node=1,index=3]"));
}

TEST_CASE("settings override a preset's values by path", "[topology][reader]") {
  const std::vector<Setting> settings{{"fabric.oversubscription", "2"},
                                      {"fabric.nodes_per_unit", "32"},
                                      {"node.nics.bandwidth", "\"200 Gb/s\""}};
  const TopologyInput input = load_topology_input("dgx-h100:32", settings);
  const TopologyInfo info = analyse(input.topology);
  CHECK(info.oversubscription.at("leaf") == 2);
  CHECK(info.tiers[3].per_cable_high == 200_Gbps);
  CHECK(input.topology.fabric_preset == "hdr");
  CHECK(input.digest != load_topology_input("dgx-h100:32").digest);

  const std::vector<Setting> link{{"fabric.link.bandwidth", "\"800 Gb/s\""}};
  const TopologyInfo fast = analyse(load_topology("superpod-h100:31", link));
  CHECK(fast.tiers[4].per_cable_high == 800_Gbps);
  const std::vector<Setting> wrong{{"fabric.oversubscriptoin", "2"}};
  CHECK_THAT(input_error([&] { return load_topology("dgx-h100:2", wrong); }),
             Catch::Contains("did you mean \"oversubscription\"?"));
}

// --- files ---------------------------------------------------------------------------------------

TEST_CASE("the example of the interface reads as it should", "[topology][reader]") {
  const Topology topology = read(R"({
    "$schema": "../schemas/topology.schema.json",
    "name": "h100-superpod-4su",
    "node":   { "preset": "dgx-h100" },
    "nodes":  127,
    "fabric": { "type": "rail-optimized", "preset": "ndr", "nodes_per_unit": 32, "oversubscription": 1.0,
                "routing": "adaptive" },
    "overrides": [ { "select": "nic[node=3,index=2]", "state": "down" },
                   { "select": "link[kind=leaf-spine]", "bandwidth": "200 Gb/s" } ]
  })");
  CHECK(topology.name == "h100-superpod-4su");
  CHECK(topology.gpus.size() == 1016);
  CHECK(topology.fabric_preset == "ndr");
  CHECK(count(topology, VertexKind::Leaf) == 32);
  CHECK(std::ranges::count(topology.vertices, false, &Vertex::up) == 1);
  CHECK(std::ranges::count(topology.links, 200_Gbps, &Link::bandwidth) == 2048);
  CHECK(mentions(topology.notes, "nic[node=3,index=2]"));
}

TEST_CASE("a node can be written out in full", "[topology][reader]") {
  const Topology topology = read(R"({
    "node": { "name": "mine", "gpus": 4,
              "gpu": { "name": "X1", "flops": { "bf16": "1 PFLOPS" }, "memory": "64 GB",
                       "memory_bandwidth": "2 TB/s", "sms": 10, "scale_up": "nvlink4" },
              "scale_up": { "wiring": "switched", "switches": 2, "bandwidth": "450 GB/s",
                            "latency": "1 us", "in_switch_reduction": true },
              "nics": { "count": 2, "bandwidth": "400 Gb/s", "model": "X-NIC" } },
    "nodes": 2,
    "fabric": { "type": "single-switch", "link": { "latency": "0.5 us" } } })");
  CHECK(topology.gpus.size() == 8);
  CHECK(topology.gpu_models[0].flops.at("bf16") == FlopRate{1e15});
  CHECK(out_rate(topology, topology.gpus[0], {LinkKind::NvLink}) == 450e9);
  CHECK(topology.nodes[NodeId{0}].in_switch_reduction);
  CHECK(topology.nodes[NodeId{0}].nic_model == "X-NIC");
  CHECK(cables(topology)["pcie"] == 8);
  for (const Link& link : topology.links) {
    if (link.kind == LinkKind::HostLeaf) CHECK(link.latency == 500ns);
  }
}

TEST_CASE("a preset node can be changed key by key", "[topology][reader]") {
  const Topology topology = read(R"({
    "node": { "preset": "dgx-h100", "gpu": { "preset": "H200-SXM", "sms": 100 },
              "nics": { "count": 4 } }, "nodes": 2 })");
  CHECK(topology.gpu_models[0].name == "H200-SXM");
  CHECK(topology.gpu_models[0].sms == 100);
  CHECK(topology.gpu_models[0].memory == Bytes{141'000'000'000});
  CHECK(cables(topology)["host-leaf"] == 8);
  CHECK(out_rate(topology, topology.gpus[0], {LinkKind::NvLink}) == 450e9);
}

TEST_CASE("InfiniBand switches reduce from HDR on, unless the file says otherwise",
          "[topology][reader]") {
  const auto reduces = [](const std::string& fabric) {
    return read_topology(
               Document::parse("t.json",
                               R"({ "node": "dgx-h100", "nodes": 2, "fabric": )" + fabric + " }"))
        .in_network_reduction;
  };
  CHECK(reduces(R"({ "type": "rail-optimized", "preset": "ndr" })"));
  CHECK(reduces(R"({ "type": "fat-tree", "preset": "hdr" })"));
  CHECK(reduces(R"({ "type": "rail-optimized" })"));  // Of the NICs' generation, ndr.
  CHECK_FALSE(reduces(R"({ "type": "rail-optimized", "preset": "edr" })"));
  CHECK_FALSE(reduces(R"({ "type": "rail-optimized", "preset": "roce-400" })"));
  CHECK_FALSE(reduces(R"({ "type": "rail-optimized", "preset": "ndr",
                          "in_network_reduction": false })"));
  CHECK(reduces(R"({ "type": "rail-optimized", "preset": "roce-400",
                    "in_network_reduction": true })"));
}

TEST_CASE("the maker of a node's processors is known or can be given", "[topology][reader]") {
  const auto vendor = [](const std::string& node) {
    return read_topology(Document::parse("t.json", R"({ "node": )" + node + " }"))
        .nodes[NodeId{0}]
        .cpu_vendor;
  };
  CHECK(vendor(R"("dgx-a100")") == "amd");
  CHECK(vendor(R"("dgx-h100")") == "intel");
  CHECK(vendor(R"({ "preset": "dgx-h100", "pcie": { "cpu_vendor": "amd" } })") == "amd");
  CHECK_THROWS_WITH(vendor(R"({ "preset": "dgx-h100", "pcie": { "cpu_vendor": "amt" } })"),
                    Catch::Matchers::Contains("cpu_vendor: "));
}

TEST_CASE("nodes of several kinds are a list", "[topology][reader]") {
  const Topology topology = read(R"({ "nodes": [ { "preset": "dgx-h100", "count": 2 },
                                                 { "preset": "dgx-a100" }, "dgx-b200" ] })");
  CHECK(topology.nodes.size() == 4);
  CHECK(topology.nodes[NodeId{3}].preset == "dgx-b200");
  CHECK(topology.gpu_models.size() == 3);
  CHECK(mentions(topology.notes, "ndr is assumed"));
}

TEST_CASE("odd clusters are legal", "[topology][reader]") {
  CHECK(read(R"({"node": {"gpus": 1}})").vertices.size() == 1);
  CHECK(read(R"({"node": {"preset": "dgx-h100", "nics": {"count": 0}}})").gpus.size() == 8);
  CHECK(cables(read(R"({"node": "pcie-8", "nodes": 2})"))["host-leaf"] == 4);
  CHECK(read(R"({"node": "tpu-v5p", "nodes": 24, "fabric": {"type": "torus", "torus": [2, 3, 4]}})")
            .torus.size() == 3);
}

TEST_CASE("what the file leaves open is assumed aloud", "[topology][reader]") {
  CHECK(mentions(load_topology("dgx-h100:2").notes, "rail-optimized is assumed"));
  CHECK(mentions(load_topology("dgx-h100:2").notes, "ndr is assumed"));
  CHECK(load_topology("dgx-h100").notes.empty());
  const Topology odd = read(R"({"node": {"gpus": 1, "nics": {"count": 1,
      "bandwidth": "333 Gb/s"}}, "nodes": 2, "fabric": {"type": "single-switch"}})");
  CHECK(odd.fabric_preset.empty());
  CHECK(mentions(odd.notes, "no network generation is known"));
}

TEST_CASE("an impossible rate is refused and the likely one offered", "[topology][reader]") {
  CHECK(error_of(R"({"node": {"preset": "dgx-h100", "nics": {"bandwidth": "400 GB/s"}}})") ==
        "t.json:1:55: /node/nics/bandwidth: expected less than 3.2 Tb/s for one NIC, in one "
        "direction, got \"400 GB/s\", did you mean \"400 Gb/s\"?");
  CHECK_THAT(error_of(R"({"node": {"preset": "dgx-h100",
                          "scale_up": {"lane_bandwidth": "450 GB/s"}}})"),
             Catch::EndsWith("/node/scale_up/lane_bandwidth: expected less than 200 GB/s for one "
                             "scale-up lane, in one direction, got \"450 GB/s\", did you mean "
                             "\"450 Gb/s\"?"));
  CHECK_THAT(error_of(R"({"node": {"gpus": 1, "gpu": {"memory_bandwidth": "200 TB/s"}}})"),
             Catch::Contains("expected less than 100 TB/s for the memory of one GPU"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "nodes": 2,
                          "fabric": {"link": {"bandwidth": "800 GB/s"}}})"),
             Catch::EndsWith("did you mean \"800 Gb/s\"?"));
  CHECK_THAT(error_of(R"({"node": {"preset": "dgx-h100", "nics": {"bandwidth": "6400 Gb/s"}}})"),
             Catch::EndsWith("got \"6400 Gb/s\""));
}

TEST_CASE("wrong files are refused at the place of the mistake", "[topology][reader]") {
  CHECK_THAT(error_of("{}"),
             Catch::EndsWith("expected \"preset\", \"node\", a list of \"nodes\", or \"vertices\" "
                             "and \"edges\""));
  CHECK_THAT(error_of(R"({"node": {"preset": "dgx-h1oo"}})"),
             Catch::Contains("/node/preset: \"dgx-h1oo\" is not a known node preset, did you mean "
                             "\"dgx-h100\"?"));
  CHECK_THAT(error_of(R"({"preset": "superpod-h10"})"),
             Catch::EndsWith("/preset: \"superpod-h10\" is not a known preset, did you mean "
                             "\"superpod-h100\"?"));
  CHECK_THAT(error_of(R"({"nodes": 2})"),
             Catch::EndsWith("/nodes: a count of nodes needs a \"node\" that says of what"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "nodes": []})"),
             Catch::EndsWith("/nodes: expected a count beside \"node\""));
  CHECK_THAT(error_of(R"({"nodes": []})"), Catch::EndsWith("/nodes: expected at least one node"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "nodes": 0})"), Catch::Contains("/nodes: "));
  CHECK_THAT(error_of(R"({"node": {"gpu": "h100"}})"),
             Catch::Contains("written out with \"gpus\""));
  CHECK_THAT(error_of(R"({"node": {"gpus": 1, "gpu": "H1000"}})"),
             Catch::Contains("is not a known GPU"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "nodes": 2, "fabric": {"type": "rail-optimised"}})"),
             Catch::Contains("rail-optimized"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "nodes": 2, "fabric": {"preset": "ndrr"}})"),
             Catch::EndsWith("/fabric/preset: \"ndrr\" is not a known network preset, did you mean "
                             "\"ndr\"?"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "nodes": 2, "fabrik": {}})"),
             Catch::Contains("did you mean \"fabric\"?"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "nodes": 512, "fabric": {"type": "leaf-spine"}})"),
             Catch::Contains("/fabric: fabric \"leaf-spine\": 128 leaves need a third tier"));
  CHECK_THAT(error_of(R"({"node": {"gpus": 2, "scale_up": {"wiring": "ring"}}})"),
             Catch::Contains("/node/scale_up/wiring: "));
  CHECK_THAT(error_of(R"({"node": {"gpus": 2, "scale_up": {"wiring": "mesh", "lanes": 1}}})"),
             Catch::EndsWith("node \"node\": scale-up links need a lane bandwidth"));
  CHECK_THAT(error_of(R"({"node": {"gpus": 2, "scale_up": {"wiring": "explicit",
                          "bandwidth": "1 GB/s"}}})"),
             Catch::EndsWith("/node/scale_up/bandwidth: cannot be divided over lanes with this "
                             "wiring: give the lanes, or lane_bandwidth"));
  CHECK_THAT(error_of(R"({"node": {"gpus": 2, "scale_up": {"wiring": "mesh", "lanes": 1,
                          "bandwidth": "1 GB/s", "lane_bandwidth": "1 GB/s"}}})"),
             Catch::Contains("give either lane_bandwidth or bandwidth"));
  CHECK_THAT(error_of(R"({"node": {"gpus": 2, "scale_up": {"wiring": "switched", "switches": 1,
                          "links_per_switch": [1]}}})"),
             Catch::Contains("give either links_per_switch or switches"));
  CHECK_THAT(error_of(R"({"node": {"preset": "dgx-h100", "nics": {"rails": 4, "rail": [0]}}})"),
             Catch::Contains("give either the rail of every NIC or the number of rails"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "nodes": 2, "fabric": {"seed": -1}})"),
             Catch::EndsWith("/fabric/seed: expected a seed of zero or more"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "overrides": [{"select": "nic[node=9]",
                          "state": "down"}]})"),
             Catch::Contains("/overrides/0/select: selector \"nic[node=9]\": matches nothing"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "overrides": [{"select": "nic", "state": "off"}]})"),
             Catch::Contains("/overrides/0/state: "));
  CHECK_THAT(
      error_of(R"({"node": "dgx-h100", "overrides": [{"select": "nic[node=0]",
                          "compute_factor": 0.5}]})"),
      Catch::EndsWith("/overrides/0/select: selector \"nic[node=0]\": a compute_factor is of "
                      "gpus and nodes, not of a nic"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "overrides": [{"select": "gpu[node=0]",
                          "memory_factor": 2}]})"),
             Catch::EndsWith("expected a memory_factor above 0 and at most 1, got 2"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "overrides": [{"select": "gpu[node=0]",
                          "compute_factor": 0}]})"),
             Catch::Contains("/overrides/0/compute_factor: "));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "overrides": [{"select": "gpu[node=0]",
                          "compute": 0.5}]})"),
             Catch::Contains("/overrides/0/compute: is not a known option"));
  CHECK_THAT(error_of(R"({"gpu": "h100", "edges": [],
                          "vertices": [{"name": "a", "kind": "gpu", "compute_factor": 1.5}]})"),
             Catch::EndsWith("/vertices/0/compute_factor: expected a share of at most 1, got 1.5"));
  CHECK_THAT(error_of(R"({"gpu": "h100", "edges": [], "vertices": [{"name": "a", "kind": "gpu"},
                          {"name": "b", "kind": "switch", "memory_factor": 0.5}]})"),
             Catch::EndsWith("/vertices/1/memory_factor: only a gpu computes"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "notes": []})"),
             Catch::EndsWith("/notes: belongs to a graph with \"vertices\" and \"edges\""));
}

// --- explicit graphs -----------------------------------------------------------------------------

TEST_CASE("an explicit graph is read as it stands", "[topology][reader]") {
  const Topology topology = read(R"({
    "vertices": [ { "name": "a", "kind": "gpu", "node": "n", "gpu": "H100-SXM" },
                  { "name": "sw", "kind": "leaf" },
                  { "name": "b", "kind": "gpu", "node": "m", "gpu": "h100" },
                  { "name": "c", "kind": "gpu", "node": "n", "gpu": "H100-SXM" },
                  { "name": "n0", "kind": "nic", "node": "n", "rail": 5 },
                  { "name": "n1", "kind": "nic", "node": "m", "state": "down" } ],
    "edges": [ { "from": "a", "to": "c", "bandwidth": "300 GB/s", "latency": "1 us", "lanes": 12 },
               { "from": "a", "to": "n0", "bandwidth": "50 GB/s", "latency": "0 ps" },
               { "from": "n0", "to": "sw", "bandwidth": "400 Gb/s", "latency": "1 us" },
               { "from": "b", "to": "n1", "bandwidth": "50 GB/s", "latency": "0 ps",
                 "directed": true } ] })");
  CHECK(topology.fabric == "explicit");
  CHECK(topology.names == std::vector<std::string>{"a", "c", "n0", "b", "n1", "sw"});
  CHECK(topology.nodes.size() == 2);
  CHECK(topology.nodes[NodeId{0}].gpus == 2);
  CHECK(topology.nodes[NodeId{0}].type != topology.nodes[NodeId{1}].type);
  CHECK(topology.gpus == std::vector<VertexId>{VertexId{0}, VertexId{1}, VertexId{3}});
  CHECK(topology.gpu_models.size() == 1);
  CHECK(topology.vertices[VertexId{2}].rail == 5);
  CHECK_FALSE(topology.vertices[VertexId{4}].up);
  REQUIRE(topology.links.size() == 7);
  CHECK(topology.links[LinkId{0}].kind == LinkKind::NvLink);
  CHECK(topology.links[LinkId{0}].lanes == 12);
  CHECK(topology.links[LinkId{2}].kind == LinkKind::Pcie);
  CHECK(topology.links[LinkId{4}].kind == LinkKind::HostLeaf);
}

TEST_CASE("GPUs without a node are machines of their own, alike ones of one type",
          "[topology][reader]") {
  const Topology topology = read(R"({ "gpu_models": ["h100"],
    "vertices": [ { "name": "a", "kind": "gpu" }, { "name": "b", "kind": "gpu" },
                  { "name": "s", "kind": "switch" } ],
    "edges": [ { "from": "a", "to": "s", "bandwidth": "450 GB/s" },
               { "from": "b", "to": "s", "bandwidth": "450 GB/s" } ] })");
  CHECK(topology.nodes.size() == 2);
  CHECK(topology.nodes[NodeId{0}].type == topology.nodes[NodeId{1}].type);
  CHECK(mentions(topology.notes, "2 edges state no latency"));
  CHECK_FALSE(find_disconnected(topology));
}

TEST_CASE("wrong graphs are refused at the place of the mistake", "[topology][reader]") {
  const auto graph = [](const std::string& vertices, const std::string& edges,
                        const std::string& more = "") {
    return error_of("{\"gpu_models\": [\"h100\"], \"vertices\": [" + vertices + "], \"edges\": [" +
                    edges + "]" + more + "}");
  };
  const std::string a = R"({"name": "gpu-a", "kind": "gpu"})";
  const std::string b = R"({"name": "gpu-b", "kind": "gpu"})";
  CHECK_THAT(graph("", ""), Catch::EndsWith("/vertices: expected at least one vertex"));
  CHECK_THAT(graph(R"({"name": "s", "kind": "leaf"})", ""),
             Catch::EndsWith("/vertices: expected at least one vertex of kind gpu"));
  CHECK_THAT(graph(R"({"name": "s", "kind": "router"})", ""),
             Catch::Contains("/vertices/0/kind: "));
  CHECK_THAT(graph(R"({"name": "", "kind": "gpu"})", ""),
             Catch::EndsWith("/vertices/0/name: expected a name"));
  CHECK_THAT(graph(a + "," + a, ""),
             Catch::EndsWith("/vertices/1/name: vertex \"gpu-a\" is listed twice"));
  CHECK_THAT(graph(R"({"name": "n", "kind": "nic"})", ""),
             Catch::EndsWith("/vertices/0: a nic needs a \"node\" that it belongs to"));
  CHECK_THAT(graph(R"({"name": "n", "kind": "leaf", "node": 1})", ""),
             Catch::EndsWith("/vertices/0/node: a leaf belongs to the fabric, not to a node"));
  CHECK_THAT(graph(R"({"name": "n", "kind": "leaf", "gpu": "h100"})", ""),
             Catch::EndsWith("/vertices/0/gpu: only a gpu has a model"));
  CHECK_THAT(graph(R"({"name": "n", "kind": "gpu", "gpu": "H10000"})", ""),
             Catch::Contains("/vertices/0/gpu: \"H10000\" is not a known GPU"));
  CHECK_THAT(graph(a + "," + b, R"({"from": "gpu-a", "to": "gpu-c", "bandwidth": "1 GB/s"})"),
             Catch::EndsWith("/edges/0/to: there is no vertex \"gpu-c\", did you mean \"gpu-a\"?"));
  CHECK_THAT(graph(a, R"({"from": "gpu-a", "to": "gpu-a", "bandwidth": "1 GB/s"})"),
             Catch::EndsWith("/edges/0/to: an edge needs two different ends"));
  CHECK_THAT(graph(a + "," + b, R"({"from": "gpu-a", "to": "gpu-b"})"),
             Catch::Contains("bandwidth"));
  CHECK_THAT(graph(a + "," + b, R"({"from": "gpu-a", "to": "gpu-b", "bandwidth": "-1 GB/s"})"),
             Catch::Contains("/edges/0/bandwidth: "));
  CHECK_THAT(graph(a + "," + b, R"({"from": "gpu-a", "to": "gpu-b", "bandwidth": "2 GB/s",
                                    "nominal": "1 GB/s"})"),
             Catch::EndsWith("/edges/0/bandwidth: expected no more than \"nominal\""));
  CHECK_THAT(graph(a + "," + b, R"({"from": "gpu-a", "to": "gpu-b", "bandwidth": "2 GB/s",
                                    "kind": "wire"})"),
             Catch::Contains("/edges/0/kind: "));
  CHECK_THAT(graph(R"({"name": "a", "kind": "gpu", "node": 0},
                      {"name": "b", "kind": "gpu", "node": 0, "gpu": "v100"})",
                   ""),
             Catch::EndsWith("/vertices/1: node \"0\" mixes GPUs of two models"));
  CHECK_THAT(graph(a, "", R"(, "nodes": [{"name": "x"}])"),
             Catch::EndsWith("/nodes: node \"x\" has no vertices"));
  CHECK_THAT(graph(a, "", R"(, "nodes": [{"name": "gpu-a"}, {"name": "gpu-a"}])"),
             Catch::EndsWith("/nodes/1/name: node \"gpu-a\" is listed twice"));
  CHECK_THAT(graph(a, "", R"(, "fabric": {"torus": [2]})"),
             Catch::EndsWith("/fabric/torus: expected extents whose product is the number of nodes "
                             "(1)"));
  CHECK_THAT(graph(a, "", R"(, "fabric": {"routing": "dimension-order"})"),
             Catch::EndsWith("/fabric/routing: dimension-order needs the extents of a \"torus\""));
  CHECK_THAT(graph(a, "", R"(, "fabric": {"routing": "shortest"})"),
             Catch::Contains("/fabric/routing: "));
  CHECK_THAT(error_of(R"({"vertices": [{"name": "a", "kind": "gpu"}], "edges": []})"),
             Catch::Contains("/vertices/0: expected the GPU's model"));
  CHECK_THAT(error_of(R"({"gpu_models": [{"sms": 3}], "vertices": [], "edges": []})"),
             Catch::EndsWith("/gpu_models/0: expected a GPU with a \"name\" or \"preset\""));
  CHECK_THAT(error_of(R"({"gpu_models": ["h100", "h100"], "vertices": [], "edges": []})"),
             Catch::EndsWith("/gpu_models/1: GPU \"H100-SXM\" is listed twice"));
  CHECK_THAT(error_of(R"({"gpu": "h100", "gpu_models": [], "vertices": [], "edges": []})"),
             Catch::EndsWith("/gpu: give either \"gpu\" or \"gpu_models\""));
  CHECK_THAT(error_of(R"({"vertices": []})"), Catch::Contains("expected at least one vertex"));
  CHECK_THAT(error_of(R"({"node": "dgx-h100", "vertices": []})"), Catch::Contains("/node"));
}

}  // namespace flyover::io
