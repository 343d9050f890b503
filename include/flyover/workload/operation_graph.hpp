#pragma once

// What every rank does, and what waits for what: the one in-memory form of all workloads.

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/base/units.hpp"
#include "flyover/collective/collective_op.hpp"

namespace flyover {

enum class OpKind : std::uint8_t { Compute, Collective, Send, Recv, Copy, Delay };

// One operation of one program. Ranks that share the program each run their own instance of it.
struct Operation {
  std::string id;    // Unique within its program.
  OpKind kind = OpKind::Delay;
  CollectiveOp collective = CollectiveOp::AllReduce;  // Collective.
  std::string name;    // What people see; default: the id.
  std::string stream;  // Operations of one rank on one stream run in the order of the file.
  std::vector<std::uint32_t> after;  // Indices of earlier or later operations of the program.

  // Compute: work for the SMs and for the HBM. Copy: bytes through HBM. Collective, Send, Recv: bytes
  // as nccl-tests counts them.
  Flops flops;
  Bytes bytes;
  std::string dtype;       // Compute: picks the peak rate, "bf16"; collectives: "" unless stated.
  double efficiency = 0;   // Compute: share of peak that the kernel reaches alone; 0: the default.
  double memory_efficiency = 0;  // Likewise of the HBM bandwidth.
  Duration duration{};     // Delay, and Compute with a recorded duration.
  std::uint32_t group = 0;  // Collective: index into groups (a family).
  std::uint32_t root = 0;   // Position in the group.
  // Send, Recv: the peer, as an offset from the own rank or as an absolute rank.
  std::int64_t peer = 0;
  bool peer_relative = false;
  std::string tag;          // Send, Recv: matched by (from, to, tag) in order.
};

struct Program {
  std::string name;
  std::vector<std::uint32_t> ranks;  // Ascending, no rank in two programs.
  std::vector<Operation> ops;
};

// A family of disjoint groups under one name ("tp"): every rank that names it means its own group.
struct GroupFamily {
  std::string name;
  std::vector<std::vector<std::uint32_t>> groups;  // Ranks in group order.
};

struct Workload {
  std::string name;
  std::uint32_t ranks = 0;
  std::vector<GroupFamily> groups;
  std::vector<Program> programs;  // Together they cover every rank at most once.
};

// What is wrong with the graph, as an InputError that names program, operation and, for a cycle, the
// operations on it. Called by readers after reading and by `replay` before running.
void validate(const Workload& workload);

// A copy with programs, groups and operations in a canonical order that does not depend on the order
// of ranks, groups and operations in the file (streams keep the order of their operations).
[[nodiscard]] Workload canonical(const Workload& workload);

}  // namespace flyover
