#pragma once

// From the few words in which a source describes its system to a cluster that can be simulated.
// Sources leave much unsaid; whatever is assumed is said in `assumptions`.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "flyover/cost/library.hpp"
#include "flyover/study/measurement.hpp"
#include "flyover/topology/builders.hpp"

namespace flyover {

// What there is to build from, by preset name (io::hardware_catalogue reads the shipped ones).
struct HardwareCatalogue {
  std::map<std::string, GpuModel> gpus;
  std::map<std::string, NodeSpec> nodes;
  std::map<std::string, FabricSpec> networks;  // Generations: "ndr", "roce-400", ...
  std::map<std::string, Library> libraries;    // "nccl-2.27", ...
};

struct MeasuredCluster {
  ClusterSpec cluster;
  std::vector<std::uint32_t> ranks;  // GPU indices that took part, in group order.
  std::string library;               // Name in the catalogue.
  std::string stack;                 // Of the library, "" for its default.
  std::vector<std::pair<std::string, std::string>> variables;  // Of the library: NCCL_ALGO, ...
  std::vector<std::string> assumptions;
  // Why the result is shown but says nothing about the model, or "": the GPU is one of several, or
  // other kernels ran than those that we model.
  std::string not_comparable;
};

// Throws InputError, with the reason, when the system cannot be built: a GPU without hardware
// facts, counts that contradict each other.
//
// A node keeps all GPUs and NICs of its preset when fewer are used. GB200, GB300 and VR nodes are
// trays of racks: the fabric's words tell how many racks there are ("NVL72", "2x NVL72", "two
// NVLink domains") or that NVLink ends at the tray ("MNNVL off", only a network). "P2P off" or
// NCCL_P2P_DISABLE with NICs makes every GPU its own domain.
[[nodiscard]] MeasuredCluster measured_cluster(const Measurement& measurement,
                                               const HardwareCatalogue& catalogue);

}  // namespace flyover
