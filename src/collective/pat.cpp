#include <algorithm>
#include <bit>

#include "placement.hpp"
#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// Every block has a binomial tree over offsets 0 (its owner) to n-1: the parent of an offset lacks
// its lowest bit. All-gather goes down the trees, long hops first, while there is little to send
// over them; reduce-scatter goes up, long hops last. The hops of one distance d, over all blocks
// and ranks, form a step; from each rank they are those of the offsets that are odd multiples of d.
struct Step {
  std::uint32_t distance;
  std::uint32_t blocks;  // From every rank.
  std::uint32_t begin;   // First transfer of the step, counted from the channel's first.
};

// Longest distances first.
std::vector<Step> steps_down(std::uint32_t n) {
  std::vector<Step> steps;
  std::uint32_t begin = 0;
  for (std::uint32_t d = std::bit_ceil(n) / 2; d > 0; d /= 2) {
    const std::uint32_t blocks = (n - d + 2 * d - 1) / (2 * d);
    steps.push_back({d, blocks, begin});
    begin += n * blocks;
  }
  return steps;
}

std::vector<Step> steps_up(std::uint32_t n) {
  std::vector<Step> steps = steps_down(n);
  std::ranges::reverse(steps);
  std::uint32_t begin = 0;
  for (Step& step : steps) {
    step.begin = begin;
    begin += n * step.blocks;
  }
  return steps;
}

std::uint32_t lowest_bit(std::uint32_t offset) {
  return offset & (~offset + 1);
}

// The offsets of most bits. At most one bit is missing in such an offset, so there are few of them.
std::vector<std::uint32_t> deepest_offsets(std::uint32_t n) {
  const std::uint32_t all_bits = std::bit_ceil(n) - 1;
  if (all_bits < n) return {all_bits};
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t bit = 1; bit <= all_bits; bit <<= 1) {
    if (all_bits - bit < n) offsets.push_back(all_bits - bit);
  }
  return offsets;
}

// The tree's longest chains, and of those the one with most hops between domains.
Chain longest_chain(const Placement& placement, std::span<const std::uint32_t> order) {
  const auto n = static_cast<std::uint32_t>(order.size());
  Chain longest;
  for (const std::uint32_t offset : deepest_offsets(n)) {
    for (std::uint32_t owner = 0; owner < n; ++owner) {
      Chain chain;
      for (std::uint32_t rest = offset; rest > 0; rest -= lowest_bit(rest)) {
        const std::uint32_t child = order[(owner + rest) % n];
        const std::uint32_t parent = order[(owner + rest - lowest_bit(rest)) % n];
        chain = chain + Chain{1, placement.together(child, parent) ? 0U : 1U};
      }
      longest = std::max(longest, chain);
    }
  }
  return longest;
}

// Writes one channel; `position` p of a rank counts along the channel's ring, and block p belongs
// to it.
void write_down(ScheduleWriter& writer, std::span<const std::uint32_t> order,
                std::uint16_t channel) {
  const auto n = static_cast<std::uint32_t>(order.size());
  const std::vector<Step> steps = steps_down(n);
  const std::uint32_t begin = writer.next();
  for (const Step& step : steps) {
    for (std::uint32_t p = 0; p < n; ++p) {
      for (std::uint32_t j = 0; j < step.blocks; ++j) {
        const std::uint32_t offset = 2 * step.distance * j;
        const std::uint32_t owner = (p + n - offset) % n;
        writer.add({.from = order[p],
                    .to = order[(p + step.distance) % n],
                    .block = channel * n + owner,
                    .channel = channel,
                    .action = Action::Copy});
        if (offset == 0) continue;
        const std::uint32_t d = lowest_bit(offset);
        const Step& arrival =
            steps[steps.size() - 1 - static_cast<std::size_t>(std::countr_zero(d))];
        const std::uint32_t sender = (p + n - d) % n;
        writer.after(begin + arrival.begin + sender * arrival.blocks + (offset - d) / (2 * d));
      }
    }
  }
}

