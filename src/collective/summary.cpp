#include "flyover/collective/summary.hpp"

#include <algorithm>

#include "flyover/base/error.hpp"
#include "schedule_writer.hpp"

namespace flyover {

namespace {

// How the bytes of the collective follow from those of its blocks, when every block counts
// `weight`.
template <class Weight>
std::int64_t total(const Schedule& schedule, Weight weight) {
  std::int64_t sum = 0;
  for (std::uint32_t block = 0; block < schedule.block_bytes.size(); ++block) sum += weight(block);
  switch (schedule.op) {
    case CollectiveOp::AllToAll:
    case CollectiveOp::SendRecv:
      return sum / schedule.ranks;
    default:
      return sum;
  }
}

struct Load {
  std::uint16_t channel;
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t block;

  friend auto operator<=>(const Load&, const Load&) = default;
};

}  // namespace

Summary summarise(const Schedule& schedule, const GroupShape& shape) {
  require(shape.ranks() == schedule.ranks, "a shape of as many ranks as the schedule");
  Summary summary;
  summary.ranks = schedule.ranks;
  summary.relays = schedule.relays;
  summary.relay_domain = schedule.relay_domain;

  const auto domain = [&](std::uint32_t rank) {
    return rank < schedule.ranks ? shape.domain[rank]
                                 : schedule.relay_domain[rank - schedule.ranks];
  };
  const std::size_t count = schedule.transfers.size();
  std::vector<std::uint32_t> steps(count);
  std::vector<Chain> chain(count);
  std::vector<Load> loads;
  loads.reserve(count);
  Chain longest;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Transfer& transfer = schedule.transfers[i];
    for (const std::uint32_t earlier : schedule.after(i)) {
      steps[i] = std::max(steps[i], steps[earlier]);
      chain[i] = std::max(chain[i], chain[earlier]);
    }
    if (transfer.previous != none) steps[i] = std::max(steps[i], steps[transfer.previous]);
    ++steps[i];
    chain[i] = chain[i] + Chain{1, domain(transfer.from) == domain(transfer.to) ? 0U : 1U};
    summary.steps = std::max(summary.steps, steps[i]);
    longest = std::max(longest, chain[i]);
    loads.push_back({transfer.channel, transfer.from, transfer.to, transfer.block});
  }
  set_hops(summary, longest);

  // Without bytes, as in a barrier, blocks count alike.
  const bool empty =
      std::ranges::all_of(schedule.block_bytes, [](Bytes b) { return b == Bytes{}; });
  const auto weight = [&](std::uint32_t block) {
    return empty ? std::int64_t{1} : schedule.block_bytes[block].count();
  };
  const auto whole = static_cast<double>(total(schedule, weight));
  std::ranges::sort(loads);
  for (std::size_t i = 0; i < loads.size();) {
    const Load& first = loads[i];
    std::int64_t bytes = 0;
    std::uint32_t messages = 0;
    for (; i < loads.size() && loads[i].channel == first.channel && loads[i].from == first.from &&
           loads[i].to == first.to;
         ++i) {
      bytes += weight(loads[i].block);
      ++messages;
    }
    summary.edges.push_back(
        {first.from, first.to, static_cast<double>(bytes) / whole, messages, first.channel});
  }
  return summary;
}

}  // namespace flyover
