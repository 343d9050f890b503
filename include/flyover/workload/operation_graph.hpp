#pragma once

// What every rank does, and what waits for what: the one in-memory form of all workloads.

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/workload/collective_op.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

enum class OpKind : std::uint8_t { Compute, Collective, Send, Recv, Copy, Delay };

inline constexpr std::uint32_t no_section = 0xffffffffU;
inline constexpr std::uint32_t no_exchange = 0xffffffffU;

// One operation of one program. Ranks that share the program each run their own instance of it.
struct Operation {
  std::string id;  // Unique within its program.
  OpKind kind = OpKind::Delay;
  CollectiveOp collective = CollectiveOp::AllReduce;  // Collective.
  std::string name;                                   // What people see; default: the id.
  std::string stream;  // Operations of one rank on one stream run in the order of the file.
  std::vector<std::uint32_t> after;  // Indices of earlier or later operations of the program.

  // Compute: work for the SMs and for the HBM. Copy: bytes through HBM. Collective, Send, Recv:
  // bytes as nccl-tests counts them.
  Flops flops;
  Bytes bytes;
  std::string dtype;      // Compute: picks the peak rate, "bf16"; collectives: "" unless stated.
  double efficiency = 0;  // Compute: share of peak that the kernel reaches alone; 0: the default.
  double memory_efficiency = 0;  // Likewise of the HBM bandwidth.
  Duration duration{};           // Delay, and Compute with a recorded duration.
  // Compute with a duration: so many SMs were busy, and it takes longer where fewer are left; 0:
  // not said, it takes its duration.
  std::uint32_t sms = 0;
  std::uint32_t group = 0;  // Collective: index into groups (a family).
  std::uint32_t root = 0;   // Position in the group.
  // Collectives that exchange experts: index into Workload::exchanges; `bytes` is pair_bytes().
  std::uint32_t exchange = no_exchange;
  // Collective, Send: takes so many times what the cost model says, start-up and bytes alike.
  double slowdown = 1;
  // Send, Recv: the peer, as an absolute rank or as an offset from the own rank, modulo the number
  // of ranks: see peer_of.
  std::int64_t peer = 0;
  bool peer_relative = false;
  std::string tag;  // Send, Recv: matched by (from, to, tag) in order.
  // Of a section that repeats (repetition.hpp): its index in Workload::sections, and which copy.
  std::uint32_t section = no_section;
  std::uint32_t copy = 0;
  std::uint32_t sections_before = 0;  // In the program as it was written: of its number counts.
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

// A part of programs that repeats, of which some copies are written down: see repetition.hpp.
struct Section {
  std::uint64_t elided = 0;  // Copies more that every program with the section means.
  std::string unit;          // What a copy is, as people call several: "micro-batches".
  std::uint32_t units = 1;   // Of those in one copy.
};

struct Workload {
  std::string name;
  std::uint32_t ranks = 0;
  std::vector<GroupFamily> groups;
  std::vector<Program> programs;  // Together they cover every rank at most once.
  std::vector<Section> sections = {};
  std::vector<ExpertExchange> exchanges = {};
};

// The peer of a send or receive as seen by `rank`.
[[nodiscard]] std::uint32_t peer_of(const Operation& op, std::uint32_t rank, std::uint32_t ranks);

// Whether a collective has a root: broadcast, reduce, scatter, gather.
[[nodiscard]] bool rooted(CollectiveOp op);

// Throws InputError when operations wait for each other, through `after` and the order of streams,
// and prints the circle. Requires every `after` to be the index of an operation. A part of
// validate.
void check_order(const Program& program);

// Throws InputError, naming program and operation, for a workload that does not hold together: no
// operations; ranks out of range, twice in a group or in two programs; operations that share an id,
// have no work, name a group that their rank is not in, or wait for each other (the circle is
// printed, through `after` and the order of streams); exchanges of experts without tokens, bytes or
// kernels, and calls that do not fit theirs in mode, bytes or number of ranks. Whether ranks meet
// is found by `replay`.
void validate(const Workload& workload);

// A copy with programs, groups and operations in an order that does not depend on the order of
// ranks, families, groups, programs and streams in the file: families by name; groups and programs
// by their smallest rank; operations behind all that they wait for, streams merged by name. The
// order of ranks in a group and of operations on a stream is meaning and stays. Requires a valid
// workload.
[[nodiscard]] Workload canonical(Workload workload);

}  // namespace flyover
