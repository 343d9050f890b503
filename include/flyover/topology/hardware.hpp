#pragma once

// What is inside one GPU and one node, as data. Values come from configs/ (each with its source) or
// from a topology file; nothing here knows a product by name.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"

namespace flyover {

struct GpuModel {
  std::string name;          // "H100-SXM"
  std::string architecture;  // "volta", "ampere", "hopper", "blackwell", "rubin", "cdna3", ...
  std::map<std::string, FlopRate> flops;  // Dense peak by data type: "bf16", "fp8", ...
  Bytes memory;
  Bandwidth memory_bandwidth;
  // Shares of peak that a large kernel reaches alone, for operations that do not say. The defaults
  // are general knowledge; configs/hardware/gpus.json has measured ones.
  double flop_efficiency = 0.75;
  double memory_efficiency = 0.9;
  std::uint32_t sms = 0;  // SMs, or compute units on AMD.
  // What a GPU that is slower than bought reaches: `flops` and `memory_bandwidth` are multiplied
  // already. 1: as bought.
  double compute_factor = 1;
  double memory_factor = 1;
  // The scale-up link generation, which picks cost parameters: "nvlink4", "xgmi-mi300", "pcie5".
  std::string scale_up;
  std::string source;

  friend bool operator==(const GpuModel&, const GpuModel&) = default;
};

// Which scale-up wiring joins the GPUs of a node.
enum class ScaleUp : std::uint8_t {
  Switched,  // Every GPU has links to every NVSwitch (links_per_switch).
  Mesh,      // A link between every pair of GPUs.
  Pairs,     // Bridges between GPUs 2i and 2i+1.
  Explicit,  // The pairs of scale_up_links, such as DGX-1's hybrid cube mesh.
  None,      // Only PCIe.
};

struct ScaleUpLink {
  std::uint32_t a = 0, b = 0, lanes = 1;  // GPU indices within the node.

  friend bool operator==(const ScaleUpLink&, const ScaleUpLink&) = default;
};

struct NodeSpec {
  std::string name;  // "dgx-h100"
  GpuModel gpu;
  std::uint32_t gpus = 0;

  ScaleUp scale_up = ScaleUp::None;
  Bandwidth lane_bandwidth;                     // One NVLink or xGMI link, one direction.
  std::vector<std::uint32_t> links_per_switch;  // Switched: lanes from each GPU to each switch.
  std::uint32_t mesh_lanes = 0;                 // Mesh, Pairs: lanes between two GPUs.
  std::vector<ScaleUpLink> scale_up_links;      // Explicit.
  Duration scale_up_latency{};                  // Per link; a switched path has two.
  bool in_switch_reduction = false;             // NVLS: the switch can reduce and multicast.

  // PCIe: gpus and nics hang below pcie_switches (spread evenly, in order), which hang below
  // cpus sockets that are joined pairwise. Zero pcie_switches: directly below the sockets. Zero of
  // both: NICs directly below their GPUs.
  std::uint32_t pcie_switches = 0;
  std::uint32_t cpus = 0;
  std::uint32_t cpus_per_board = 0;  // Sockets joined to each other, in order; 0: all of the node.
  std::string cpu_vendor;            // "intel", "amd", "arm"; "" when not known.
  Bandwidth pcie_bandwidth;          // x16, one direction.
  Bandwidth gpu_pcie_bandwidth;  // A GPU's own link upwards, such as NVLink-C2C; 0: as the rest.
  Bandwidth cpu_bandwidth;       // Between two sockets, one direction.
  Duration pcie_latency{};

  std::uint32_t nics = 0;
  Bandwidth nic_bandwidth;  // One NIC, one direction.
  std::string nic_model;
  std::vector<std::uint32_t> nic_pcie_switch;  // Optional: the PCIe switch of each NIC.
  std::vector<std::uint32_t> nic_rail;         // Optional; default: its index.
  std::string network;  // The network generation its NICs are for, "ndr": the default fabric's.
  std::string source;
  std::vector<std::string> notes;  // Announced only, derived, placeholders.

  // Its NVSwitches are one: GPUs stripe over them in proportion to the lanes, so that all are
  // loaded alike.
  bool trunks = false;

  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

}  // namespace flyover
