#include "simulate/reduction.hpp"

#include <algorithm>

#include "simulate/folded_group.hpp"
#include "simulate/joint_context.hpp"

namespace flyover {

Reduction::Reduction(const Topology& topology, const CostModel& cost, const CallPlanner& planner,
                     const ClusterResources& resources, const Workload& workload,
                     const Ranks& ranks, const MessagePairs& messages)
    : cost_(cost),
      blocks_(topology, resources),
      scratch_(topology.links.size()),
      graph_(joint_graph(
          {topology, cost, planner, resources, blocks_, workload, ranks, messages, scratch_})),
      quotient_(graph_, blocks_, resources, ranks),
      number_(quotient_.classes(), absent) {
  const auto& first = quotient_.first_resources();
  for (std::uint32_t c = 0; c < first.size(); ++c) {
    if (first[c]) classes_.push_back(c);
  }
  std::ranges::sort(classes_, {}, [&](std::uint32_t c) { return *first[c]; });
  for (std::uint32_t i = 0; i < classes_.size(); ++i) number_[classes_[i]] = i;
}

PatternTracer Reduction::tracer(std::span<const std::uint32_t> ranks) const {
  if (!folds(blocks_, ranks)) return nullptr;
  return folding_tracer(cost_.router(), blocks_, scratch_, ranks);
}

}  // namespace flyover
