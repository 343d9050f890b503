#include "digraph.hpp"

#include <algorithm>
#include <utility>

namespace flyover::routing {

Digraph::Digraph(std::span<const Arc> arcs, std::vector<char> transit)
    : transit_(std::move(transit)),
      out_(arcs.size()),
      out_begin_(transit_.size() + 1, 0),
      before_begin_(transit_.size() + 1, 0) {
  for (const Arc& arc : arcs) ++out_begin_[arc.from + 1];
  for (std::uint32_t v = 0; v < size(); ++v) out_begin_[v + 1] += out_begin_[v];
  std::vector<std::uint32_t> next(out_begin_.begin(), out_begin_.end() - 1);
  for (const Arc& arc : arcs) out_[next[arc.from]++] = arc;
  for (std::uint32_t v = 0; v < size(); ++v) {
    const auto first = out_.begin() + out_begin_[v], last = out_.begin() + out_begin_[v + 1];
    const auto by_target = [](const Arc& a, const Arc& b) { return a.to < b.to; };
    // Builders mostly lay them in order, and a stable sort takes memory.
    if (!std::is_sorted(first, last, by_target)) std::stable_sort(first, last, by_target);
  }

  // The last predecessor noted for each target tells parallel cables.
  std::vector<std::uint32_t> last(size(), none);
  for (const Arc& arc : out_) {
    if (last[arc.to] == arc.from) continue;
    last[arc.to] = arc.from;
    ++before_begin_[arc.to + 1];
  }
  for (std::uint32_t v = 0; v < size(); ++v) before_begin_[v + 1] += before_begin_[v];
  before_.resize(before_begin_[size()]);
  next.assign(before_begin_.begin(), before_begin_.end() - 1);
  last.assign(size(), none);
  for (const Arc& arc : out_) {
    if (last[arc.to] == arc.from) continue;
    last[arc.to] = arc.from;
    before_[next[arc.to]++] = arc.from;
  }
}

std::span<const Arc> Digraph::between(std::uint32_t v, std::uint32_t to) const {
  const std::span<const Arc> arcs = out(v);
  const auto first = std::lower_bound(arcs.begin(), arcs.end(), to,
                                      [](const Arc& arc, std::uint32_t t) { return arc.to < t; });
  const auto last = std::upper_bound(first, arcs.end(), to,
                                     [](std::uint32_t t, const Arc& arc) { return t < arc.to; });
  return {first, last};
}

}  // namespace flyover::routing
