#pragma once

// Who runs in a replay, and for how many each stands. In a full replay every rank plays itself; in
// a reduced one a player stands for all ranks that cannot be told apart (rank_classes.hpp).

#include <cstdint>
#include <memory>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/workload/operation_graph.hpp"
#include "simulate/messages.hpp"
#include "simulate/program.hpp"
#include "simulate/reduction.hpp"

namespace flyover {

struct Player {
  std::uint32_t rank = 0;  // Of the cluster: it runs on that GPU.
  std::uint32_t count = 1;
};

struct PlayedGroup {
  std::vector<std::uint32_t> ranks;  // Of the cluster, in group order.
  std::uint32_t count = 1;
  // Ranks that lie alike on which calls are planned; empty: its own.
  std::vector<std::uint32_t> planned_on;

  [[nodiscard]] const std::vector<std::uint32_t>& to_plan_on() const {
    return planned_on.empty() ? ranks : planned_on;
  }
};

struct Cast {
  // In the numbers of players: a group names each of its players once.
  Workload workload;
  std::vector<CompiledProgram> programs;
  std::vector<Player> players;
  std::vector<std::vector<PlayedGroup>> groups;  // By family, by group of the workload.
  Messages messages;
  std::vector<StandIn> resources;              // By resource of the engine.
  std::vector<std::uint32_t> player_of;        // By rank of the cluster.
  std::shared_ptr<const Reduction> reduction;  // None: everything stands for itself alone.

  // Which of the engine's resources stands for one of the cluster.
  [[nodiscard]] ResourceId stand_in(ResourceId resource) const {
    return reduction ? reduction->stand_in(resource) : resource;
  }
};

// Every rank for itself. Throws InputError where sides of a message or members of a group disagree.
// Requires a valid workload.
[[nodiscard]] Cast full_cast(Workload workload, std::uint32_t resources);

}  // namespace flyover
