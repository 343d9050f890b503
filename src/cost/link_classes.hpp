#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/cost/library.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

// The class of every link of a topology: what efficiency rules tell apart. Borrows the topology.
class LinkClasses {
 public:
  explicit LinkClasses(const Topology& topology);

  // Those that the topology may have, each once.
  [[nodiscard]] std::span<const LinkClass> all() const { return classes_; }
  // Index into all().
  [[nodiscard]] std::size_t of(LinkId link) const;

 private:
  std::size_t enter(LinkClass wanted);

  const Topology& topology_;
  std::vector<LinkClass> classes_;
  std::array<std::size_t, link_kinds> of_kind_{};
  std::vector<std::size_t> of_gpu_model_;  // Its scale-up links inside nodes.
};
// The class of a GPU's own scale-up links.
[[nodiscard]] LinkClass scale_up_class(const GpuModel& gpu);
[[nodiscard]] LinkClass pcie_class();

// "nvlink out", "nic in (host-leaf)", "leaf-spine up": a link in the words of its users.
[[nodiscard]] std::string describe_link(const Topology& topology, LinkId link);

}  // namespace flyover
