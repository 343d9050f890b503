#include "simulate/resources.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace flyover {

std::string class_name(std::size_t resource_class) {
  if (resource_class == sm_class) return "sm";
  if (resource_class == hbm_class) return "hbm";
  return std::string(to_string(static_cast<LinkKind>(resource_class)));
}

ClusterResources::ClusterResources(const Topology& topology,
                                   const std::map<std::string, double>& scale)
    : topology_(topology),
      links_(static_cast<std::uint32_t>(topology.links.size())),
      gpus_(static_cast<std::uint32_t>(topology.gpus.size())) {
  for (std::size_t c = 0; c < resource_classes; ++c) {
    const auto found = scale.find(class_name(c));
    factor_[c] = found == scale.end() ? 1.0 : found->second;
  }
  for (const GpuModel& model : topology.gpu_models) {
    const auto first = std::ranges::find(topology.gpu_models, model);
    gpu_kinds_.push_back(static_cast<std::uint32_t>(first - topology.gpu_models.begin()));
  }
}

std::array<double, resource_classes> ClusterResources::class_capacities() const {
  std::array<double, resource_classes> sums{};
  for (std::uint32_t i = 0; i < size(); ++i) {
    const ResourceId r{i};
    if (in_service(r)) sums[class_of(r)] += capacity(r);
  }
  return sums;
}

bool ClusterResources::in_service(ResourceId r) const {
  const auto i = static_cast<std::uint32_t>(r);
  return i >= links_ || topology_.links[LinkId{i}].up;
}

std::size_t ClusterResources::class_of(ResourceId r) const {
  const auto i = static_cast<std::uint32_t>(r);
  if (i < links_) return static_cast<std::size_t>(topology_.links[LinkId{i}].kind);
  return i < links_ + gpus_ ? sm_class : hbm_class;
}

double ClusterResources::capacity(ResourceId r) const {
  const auto i = static_cast<std::uint32_t>(r);
  const double factor = factor_[class_of(r)];
  if (i < links_) return topology_.links[LinkId{i}].bandwidth.per_second() * factor;
  const GpuModel& gpu = topology_.gpu_model((i - links_) % gpus_);
  if (i < links_ + gpus_) return gpu.sms * factor;
  return gpu.memory_bandwidth.per_second() * factor;
}

std::vector<ResourceClassStats> ClusterResources::statistics(
    std::span<const StandIn> all, const std::function<ResourceUse(ResourceId)>& use_of,
    Duration time) const {
  std::vector<ResourceClassStats> by_class(resource_classes);
  std::vector<ResourceId> busiest(resource_classes);
  std::vector<double> most(resource_classes, -1.0);
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const ResourceId r = all[i].first;
    const std::size_t c = class_of(r);
    const double own = capacity(r);
    ResourceClassStats& stats = by_class[c];
    const ResourceUse use = use_of(ResourceId{i});
    stats.count += all[i].count * cables(r);
    if (in_service(r)) stats.capacity += own * all[i].count;
    stats.amount += use.amount * all[i].count;
    stats.peak_utilisation = std::max(stats.peak_utilisation, use.peak);
    const double share = use.amount / own;
    // Of equals the first, though rounding may part them.
    if (share > most[c] * (1 + 1e-9)) {
      most[c] = share;
      busiest[c] = r;
    }
  }
  const double seconds = to_seconds(time);
  std::vector<ResourceClassStats> present;
  for (std::size_t c = 0; c < resource_classes; ++c) {
    ResourceClassStats& stats = by_class[c];
    if (stats.count == 0) continue;
    stats.name = class_name(c);
    if (seconds > 0 && stats.capacity > 0) {
      stats.mean_utilisation = stats.amount / (stats.capacity * seconds);
      stats.busiest_utilisation = most[c] / seconds;
    }
    const auto i = static_cast<std::uint32_t>(busiest[c]);
    if (i < links_) {
      const Link& link = topology_.links[LinkId{i}];
      stats.busiest = fmt::format("{} -> {}", vertex_name(topology_, link.from),
                                  vertex_name(topology_, link.to));
    } else {
      stats.busiest = vertex_name(topology_, topology_.gpus[(i - links_) % gpus_]);
    }
    present.push_back(std::move(stats));
  }
  return present;
}

}  // namespace flyover
