#include "clos.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "../graph.hpp"
#include "flyover/base/error.hpp"

namespace flyover {

namespace {

// Ratios of rates are rarely exact in binary: 400 ÷ (400 x 1.0) must not become 2 ports.
constexpr double slack = 1e-9;

std::uint32_t ceil_count(double x) {
  return static_cast<std::uint32_t>(std::ceil(x - slack));
}

std::uint32_t floor_count(double x) {
  return static_cast<std::uint32_t>(std::floor(x + slack));
}

std::uint32_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

// The fewest parts, at least `low`, into which `whole` divides evenly; 0 when low > whole.
std::uint32_t smallest_divisor(std::uint32_t whole, std::uint32_t low) {
  for (std::uint32_t parts = std::max(low, 1U); parts <= whole; ++parts) {
    if (whole % parts == 0) return parts;
  }
  return 0;
}

class Clos {
 public:
  Clos(Topology& topology, const FabricSpec& spec, const ClosPlan& plan, ClosCounters& counters)
      : topology_(topology),
        spec_(spec),
        plan_(plan),
        counters_(counters) {}

  std::vector<VertexId> build() {
    add_leaves();
    if (leaves_.size() < 2) {
      check_lone_leaf();
      return leaves_;
    }
    size_uplinks();
    if (tiers() == 2) {
      const auto all = static_cast<std::uint32_t>(leaves_.size());
      const std::uint32_t spines = spines_of_two_tiers(all);
      trunks_ = trunks_wanted() && uplinks_ % spines == 0;
      join_pod(0, all, spines, 0);
    } else {
      build_three_tiers();
    }
    return leaves_;
  }

 private:
  void add_leaves() {
    for (const ClosLeaf& leaf : plan_.leaves) {
      const VertexId id = add_vertex(topology_, {.kind = VertexKind::Leaf,
                                                 .index = counters_.leaves++,
                                                 .rail = leaf.rail,
                                                 .unit = leaf.unit});
      leaves_.push_back(id);
      for (const NicPort& nic : leaf.nics) {
        connect(topology_, nic.nic, id,
                {.kind = LinkKind::HostLeaf,
                 .bandwidth = nic.bandwidth * (1.0 / plan_.nic_ports),
                 .latency = spec_.link_latency});
      }
    }
  }

  void check_lone_leaf() const {
    if (spec_.kind == FabricKind::SingleSwitch) return;  // Of any size, by its definition.
    double load = 0;
    for (const NicPort& nic : plan_.leaves.front().nics) {
      load += nic.bandwidth.per_second() / plan_.nic_ports;
    }
    const std::uint32_t down = ceil_count(load / spec_.link_bandwidth.per_second());
    if (down > spec_.radix) {
      refuse_fabric(
          spec_, fmt::format("a leaf needs {} ports down, but a switch has {}", down, spec_.radix));
    }
  }

  void size_uplinks() {
    const double down = plan_.full_load / spec_.link_bandwidth.per_second();
    uplinks_ = std::max(1U, ceil_count(down / spec_.oversubscription));
    if (ceil_count(down) + uplinks_ > spec_.radix) {
      refuse_fabric(spec_, fmt::format("a leaf needs {} ports down and {} up, but a switch has {}",
                                       ceil_count(down), uplinks_, spec_.radix));
    }
  }

  [[nodiscard]] std::uint32_t tiers() const {
    if (plan_.tiers == 3) return leaves_.size() > pod_leaves() ? 3 : 2;
    if (leaves_.size() <= spec_.radix) return 2;
    if (plan_.tiers == 2) {
      refuse_fabric(spec_, fmt::format("{} leaves need a third tier of switches: a spine has {} "
                                       "ports (use \"fat-tree\" or a larger radix)",
                                       leaves_.size(), spec_.radix));
    }
    return 3;
  }

