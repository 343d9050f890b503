#include <algorithm>

#include "placement.hpp"
#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// Domains of equally many members. Block r belongs to rank r; ranks at the same place of their
// domains are counterparts, and blocks travel between domains from counterpart to counterpart only.
class Grid {
 public:
  explicit Grid(const CollectiveShape& shape)
      : placement_(shape.group),
        domains_(placement_.domains()),
        members_(static_cast<std::uint32_t>(placement_.members(0).size())) {}

  [[nodiscard]] std::uint32_t domains() const { return domains_; }
  [[nodiscard]] std::uint32_t members() const { return members_; }
  [[nodiscard]] std::uint32_t rank(std::uint32_t domain, std::uint32_t place) const {
    return placement_.members(domain)[place];
  }

 private:
  Placement placement_;
  std::uint32_t domains_;
  std::uint32_t members_;
};

bool scatters(const CollectiveShape& shape) {
  return shape.op != CollectiveOp::AllGather;
}

bool gathers(const CollectiveShape& shape) {
  return shape.op != CollectiveOp::ReduceScatter;
}

std::uint32_t passes(const CollectiveShape& shape) {
  return shape.op == CollectiveOp::AllReduce ? 2 : 1;
}

// The journey of one block: contributions meet at the owner's counterpart in each domain and then
// at the owner; the result goes back the same ways.
class BlockWriter {
 public:
  BlockWriter(ScheduleWriter& writer, const Grid& grid) : writer_(writer), grid_(grid) {}

  void scatter(std::uint32_t domain, std::uint32_t place) {
    const std::uint32_t owner = grid_.rank(domain, place);
    const std::uint32_t met = writer_.next();
    for (std::uint32_t d = 0; d < grid_.domains(); ++d) {
      for (std::uint32_t p = 0; p < grid_.members(); ++p) {
        if (p != place) add(grid_.rank(d, p), grid_.rank(d, place), owner, Action::Reduce);
      }
    }
    const std::uint32_t others = grid_.members() - 1;
    whole_ = writer_.next();
    for (std::uint32_t d = 0; d < grid_.domains(); ++d) {
      if (d == domain) continue;
      add(grid_.rank(d, place), owner, owner, Action::Reduce);
      for (std::uint32_t i = 0; i < others; ++i) writer_.after(met + d * others + i);
    }
    own_ = met + domain * others;
  }

  void gather(std::uint32_t domain, std::uint32_t place, bool scattered) {
    const std::uint32_t owner = grid_.rank(domain, place);
    const std::uint32_t others = grid_.members() - 1;
    const auto after_sum = [&] {
      if (!scattered) return;
      for (std::uint32_t i = 0; i < others; ++i) writer_.after(own_ + i);
      for (std::uint32_t i = 0; i + 1 < grid_.domains(); ++i) writer_.after(whole_ + i);
    };
    std::uint32_t arrival = writer_.next();
    for (std::uint32_t d = 0; d < grid_.domains(); ++d) {
      if (d == domain) continue;
      add(owner, grid_.rank(d, place), owner, Action::Copy);
      after_sum();
    }
    for (std::uint32_t d = 0; d < grid_.domains(); ++d) {
      for (std::uint32_t p = 0; p < grid_.members(); ++p) {
        if (p == place) continue;
        add(grid_.rank(d, place), grid_.rank(d, p), owner, Action::Copy);
        if (d == domain) {
          after_sum();
        } else {
          writer_.after(arrival);
        }
      }
      if (d != domain) ++arrival;
    }
  }

 private:
  void add(std::uint32_t from, std::uint32_t to, std::uint32_t block, Action action) {
    writer_.add({.from = from, .to = to, .block = block, .action = action});
  }

  ScheduleWriter& writer_;
  const Grid& grid_;
  std::uint32_t own_ = 0;    // The first message to the owner from its own domain,
  std::uint32_t whole_ = 0;  // and from another one.
};

}  // namespace

std::string all_pairs_unsupported(const CollectiveShape& shape) {
  const auto domains = by_domain(shape.group);
  const bool equal = std::ranges::all_of(
      domains, [&](const auto& members) { return members.size() == domains.front().size(); });
  return equal ? "" : "needs as many ranks in every domain";
}

Schedule all_pairs_schedule(const CollectiveShape& shape, Bytes bytes) {
  const Grid grid(shape);
  const std::uint32_t n = shape.group.ranks();
  // Messages of one pass, inside domains and between them; a sum is over `parts` messages.
  const std::uint64_t others = grid.members() - 1;
  const std::uint64_t inside = n * others * grid.domains();
  const std::uint64_t between = std::uint64_t{n} * (grid.domains() - 1);
  const std::uint64_t parts = others + grid.domains() - 1;
  std::uint64_t dependencies = 0;
  if (scatters(shape)) dependencies += between * others;
  if (gathers(shape)) dependencies += between * others;
  if (passes(shape) == 2) dependencies += (between + n * others) * parts;
  ScheduleWriter writer(shape, passes(shape) * (inside + between), dependencies);
  Schedule& schedule = writer.schedule();
  schedule.block_bytes = split(bytes, n);
  if (shape.op != CollectiveOp::AllReduce) {
    for (std::uint32_t rank = 0; rank < n; ++rank) schedule.block_owner.push_back(rank);
  }
  BlockWriter block(writer, grid);
  for (std::uint32_t domain = 0; domain < grid.domains(); ++domain) {
    for (std::uint32_t place = 0; place < grid.members(); ++place) {
      if (scatters(shape)) block.scatter(domain, place);
      if (gathers(shape)) block.gather(domain, place, scatters(shape));
    }
  }
  return writer.finish();
}

Summary all_pairs_summary(const CollectiveShape& shape) {
  const Grid grid(shape);
  const std::uint32_t n = shape.group.ranks();
  const std::uint32_t count = passes(shape);
  SummaryWriter writer(shape);
  writer.reserve(std::size_t{n} * (grid.members() + grid.domains() - 2));
  for (std::uint32_t domain = 0; domain < grid.domains(); ++domain) {
    for (std::uint32_t place = 0; place < grid.members(); ++place) {
      const std::uint32_t from = grid.rank(domain, place);
      for (std::uint32_t p = 0; p < grid.members(); ++p) {
        if (p != place) writer.add(0, from, grid.rank(domain, p), count * grid.domains());
      }
      for (std::uint32_t d = 0; d < grid.domains(); ++d) {
        if (d != domain) writer.add(0, from, grid.rank(d, place), count);
      }
    }
  }
  const std::uint32_t inter = grid.domains() > 1 ? count : 0;
  const std::uint32_t hops = (grid.members() > 1 ? count : 0) + inter;
  writer.summary().steps = hops;
  set_hops(writer.summary(), {.hops = hops, .inter = inter});
  return writer.finish(n);
}

}  // namespace flyover
