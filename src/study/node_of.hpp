#pragma once

#include <string>
#include <vector>

#include "flyover/study/measured_cluster.hpp"

namespace flyover {

struct FoundNode {
  NodeSpec spec;
  bool tray = false;      // The measured node is a tray of this rack.
  std::string ambiguous;  // "H100 or B200": of several GPUs the first was taken.
};

// The node that holds the GPU of a measurement. Throws InputError when there are no facts of it.
[[nodiscard]] FoundNode node_of(const Measurement& measurement, const HardwareCatalogue& catalogue,
                                std::vector<std::string>& assumptions);

}  // namespace flyover
