#include "simulate/colour_refinement.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "flyover/base/error.hpp"
#include "simulate/digest.hpp"

namespace flyover {

namespace {

// What a node sees around it: the sum of the hashes of its edges.
struct Sight {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend auto operator<=>(const Sight&, const Sight&) = default;
};

class Refinement {
 public:
  Refinement(std::span<const std::uint32_t> colours, std::span<const LabelledEdge> edges)
      : colour_(colours.begin(), colours.end()),
        begin_(colours.size() + 1, 0),
        ends_(2 * edges.size()),
        waiting_(colours.size(), 1) {
    for (const LabelledEdge& edge : edges) {
      ++begin_[edge.a + 1];
      ++begin_[edge.b + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<std::uint64_t> fill(begin_.begin(), begin_.end() - 1);
    for (const LabelledEdge& edge : edges) {
      ends_[fill[edge.a]++] = {edge.b, edge.label, edge.a_sees};
      ends_[fill[edge.b]++] = {edge.a, edge.label, edge.b_sees};
    }
    number_by_smallest();
    for (const std::uint32_t c : colour_) ++members_[c];
  }

  std::vector<std::uint32_t> run() {
    std::vector<Seen> look(colour_.size());
    for (std::uint32_t v = 0; v < look.size(); ++v) look[v].node = v;
    while (!look.empty()) {
      for (Seen& seen : look) {
        seen.colour = colour_[seen.node];
        seen.sight = sight(seen.node);
        waiting_[seen.node] = 0;
      }
      std::ranges::sort(look, [](const Seen& a, const Seen& b) {
        return std::tie(a.colour, a.sight, a.node) < std::tie(b.colour, b.sight, b.node);
      });
      moved_.clear();
      for (std::size_t first = 0; first < look.size();) {
        std::size_t last = first;
        while (last < look.size() && look[last].colour == look[first].colour) ++last;
        split(std::span(look).subspan(first, last - first));
        first = last;
      }
      look.clear();
      for (const std::uint32_t node : moved_) {
        for (const End& end : ends(node)) {
          if (waiting_[end.node] != 0) continue;
          waiting_[end.node] = 1;
          look.push_back({0, end.node, {}});
        }
      }
    }
    number_by_smallest();
    return std::move(colour_);
  }

 private:
  struct End {
    std::uint32_t node = 0;
    std::uint32_t label = 0;
    std::uint32_t times = 1;
  };
  struct Seen {
    std::uint32_t colour = 0;
    std::uint32_t node = 0;
    Sight sight;
  };

  [[nodiscard]] std::span<const End> ends(std::uint32_t node) const {
    return std::span(ends_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }

  [[nodiscard]] Sight sight(std::uint32_t node) const {
    Sight sum;
    for (const End& end : ends(node)) {
      const std::uint64_t edge = std::uint64_t{colour_[end.node]} << 32 | end.label;
      sum.low += end.times * mix_bits(edge ^ 0x9e3779b97f4a7c15U);
      sum.high += end.times * mix_bits(edge ^ 0xd1b54a32d192ed03U);
    }
    return sum;
  }

  // Splits a class by what those of its nodes see that were looked at. The others still see what
  // all of the class saw before, which none of these does any more: they keep the colour. Where
  // there are no others the largest part keeps it.
  void split(std::span<const Seen> seen) {
    const std::uint32_t old = seen.front().colour;
    std::size_t keeps = seen.size();  // Where the part begins that does.
    if (members_[old] == seen.size()) {
      std::size_t most = 0;
      for_parts(seen, [&](std::size_t first, std::size_t last) {
        if (last - first <= most) return;
        most = last - first;
        keeps = first;
      });
    }
    for_parts(seen, [&](std::size_t first, std::size_t last) {
      if (first == keeps) return;
      const auto fresh = static_cast<std::uint32_t>(members_.size());
      const auto size = static_cast<std::uint32_t>(last - first);
      members_.push_back(size);
      members_[old] -= size;
      for (std::size_t i = first; i < last; ++i) {
        colour_[seen[i].node] = fresh;
        moved_.push_back(seen[i].node);
      }
    });
  }

  template <class Visit>
  static void for_parts(std::span<const Seen> seen, Visit visit) {
    for (std::size_t first = 0; first < seen.size();) {
      std::size_t last = first;
      while (last < seen.size() && seen[last].sight == seen[first].sight) ++last;
      visit(first, last);
      first = last;
    }
  }

  void number_by_smallest() {
    const std::uint32_t highest = colour_.empty() ? 0 : std::ranges::max(colour_);
    std::vector<std::uint32_t> number(std::size_t{highest} + 1, unnumbered);
    std::uint32_t next = 0;
    for (std::uint32_t& c : colour_) {
      if (number[c] == unnumbered) number[c] = next++;
      c = number[c];
    }
    members_.assign(next, 0);
  }

  static constexpr std::uint32_t unnumbered = 0xffffffffU;

  std::vector<std::uint32_t> colour_;
  std::vector<std::uint64_t> begin_;
  std::vector<End> ends_;
  std::vector<char> waiting_;           // Nodes to look at in this round or the next.
  std::vector<std::uint32_t> members_;  // By colour.
  std::vector<std::uint32_t> moved_;    // Of this round: nodes that got a new colour.
};

}  // namespace

std::vector<std::uint32_t> refine_colours(std::span<const std::uint32_t> colours,
                                          std::span<const LabelledEdge> edges) {
  for (const LabelledEdge& edge : edges) {
    require(edge.a < colours.size() && edge.b < colours.size(), "edges between nodes");
  }
  return Refinement(colours, edges).run();
}

}  // namespace flyover
