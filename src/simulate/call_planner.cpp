#include "simulate/call_planner.hpp"

#include <algorithm>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

CollectiveCall request(const Operation& op, std::span<const std::uint32_t> ranks) {
  return {op.collective, op.bytes, op.dtype, {ranks.begin(), ranks.end()}, op.root};
}

}  // namespace

PlannedCall CallPlanner::plan(const Operation& op, std::span<const std::uint32_t> ranks,
                              const PatternTracer& tracer) const {
  if (op.exchange == no_exchange) return {cost_.plan(request(op, ranks), tracer), nullptr};
  const ExpertPlan& planned = experts_.plan(exchange(op), op.collective, ranks);
  return {planned.plan, &planned};
}

std::vector<CollectivePlan> CallPlanner::alternatives(const Operation& op,
                                                      std::span<const std::uint32_t> ranks,
                                                      const PatternTracer& tracer) const {
  return cost_.choose(request(op, ranks), tracer).alternatives;
}

std::vector<ExpertAlternative> CallPlanner::other_modes(
    const Operation& op, std::span<const std::uint32_t> ranks) const {
  std::vector<ExpertAlternative> out;
  const ExpertExchange& own = exchange(op);
  if (own.routing.sampled) return out;  // Each would draw all tokens again.
  for (const auto& [mode, kernels] : own.other_kernels) {
    // Plans are remembered by address, so each stays where it is.
    const auto [other, fresh] = others_.try_emplace({&own, mode}, own);
    if (fresh) {
      other->second.mode = mode;
      other->second.kernels = kernels;
      other->second.sms = other->second.chunk = 0;
      other->second.hook = false;
    }
    try {
      out.push_back({mode, experts_.plan(other->second, op.collective, ranks).plan.alone});
    } catch (const InputError&) {  // It cannot serve this group.
      continue;
    }
  }
  std::ranges::stable_sort(out, {}, &ExpertAlternative::time);
  return out;
}

std::vector<CallPlanner::Uneven> CallPlanner::not_balanced(const Workload& workload) const {
  std::vector<Uneven> found;
  std::vector<std::vector<bool>> seen(exchanges_.size(), std::vector<bool>(workload.groups.size()));
  for (const Program& program : workload.programs) {
    for (const Operation& op : program.ops) {
      if (op.exchange == no_exchange || seen[op.exchange][op.group]) continue;
      seen[op.exchange][op.group] = true;
      const std::vector<std::uint32_t>& group = workload.groups[op.group].groups.front();
      if (group.size() == 1) continue;
      const ExpertPlan& first = experts_.plan(exchange(op), op.collective, group);
      const bool known = std::ranges::any_of(
          found, [&](const Uneven& uneven) { return uneven.exchange == &exchange(op); });
      if (!first.balanced && !known) found.push_back({&exchange(op), first.traffic.basis});
    }
  }
  return found;
}

}  // namespace flyover
