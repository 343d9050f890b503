#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

// Every rank sends all that it has to every other, which adds it to its own.
Schedule one_shot_schedule(const CollectiveShape& shape, Bytes bytes) {
  const std::uint32_t n = shape.group.ranks();
  ScheduleWriter writer(shape, std::uint64_t{n} * (n - 1), 0);
  writer.schedule().block_bytes = {bytes};
  for (std::uint32_t from = 0; from < n; ++from) {
    for (std::uint32_t to = 0; to < n; ++to) {
      if (to != from) writer.add({.from = from, .to = to, .action = Action::Contribute});
    }
  }
  return writer.finish();
}

Summary one_shot_summary(const CollectiveShape& shape) {
  const std::uint32_t n = shape.group.ranks();
  const auto& domain = shape.group.domain;
  SummaryWriter writer(shape);
  writer.reserve(std::size_t{n} * (n - 1));
  bool crosses = false;
  for (std::uint32_t from = 0; from < n; ++from) {
    crosses = crosses || domain[from] != domain[0];
    for (std::uint32_t to = 0; to < n; ++to) {
      if (to != from) writer.add(0, from, to, 1);
    }
  }
  writer.summary().steps = 1;
  set_hops(writer.summary(), {.hops = 1, .inter = crosses ? 1U : 0U});
  return writer.finish(1);
}

}  // namespace flyover
