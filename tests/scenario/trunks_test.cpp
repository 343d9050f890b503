// Clusters with trunks, by classes of ranks, against the same with every cable, rank by rank: real
// nodes and fabrics.

#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/io/document.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/workload_reader.hpp"
#include "support/same_result.hpp"

using namespace flyover;

namespace {

struct Modelled {
  Modelled(const std::string& cluster, const Library& library, io::FabricDetail detail)
      : topology(io::read_topology(io::Document::parse("cluster", cluster), detail)),
        router(topology, {}),
        cost(topology, router, library) {}

  Topology topology;
  Router router;
  CostModel cost;
};

struct ClusterCase {
  std::string text;
  std::uint32_t gpus = 0;
  std::uint32_t per_node = 8;
  bool merges = true;  // At most a quarter of the ranks differ.
};

std::vector<ClusterCase> clusters() {
  const auto cluster = [](std::string_view node, std::uint32_t nodes, std::string_view fabric) {
    return fmt::format(R"({{"node":{{"preset":"{}"}},"nodes":{},"fabric":{{"preset":"ndr",{}}}}})",
                       node, nodes, fabric);
  };
  return {
      {cluster("dgx-h100", 48, R"("type":"rail-optimized","nodes_per_unit":8)"), 384},
      {cluster("dgx-h100", 16, R"("type":"fat-tree","radix":16)"), 128},
      {cluster("dgx-h100", 24, R"("type":"fat-tree","radix":16,"oversubscription":3)"), 192},
      {cluster("dgx-b200", 16, R"("type":"leaf-spine","nodes_per_unit":2)"), 128},
      {cluster("hgx-h800", 32, R"("type":"multi-plane","nodes_per_unit":8)"), 256},
      {cluster("dgx-h100", 16, R"("type":"rail-only")"), 128},
      {cluster("gb200-nvl72", 3, R"("type":"rail-optimized","nodes_per_unit":1)"), 216, 72},
      {cluster("dgx-h100", 16, R"("type":"rail-optimized","nodes_per_unit":4,"routing":"ecmp")"),
       128, 8, false},
      {R"({"node":{"preset":"dgx-h100"},"nodes":16,"fabric":{"preset":"ndr","type":"rail-optimized",
           "nodes_per_unit":4},"overrides":[{"select":"nic[node=3,index=2]","state":"down"},
           {"select":"gpu[node=5,index=1]","compute_factor":0.8}]})",
       128, 8, false},
      {R"({"node":{"preset":"dgx-h100"},"nodes":16,"fabric":{"preset":"ndr","type":"rail-optimized",
           "nodes_per_unit":4},"overrides":[{"select":"spine[index=0]","factor":0.5}]})",
       128},
      {R"({"node":{"preset":"dgx-h100"},"nodes":8,"fabric":{"preset":"ndr","type":"rail-optimized"},
           "overrides":[{"select":"link[kind=nvlink,node=2,index=3]","factor":0.5}]})",
       64},
  };
}

// Groups in every node, across nodes on every rail, and all ranks, with messages between nodes.
std::string workload(const ClusterCase& on) {
  std::string inside;
  std::string across;
  for (std::uint32_t n = 0; n < on.gpus / on.per_node; ++n) {
    inside +=
        fmt::format("{}\"{}-{}\"", n == 0 ? "" : ",", n * on.per_node, (n + 1) * on.per_node - 1);
  }
  for (std::uint32_t r = 0; r < on.per_node; ++r) {
    across += r == 0 ? "[" : ",[";
    for (std::uint32_t n = 0; n < on.gpus / on.per_node; ++n) {
      across += fmt::format("{}{}", n == 0 ? "" : ",", n * on.per_node + r);
    }
    across += "]";
  }
  return fmt::format(
      R"({{"ranks":{0},"groups":{{"tp":[{1}],"dp":[{2}]}},"programs":[{{"ranks":"0-{3}","ops":[
    {{"id":"k","op":"compute","flops":"40 GFLOP","bytes":"1 GB","dtype":"bf16"}},
    {{"id":"sum","op":"all_reduce","bytes":"64 MiB","group":"tp","after":["k"]}},
    {{"id":"shards","op":"reduce_scatter","bytes":"256 MiB","group":"dp","stream":"dp","after":["k"]}},
    {{"id":"norm","op":"all_reduce","bytes":"4 B","group":"all","after":["shards"]}},
    {{"id":"big","op":"all_reduce","bytes":"1 GiB","group":"all","after":["norm"]}},
    {{"id":"s","op":"send","peer":"+{4}","wrap":true,"bytes":"32 MiB","stream":"out","after":["sum"]}},
    {{"id":"r","op":"recv","peer":"-{4}","wrap":true,"bytes":"32 MiB","stream":"in","after":["sum"]}},
    {{"id":"weights","op":"all_gather","bytes":"256 MiB","group":"dp","stream":"dp","after":["big"]}},
    {{"id":"dispatch","op":"all_to_all","bytes":"16 MiB","group":"tp","after":["big"]}}]}}]}})",
      on.gpus, inside, across, on.gpus - 1, on.per_node);
}

}  // namespace

