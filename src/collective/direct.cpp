#include "flyover/base/error.hpp"
#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// Calls visit(from, to) for every message of the collective, by ascending sender and receiver.
template <class Visit>
void each_message(const CollectiveShape& shape, Visit visit) {
  const std::uint32_t n = shape.group.ranks();
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    switch (shape.op) {
      case CollectiveOp::AllToAll:
        for (std::uint32_t to = 0; to < n; ++to) {
          if (to != rank) visit(rank, to);
        }
        break;
      case CollectiveOp::Scatter:
        if (rank != shape.root) visit(shape.root, rank);
        break;
      case CollectiveOp::Gather:
        if (rank != shape.root) visit(rank, shape.root);
        break;
      case CollectiveOp::SendRecv:
        visit(rank, (rank + 1) % n);
        break;
      default:
        require(false, "a collective of single messages");
    }
  }
}

}  // namespace

void add_all_to_all_blocks(Schedule& schedule, Bytes bytes) {
  const std::uint32_t n = schedule.ranks;
  const std::size_t blocks = std::size_t{n} * n;
  const std::vector<Bytes> shares = split(bytes, n);
  schedule.block_bytes.reserve(blocks);
  schedule.block_source.reserve(blocks);
  schedule.block_owner.reserve(blocks);
  for (std::uint32_t from = 0; from < n; ++from) {
    for (std::uint32_t to = 0; to < n; ++to) {
      schedule.block_bytes.push_back(shares[to]);
      schedule.block_source.push_back(from);
      schedule.block_owner.push_back(to);
    }
  }
}

Schedule direct_schedule(const CollectiveShape& shape, Bytes bytes) {
  const std::uint32_t n = shape.group.ranks();
  const bool all_to_all = shape.op == CollectiveOp::AllToAll;
  ScheduleWriter writer(shape, all_to_all ? std::uint64_t{n} * (n - 1) : n, 0);
  Schedule& schedule = writer.schedule();
  switch (shape.op) {
    case CollectiveOp::AllToAll:
      add_all_to_all_blocks(schedule, bytes);
      break;
    case CollectiveOp::SendRecv:
      schedule.block_bytes.assign(n, bytes);
      break;
    default:
      schedule.block_bytes = split(bytes, n);
  }
  for (std::uint32_t rank = 0; rank < n && !all_to_all; ++rank) {
    if (shape.op != CollectiveOp::Scatter) schedule.block_source.push_back(rank);
    if (shape.op == CollectiveOp::Scatter) schedule.block_owner.push_back(rank);
    if (shape.op == CollectiveOp::SendRecv) schedule.block_owner.push_back((rank + 1) % n);
  }
  each_message(shape, [&](std::uint32_t from, std::uint32_t to) {
    const std::uint32_t block = all_to_all                          ? from * n + to
                                : shape.op == CollectiveOp::Scatter ? to
                                                                    : from;
    writer.add({.from = from, .to = to, .block = block});
  });
  return writer.finish();
}

Summary direct_summary(const CollectiveShape& shape) {
  const std::uint32_t n = shape.group.ranks();
  SummaryWriter writer(shape);
  writer.reserve(shape.op == CollectiveOp::AllToAll ? std::size_t{n} * (n - 1) : n);
  bool crosses = false;
  each_message(shape, [&](std::uint32_t from, std::uint32_t to) {
    writer.add(0, from, to, 1);
    crosses = crosses || shape.group.domain[from] != shape.group.domain[to];
  });
  writer.summary().steps = 1;
  set_hops(writer.summary(), {.hops = 1, .inter = crosses ? 1U : 0U});
  return writer.finish(shape.op == CollectiveOp::SendRecv ? 1 : n);
}

}  // namespace flyover
