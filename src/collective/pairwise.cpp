#include <algorithm>

#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

// In step k every rank sends to the k-th next one, once it has sent and received in step k-1.
Schedule pairwise_schedule(const CollectiveShape& shape, Bytes bytes) {
  const std::uint32_t n = shape.group.ranks();
  const std::uint64_t count = std::uint64_t{n} * (n - 1);
  ScheduleWriter writer(shape, count, 2 * count);
  add_all_to_all_blocks(writer.schedule(), bytes);
  for (std::uint32_t step = 1; step < n; ++step) {
    for (std::uint32_t rank = 0; rank < n; ++rank) {
      const std::uint32_t to = (rank + step) % n;
      writer.add({.from = rank, .to = to, .block = rank * n + to});
      if (step == 1) continue;
      const std::uint32_t step_before = (step - 2) * n;
      writer.after(step_before + rank);
      writer.after(step_before + (rank + n - (step - 1)) % n);
    }
  }
  return writer.finish();
}

Summary pairwise_summary(const CollectiveShape& shape) {
  const std::uint32_t n = shape.group.ranks();
  const auto& domain = shape.group.domain;
  SummaryWriter writer(shape);
  writer.reserve(std::size_t{n} * (n - 1));
  for (std::uint32_t from = 0; from < n; ++from) {
    for (std::uint32_t to = 0; to < n; ++to) {
      if (to != from) writer.add(0, from, to, 1);
    }
  }
  // Every chain that starts in the first step is as long as any; `inter` is, for the transfer of
  // each rank in a step, the most hops between domains on a chain up to it.
  std::vector<std::uint32_t> inter(n, 0);
  std::vector<std::uint32_t> before(n, 0);
  for (std::uint32_t step = 1; step < n; ++step) {
    before.swap(inter);
    for (std::uint32_t rank = 0; rank < n; ++rank) {
      const std::uint32_t received = (rank + n - (step - 1)) % n;
      const bool crosses = domain[rank] != domain[(rank + step) % n];
      inter[rank] = std::max(before[rank], before[received]) + (crosses ? 1 : 0);
    }
  }
  writer.summary().steps = n - 1;
  set_hops(writer.summary(), {.hops = n - 1, .inter = std::ranges::max(inter)});
  return writer.finish(n);
}

}  // namespace flyover
