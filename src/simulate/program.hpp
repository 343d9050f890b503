#pragma once

// Programs made ready to run: successors instead of predecessors, and communicators resolved.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flyover/workload/operation_graph.hpp"

namespace flyover {

inline constexpr std::uint32_t absent = 0xffffffffU;

// One program, shared by all its ranks.
struct CompiledProgram {
  std::vector<std::uint32_t> waits;  // Per operation: how many must end before it starts.
  std::vector<std::uint32_t> successor_begin;
  std::vector<std::uint32_t> successor;
  std::vector<std::uint32_t> stream;  // Per operation: index into streams.
  std::vector<std::string> streams;
  // Per group family: the collectives on it, in program order. The k-th is a member's part in the
  // group's call k.
  std::vector<std::vector<std::uint32_t>> calls;
  std::vector<std::uint32_t> call_of;  // Per operation: its k, or absent.

  [[nodiscard]] std::span<const std::uint32_t> successors(std::uint32_t op) const {
    return std::span(successor).subspan(successor_begin[op],
                                        successor_begin[op + 1] - successor_begin[op]);
  }
};

[[nodiscard]] CompiledProgram compile(const Program& program, std::size_t families);
[[nodiscard]] std::vector<CompiledProgram> compile_all(const Workload& workload);

// One call of one group of a family.
struct CallSite {
  std::uint32_t family = 0;
  std::uint32_t group = 0;
  std::uint32_t number = 0;  // k
};

// Where every rank stands: its program, its instances, its group in each family.
class Ranks {
 public:
  explicit Ranks(const Workload& workload);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(program_.size()); }
  // absent for a rank that no program names.
  [[nodiscard]] std::uint32_t program(std::uint32_t rank) const { return program_[rank]; }
  // Instances of a rank's operations are numbered first(rank) + operation.
  [[nodiscard]] std::uint64_t first(std::uint32_t rank) const { return first_[rank]; }
  [[nodiscard]] std::uint64_t instances() const { return first_.back(); }
  [[nodiscard]] std::uint32_t rank_of(std::uint64_t instance) const;

  [[nodiscard]] std::uint32_t group(std::uint32_t family, std::uint32_t rank) const {
    return group_[family][rank];
  }

 private:
  std::vector<std::uint32_t> program_;
  std::vector<std::uint64_t> first_;               // One more than ranks.
  std::vector<std::vector<std::uint32_t>> group_;  // By family, by rank.
};

// The calls of all groups, numbered family by family, group by group.
class Calls {
 public:
  Calls(const Workload& workload, const std::vector<CompiledProgram>& programs, const Ranks& ranks);

  [[nodiscard]] std::uint32_t number(std::uint32_t family, std::uint32_t group,
                                     std::uint32_t k) const {
    return begin_[family][group] + k;
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(sites_.size()); }
  [[nodiscard]] const CallSite& site(std::uint32_t call) const { return sites_[call]; }

 private:
  std::vector<std::vector<std::uint32_t>> begin_;  // By family, by group.
  std::vector<CallSite> sites_;
};

// Throws InputError when two members of a group disagree on what their k-th collective is.
void check_calls_agree(const Workload& workload, const std::vector<CompiledProgram>& programs,
                       const Ranks& ranks);

}  // namespace flyover
