#include <algorithm>
#include <bit>

#include "placement.hpp"
#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// Positions 0 to n-1 along a channel's ring. The core is a power of two of them; it exchanges data
// with the position that differs in one bit. For each of the others, `extras`, one core position
// stands in: of the first 2 x extras ring places, the odd ones are extra and fold into the one
// before.
struct Core {
  explicit Core(std::uint32_t n) : size(std::bit_floor(n)), extras(n - size) {}

  [[nodiscard]] std::uint32_t place(std::uint32_t core) const {
    return core < extras ? 2 * core : core + extras;
  }
  [[nodiscard]] static std::uint32_t extra_place(std::uint32_t core) { return 2 * core + 1; }

  std::uint32_t size;
  std::uint32_t extras;
};

// Writes the parts of one channel; block b belongs to core position b.
class ChannelWriter {
 public:
  ChannelWriter(ScheduleWriter& writer, std::span<const std::uint32_t> order, std::uint32_t channel)
      : writer_(writer),
        order_(order),
        core_(static_cast<std::uint32_t>(order.size())),
        channel_(channel) {}

  // The extras' contributions go to their stand-ins.
  void fold() {
    fold_ = writer_.next();
    for (std::uint32_t p = 0; p < core_.extras; ++p) {
      for (std::uint32_t block = 0; block < core_.size; ++block) {
        add(Core::extra_place(p), core_.place(p), block, Action::Reduce);
      }
    }
    folded_ = core_.extras;
  }

  // At distance d each position gives its partner the partner's half of what it still holds.
  void halve() {
    halving_ = writer_.next();
    for (std::uint32_t d = core_.size / 2; d > 0; d /= 2) {
      for (std::uint32_t p = 0; p < core_.size; ++p) {
        for (std::uint32_t j = 0; j < d; ++j) {
          const std::uint32_t block = ((p ^ d) & ~(d - 1)) + j;
          add(core_.place(p), core_.place(p ^ d), block, Action::Reduce);
          after_reduced(p, block, d);
        }
      }
    }
    halved_ = true;
  }

  // At distance d each position gives its partner all that it holds.
  void twice() {
    doubling_ = writer_.next();
    for (std::uint32_t d = 1; d < core_.size; d *= 2) {
      for (std::uint32_t p = 0; p < core_.size; ++p) {
        for (std::uint32_t j = 0; j < d; ++j) {
          const std::uint32_t block = (p & ~(d - 1)) + j;
          add(core_.place(p), core_.place(p ^ d), block, Action::Copy);
          after_complete(p, block);
        }
      }
    }
  }

  // The stand-ins send the results back.
  void unfold() {
    for (std::uint32_t p = 0; p < core_.extras; ++p) {
      for (std::uint32_t block = 0; block < core_.size; ++block) {
        add(core_.place(p), Core::extra_place(p), block, Action::Copy);
        after_complete(p, block);
      }
    }
  }

 private:
  void add(std::uint32_t from, std::uint32_t to, std::uint32_t block, Action action) {
    writer_.add({.from = order_[from],
                 .to = order_[to],
                 .block = channel_ * core_.size + block,
                 .channel = static_cast<std::uint16_t>(channel_),
                 .action = action});
  }

  // Waits for all that position p has been given of the block at distances above d.
  void after_reduced(std::uint32_t p, std::uint32_t block, std::uint32_t d) {
    if (p < folded_) writer_.after(fold_ + p * core_.size + block);
    std::uint32_t begin = halving_;
    for (std::uint32_t far = core_.size / 2; far > d; far /= 2) {
      writer_.after(begin + (p ^ far) * far + (block & (far - 1)));
      begin += core_.size * far;
    }
  }

  // Waits until position p has the whole block.
  void after_complete(std::uint32_t p, std::uint32_t block) {
    if (p == block) {
      if (halved_) after_reduced(p, block, 0);
      return;
    }
    const std::uint32_t d = std::bit_floor(p ^ block);
    writer_.after(doubling_ + core_.size * (d - 1) + (p ^ d) * d + (block & (d - 1)));
  }