TEST_CASE("a cluster with trunks has as many cables and as much bandwidth of every kind") {
  struct Sum {
    std::uint64_t cables = 0;
    double bandwidth = 0;
  };
  const auto sums = [](const Topology& topology) {
    std::map<LinkKind, Sum> by_kind;
    for (const Link& link : topology.links) {
      by_kind[link.kind].cables += link.cables;
      by_kind[link.kind].bandwidth += link.bandwidth.per_second();
    }
    return by_kind;
  };
  for (const std::string name : {"superpod-h100:64", "dgx-b200:16", "gb200-nvl72:4"}) {
    CAPTURE(name);
    const Topology all = io::load_topology(name);
    const Topology few = io::load_topology(name, {}, io::FabricDetail::Trunks);
    CHECK(few.links.size() < all.links.size());
    const auto expected = sums(all);
    const auto got = sums(few);
    REQUIRE(got.size() == expected.size());
    for (const auto& [kind, sum] : expected) {
      CAPTURE(to_string(kind));
      CHECK(got.at(kind).cables == sum.cables);
      CHECK(got.at(kind).bandwidth == Approx(sum.bandwidth).epsilon(1e-12));
    }
  }
}

TEST_CASE("overrides of what trunks join keep the cables apart, others do not") {
  const auto links = [](std::string_view select, std::string_view change) {
    const std::string text = fmt::format(
        R"({{"node":{{"preset":"dgx-h100"}},"nodes":8,"fabric":{{"type":"rail-optimized","preset":"ndr",
            "nodes_per_unit":2}},"overrides":[{{"select":"{}",{}}}]}})",
        select, change);
    return io::read_topology(io::Document::parse("cluster", text), io::FabricDetail::Trunks)
        .links.size();
  };
  const std::size_t joined = links("nic[node=0,index=1]", R"("state":"down")");
  CHECK(links("gpu[node=0,index=1]", R"("compute_factor":0.5)") == joined);
  CHECK(links("gpu[node=0,index=1]", R"("factor":0.5)") == joined);
  CHECK(links("node[index=3]", R"("state":"down")") == joined);
  CHECK(links("link[kind=host-leaf,node=1]", R"("factor":0.5)") == joined);
  CHECK(links("gpu[node=0,index=1]", R"("bandwidth":"10 GB/s")") > joined);
  CHECK(links("spine[index=0]", R"("factor":0.5)") > joined);
  CHECK(links("leaf[index=0]", R"("factor":0.5)") > joined);
  CHECK(links("nvswitch[node=2,index=0]", R"("state":"down")") > joined);
  CHECK(links("link[kind=leaf-spine,index=0]", R"("state":"down")") > joined);
  CHECK(links("link[node=0]", R"("factor":0.5)") > joined);
}

TEST_CASE("trunks, folds and classes change no time of any operation") {
  const Library nccl = io::read_library(io::library_document("nccl-2.27"));
  for (const ClusterCase& on : clusters()) {
    CAPTURE(on.text);
    const Modelled all(on.text, nccl, io::FabricDetail::Cables);
    const Modelled few(on.text, nccl, io::FabricDetail::Trunks);
    REQUIRE(all.topology.gpus.size() == on.gpus);
    const Workload jobs = io::read_workload(io::Document::parse("jobs", workload(on)), on.gpus);
    const ReductionCheck check =
        verify_reduction({all.topology, all.cost}, {few.topology, few.cost}, jobs);
    test::check_exact(check);
    if (on.merges) CHECK(check.reduced.result.classes * 4 <= on.gpus);
  }
}
