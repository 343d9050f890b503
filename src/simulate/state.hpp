#pragma once

// What a replay knows of its progress; the deadlock report reads it.

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/topology/topology.hpp"
#include "flyover/workload/operation_graph.hpp"
#include "simulate/messages.hpp"
#include "simulate/program.hpp"

namespace flyover {

enum class OpState : std::uint8_t { Blocked, Waiting, Running, Done };  // Waiting: for other ranks.

struct CallState {
  std::uint32_t arrived = 0;
  Time first_arrival;
  Time last_arrival;
};

struct MessageState {
  std::uint32_t arrived = 0;
  Time last_arrival;
};

struct ReplayState {
  std::vector<std::uint32_t> remaining;  // By instance: operations that must still end before it.
  std::vector<OpState> ops;              // By instance.
  std::vector<CallState> calls;
  std::vector<MessageState> messages;
  std::uint64_t done = 0;
};

// Who waits for whom when nothing can happen any more.
[[nodiscard]] std::string deadlock_report(const Workload& workload,
                                          const std::vector<CompiledProgram>& programs,
                                          const Ranks& ranks, const Calls& calls,
                                          const Messages& messages, const ReplayState& state,
                                          Time now);

}  // namespace flyover
