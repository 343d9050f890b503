#include "shortest_paths.hpp"

#include <algorithm>
#include <limits>

namespace flyover::routing {

ShortestPaths::ShortestPaths(const Digraph& graph, std::span<const std::uint32_t> roots)
    : graph_(&graph),
      slot_of_(graph.size(), none),
      roots_(static_cast<std::uint32_t>(roots.size())) {
  for (const std::uint32_t root : roots) {
    slot_of_[root] = slots();
    slots_.push_back(
        {.vertex = root, .first_hop = 0, .capacity = std::numeric_limits<double>::infinity()});
  }
  if (roots_ == 1) return;
  arrivals_.assign(std::size_t{roots_} * roots_, 0.0);
  for (std::uint32_t root = 0; root < roots_; ++root)
    arrivals_[std::size_t{root} * roots_ + root] = 1;
}

bool ShortestPaths::expand_level() {
  const std::uint32_t end = slots();
  if (level_begin_ == end) return false;
  for (std::uint32_t s = level_begin_; s < end; ++s) {
    const std::uint32_t distance = slots_[s].distance;
    const std::uint32_t vertex = slots_[s].vertex;
    if (distance > 0 && !graph_->transit(vertex)) continue;
    for (const std::uint32_t v : graph_->before(vertex)) {
      if (slot_of_[v] != none) continue;
      slot_of_[v] = slots();
      slots_.push_back({.vertex = v, .distance = distance + 1});
    }
  }
  level_begin_ = end;
  return true;
}

std::uint32_t ShortestPaths::next_slot(const Slot& from, const Arc& arc) const {
  const std::uint32_t s = slot_of_[arc.to];
  if (s == none || slots_[s].distance + 1 != from.distance) return none;
  return slots_[s].distance == 0 || graph_->transit(arc.to) ? s : none;
}

// As deep as the path is long.
void ShortestPaths::resolve(std::uint32_t s) {
  const std::span<const Arc> arcs = graph_->out(slots_[s].vertex);
  for (const Arc& arc : arcs) {
    const std::uint32_t next = next_slot(slots_[s], arc);
    if (next != none && slots_[next].first_hop == none) resolve(next);
  }
  Slot& slot = slots_[s];
  // Parallel cables together can fill no more than the paths beyond them.
  width_.resize(slots_.size(), 0.0);
  slot.first_hop = static_cast<std::uint32_t>(hops_.size());
  for (const Arc& arc : arcs) {
    const std::uint32_t next = next_slot(slot, arc);
    if (next == none) continue;
    width_[next] += arc.bandwidth;
    hops_.push_back({arc.link, next, arc.bandwidth, arc.latency});
    slot.latency = std::max(slot.latency, arc.latency + slots_[next].latency);
  }
  slot.hops = static_cast<std::uint32_t>(hops_.size()) - slot.first_hop;
  const auto made = std::span(hops_).subspan(slot.first_hop, slot.hops);
  for (NextHop& hop : made) {
    hop.share *= std::min(1.0, slots_[hop.slot].capacity / width_[hop.slot]);
    slot.capacity += hop.share;
  }
  for (NextHop& hop : made) {
    hop.share /= slot.capacity;
    width_[hop.slot] = 0;
  }
  if (roots_ == 1) return;
  arrivals_.resize(slots_.size() * roots_, 0.0);
  for (const NextHop& hop : hops(slot)) {
    for (std::uint32_t root = 0; root < roots_; ++root) {
      arrivals_[std::size_t{s} * roots_ + root] += hop.share * arrival(hop.slot, root);
    }
  }
}

}  // namespace flyover::routing
