#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/cost/library.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

// The class of every link of a topology: what efficiency rules tell apart.
struct LinkClasses {
  std::vector<LinkClass> classes;
  IdVector<LinkId, std::uint16_t> of_link;  // Index into classes.
};
[[nodiscard]] LinkClasses classify_links(const Topology& topology);
// The class of a GPU's own scale-up links.
[[nodiscard]] LinkClass scale_up_class(const GpuModel& gpu);
[[nodiscard]] LinkClass pcie_class();

// "nvlink out", "nic in (host-leaf)", "leaf-spine up": a link in the words of its users.
[[nodiscard]] std::string describe_link(const Topology& topology, LinkId link);

}  // namespace flyover
