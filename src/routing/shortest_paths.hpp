#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "digraph.hpp"
#include "flyover/base/units.hpp"

namespace flyover::routing {

// The shortest paths (in hops) from everywhere to one place, found level by level and only as far
// out as somebody asks. Borrows the graph.
//
// Each vertex reached has a slot. Slots are numbered by distance: a next hop always has a lower
// slot than the vertex it leaves, and the roots have the lowest, in the order given.
class ShortestPaths {
 public:
  struct NextHop {
    std::uint32_t link = 0;
    std::uint32_t slot = 0;
    double share = 0;  // Of what passes the vertex, when sprayed: by the capacity beyond.
    Duration latency{};
  };
  struct Slot {
    std::uint32_t vertex = 0;
    std::uint32_t distance = 0;
    std::uint32_t first_hop = none;
    std::uint32_t hops = 0;
    double capacity = 0;  // That the shortest paths can carry, links shared between them not split.
    Duration latency{};   // Of the longest of the shortest paths.
  };

  ShortestPaths(const Digraph& graph, std::span<const std::uint32_t> roots);

  // The slot of a vertex, or none when no path leads from there.
  [[nodiscard]] std::uint32_t find(std::uint32_t vertex) {
    while (slot_of_[vertex] == none && expand_level()) {
    }
    return slot_of_[vertex];
  }
  [[nodiscard]] const Slot& slot(std::uint32_t s) {
    if (slots_[s].first_hop == none) resolve(s);
    return slots_[s];
  }
  // The next hops of a slot that slot() has returned.
  [[nodiscard]] std::span<const NextHop> hops(const Slot& slot) const {
    return std::span(hops_).subspan(slot.first_hop, slot.hops);
  }
  [[nodiscard]] std::uint32_t distance(std::uint32_t s) const { return slots_[s].distance; }
  // Of what is sprayed from a slot that slot() has returned, the part that ends at a root.
  [[nodiscard]] double arrival(std::uint32_t s, std::uint32_t root) const {
    return roots_ == 1 ? 1.0 : arrivals_[std::size_t{s} * roots_ + root];
  }
  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_.size()); }
  // Bytes held.
  [[nodiscard]] std::size_t memory() const {
    return slot_of_.size() * sizeof(std::uint32_t) + slots_.size() * sizeof(Slot) +
           hops_.size() * sizeof(NextHop) + (arrivals_.size() + width_.size()) * sizeof(double);
  }

 private:
  bool expand_level();
  void resolve(std::uint32_t s);
  [[nodiscard]] std::uint32_t next_slot(const Slot& from, const Arc& arc) const;

  const Digraph* graph_;
  std::vector<std::uint32_t> slot_of_;
  std::vector<Slot> slots_;
  std::vector<NextHop> hops_;
  std::vector<double> arrivals_;  // By slot and root, when there are several roots.
  std::vector<double> width_;     // Scratch, by slot; zero between uses.
  std::uint32_t roots_ = 0;
  std::uint32_t level_begin_ = 0;
};

// Sends what lies in `amounts` (by slot) down to the roots, split at every vertex in proportion to
// the capacity of the shortest paths beyond; calls add(link, amount) for every link used. Leaves
// all amounts zero.
template <class Add>
void spray(ShortestPaths& paths, std::span<double> amounts, Add&& add) {
  for (auto s = static_cast<std::uint32_t>(amounts.size()); s-- > 0;) {
    if (amounts[s] == 0) continue;
    for (const ShortestPaths::NextHop& hop : paths.hops(paths.slot(s))) {
      const double part = amounts[s] * hop.share;
      add(hop.link, part);
      amounts[hop.slot] += part;
    }
    amounts[s] = 0;
  }
}

}  // namespace flyover::routing
