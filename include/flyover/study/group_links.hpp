#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "flyover/topology/topology.hpp"

namespace flyover {

// What a group communicates over, in the words that measurements are sorted by.
struct GroupLinks {
  // The scale-up generation, "nvlink4", with " bridge" where it joins two GPUs only, or "pcie"
  // where GPUs have no such links; across domains with the network's, "nvlink4 + ndr". Groups of
  // several kinds of GPU name each: "nvlink4 and nvlink5".
  std::string links;
  std::string gpu;            // "H100-SXM"; several likewise.
  std::uint32_t domains = 0;  // Over which the GPUs spread.
};
[[nodiscard]] GroupLinks group_links(const Topology& topology,
                                     std::span<const std::uint32_t> ranks);

}  // namespace flyover
