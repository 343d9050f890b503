#include <algorithm>

#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

bool reduces(const CollectiveShape& shape) {
  return shape.op != CollectiveOp::AllGather;
}
bool is_one_domain(const CollectiveShape& shape) {
  const auto& domain = shape.group.domain;
  return std::ranges::all_of(domain, [&](std::uint32_t d) { return d == domain.front(); });
}
bool multicasts(const CollectiveShape& shape) {
  return shape.op != CollectiveOp::ReduceScatter;
}

}  // namespace

std::string nvls_unsupported(const CollectiveShape& shape) {
  if (!shape.in_switch_reduction) return "needs NVLS in the domain";
  if (is_one_domain(shape)) return {};
  if (shape.op != CollectiveOp::AllReduce) return "needs all ranks in one domain";
  if (!shape.in_network_reduction)
    return "needs all ranks in one domain, or a network that reduces";
  return {};
}

// Every rank owns a block. The switch reads it from all ranks and hands the owner the sum
// (multimem.ld_reduce); the owner stores it to the switch, which writes it to all ranks, the owner
// among them (multimem.st). Blocks follow one another through every rank's links.
Schedule nvls_schedule(const CollectiveShape& shape, Bytes bytes) {
  if (!is_one_domain(shape)) return nvls_network_schedule(shape, bytes);
  const std::uint32_t n = shape.group.ranks();
  const std::uint32_t relay = n;
  const std::uint64_t blocks = std::uint64_t{shape.channels} * n;
  const std::uint32_t per_block = (reduces(shape) ? n + 1 : 0) + (multicasts(shape) ? n + 1 : 0);

  ScheduleWriter writer(shape, blocks * per_block, blocks * per_block);
  Schedule& schedule = writer.schedule();
  schedule.relays = 1;
  schedule.relay_domain = {shape.group.domain.front()};
  schedule.block_bytes = split(bytes, blocks);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const std::uint32_t owner = block % n;
    if (shape.op != CollectiveOp::AllReduce) schedule.block_owner.push_back(owner);
    Transfer transfer{.block = block, .channel = static_cast<std::uint16_t>(block / n)};
    const auto add = [&](std::uint32_t from, std::uint32_t to, Action action, bool in_line) {
      transfer.from = from;
      transfer.to = to;
      transfer.action = action;
      transfer.previous = in_line && owner > 0 ? writer.next() - per_block : none;
      return writer.add(transfer);
    };
    std::uint32_t last = none;
    if (reduces(shape)) {
      const std::uint32_t reads = writer.next();
      for (std::uint32_t rank = 0; rank < n; ++rank) add(rank, relay, Action::Reduce, true);
      last = add(relay, owner, Action::Copy, false);
      for (std::uint32_t rank = 0; rank < n; ++rank) writer.after(reads + rank);
    }
    if (multicasts(shape)) {
      const std::uint32_t store = add(owner, relay, Action::Copy, false);
      if (last != none) writer.after(last);
      for (std::uint32_t rank = 0; rank < n; ++rank) {
        add(relay, rank, Action::Copy, true);
        writer.after(store);
      }
    }
  }
  return writer.finish();
}

Summary nvls_summary(const CollectiveShape& shape) {
  if (!is_one_domain(shape)) return nvls_network_summary(shape);
  const std::uint32_t n = shape.group.ranks();
  SummaryWriter writer(shape);
  Summary& summary = writer.summary();
  summary.relays = 1;
  summary.relay_domain = {shape.group.domain.front()};
  const std::uint32_t up = (reduces(shape) ? n : 0) + (multicasts(shape) ? 1 : 0);
  const std::uint32_t down = (reduces(shape) ? 1 : 0) + (multicasts(shape) ? n : 0);
  writer.reserve(std::size_t{2} * shape.channels * n);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    for (std::uint32_t rank = 0; rank < n; ++rank) writer.add(channel, rank, n, up);
    for (std::uint32_t rank = 0; rank < n; ++rank) writer.add(channel, n, rank, down);
  }
  const std::uint32_t hops = (reduces(shape) ? 2 : 0) + (multicasts(shape) ? 2 : 0);
  // The n blocks follow one another on the way up, or on the way down.
  summary.steps = hops + n - 1;
  set_hops(summary, {.hops = hops, .inter = 0});
  return writer.finish(std::uint64_t{shape.channels} * n);
}

}  // namespace flyover
