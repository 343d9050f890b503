#include "simulate/program.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/workload/repetition.hpp"

namespace flyover {

CompiledProgram compile(const Program& program, std::size_t families) {
  CompiledProgram out;
  const std::size_t n = program.ops.size();
  const StreamOrder order = stream_order(program);
  out.stream = order.stream;
  out.streams.assign(order.names.begin(), order.names.end());
  out.calls.resize(families);
  out.call_of.assign(n, absent);

  struct Edge {
    std::uint32_t from, to;
  };
  std::vector<Edge> edges;
  for (std::uint32_t op = 0; op < n; ++op) {
    const Operation& operation = program.ops[op];
    for (const std::uint32_t before : operation.after) edges.push_back({before, op});

    if (const std::uint32_t place = order.place[op]; place > 0) {
      edges.push_back({order.ops[order.stream[op]][place - 1], op});
    }

    if (operation.kind == OpKind::Collective) {
      auto& calls = out.calls[operation.group];
      out.call_of[op] = static_cast<std::uint32_t>(calls.size());
      calls.push_back(op);
    }
  }
  // An operation may name the one before it on its stream: one wait, not two.
  std::ranges::sort(edges, [](const Edge& a, const Edge& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  const auto same = [](const Edge& a, const Edge& b) { return a.from == b.from && a.to == b.to; };
  edges.erase(std::unique(edges.begin(), edges.end(), same), edges.end());

  out.waits.assign(n, 0);
  out.successor_begin.assign(n + 1, 0);
  for (const Edge& edge : edges) {
    ++out.waits[edge.to];
    ++out.successor_begin[edge.from + 1];
    out.successor.push_back(edge.to);
  }
  for (std::size_t i = 0; i < n; ++i) out.successor_begin[i + 1] += out.successor_begin[i];
  return out;
}

std::vector<CompiledProgram> compile_all(const Workload& workload) {
  std::vector<CompiledProgram> out;
  for (const Program& program : workload.programs) {
    out.push_back(compile(program, workload.groups.size()));
  }
  return out;
}

Ranks::Ranks(const Workload& workload) {
  program_.assign(workload.ranks, absent);
  for (std::uint32_t p = 0; p < workload.programs.size(); ++p) {
    for (const std::uint32_t rank : workload.programs[p].ranks) program_[rank] = p;
  }
  first_.push_back(0);
  for (const std::uint32_t p : program_) {
    first_.push_back(first_.back() + (p == absent ? 0 : workload.programs[p].ops.size()));
  }
  for (const GroupFamily& family : workload.groups) {
    std::vector<std::uint32_t>& group = group_.emplace_back(workload.ranks, absent);
    for (std::uint32_t g = 0; g < family.groups.size(); ++g) {
      for (const std::uint32_t rank : family.groups[g]) group[rank] = g;
    }
  }
}

std::uint32_t Ranks::rank_of(std::uint64_t instance) const {
  const auto next = std::ranges::upper_bound(first_, instance);
  return static_cast<std::uint32_t>(next - first_.begin()) - 1;
}

Calls::Calls(const Workload& workload, const std::vector<CompiledProgram>& programs,
             const Ranks& ranks) {
  for (std::uint32_t f = 0; f < workload.groups.size(); ++f) {
    const auto& groups = workload.groups[f].groups;
    begin_.emplace_back();
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      begin_[f].push_back(size());
      // A member that calls less often is found missing when the others wait for it.
      std::size_t most = 0;
      for (const std::uint32_t rank : groups[g]) {
        if (ranks.program(rank) == absent) continue;
        most = std::max(most, programs[ranks.program(rank)].calls[f].size());
      }
      for (std::uint32_t k = 0; k < most; ++k) sites_.push_back({f, g, k});
    }
  }
}

void check_calls_agree(const Workload& workload, const std::vector<CompiledProgram>& programs,
                       const Ranks& ranks) {
  const auto describe = [&](std::uint32_t rank, const Operation& op) {
    const std::string what = op.exchange == no_exchange
                                 ? fmt::format("of {}", to_string(op.bytes))
                                 : fmt::format("\"{}\"", workload.exchanges[op.exchange].name);
    return fmt::format("rank {} ({} \"{}\") calls {} {}{}", rank,
                       workload.programs[ranks.program(rank)].name, op.id, to_string(op.collective),
                       what, op.root == 0 ? "" : fmt::format(" with root {}", op.root));
  };
  for (std::uint32_t f = 0; f < workload.groups.size(); ++f) {
    for (const auto& group : workload.groups[f].groups) {
      std::uint32_t model = absent;  // The first member with a program.
      std::uint32_t compared = absent;
      for (const std::uint32_t rank : group) {
        const std::uint32_t p = ranks.program(rank);
        if (p == absent) continue;
        if (model == absent) model = rank;
        if (p == ranks.program(model) || p == compared) continue;
        compared = p;
        const auto& ours = programs[ranks.program(model)].calls[f];
        const auto& theirs = programs[p].calls[f];
        for (std::size_t k = 0; k < std::min(ours.size(), theirs.size()); ++k) {
          const Operation& a = workload.programs[ranks.program(model)].ops[ours[k]];
          const Operation& b = workload.programs[p].ops[theirs[k]];
          if (a.collective == b.collective && a.bytes == b.bytes && a.root == b.root &&
              a.dtype == b.dtype && a.exchange == b.exchange) {
            continue;
          }
          throw InputError(fmt::format(
              "members of group \"{}\" disagree on its collective number {}: {}, but {}",
              workload.groups[f].name, k + 1, describe(model, a), describe(rank, b)));
        }
      }
    }
  }
}

}  // namespace flyover
