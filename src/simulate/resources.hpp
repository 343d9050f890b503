#pragma once

// The cluster as resources: one per link, then per GPU its SMs and its HBM.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flyover/engine/fluid.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

// Link kinds in the order of LinkKind, then SMs and HBM.
inline constexpr std::size_t link_classes = link_kinds;
inline constexpr std::size_t sm_class = link_classes;
inline constexpr std::size_t hbm_class = link_classes + 1;
inline constexpr std::size_t resource_classes = link_classes + 2;
[[nodiscard]] std::string class_name(std::size_t resource_class);

// A resource of the engine: the first of those of the cluster for which it stands, and how many.
struct StandIn {
  ResourceId first{};
  std::uint32_t count = 1;
};

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

  // None for links.
  [[nodiscard]] std::optional<std::uint32_t> gpu_of(ResourceId r) const {
    const auto i = static_cast<std::uint32_t>(r);
    if (i < links_) return std::nullopt;
    return i < links_ + gpus_ ? i - links_ : i - links_ - gpus_;
  }
  [[nodiscard]] static LinkId link_of(ResourceId link) {
    return LinkId{static_cast<std::uint32_t>(link)};
  }
  // Equal for GPUs of equal models.
  [[nodiscard]] std::uint32_t gpu_kind(std::uint32_t gpu) const {
    return gpu_kinds_[static_cast<std::size_t>(&topology_.gpu_model(gpu) -
                                               topology_.gpu_models.data())];
  }

  [[nodiscard]] std::size_t class_of(ResourceId r) const;
  [[nodiscard]] double capacity(ResourceId r) const;
  [[nodiscard]] bool in_service(ResourceId r) const;
  // How many of its class a resource stands for: more than one for trunks.
  [[nodiscard]] std::uint32_t cables(ResourceId r) const {
    const auto i = static_cast<std::uint32_t>(r);
    return i < links_ ? topology_.links[LinkId{i}].cables : 1;
  }
  // Of all in service, by class. Costs a look at every resource.
  [[nodiscard]] std::array<double, resource_classes> class_capacities() const;

  // What every class did in a run that took `time`; classes that the cluster lacks are left out.
  // `all`: the engine's resources, `use_of`: its account of one.
  [[nodiscard]] std::vector<ResourceClassStats> statistics(
      std::span<const StandIn> all, const std::function<ResourceUse(ResourceId)>& use_of,
      Duration time) const;

 private:
  const Topology& topology_;
  std::uint32_t links_ = 0;
  std::uint32_t gpus_ = 0;
  std::vector<std::uint32_t> gpu_kinds_;  // By model of the topology: the first that is equal.
  std::array<double, resource_classes> factor_{};
};

}  // namespace flyover
