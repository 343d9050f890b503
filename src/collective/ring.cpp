#include <algorithm>

#include "flyover/base/error.hpp"
#include "fold_writer.hpp"
#include "placement.hpp"
#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

std::uint32_t ring_steps(CollectiveOp op, std::uint32_t ranks) {
  const std::uint32_t lap = ranks - 1;
  return op == CollectiveOp::AllReduce ? 2 * lap : lap;
}

// The most hops between domains on a walk of `steps` edges around the ring, from any start.
std::uint32_t most_crossings(const Placement& placement, std::span<const std::uint32_t> order,
                             std::uint32_t steps) {
  const auto n = static_cast<std::uint32_t>(order.size());
  require(n > 1, "a ring of two ranks or more");
  const auto crosses = [&](std::uint32_t i) -> std::uint32_t {
    return placement.together(order[i % n], order[(i + 1) % n]) ? 0 : 1;
  };
  std::uint32_t lap = 0;
  std::uint32_t window = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    lap += crosses(i);
    if (i < steps % n) window += crosses(i);
  }
  std::uint32_t most = window;
  for (std::uint32_t i = 0; i < n; ++i) {
    window += crosses(i + steps % n) - crosses(i);
    most = std::max(most, window);
  }
  return steps / n * lap + most;
}

}  // namespace

// Every block walks once around its ring (all-reduce: twice, the first lap reducing; Patarasuk &
// Yuan 2009). In step k the rank at position p passes on the block that started k positions before
// it.
Schedule ring_schedule(const CollectiveShape& shape, Bytes bytes) {
  const std::uint32_t n = shape.group.ranks();
  require(n > 1, "a ring of two ranks or more");
  const std::uint32_t steps = ring_steps(shape.op, n);
  const std::uint64_t count = std::uint64_t{shape.channels} * steps * n;
  const std::uint64_t blocks = std::uint64_t{shape.channels} * n;
  const Placement placement(shape.group);

  ScheduleWriter writer(shape, count, count - blocks);
  Schedule& schedule = writer.schedule();
  schedule.block_bytes = split(bytes, blocks);
  // A reduced block ends one position before the one where it started.
  const std::uint32_t owner_shift = shape.op == CollectiveOp::ReduceScatter ? n - 1 : 0;
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::vector<std::uint32_t> order = placement.ring(channel);
    if (shape.op != CollectiveOp::AllReduce) {
      for (std::uint32_t i = 0; i < n; ++i) {
        schedule.block_owner.push_back(order[(i + owner_shift) % n]);
      }
    }
    for (std::uint32_t step = 0; step < steps; ++step) {
      const bool reducing = shape.op != CollectiveOp::AllGather && step < n - 1;
      std::uint32_t block = (2 * n - 1 - step) % n;
      for (std::uint32_t p = 0; p < n; ++p) {
        block = block + 1 == n ? 0 : block + 1;
        const std::uint32_t index = writer.next();
        writer.add({.from = order[p],
                    .to = order[p + 1 == n ? 0 : p + 1],
                    .block = channel * n + block,
                    .channel = static_cast<std::uint16_t>(channel),
                    .action = reducing ? Action::Reduce : Action::Copy,
                    .previous = step == 0 ? none : index - n});
        if (step > 0) writer.after(p == 0 ? index - 1 : index - n - 1);
      }
    }
  }
  return writer.finish();
}

Summary ring_summary(const CollectiveShape& shape) {
  const std::uint32_t n = shape.group.ranks();
  require(n > 1, "a ring of two ranks or more");
  const std::uint32_t steps = ring_steps(shape.op, n);
  const Placement placement(shape.group);

  SummaryWriter writer(shape);
  Summary& summary = writer.summary();
  summary.edges.resize(std::size_t{shape.channels} * n);
  std::uint32_t crossings = 0;
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::vector<std::uint32_t> order = placement.ring(channel);
    for (std::uint32_t p = 0; p < n; ++p) {
      // One edge leaves every rank, so its place in the sorted list is known.
      summary.edges[std::size_t{channel} * n + order[p]] = {
          .from = order[p],
          .to = order[(p + 1) % n],
          .messages = steps,
          .channel = static_cast<std::uint16_t>(channel)};
    }
    crossings = std::max(crossings, most_crossings(placement, order, steps));
  }
  summary.steps = steps;
  set_hops(summary, {.hops = steps, .inter = crossings});
  return writer.finish(std::uint64_t{shape.channels} * n);
}

std::optional<FoldedSummary> ring_fold(const CollectiveShape& shape, std::uint32_t domains) {
  const Placement placement(shape.group);
  const auto members = static_cast<std::uint32_t>(placement.members(0).size());
  const std::uint32_t n = domains * members;
  const std::uint32_t steps = ring_steps(shape.op, n);
  const double fraction = static_cast<double>(steps) / (static_cast<double>(shape.channels) * n);

  FoldedSummary summary;
  FoldWriter inside(members);
  FoldWriter between(members);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::uint32_t entry = placement.entry_member(0, channel);
    for (std::uint32_t i = 0; i + 1 < members; ++i) {
      inside.add((entry + i) % members, (entry + i + 1) % members, fraction, 1);
    }
    between.add((entry + members - 1) % members, entry, fraction, 1);
  }
  // A walk leaves its domain at every `members`-th edge.
  std::uint32_t crossings = steps / n * domains;
  if (const std::uint32_t rest = steps % n; rest > 0) crossings += (rest - 1) / members + 1;
  for (std::uint32_t d = 0; d < domains; ++d) summary.edges.push_back({d, (d + 1) % domains, 0});
  summary.steps = steps;
  summary.intra_hops = steps - crossings;
  summary.inter_hops = crossings;
  summary.inside = inside.take();
  summary.between.push_back(between.take());
  return summary;
}

}  // namespace flyover
