#include "pattern.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "flyover/base/error.hpp"
#include "flyover/routing/summit.hpp"
#include "mesh.hpp"

namespace flyover {

namespace {

// Takes the traffic of rings and chains inside domains without switches and gives every direct link
// its part.
class MeshSpreader {
 public:
  MeshSpreader(const Topology& topology, std::span<const std::uint32_t> ranks,
               const GroupShape& group) {
    for (const auto& positions : by_domain(group)) {
      std::vector<std::uint32_t> members;
      members.reserve(positions.size());
      for (const std::uint32_t position : positions) members.push_back(ranks[position]);
      std::vector<DirectPair> pairs = direct_pairs(topology, members);
      if (!pairs.empty()) {
        traffic_.emplace(group.domain[positions.front()], Domain{std::move(pairs), 0.0});
      }
    }
  }

  bool absorb(const GroupShape& group, const EdgeLoad& edge) {
    if (traffic_.empty() || group.domain[edge.from] != group.domain[edge.to]) return false;
    const auto found = traffic_.find(group.domain[edge.from]);
    if (found == traffic_.end()) return false;
    found->second.fraction += edge.fraction;
    return true;
  }

  // The longest latency of a wire in use.
  Duration release(const Router& router, LoadMap& load) const {
    Duration longest{};
    for (const auto& [domain, traffic] : traffic_) {
      for (const DirectPair& pair : traffic.pairs) {
        const PathInfo path =
            router.add_route(load, pair.from, pair.to, traffic.fraction * pair.share);
        longest = std::max(longest, path.latency);
      }
    }
    return longest;
  }

 private:
  struct Domain {
    std::vector<DirectPair> pairs;
    double fraction = 0;
  };
  std::map<std::uint32_t, Domain> traffic_;
};

// Who hands a ring's bytes to the network, by domain and rail: the first member there.
class RailExits {
 public:
  explicit RailExits(const GroupShape& group) {
    for (std::uint32_t i = 0; i < group.ranks(); ++i) {
      exits_.try_emplace({group.domain[i], group.rail[i]}, i);
    }
  }

  [[nodiscard]] std::uint32_t towards(const GroupShape& group, const EdgeLoad& edge) const {
    if (group.domain[edge.from] == group.domain[edge.to]) return edge.from;
    if (group.rail[edge.from] == group.rail[edge.to]) return edge.from;
    const auto found = exits_.find({group.domain[edge.from], group.rail[edge.to]});
    return found == exits_.end() ? edge.from : found->second;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> exits_;
};

// What members hand to the switches of the network, and get from them, by channel. Switches add up
// what meets in them and send copies: a cable between two of them carries each byte once, however
// many members are behind it.
class NetworkTraffic {
 public:
  void add(const EdgeLoad& edge, std::uint32_t ranks) {
    const bool up = edge.from < ranks;
    (up ? up_ : down_)[edge.channel].push_back({up ? edge.from : edge.to, edge.fraction});
  }

  // Returns the longest latency from a member to the summit or back.
  Duration release(const Topology& topology, const Router& router,
                   std::span<const std::uint32_t> ranks, const GroupShape& group,
                   LoadMap& load) const {
    Duration longest{};
    for (const bool up : {true, false}) {
      for (const auto& [channel, members] : up ? up_ : down_) {
        std::map<LinkId, double> trunks;
        for (const Member& member : members) {
          const std::uint32_t other = ranks[partner(members, group, member.rank)];
          const std::uint32_t from = up ? ranks[member.rank] : other;
          const std::uint32_t to = up ? other : ranks[member.rank];
          const SummitCut cut =
              cut_at_summit(topology, router.route(from, to, channel), topology.node_of_rank(from));
          const Route& part = up ? cut.up : cut.down;
          longest = std::max(longest, part.latency);
          for (const Hop& hop : part.hops) {
            const double amount = member.fraction * hop.share;
            if (is_trunk(topology, hop.link)) {
              trunks[hop.link] = std::max(trunks[hop.link], amount);
            } else {
              load.add(hop.link, amount);
            }
          }
        }
        for (const auto& [link, amount] : trunks) load.add(link, amount);
      }
    }
    return longest;
  }

 private:
  struct Member {
    std::uint32_t rank;
    double fraction;
  };

