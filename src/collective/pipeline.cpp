#include "pipeline.hpp"

#include <algorithm>

#include "schedule_writer.hpp"

namespace flyover {

namespace {

// The children of every rank, as linked lists.
struct Children {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> next;

  explicit Children(const RankTree& tree)
      : first(tree.parent.size(), none),
        next(tree.parent.size(), none) {
    for (const std::uint32_t rank : tree.order) {
      const std::uint32_t parent = tree.parent[rank];
      if (parent == none) continue;
      next[rank] = first[parent];
      first[parent] = rank;
    }
  }

  template <class Visit>
  void each(std::uint32_t rank, Visit visit) const {
    for (std::uint32_t child = first[rank]; child != none; child = next[child]) visit(child);
  }
};

}  // namespace

Schedule pipeline_schedule(const CollectiveShape& shape, Bytes bytes,
                           std::span<const RankTree> trees, Flow flow, std::uint32_t chunks) {
  const std::uint32_t n = shape.group.ranks();
  const bool up = flow != Flow::Down;
  const bool down = flow != Flow::Up;
  const std::uint32_t per_chunk = (n - 1) * (flow == Flow::UpDown ? 2 : 1);
  const std::uint64_t count = std::uint64_t{trees.size()} * chunks * per_chunk;

  // A transfer up is awaited once by the next one up, or by each of the root's transfers down; of
  // these there are few. A transfer down waits for one.
  ScheduleWriter writer(shape, count, count);
  writer.schedule().block_bytes = split(bytes, std::uint64_t{trees.size()} * chunks);
  std::vector<std::uint32_t> place(n);
  for (std::uint32_t t = 0; t < trees.size(); ++t) {
    const RankTree& tree = trees[t];
    const Children children(tree);
    for (std::uint32_t i = 0; i < n; ++i) place[tree.order[i]] = i;

    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const std::uint32_t begin = writer.next();
      const auto up_of = [&](std::uint32_t rank) { return begin + n - 1 - place[rank]; };
      const auto down_to = [&](std::uint32_t rank) {
        return begin + (up ? n - 1 : 0) + place[rank] - 1;
      };
      const auto add = [&](std::uint32_t from, std::uint32_t to, Action action) {
        writer.add({.from = from,
                    .to = to,
                    .block = t * chunks + chunk,
                    .channel = static_cast<std::uint16_t>(t),
                    .action = action,
                    .previous = chunk == 0 ? none : writer.next() - per_chunk});
      };
      const auto after_children = [&](std::uint32_t rank) {
        children.each(rank, [&](std::uint32_t child) { writer.after(up_of(child)); });
      };
      for (std::uint32_t i = n - 1; up && i > 0; --i) {
        const std::uint32_t rank = tree.order[i];
        add(rank, tree.parent[rank], Action::Reduce);
        after_children(rank);
      }
      for (std::uint32_t i = 1; down && i < n; ++i) {
        const std::uint32_t rank = tree.order[i];
        const std::uint32_t parent = tree.parent[rank];
        add(parent, rank, Action::Copy);
        if (tree.parent[parent] != none) {
          writer.after(down_to(parent));
        } else if (up) {
          after_children(parent);
        }
      }
    }
  }
  return writer.finish();
}

Summary pipeline_summary(const CollectiveShape& shape, std::span<const RankTree> trees, Flow flow,
                         std::uint32_t chunks) {
  const std::uint32_t n = shape.group.ranks();
  SummaryWriter writer(shape);
  writer.reserve(trees.size() * (n - 1) * (flow == Flow::UpDown ? 2 : 1));
  Chain longest;
  std::vector<Chain> depth(n);
  for (std::uint32_t t = 0; t < trees.size(); ++t) {
    const RankTree& tree = trees[t];
    const Children children(tree);
    for (std::uint32_t rank = 0; rank < n; ++rank) {
      if (flow != Flow::Down && tree.parent[rank] != none) {
        writer.add(t, rank, tree.parent[rank], chunks);
      }
      if (flow != Flow::Up) {
        children.each(rank, [&](std::uint32_t child) { writer.add(t, rank, child, chunks); });
      }
    }
    depth[tree.order.front()] = {};
    Chain deepest;
    for (const std::uint32_t rank : tree.order) {
      const std::uint32_t parent = tree.parent[rank];
      if (parent == none) continue;
      const bool crosses = shape.group.domain[parent] != shape.group.domain[rank];
      depth[rank] = depth[parent] + Chain{.hops = 1, .inter = crosses ? 1U : 0U};
      deepest = std::max(deepest, depth[rank]);
    }
    longest = std::max(longest, flow == Flow::UpDown ? deepest + deepest : deepest);
  }
  // The last chunk follows the others hop by hop.
  writer.summary().steps = longest.hops + chunks - 1;
  set_hops(writer.summary(), longest);
  return writer.finish(std::uint64_t{trees.size()} * chunks);
}

}  // namespace flyover
