#pragma once

// A workload on a cluster as one graph: what rank classes are found on (rank_classes.hpp).

#include <cstdint>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/topology/topology.hpp"
#include "simulate/colour_refinement.hpp"
#include "simulate/messages.hpp"
#include "simulate/program.hpp"
#include "simulate/resources.hpp"

namespace flyover {

struct JointGraph {
  // By node, what is known of it alone: of ranks, then resources, then the others.
  std::vector<std::uint32_t> colours;
  std::vector<LabelledEdge> edges;
  std::uint32_t rank_count = 0;
  // Nodes by family and group (`absent` for groups that nobody calls), and by pair.
  std::vector<std::vector<std::uint32_t>> groups;
  std::vector<std::uint32_t> pairs;

  [[nodiscard]] static std::uint32_t rank(std::uint32_t r) { return r; }
  [[nodiscard]] std::uint32_t resource(ResourceId r) const {
    return rank_count + static_cast<std::uint32_t>(index(r));
  }
};

// Plans all calls and messages. Throws as the cost model does.
[[nodiscard]] JointGraph joint_graph(const Topology& topology, const CostModel& cost,
                                     const ClusterResources& resources, const Workload& workload,
                                     const Ranks& ranks, const MessagePairs& messages);

}  // namespace flyover
