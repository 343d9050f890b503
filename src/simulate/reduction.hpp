#pragma once

// What a reduced cast has to know of the cluster while it runs.

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/routing/load_map.hpp"
#include "simulate/blocks.hpp"
#include "simulate/call_planner.hpp"
#include "simulate/joint_graph.hpp"
#include "simulate/messages.hpp"
#include "simulate/program.hpp"
#include "simulate/quotient.hpp"

namespace flyover {

class Reduction {
 public:
  // Borrows topology, cost model and resources. Throws as the cost model and the planner do.
  Reduction(const Topology& topology, const CostModel& cost, const CallPlanner& planner,
            const ClusterResources& resources, const Workload& workload, const Ranks& ranks,
            const MessagePairs& messages);
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  [[nodiscard]] const Blocks& blocks() const { return blocks_; }
  [[nodiscard]] const JointGraph& graph() const { return graph_; }
  [[nodiscard]] const Quotient& quotient() const { return quotient_; }

  // For plans on these ranks; none where all edges are followed. Borrows them.
  [[nodiscard]] PatternTracer tracer(std::span<const std::uint32_t> ranks) const;

  // Classes of resources, in order of their first.
  [[nodiscard]] const std::vector<std::uint32_t>& resource_classes() const { return classes_; }
  [[nodiscard]] ResourceId stand_in(ResourceId resource) const {
    return ResourceId{number_[quotient_.of_resource(resource)]};
  }

 private:
  const CostModel& cost_;
  Blocks blocks_;
  mutable LoadMap scratch_;
  JointGraph graph_;
  Quotient quotient_;
  std::vector<std::uint32_t> classes_;
  std::vector<std::uint32_t> number_;  // By class: its place among those of resources.
};

}  // namespace flyover
