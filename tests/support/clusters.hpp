#pragma once

#include <string>
#include <vector>

#include "flyover/topology/builders.hpp"

namespace flyover::test {

// A GPU for laws: 100 TFLOPS in bf16 and 1 TB/s of HBM, all of which a kernel reaches; 100 SMs.
inline GpuModel plain_gpu() {
  GpuModel gpu;
  gpu.name = "plain";
  gpu.architecture = "hopper";
  gpu.flops["bf16"] = FlopRate{100e12};
  gpu.memory = Bytes{std::int64_t{80} << 30};
  gpu.memory_bandwidth = Bandwidth{1e12};
  gpu.sms = 100;
  gpu.flop_efficiency = 1;
  gpu.memory_efficiency = 1;
  gpu.scale_up = "nvlink4";
  return gpu;
}

// `gpus` GPUs on one ideal switch, each with one lane of `bandwidth` and half of `latency` per
// link.
inline Topology crossbar(std::uint32_t gpus, Bandwidth bandwidth, Duration latency,
                         bool in_switch_reduction = false) {
  NodeSpec node;
  node.name = "crossbar";
  node.gpu = plain_gpu();
  node.gpus = gpus;
  node.scale_up = ScaleUp::Switched;
  node.lane_bandwidth = bandwidth;
  node.links_per_switch = {1};
  node.scale_up_latency = latency / 2;
  node.in_switch_reduction = in_switch_reduction;
  return build_topology({"crossbar", {{node, 1}}, {}});
}

// Nodes of eight such GPUs with a NIC each, rail-optimised and non-blocking.
inline Topology rails(std::uint32_t nodes, Bandwidth scale_up, Bandwidth nic, Duration link_latency,
                      Duration scale_up_latency) {
  NodeSpec node;
  node.name = "rails";
  node.gpu = plain_gpu();
  node.gpus = 8;
  node.scale_up = ScaleUp::Switched;
  node.lane_bandwidth = scale_up;
  node.links_per_switch = {1};
  node.scale_up_latency = scale_up_latency / 2;
  node.pcie_switches = 8;
  node.cpus = 2;
  node.pcie_bandwidth = Bandwidth{1e15};
  node.cpu_bandwidth = Bandwidth{1e15};
  node.nics = 8;
  node.nic_bandwidth = nic;
  FabricSpec fabric;
  fabric.kind = FabricKind::RailOptimized;
  fabric.link_bandwidth = nic;
  fabric.link_latency = link_latency;
  fabric.nodes_per_unit = 32;
  fabric.radix = 64;
  return build_topology({"rails", {{node, nodes}}, fabric});
}

}  // namespace flyover::test
