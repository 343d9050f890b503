#include "network.hpp"

#include <algorithm>
#include <utility>

#include "ecmp.hpp"
#include "flyover/base/error.hpp"

namespace flyover::routing {

namespace {

// What the searches towards all destinations may keep. A big torus has one destination per router;
// the others stay far below.
constexpr std::size_t paths_budget = std::size_t{256} << 20;

std::uint64_t pending_key(std::uint32_t target, std::uint32_t vertex) {
  return std::uint64_t{target} << 32 | vertex;
}

}  // namespace

Network::Network(const Topology& topology) : topology_(topology), fabric_(topology) {
  if (topology.routing == RoutingPolicy::DimensionOrder)
    dimension_order_.emplace(topology, fabric_);
  paths_.resize(fabric_.targets());
}

ShortestPaths& Network::paths_to(std::uint32_t target) {
  std::optional<ShortestPaths>& paths = paths_[target];
  if (!paths) {
    // They grow as they are asked, so all are weighed, but only now and then.
    if (kept_.size() % 64 == 0) {
      std::size_t memory = 0;
      for (const std::uint32_t kept : kept_) memory += paths_[kept]->memory();
      if (memory > paths_budget) {
        for (const std::uint32_t kept : kept_) paths_[kept].reset();
        kept_.clear();
      }
    }
    kept_.push_back(target);
    paths.emplace(fabric_.graph(), fabric_.roots(target));
  }
  return *paths;
}

bool Network::joined(std::uint32_t from, std::uint32_t to) {
  const Port& a = fabric_.ports()[from];
  const Port& b = fabric_.ports()[to];
  if (!a.usable || !b.usable) return false;
  ShortestPaths& paths = paths_to(b.target);
  if (a.self != none) return paths.find(a.self) != none;
  return std::ranges::any_of(a.up, [&](const Arc& cable) { return paths.find(cable.to) != none; });
}

// The entries at the least distance.
void Network::find_entries(const Port& from, ShortestPaths& paths) {
  entries_.clear();
  if (from.self != none) {
    entries_.push_back({nullptr, paths.find(from.self)});
    return;
  }
  for (const Arc& cable : from.up) {
    const std::uint32_t slot = paths.find(cable.to);
    if (slot == none) continue;
    if (!entries_.empty()) {
      const std::uint32_t least = paths.distance(entries_.front().slot);
      if (paths.distance(slot) > least) continue;
      if (paths.distance(slot) < least) entries_.clear();
    }
    entries_.push_back({&cable, slot});
  }
}

PathInfo Network::add(LoadMap& load, Pending& pending, std::uint32_t from, std::uint32_t to,
                      double bytes, std::uint64_t flow) {
  const Port& a = fabric_.ports()[from];
  const Port& b = fabric_.ports()[to];
  if (topology_.routing == RoutingPolicy::Adaptive) return add_sprayed(load, pending, a, b, bytes);
  const std::uint64_t key = flow_key(topology_.routing_seed, a.vertex, b.vertex, flow);
  PathInfo info{.kind = PathKind::Network};
  if (dimension_order_ && add_in_dimension_order(load, a, b, bytes, key, info)) return info;
  return add_hashed(load, a, b, bytes, key);
}

PathInfo Network::add_sprayed(LoadMap& load, Pending& pending, const Port& from, const Port& to,
                              double bytes) {
  ShortestPaths& paths = paths_to(to.target);
  find_entries(from, paths);
  require(!entries_.empty(), "ports that are joined");
  const auto weight = [&](const Entry& entry) {
    return entry.cable == nullptr
               ? 1.0
               : std::min(entry.cable->bandwidth, paths.slot(entry.slot).capacity);
  };
  double total = 0;
  for (const Entry& entry : entries_) total += weight(entry);

  PathInfo info{.kind = PathKind::Network};
  for (Entry& entry : entries_) {
    entry.amount = bytes * (weight(entry) / total);
    const ShortestPaths::Slot& slot = paths.slot(entry.slot);
    Duration latency = slot.latency;
    if (entry.cable != nullptr) {
      load.add(LinkId{entry.cable->link}, entry.amount);
      latency += entry.cable->latency;
    }
    info.latency = std::max(info.latency, latency);
    if (slot.distance > 0) pending[pending_key(to.target, slot.vertex)] += entry.amount;
  }
  std::uint32_t links = paths.distance(entries_.front().slot);
  if (entries_.front().cable != nullptr) ++links;
  if (to.self == none) {
    ++links;
    info.latency += add_down(load, paths, to);
  }
  info.switch_hops = links - 1;
  return info;
}

// Each root has its own cables down to the port; several of one root share by their width.
Duration Network::add_down(LoadMap& load, const ShortestPaths& paths, const Port& to) {
  Duration latency{};
  const auto roots = fabric_.roots(to.target);
  for (std::uint32_t root = 0; root < roots.size(); ++root) {
    double amount = 0, width = 0;
    for (const Entry& entry : entries_) amount += entry.amount * paths.arrival(entry.slot, root);
    if (amount == 0) continue;
    for (const Arc& cable : to.down) width += cable.from == roots[root] ? cable.bandwidth : 0;
    for (const Arc& cable : to.down) {
      if (cable.from != roots[root]) continue;
      load.add(LinkId{cable.link}, amount * (cable.bandwidth / width));
      latency = std::max(latency, cable.latency);
    }
  }
  return latency;
}

PathInfo Network::add_hashed(LoadMap& load, const Port& from, const Port& to, double bytes,
                             std::uint64_t key) {
  ShortestPaths& paths = paths_to(to.target);
  find_entries(from, paths);
  require(!entries_.empty(), "ports that are joined");
  PathInfo info{.kind = PathKind::Network};
  std::uint32_t links = 0;
  const auto pass = [&](std::uint32_t link, Duration latency) {
    load.add(LinkId{link}, bytes);
    info.latency += latency;
    ++links;
  };
  const Entry& entry = entries_[choice(hop_key(key, index(from.vertex)), entries_.size())];
  if (entry.cable != nullptr) pass(entry.cable->link, entry.cable->latency);
  std::uint32_t s = entry.slot;
  while (paths.distance(s) > 0) {
    const ShortestPaths::Slot& slot = paths.slot(s);
    const auto hops = paths.hops(slot);
    const ShortestPaths::NextHop& hop =
        hops[choice(hop_key(key, index(fabric_.vertex(slot.vertex))), hops.size())];
    pass(hop.link, hop.latency);
    s = hop.slot;
  }
  if (to.self == none) {
    const std::uint32_t root = paths.slot(s).vertex;
    const Arc* cable = pick(to.down, hop_key(key, index(fabric_.vertex(root))),
                            [root](const Arc& arc) { return arc.from == root; });
    pass(cable->link, cable->latency);
  }
  info.switch_hops = links - 1;
  return info;
}

// From the router of the sender's cable to that of the receiver's, of several the ones that `key`
// picks.
bool Network::add_in_dimension_order(LoadMap& load, const Port& from, const Port& to, double bytes,
                                     std::uint64_t key, PathInfo& info) {
  const auto any = [](const Arc&) { return true; };
  const Arc* up = pick(from.up, hop_key(key, index(from.vertex)), any);
  const Arc* down = pick(to.down, hop_key(key, index(to.vertex)), any);
  if (!dimension_order_->find(up == nullptr ? from.self : up->to,
                              down == nullptr ? to.self : down->from, key, torus_path_)) {
    return false;
  }
  std::uint32_t links = 0;
  const auto pass = [&](const Arc& arc) {
    load.add(LinkId{arc.link}, bytes);
    info.latency += arc.latency;
    ++links;
  };
  if (up != nullptr) pass(*up);
  for (const Arc& arc : torus_path_) pass(arc);
  if (down != nullptr) pass(*down);
  info.switch_hops = links - 1;
  return true;
}

void Network::settle(LoadMap& load, Pending& pending) {
  std::vector<std::pair<std::uint64_t, double>> entries(pending.begin(), pending.end());
  pending.clear();
  std::ranges::sort(entries);
  for (std::size_t i = 0; i < entries.size();) {
    const auto target = static_cast<std::uint32_t>(entries[i].first >> 32);
    ShortestPaths& paths = paths_to(target);
    for (; i < entries.size() && entries[i].first >> 32 == target; ++i) {
      const std::uint32_t slot = paths.find(static_cast<std::uint32_t>(entries[i].first));
      if (amounts_.size() <= slot) amounts_.resize(slot + 1, 0.0);
      amounts_[slot] += entries[i].second;
    }
    spray(paths, amounts_,
          [&](std::uint32_t link, double amount) { load.add(LinkId{link}, amount); });
    amounts_.clear();
  }
}

}  // namespace flyover::routing