  // Leaves of a full pod: as many as a spine has downlinks, in whole units.
  [[nodiscard]] std::uint32_t pod_leaves() const {
    if (spec_.units_per_pod > 0) return spec_.units_per_pod * plan_.leaves_per_unit;
    const double over = spec_.core_oversubscription;
    const std::uint32_t down = floor_count(spec_.radix * over / (1 + over));
    const std::uint32_t units = down / plan_.leaves_per_unit;
    if (units == 0) {
      refuse_fabric(spec_, fmt::format("a unit has {} leaves, but a spine has only {} ports down",
                                       plan_.leaves_per_unit, down));
    }
    return units * plan_.leaves_per_unit;
  }

  // Spines for `leaves` leaves that have `ports` ports each to give them.
  [[nodiscard]] std::uint32_t derived_spines(std::uint32_t leaves, std::uint32_t ports) const {
    const std::uint64_t cables = std::uint64_t{leaves} * uplinks_;
    const std::uint32_t spines = smallest_divisor(uplinks_, ceil_div(cables, ports));
    if (spines == 0) {
      refuse_fabric(
          spec_, fmt::format("{} leaves are more than a spine with {} ports down can join", leaves,
                             ports));
    }
    return spines;
  }

  [[nodiscard]] std::uint32_t spines_of_two_tiers(std::uint32_t leaves) const {
    if (spec_.spines == 0) return derived_spines(leaves, spec_.radix);
    check_asked(spec_.spines, leaves, spec_.radix);
    return spec_.spines;
  }

  void check_asked(std::uint32_t spines, std::uint32_t leaves, std::uint32_t ports) const {
    if (spines > uplinks_) {
      refuse_fabric(spec_, fmt::format("{} spines are more than the {} uplinks of a leaf, which "
                                       "could not reach them all",
                                       spines, uplinks_));
    }
    if (std::uint64_t{leaves} * uplinks_ > std::uint64_t{spines} * ports) {
      refuse_fabric(spec_,
                    fmt::format("{} leaves with {} uplinks need {} spines of {} ports down, "
                                "got {}",
                                leaves, uplinks_, ceil_div(std::uint64_t{leaves} * uplinks_, ports),
                                ports, spines));
    }
  }

  // Spines `pod` joined to leaves [begin, end): the cables of all leaves, one after the other, are
  // dealt out to the spines in blocks of parallel cables, which loads the spines evenly.
  std::vector<VertexId> join_pod(std::uint32_t begin, std::uint32_t end, std::uint32_t spines,
                                 std::uint32_t pod) {
    std::vector<VertexId> ids;
    if (trunks_) {
      const VertexId spine = add_vertex(
          topology_, {.kind = VertexKind::Spine, .index = counters_.spines, .unit = pod});
      counters_.spines += spines;
      for (std::uint32_t leaf = begin; leaf < end; ++leaf) {
        connect(topology_, leaves_[leaf], spine, trunk(LinkKind::LeafSpine, uplinks_));
      }
      return {spine};
    }
    for (std::uint32_t s = 0; s < spines; ++s) {
      ids.push_back(add_vertex(
          topology_, {.kind = VertexKind::Spine, .index = counters_.spines++, .unit = pod}));
    }
    const Cable cable{.kind = LinkKind::LeafSpine,
                      .bandwidth = spec_.link_bandwidth,
                      .latency = spec_.link_latency};
    std::uint64_t dealt = 0;
    for (std::uint32_t leaf = begin; leaf < end; ++leaf) {
      for (std::uint32_t k = 0; k < uplinks_; ++k, ++dealt) {
        connect(topology_, leaves_[leaf], ids[dealt % spines], cable);
      }
    }
    return ids;
  }

  [[nodiscard]] Cable trunk(LinkKind kind, std::uint32_t cables) const {
    return {.kind = kind,
            .bandwidth = spec_.link_bandwidth * cables,
            .latency = spec_.link_latency,
            .cables = cables};
  }
  [[nodiscard]] bool trunks_wanted() const {
    return spec_.trunks && spec_.routing == RoutingPolicy::Adaptive;
  }

