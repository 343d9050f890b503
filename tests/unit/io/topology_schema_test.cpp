// The schema that editors check a topology with, and the reader, are of one mind about structure.

#include <filesystem>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/topology_writer.hpp"
#include "support/schema.hpp"

namespace flyover::io {

namespace {

bool reader_accepts(const std::string& text) {
  try {
    (void)read_topology(Document::parse("t.json", text));
    return true;
  } catch (const InputError& error) {
    UNSCOPED_INFO(error.what());
    return false;
  }
}

}  // namespace

TEST_CASE("schema and reader accept the same good topologies", "[topology][schema]") {
  const test::Schema schema("topology.schema.json");
  for (const std::string& text : {
           std::string(R"({"preset": "superpod-h100", "nodes": 31})"),
           std::string(
               R"({"$schema": "x", "name": "n", "comment": "c", "node": {"preset": "dgx-h100"},
             "nodes": 127, "fabric": {"type": "rail-optimized", "preset": "ndr",
             "nodes_per_unit": 32, "oversubscription": 1.0, "routing": "adaptive"},
             "overrides": [{"select": "nic[node=3,index=2]", "state": "down"},
                           {"select": "link[kind=leaf-spine]", "bandwidth": "200 Gb/s"}]})"),
           std::string(R"({"nodes": [{"preset": "dgx-h100", "count": 2}, "dgx-a100"]})"),
           std::string(R"({"node": {"name": "mine", "gpus": 4, "gpu": {"name": "X1",
             "flops": {"bf16": "1 PFLOPS"}, "memory": "64 GB", "memory_bandwidth": "2 TB/s"},
             "scale_up": {"wiring": "switched", "switches": 2, "bandwidth": "450 GB/s"},
             "pcie": {"switches": 2, "sockets": 1, "bandwidth": "63 GB/s", "latency": "0.1 us"},
             "nics": {"count": 2, "bandwidth": "400Gbps", "rails": 2}}, "nodes": 2,
             "fabric": {"type": "single-switch", "link": {"latency": "500 ns"}}})"),
           std::string(R"({"node": "dgx-h100", "overrides": [{"select": "gpu[node=0,index=3]",
             "compute_factor": 0.8, "memory_factor": 1}]})"),
           std::string(R"({"gpu": "h100", "vertices": [{"name": "a", "kind": "gpu",
             "compute_factor": 0.5}, {"name": "b", "kind": "gpu", "memory_factor": 0.5}],
             "edges": [{"from": "a", "to": "b", "bandwidth": "1 GB/s", "latency": "1 us"}]})"),
           topology_json(load_topology("dgx-h100:2")),
           topology_json(load_topology("tpu-v4-cube")),
       }) {
    CAPTURE(text);
    CHECK(reader_accepts(text));
    CHECK(schema.accepts(text));
  }
}

TEST_CASE("schema and reader refuse the same malformed topologies", "[topology][schema]") {
  const test::Schema schema("topology.schema.json");
  for (const char* text : {
           R"({})",
           R"({"name": "nothing else"})",
           R"({"node": "dgx-h100", "nodes": 0})",
           R"({"node": "dgx-h100", "nodes": 2, "fabrik": {}})",
           R"({"node": "dgx-h100", "nodes": 2, "fabric": {"type": "rail-optimised"}})",
           R"({"node": "dgx-h100", "nodes": 2, "fabric": {"oversubscription": 0}})",
           R"({"node": "dgx-h100", "nodes": 2, "fabric": {"link": {"bandwidth": 400}}})",
           R"({"node": {"preset": "dgx-h100", "nics": {"bandwidth": "400"}}})",
           R"({"node": {"preset": "dgx-h100", "nics": {"speed": "400 Gb/s"}}})",
           R"({"node": {"gpus": 0}})",
           R"({"node": "dgx-h100", "overrides": [{"state": "down"}]})",
           R"({"node": "dgx-h100", "overrides": [{"select": "nic", "state": "off"}]})",
           R"({"node": "dgx-h100", "overrides": [{"select": "nic", "factor": 2}]})",
           R"({"node": "dgx-h100", "overrides": [{"select": "gpu", "compute_factor": 1.1}]})",
           R"({"node": "dgx-h100", "overrides": [{"select": "gpu", "memory_factor": 0}]})",
           R"({"gpu": "h100", "vertices": [{"name": "a", "kind": "gpu", "compute_factor": 2}],
               "edges": []})",
           R"({"vertices": [{"name": "a", "kind": "router"}], "edges": []})",
           R"({"vertices": [{"name": "a", "kind": "gpu"}]})",
           R"({"vertices": [], "edges": []})",
       }) {
    CAPTURE(text);
    CHECK_FALSE(reader_accepts(text));
    CHECK_FALSE(schema.accepts(text));
  }
}

TEST_CASE("the shipped topologies satisfy schema and reader", "[topology][schema]") {
  const test::Schema schema("topology.schema.json");
  const std::filesystem::path folder = std::filesystem::path(FLYOVER_SOURCE_DIR) / "topologies";
  if (!std::filesystem::exists(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path());
    const std::string text = test::text_of(entry.path());
    CHECK(reader_accepts(text));
    CHECK(schema.accepts(text));
  }
}

}  // namespace flyover::io
