#pragma once

#include <cstdint>
#include <vector>

#include "cost/link_classes.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

// NVLink and its kin, the network, and PCIe with what joins it.
enum class LinkFamily : std::uint8_t { Nvlink, Network, Other };
[[nodiscard]] LinkFamily family_of(const LinkClass& link);

// The share of every link's bandwidth that kernels reach: ExpertLinkShare of NVLink inside nodes
// and of the network's links; PCIe and what else lies between them is taken as it is. Borrows all.
class LinkShares {
 public:
  LinkShares(const LinkClasses& classes, const ExpertKernels& kernels, bool combine);

  // Throws InputError, naming the generation, when the library says nothing of it.
  [[nodiscard]] double of(LinkId link) const;

 private:
  const LinkClasses& classes_;
  const ExpertKernels& kernels_;
  std::vector<double> shares_;  // By class; 0: not known.
};

}  // namespace flyover