void write_up(ScheduleWriter& writer, std::span<const std::uint32_t> order, std::uint16_t channel) {
  const auto n = static_cast<std::uint32_t>(order.size());
  const std::vector<Step> steps = steps_up(n);
  const std::uint32_t begin = writer.next();
  for (const Step& step : steps) {
    for (std::uint32_t p = 0; p < n; ++p) {
      for (std::uint32_t j = 0; j < step.blocks; ++j) {
        const std::uint32_t offset = step.distance * (2 * j + 1);
        const std::uint32_t owner = (p + n - offset) % n;
        writer.add({.from = order[p],
                    .to = order[(p + n - step.distance) % n],
                    .block = channel * n + owner,
                    .channel = channel,
                    .action = Action::Reduce});
        for (const Step& earlier : steps) {
          if (earlier.distance == step.distance || offset + earlier.distance >= n) break;
          const std::uint32_t child = (p + earlier.distance) % n;
          writer.after(begin + earlier.begin + child * earlier.blocks +
                       offset / (2 * earlier.distance));
        }
      }
    }
  }
}

}  // namespace

Schedule pat_schedule(const CollectiveShape& shape, Bytes bytes) {
  const std::uint32_t n = shape.group.ranks();
  const Placement placement(shape.group);
  const std::uint64_t count = std::uint64_t{shape.channels} * n * (n - 1);
  // Every transfer is awaited by at most the hops after it in its tree: one up, and as many down as
  // there are other transfers.
  ScheduleWriter writer(shape, count, count);
  Schedule& schedule = writer.schedule();
  schedule.block_bytes = split(bytes, std::uint64_t{shape.channels} * n);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::vector<std::uint32_t> order = placement.ring(channel);
    schedule.block_owner.insert(schedule.block_owner.end(), order.begin(), order.end());
    if (shape.op == CollectiveOp::AllGather) {
      write_down(writer, order, static_cast<std::uint16_t>(channel));
    } else {
      write_up(writer, order, static_cast<std::uint16_t>(channel));
    }
  }
  return writer.finish();
}

Summary pat_summary(const CollectiveShape& shape) {
  const std::uint32_t n = shape.group.ranks();
  const Placement placement(shape.group);
  const std::vector<Step> steps = steps_down(n);
  SummaryWriter writer(shape);
  writer.reserve(std::size_t{shape.channels} * n * steps.size());
  Chain longest;
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::vector<std::uint32_t> order = placement.ring(channel);
    for (std::uint32_t p = 0; p < n; ++p) {
      for (const Step& step : steps) {
        const std::uint32_t q = (p + step.distance) % n;
        if (shape.op == CollectiveOp::AllGather) {
          writer.add(channel, order[p], order[q], step.blocks);
        } else {
          writer.add(channel, order[q], order[p], step.blocks);
        }
      }
    }
    longest = std::max(longest, longest_chain(placement, order));
  }
  writer.summary().steps = longest.hops;
  set_hops(writer.summary(), longest);
  return writer.finish(std::uint64_t{shape.channels} * n);
}

// Channels all run along the same ring of domains.
std::optional<FoldedSummary> pat_fold(const CollectiveShape& shape, std::uint32_t domains) {
  if (shape.group.ranks() > 1) return std::nullopt;
  const bool down = shape.op == CollectiveOp::AllGather;
  FoldedSummary summary;
  for (const Step& step : steps_down(domains)) {
    const auto kind = static_cast<std::uint32_t>(summary.between.size());
    summary.between.push_back({{0, 0, static_cast<double>(step.blocks) / domains, shape.channels}});
    for (std::uint32_t p = 0; p < domains; ++p) {
      const std::uint32_t q = (p + step.distance) % domains;
      summary.edges.push_back({down ? p : q, down ? q : p, kind});
    }
  }
  const auto bits = static_cast<std::uint32_t>(std::popcount(deepest_offsets(domains).front()));
  summary.steps = summary.inter_hops = bits;
  return summary;
}

}  // namespace flyover
