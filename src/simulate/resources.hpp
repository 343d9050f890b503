#pragma once

// The cluster as resources: one per link, then per GPU its SMs and its HBM.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "flyover/engine/fluid.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

// Link kinds in the order of LinkKind, then SMs and HBM.
inline constexpr std::size_t link_classes = static_cast<std::size_t>(LinkKind::Other) + 1;
inline constexpr std::size_t sm_class = link_classes;
inline constexpr std::size_t hbm_class = link_classes + 1;
inline constexpr std::size_t resource_classes = link_classes + 2;
[[nodiscard]] std::string class_name(std::size_t resource_class);

// Borrows the topology.
class ClusterResources {
 public:
  // `scale`: factors on capacities by class name.
  ClusterResources(const Topology& topology, const std::map<std::string, double>& scale);

  [[nodiscard]] std::uint32_t size() const { return links_ + 2 * gpus_; }
  // Links are the first resources, in order.
  [[nodiscard]] static ResourceId of(LinkId link) {
    return ResourceId{static_cast<std::uint32_t>(link)};
  }
  // In SMs: a kernel that fills the GPU takes gpu_model.sms of them.
  [[nodiscard]] ResourceId sms(std::uint32_t gpu) const { return ResourceId{links_ + gpu}; }
  // In bytes per second.
  [[nodiscard]] ResourceId hbm(std::uint32_t gpu) const { return ResourceId{links_ + gpus_ + gpu}; }

  [[nodiscard]] std::size_t class_of(ResourceId r) const;
  [[nodiscard]] double capacity(ResourceId r) const;
  [[nodiscard]] double class_capacity(std::size_t c) const { return capacity_[c]; }

  // What every class did in a run that took `time`; classes that the cluster lacks are left out.
  // `use_of`: the engine's account of a resource.
  [[nodiscard]] std::vector<ResourceClassStats> statistics(
      const std::function<ResourceUse(ResourceId)>& use_of, Duration time) const;

 private:
  const Topology& topology_;
  std::uint32_t links_ = 0;
  std::uint32_t gpus_ = 0;
  std::array<double, resource_classes> factor_{};
  std::array<double, resource_classes> capacity_{};
};

}  // namespace flyover
