#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flyover/collective/algorithms.hpp"
#include "flyover/cost/library.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

// What the rules and the tuner need to know of a group, whatever the collective.
struct GroupFacts {
  GroupShape shape;
  std::uint32_t domains = 1;
  std::uint32_t members = 1;  // Of the fullest domain.
  std::uint32_t rails = 1;    // On which channels enter a domain: entry_rails.
  bool in_switch_reduction = false;
  bool in_network_reduction = false;  // The fabric's switches can, and the settings let them.
  std::string architecture;           // Of the first member,
  std::string gpu;                    // and its model.
  LinkClass link;    // What joins members inside domains: the slowest family in use.
  TunerGroup tuner;  // Speeds are zero without a tuning model.
};

[[nodiscard]] GroupShape group_shape(const Topology& topology, const Router& router,
                                     std::span<const std::uint32_t> ranks);
[[nodiscard]] GroupFacts examine_group(const Topology& topology, const Router& router,
                                       const Library& library,
                                       std::span<const std::uint32_t> ranks);

}  // namespace flyover
