#include "rail.hpp"

#include <algorithm>
#include <span>

namespace flyover::routing {

namespace {

using Ports = std::span<const std::uint32_t>;

void normalise(std::vector<Lane>& lanes) {
  double total = 0;
  for (const Lane& lane : lanes) total += lane.share;
  for (Lane& lane : lanes) lane.share /= total;
}

// Pairs of ports on one rail, by the narrower of the two.
bool match_rails(Cluster& cluster, Ports from, Ports to, std::vector<Lane>& lanes) {
  lanes.clear();
  for (const std::uint32_t a : from) {
    for (const std::uint32_t b : to) {
      if (cluster.port(a).rail != cluster.port(b).rail || !cluster.network().joined(a, b)) continue;
      lanes.push_back({a, b, std::min(cluster.port(a).bandwidth, cluster.port(b).bandwidth)});
    }
  }
  if (lanes.size() == 1) {
    lanes.front().share = 1;
  } else {
    normalise(lanes);
  }
  return !lanes.empty();
}

// Lays the ports of both ends side by side, each as wide as its share of its end's bandwidth; where
// two overlap they are a pair.
bool spread(Cluster& cluster, Ports from, Ports to, std::vector<Lane>& lanes) {
  lanes.clear();
  const auto width = [&](Ports ports) {
    double sum = 0;
    for (const std::uint32_t p : ports) sum += cluster.port(p).bandwidth;
    return sum;
  };
  const double from_width = width(from), to_width = width(to);
  std::size_t a = 0, b = 0;
  double a_end = 0, b_end = 0, done = 0;
  if (!from.empty()) a_end = cluster.port(from[0]).bandwidth / from_width;
  if (!to.empty()) b_end = cluster.port(to[0]).bandwidth / to_width;
  while (a < from.size() && b < to.size()) {
    const double end = std::min(a_end, b_end);
    // Ends that differ by rounding alone are one.
    constexpr double rounding = 1e-12;
    if (end - done > rounding && cluster.network().joined(from[a], to[b])) {
      lanes.push_back({from[a], to[b], end - done});
    }
    done = end;
    const bool a_done = a_end - end <= rounding, b_done = b_end - end <= rounding;
    if (a_done && ++a < from.size()) a_end += cluster.port(from[a]).bandwidth / from_width;
    if (b_done && ++b < to.size()) b_end += cluster.port(to[b]).bandwidth / to_width;
  }
  normalise(lanes);
  return !lanes.empty();
}

bool by_scale_up(Cluster& cluster, std::uint32_t site, std::uint32_t from, std::uint32_t to) {
  const LocalPath& path = cluster.interior(site).between(from, to);
  return path.exists && path.kind == PathKind::ScaleUp && !path.relayed;
}

bool relay_to_rail(Cluster& cluster, RankPlace from, Ports own, Ports to,
                   std::vector<Lane>& lanes) {
  if (to.empty()) return false;
  const auto relays = cluster.interior(from.site).gpus_on_rail(cluster.port(to[0]).rail);
  for (std::size_t k = 0; k < relays.size(); ++k) {
    // GPUs that share a NIC take turns.
    const std::uint32_t relay = relays[(from.gpu + k) % relays.size()];
    if (relay == from.gpu || !by_scale_up(cluster, from.site, from.gpu, relay)) continue;
    const Ports others = cluster.ports({from.site, relay});
    if (!own.empty() && cluster.port(own[0]).target == cluster.port(others[0]).target) continue;
    if (!match_rails(cluster, others, to, lanes)) continue;
    for (Lane& lane : lanes) lane.from_relay = relay;
    return true;
  }
  return false;
}

// The GPUs that could stand in for one at its end of the network: itself first, then those of its
// node that it reaches over scale-up links, starting from its own index so that they take turns.
std::vector<std::uint32_t> stand_ins(Cluster& cluster, RankPlace place) {
  const auto n = static_cast<std::uint32_t>(cluster.interior(place.site).gpus().size());
  std::vector<std::uint32_t> gpus{place.gpu};
  for (std::uint32_t k = 1; k < n; ++k) {
    const std::uint32_t g = (place.gpu + k) % n;
    if (by_scale_up(cluster, place.site, place.gpu, g) &&
        by_scale_up(cluster, place.site, g, place.gpu)) {
      gpus.push_back(g);
    }
  }
  return gpus;
}

bool relay_anywhere(Cluster& cluster, RankPlace from, RankPlace to, std::vector<Lane>& lanes) {
  const std::vector<std::uint32_t> senders = stand_ins(cluster, from);
  const std::vector<std::uint32_t> receivers = stand_ins(cluster, to);
  for (const std::size_t relays : {1U, 2U}) {
    for (std::size_t s = 0; s < senders.size(); ++s) {
      for (std::size_t r = 0; r < receivers.size(); ++r) {
        if ((s > 0 ? 1U : 0U) + (r > 0 ? 1U : 0U) != relays) continue;
        const Ports out = cluster.ports({from.site, senders[s]});
        const Ports in = cluster.ports({to.site, receivers[r]});
        if (!match_rails(cluster, out, in, lanes) && !spread(cluster, out, in, lanes)) continue;
        for (Lane& lane : lanes) {
          if (s > 0) lane.from_relay = senders[s];
          if (r > 0) lane.to_relay = receivers[r];
        }
        return true;
      }
    }
  }
  return false;
}

// A sender that has lost its own NICs reaches another GPU's over that GPU, rather than over PCIe.
void hand_over(Cluster& cluster, RankPlace from, std::vector<Lane>& lanes) {
  Interior& interior = cluster.interior(from.site);
  if (!interior.use(from.gpu).displaced) return;
  for (Lane& lane : lanes) {
    if (lane.from_relay != none) continue;
    const auto owner = interior.owner(cluster.local(from.site, lane.from_port), from.gpu);
    if (owner) lane.from_relay = *owner;
  }
}

}  // namespace

void choose_lanes(Cluster& cluster, RankPlace from, RankPlace to, bool pxn,
                  std::vector<Lane>& lanes) {
  const Ports out = cluster.ports(from), in = cluster.ports(to);
  const bool found = match_rails(cluster, out, in, lanes) ||
                     (pxn && relay_to_rail(cluster, from, out, in, lanes)) ||
                     spread(cluster, out, in, lanes) ||
                     (pxn && relay_anywhere(cluster, from, to, lanes));
  if (found && pxn) hand_over(cluster, from, lanes);
}

}  // namespace flyover::routing