  // Whom a route to the summit leads towards: the first member, and from its domain the last.
  static std::uint32_t partner(const std::vector<Member>& members, const GroupShape& group,
                               std::uint32_t rank) {
    const std::uint32_t first = members.front().rank;
    return group.domain[rank] == group.domain[first] ? members.back().rank : first;
  }

  std::map<std::uint16_t, std::vector<Member>> up_;
  std::map<std::uint16_t, std::vector<Member>> down_;
};

}  // namespace

Pattern trace_pattern(const Topology& topology, const Router& router, LoadMap& scratch,
                      std::span<const std::uint32_t> ranks, const CollectiveShape& shape,
                      const Algorithm& algorithm, const PatternOptions& options) {
  const Summary summary = algorithm.summarise(shape);
  require(summary.ranks == ranks.size(), "a summary has the group's ranks");

  Pattern pattern;
  pattern.steps = summary.steps;
  pattern.domain_hops = summary.intra_hops;
  pattern.network_hops = summary.inter_hops;

  const bool spread = options.mesh_rings &&
                      (algorithm.id == AlgorithmId::Ring || algorithm.id == AlgorithmId::Tree);
  MeshSpreader spreader(topology, spread ? ranks : std::span<const std::uint32_t>{},
                        spread ? shape.group : GroupShape{});

  const bool exit_by_rail = options.rail_rings && algorithm.id == AlgorithmId::Ring;
  const RailExits exits(exit_by_rail ? shape.group : GroupShape{});

  std::vector<std::uint32_t> domain_peers(ranks.size());
  std::vector<std::uint32_t> network_peers(ranks.size());
  NetworkTraffic network;
  std::vector<double> up(ranks.size());  // Into the switches of a domain, over all channels.
  std::vector<double> down(ranks.size());
  double network_latency = 0;
  std::uint64_t network_edges = 0;
  for (const EdgeLoad& edge : summary.edges) {
    const bool from_relay = edge.from >= summary.ranks;
    const bool to_relay = edge.to >= summary.ranks;
    require(!(from_relay && to_relay), "switches do not talk to each other");
    const auto in_network = [&](std::uint32_t relay) {
      return summary.relay_domain[relay - summary.ranks] == network_relay;
    };
    if ((from_relay && in_network(edge.from)) || (to_relay && in_network(edge.to))) {
      network.add(edge, summary.ranks);
      pattern.sharp = true;
      continue;
    }
    if (from_relay) {
      down[edge.to] += edge.fraction;
      continue;
    }
    if (to_relay) {
      up[edge.from] += edge.fraction;
      continue;
    }
    if (spreader.absorb(shape.group, edge)) continue;
    const std::uint32_t from = exit_by_rail ? exits.towards(shape.group, edge) : edge.from;
    const PathInfo path =
        router.add_route(scratch, ranks[from], ranks[edge.to], edge.fraction, edge.channel);
    pattern.longest_latency = std::max(pattern.longest_latency, path.latency);
    if (shape.group.domain[edge.from] == shape.group.domain[edge.to]) {
      ++domain_peers[edge.from];
    } else {
      ++network_peers[edge.from];
      ++network_edges;
      network_latency += static_cast<double>(path.latency.count());
    }
  }
  pattern.longest_latency = std::max(pattern.longest_latency, spreader.release(router, scratch));
  const Duration climb = network.release(topology, router, ranks, shape.group, scratch);
  pattern.longest_latency = std::max(pattern.longest_latency, climb);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto add = [&](const Route& route, double fraction) {
      scratch.add(route, fraction);
      pattern.longest_latency = std::max(pattern.longest_latency, route.latency);
    };
    if (up[i] > 0) add(router.to_switch(ranks[i]), up[i]);
    if (down[i] > 0) add(router.from_switch(ranks[i]), down[i]);
  }
  pattern.payload = scratch.take();
  std::erase_if(pattern.payload, [](const Hop& hop) { return hop.share <= 0; });

  pattern.domain_messages = *std::ranges::max_element(domain_peers);
  pattern.network_messages = *std::ranges::max_element(network_peers);
  if (climb > Duration{}) pattern.mean_network_latency = climb;
  if (network_edges > 0) {
    pattern.mean_network_latency =
        Duration{static_cast<Duration::rep>(network_latency / static_cast<double>(network_edges))};
  }
  return pattern;
}

}  // namespace flyover