  ScheduleWriter& writer_;
  std::span<const std::uint32_t> order_;
  Core core_;
  std::uint32_t channel_;
  // First transfers of the parts.
  std::uint32_t fold_ = 0;
  std::uint32_t halving_ = 0;
  std::uint32_t doubling_ = 0;
  std::uint32_t folded_ = 0;  // Core positions below this have been given an extra's contribution.
  bool halved_ = false;
};

// The longest chain of one block, in halving from the core position that differs from the owner's
// in every bit; in doubling back to it.
Chain longest_chain(const CollectiveShape& shape, const Placement& placement,
                    std::span<const std::uint32_t> order) {
  const Core core(static_cast<std::uint32_t>(order.size()));
  const auto hop = [&](std::uint32_t a, std::uint32_t b) {
    return Chain{1, placement.together(order[a], order[b]) ? 0U : 1U};
  };
  Chain longest;
  for (std::uint32_t owner = 0; owner < core.size; ++owner) {
    Chain chain;
    std::uint32_t p = owner;
    for (std::uint32_t d = 1; d < core.size; d *= 2) {
      chain = chain + hop(core.place(p), core.place(p ^ d));
      p ^= d;
    }
    if (p < core.extras) chain = chain + hop(core.place(p), Core::extra_place(p));
    longest = std::max(longest, shape.op == CollectiveOp::AllReduce ? chain + chain : chain);
  }
  return longest;
}

}  // namespace

std::string recursive_unsupported(const CollectiveShape& shape) {
  if (shape.op != CollectiveOp::AllReduce && !std::has_single_bit(shape.group.ranks())) {
    return "needs a power of two of ranks";
  }
  return {};
}

Schedule recursive_schedule(const CollectiveShape& shape, Bytes bytes) {
  const std::uint32_t n = shape.group.ranks();
  const Core core(n);
  const Placement placement(shape.group);
  const bool halving = shape.op != CollectiveOp::AllGather;
  const bool doubling = shape.op != CollectiveOp::ReduceScatter;
  const std::uint64_t phase = std::uint64_t{core.size} * (core.size - 1);
  const std::uint64_t per_channel =
      (halving ? phase : 0) + (doubling ? phase : 0) + std::uint64_t{2} * core.extras * core.size;
  // A contribution is awaited by every later transfer of its block from its receiver: one in
  // halving; one for each bit from the owner.
  const std::uint64_t waits =
      per_channel + std::uint64_t{core.size} * std::bit_width(n) * std::bit_width(n);
  ScheduleWriter writer(shape, shape.channels * per_channel, shape.channels * waits);
  Schedule& schedule = writer.schedule();
  schedule.block_bytes = split(bytes, std::uint64_t{shape.channels} * core.size);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::vector<std::uint32_t> order = placement.ring(channel);
    if (shape.op != CollectiveOp::AllReduce) {
      schedule.block_owner.insert(schedule.block_owner.end(), order.begin(), order.end());
    }
    ChannelWriter part(writer, order, channel);
    if (halving) {
      part.fold();
      part.halve();
    }
    if (doubling) {
      part.twice();
      part.unfold();
    }
  }
  return writer.finish();
}

Summary recursive_summary(const CollectiveShape& shape) {
  const std::uint32_t n = shape.group.ranks();
  const Core core(n);
  const Placement placement(shape.group);
  const std::uint32_t phases = shape.op == CollectiveOp::AllReduce ? 2 : 1;
  SummaryWriter writer(shape);
  writer.reserve(std::size_t{shape.channels} * n * std::bit_width(n));
  Chain longest;
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::vector<std::uint32_t> order = placement.ring(channel);
    for (std::uint32_t p = 0; p < core.size; ++p) {
      for (std::uint32_t d = 1; d < core.size; d *= 2) {
        writer.add(channel, order[core.place(p)], order[core.place(p ^ d)], phases * d);
      }
    }
    for (std::uint32_t p = 0; p < core.extras; ++p) {
      writer.add(channel, order[Core::extra_place(p)], order[core.place(p)], core.size);
      writer.add(channel, order[core.place(p)], order[Core::extra_place(p)], core.size);
    }
    longest = std::max(longest, longest_chain(shape, placement, order));
  }
  writer.summary().steps = longest.hops;
  set_hops(writer.summary(), longest);
  return writer.finish(std::uint64_t{shape.channels} * core.size);
}

}  // namespace flyover