  void build_three_tiers() {
    const auto all = static_cast<std::uint32_t>(leaves_.size());
    const std::uint32_t per_pod = pod_leaves();
    const std::uint32_t pods = ceil_div(all, per_pod);
    const double over = spec_.core_oversubscription;
    const std::uint32_t down = floor_count(spec_.radix * over / (1 + over));

    const std::uint32_t spines = spec_.spines > 0 ? spec_.spines : derived_spines(per_pod, down);
    check_asked(spines, per_pod, down);
    const std::uint32_t spine_down = ceil_div(std::uint64_t{per_pod} * uplinks_, spines);
    const std::uint32_t spine_up = std::max(1U, ceil_count(spine_down / over));
    const std::uint32_t group = cores_per_group(pods, spines, spine_up);

    trunks_ = trunks_wanted() && uplinks_ % spines == 0 && spine_up % group == 0;
    std::vector<std::vector<VertexId>> pod_spines;
    for (std::uint32_t pod = 0; pod < pods; ++pod) {
      pod_spines.push_back(
          join_pod(pod * per_pod, std::min(all, (pod + 1) * per_pod), spines, pod));
    }
    if (trunks_) {
      const VertexId core =
          add_vertex(topology_, {.kind = VertexKind::Core, .index = counters_.cores});
      counters_.cores += spines * group;
      for (const std::vector<VertexId>& pod : pod_spines) {
        connect(topology_, pod.front(), core, trunk(LinkKind::SpineCore, spines * spine_up));
      }
      return;
    }
    const Cable cable{.kind = LinkKind::SpineCore,
                      .bandwidth = spec_.link_bandwidth,
                      .latency = spec_.link_latency};
    for (std::uint32_t s = 0; s < spines; ++s) {
      std::vector<VertexId> cores;
      for (std::uint32_t c = 0; c < group; ++c) {
        cores.push_back(add_vertex(
            topology_, {.kind = VertexKind::Core, .index = counters_.cores++, .unit = s}));
      }
      std::uint64_t dealt = 0;
      for (std::uint32_t pod = 0; pod < pods; ++pod) {
        for (std::uint32_t k = 0; k < spine_up; ++k, ++dealt) {
          connect(topology_, pod_spines[pod][s], cores[dealt % group], cable);
        }
      }
    }
  }

  [[nodiscard]] std::uint32_t cores_per_group(std::uint32_t pods, std::uint32_t spines,
                                              std::uint32_t spine_up) const {
    const std::uint64_t cables = std::uint64_t{pods} * spine_up;
    const std::uint32_t needed = ceil_div(cables, spec_.radix);
    if (spec_.cores == 0) {
      const std::uint32_t group = smallest_divisor(spine_up, needed);
      if (group == 0) {
        refuse_fabric(spec_, fmt::format("{} pods are more than a core switch has ports ({})", pods,
                                         spec_.radix));
      }
      return group;
    }
    if (spec_.cores % spines != 0) {
      refuse_fabric(spec_, fmt::format("{} cores do not divide over the {} spines of a pod",
                                       spec_.cores, spines));
    }
    const std::uint32_t group = spec_.cores / spines;
    if (group < needed || group > spine_up) {
      refuse_fabric(spec_,
                    fmt::format("{} cores make groups of {}, but {} pods with {} cables from "
                                "each spine need {} to {}",
                                spec_.cores, group, pods, spine_up, needed, spine_up));
    }
    return group;
  }

  Topology& topology_;
  const FabricSpec& spec_;
  const ClosPlan& plan_;
  ClosCounters& counters_;
  std::vector<VertexId> leaves_;
  std::uint32_t uplinks_ = 0;
  bool trunks_ = false;
};

}  // namespace

std::vector<VertexId> build_clos(Topology& topology, const FabricSpec& spec, const ClosPlan& plan,
                                 ClosCounters& counters) {
  return Clos(topology, spec, plan, counters).build();
}

std::uint32_t nics_per_leaf(const FabricSpec& spec, Bandwidth nic_bandwidth) {
  const double over = spec.oversubscription;
  const std::uint32_t down = floor_count(spec.radix * over / (1 + over));
  const double ports = nic_bandwidth.per_second() / spec.link_bandwidth.per_second();
  return std::max(1U, floor_count(down / ports));
}

}  // namespace flyover
