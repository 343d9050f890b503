#pragma once

#include "flyover/cost/cost_model.hpp"
#include "flyover/routing/load_map.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/operation_graph.hpp"
#include "simulate/blocks.hpp"
#include "simulate/call_planner.hpp"
#include "simulate/messages.hpp"
#include "simulate/program.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// What a joint graph is made of. Borrowed.
struct JointContext {
  const Topology& topology;
  const CostModel& cost;
  const CallPlanner& planner;
  const ClusterResources& resources;
  const Blocks& blocks;
  const Workload& workload;
  const Ranks& ranks;
  const MessagePairs& messages;
  LoadMap& scratch;  // Over the topology's links; empty between uses.
};

}  // namespace flyover
