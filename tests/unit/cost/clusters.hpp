#pragma once

// Small clusters with the rates of real ones (shared/hardware/HARDWARE.md), built without any file
// but the library's.

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/topology/builders.hpp"

namespace flyover::cost_test {

using namespace flyover::literals;

struct NodeRates {
  std::string architecture;
  std::string scale_up;
  std::uint32_t gpus = 8;
  Bandwidth lane = 25_GBps;
  std::vector<std::uint32_t> lanes;  // To each switch.
  bool nvls = true;
  Bandwidth nic = 400_Gbps;
  Bandwidth pcie = 63_GBps;
};

inline NodeSpec switched_node(const NodeRates& rates) {
  NodeSpec spec;
  spec.name = rates.architecture;
  spec.gpu.name = rates.architecture;
  spec.gpu.architecture = rates.architecture;
  spec.gpu.scale_up = rates.scale_up;
  spec.gpus = rates.gpus;
  spec.scale_up = ScaleUp::Switched;
  spec.lane_bandwidth = rates.lane;
  spec.links_per_switch = rates.lanes;
  spec.scale_up_latency = 300000_ps;
  spec.in_switch_reduction = rates.nvls;
  spec.pcie_bandwidth = rates.pcie;
  spec.pcie_latency = 100000_ps;
  spec.nics = rates.gpus;
  spec.nic_bandwidth = rates.nic;
  return spec;
}

inline NodeSpec dgx_a100() {
  return switched_node(
      {"ampere", "nvlink3", 8, 25_GBps, {2, 2, 2, 2, 2, 2}, false, 200_Gbps, 32_GBps});
}
inline NodeSpec dgx_h100() {
  return switched_node({"hopper", "nvlink4", 8, 25_GBps, {5, 4, 4, 5}});
}
inline NodeSpec hgx_h800() {
  return switched_node({"hopper", "nvlink4", 8, 25_GBps, {2, 2, 2, 2}});
}
inline NodeSpec dgx_b200() {
  return switched_node({"blackwell", "nvlink5", 8, 50_GBps, {9, 9}});
}
inline NodeSpec dgx_b300() {
  return switched_node({"blackwell", "nvlink5", 8, 50_GBps, {9, 9}, true, 800_Gbps, 121_GBps});
}
inline NodeSpec nvl72(std::uint32_t gpus, Bandwidth nic) {
  return switched_node({"blackwell", "nvlink5", gpus, 50_GBps, std::vector<std::uint32_t>(18, 1),
                        true, nic, 121_GBps});
}
inline NodeSpec mesh_node(const std::string& architecture, const std::string& scale_up,
                          Bandwidth lane) {
  NodeSpec spec = switched_node({architecture, scale_up, 8, lane, {}, false, 400_Gbps, 63_GBps});
  spec.scale_up = ScaleUp::Mesh;
  spec.mesh_lanes = 1;
  return spec;
}
inline NodeSpec mi300x() {
  return mesh_node("cdna3", "xgmi-mi300", 64_GBps);
}
inline NodeSpec mi355x() {
  return mesh_node("cdna4", "xgmi-mi355", Bandwidth{76.5e9});
}
inline NodeSpec pcie_box() {
  NodeSpec spec = switched_node({"ampere", "pcie4", 8, 25_GBps, {}, false, 200_Gbps, 32_GBps});
  spec.scale_up = ScaleUp::None;
  spec.pcie_switches = 4;
  spec.cpus = 2;
  spec.cpu_bandwidth = 20_GBps;
  return spec;
}

inline Topology cluster(const NodeSpec& node, std::uint32_t nodes,
                        FabricKind kind = FabricKind::RailOptimized) {
  ClusterSpec spec;
  spec.name = node.name;
  spec.nodes.push_back({node, nodes});
  spec.fabric.kind = nodes > 1 ? kind : FabricKind::None;
  spec.fabric.preset = "ndr";
  spec.fabric.link_latency = 500000_ps;
  spec.fabric.nodes_per_unit = 32;
  return build_topology(spec);
}

inline Library load(const std::string& name) {
  return io::read_library(io::library_document(name));
}

// What the library's rules give a group of one class of link.
inline double share_of(const Library& library, const RuleQuery& query) {
  for (const EfficiencyRule& rule : library.efficiencies) {
    if (covers(rule.where, query)) return share_at(rule, query.members);
  }
  return 1;
}

// A cluster, its router and a library, kept together.
struct Bench {
  Bench(const NodeSpec& node, std::uint32_t nodes, const std::string& name,
        std::vector<std::pair<std::string, std::string>> variables = {},
        FabricKind kind = FabricKind::RailOptimized)
      : Bench(cluster(node, nodes, kind), name, std::move(variables)) {}
  Bench(Topology built, const std::string& name,
        std::vector<std::pair<std::string, std::string>> variables = {})
      : topology(std::move(built)),
        library(load(name)) {
    for (const auto& [variable, value] : variables) set_variable(library.settings, variable, value);
    router = std::make_unique<Router>(topology, RouterOptions{library.settings.pxn});
    model = std::make_unique<CostModel>(topology, *router, library);
  }
  Bench(const Bench&) = delete;

  [[nodiscard]] CollectiveCall call(CollectiveOp op, Bytes bytes, std::uint32_t ranks = 0) const {
    CollectiveCall made;
    made.op = op;
    made.bytes = bytes;
    made.ranks.resize(ranks == 0 ? topology.gpus.size() : ranks);
    std::iota(made.ranks.begin(), made.ranks.end(), 0U);
    return made;
  }
  [[nodiscard]] Choice choose(CollectiveOp op, Bytes bytes, std::uint32_t ranks = 0) const {
    return model->choose(call(op, bytes, ranks));
  }
  [[nodiscard]] double busbw(CollectiveOp op, Bytes bytes, std::uint32_t ranks = 0) const {
    const CollectiveCall made = call(op, bytes, ranks);
    const Choice choice = model->choose(made);
    return static_cast<double>(bytes.count()) / to_seconds(choice.plan.alone) / 1e9 *
           bus_factor(op, static_cast<std::uint32_t>(made.ranks.size()));
  }

  Topology topology;
  Library library;
  std::unique_ptr<Router> router;
  std::unique_ptr<CostModel> model;
};

}  // namespace flyover::cost_test
