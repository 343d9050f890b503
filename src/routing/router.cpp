#include "flyover/routing/router.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster.hpp"
#include "flyover/base/error.hpp"
#include "rail.hpp"

namespace flyover {

using routing::Cluster;
using routing::Interior;
using routing::Lane;
using routing::LocalPath;
using routing::RankPlace;

struct Router::Impl {
  Cluster cluster;
  RouterOptions options;
  // What enters where on its way to which target, numbered.
  using Sprayed = std::vector<std::pair<std::uint64_t, double>>;
  std::map<Sprayed, std::uint32_t> sprayed;
  std::vector<Lane> lanes;  // Scratch.
  LoadMap scratch;

  Impl(const Topology& topology, RouterOptions chosen)
      : cluster(topology),
        options(chosen),
        scratch(topology.links.size()) {}

  [[nodiscard]] std::string name(std::uint32_t rank) const {
    return vertex_name(cluster.topology(), cluster.topology().gpus[rank]);
  }
  [[noreturn]] void fail(std::uint32_t from, std::uint32_t to, std::string_view reason) const {
    throw SimulationError(fmt::format("{} and {} cannot talk: {}", name(from), name(to), reason));
  }
  void check_rank(std::uint32_t rank) const {
    require(rank < cluster.topology().gpus.size(), "a rank that the topology has");
  }
  void check_up(std::uint32_t from, std::uint32_t to) const {
    for (const std::uint32_t rank : {from, to}) {
      if (!cluster.topology().vertices[cluster.topology().gpus[rank]].up) {
        fail(from, to, fmt::format("{} is out of service", name(rank)));
      }
    }
  }

  // Between nodes; and between GPUs of one node that nothing inside joins, when both are cabled to
  // the fabric themselves. NICs never carry what stays in a node.
  bool over_network(std::uint32_t from, std::uint32_t to) {
    const RankPlace a = cluster.place(from), b = cluster.place(to);
    if (a.site != b.site) return true;
    if (cluster.interior(a.site).between(a.gpu, b.gpu).exists) return false;
    const auto is_own_port = [this](std::uint32_t rank, RankPlace place) {
      const auto nics = cluster.nics(place);
      return !nics.empty() && nics[0] == cluster.topology().gpus[rank];
    };
    return is_own_port(from, a) && is_own_port(to, b);
  }
  const LocalPath& inside(std::uint32_t from, std::uint32_t to) {
    const RankPlace a = cluster.place(from), b = cluster.place(to);
    const LocalPath& path = cluster.interior(a.site).between(a.gpu, b.gpu);
    if (!path.exists) {
      check_up(from, to);
      fail(from, to, "inside their node neither scale-up links nor PCIe in service join them");
    }
    return path;
  }

  void add_local(LoadMap& load, std::uint32_t site, const LocalPath& path, double bytes) const {
    const routing::SiteLinks links = cluster.links(site);
    for (const routing::LocalHop& hop : path.hops) load.add(links[hop.link], bytes * hop.share);
  }

  PathInfo add(LoadMap& load, std::uint32_t from, std::uint32_t to, double bytes,
               std::uint64_t flow);
  void choose(std::uint32_t from, std::uint32_t to);
  PathInfo add_lane(LoadMap& load, RankPlace from, RankPlace to, const Lane& lane, double bytes,
                    std::uint64_t flow);
  Route reduction(std::uint32_t rank, const LocalPath& path) const;
};

// Fills `lanes`, or says why there are none.
void Router::Impl::choose(std::uint32_t from, std::uint32_t to) {
  const RankPlace a = cluster.place(from), b = cluster.place(to);
  check_up(from, to);
  routing::choose_lanes(cluster, a, b, options.pxn, lanes);
  if (!lanes.empty()) return;
  std::string reason;
  for (const auto& [rank, place] : {std::pair(from, a), std::pair(to, b)}) {
    if (reason.empty() && cluster.ports(place).empty()) {
      reason = fmt::format("{} reaches no NIC that is in service", name(rank));
    }
  }
  if (reason.empty()) {
    const std::uint32_t out = cluster.port(cluster.ports(a)[0]).rail;
    const std::uint32_t in = cluster.port(cluster.ports(b)[0]).rail;
    const auto nic_name = [&](RankPlace place) {
      return vertex_name(cluster.topology(), cluster.nics(place)[0]);
    };
    reason = fmt::format("no path in service leads from {} (rail {}) to {} (rail {})", nic_name(a),
                         out, nic_name(b), in);
    if (out != in) reason += "; the rails are not joined";
  }
  if (!options.pxn) {
    routing::choose_lanes(cluster, a, b, true, lanes);
    if (!lanes.empty()) reason += ", so another GPU must relay: PXN is needed (NCCL_PXN_DISABLE=0)";
  }
  fail(from, to, reason);
}

PathInfo Router::Impl::add_lane(LoadMap& load, RankPlace from, RankPlace to, const Lane& lane,
                                double bytes, std::uint64_t flow) {
  PathInfo info =
      cluster.network().add(load, load.pending_, lane.from_port, lane.to_port, bytes, flow);
  const auto cross = [&](std::uint32_t site, const LocalPath& path) {
    add_local(load, site, path, bytes);
    info.latency += path.latency;
  };
  Interior& sender = cluster.interior(from.site);
  std::uint32_t gpu = from.gpu;
  if (lane.from_relay != routing::none) {
    cross(from.site, sender.between(gpu, lane.from_relay));
    gpu = lane.from_relay;
    info.relayed = true;
  }
  cross(from.site, sender.to_port(gpu, cluster.local(from.site, lane.from_port)));

  Interior& receiver = cluster.interior(to.site);
  gpu = to.gpu;
  if (lane.to_relay != routing::none) {
    cross(to.site, receiver.between(lane.to_relay, gpu));
    gpu = lane.to_relay;
    info.relayed = true;
  }
  cross(to.site, receiver.from_port(cluster.local(to.site, lane.to_port), gpu));
  return info;
}

PathInfo Router::Impl::add(LoadMap& load, std::uint32_t from, std::uint32_t to, double bytes,
                           std::uint64_t flow) {
  check_rank(from);
  check_rank(to);
  if (from == to) return {};
  const RankPlace a = cluster.place(from), b = cluster.place(to);
  if (!over_network(from, to)) {
    const LocalPath& path = inside(from, to);
    add_local(load, a.site, path, bytes);
    return {.latency = path.latency, .kind = path.kind, .relayed = path.relayed};
  }
  choose(from, to);
  PathInfo info{.kind = PathKind::Network};
  for (const Lane& lane : lanes) {
    const PathInfo part = add_lane(load, a, b, lane, bytes * lane.share, flow);
    info.latency = std::max(info.latency, part.latency);
    info.switch_hops = std::max(info.switch_hops, part.switch_hops);
    info.relayed = info.relayed || part.relayed;
  }
  return info;
}

Route Router::Impl::reduction(std::uint32_t rank, const LocalPath& path) const {
  if (!path.exists) {
    throw SimulationError(fmt::format(
        "{} cannot reduce in its node's switches: no switch in service reaches every GPU",
        name(rank)));
  }
  Route route{{.latency = path.latency, .kind = path.kind}, {}};
  const routing::SiteLinks links = cluster.links(cluster.place(rank).site);
  for (const routing::LocalHop& hop : path.hops) route.hops.push_back({links[hop.link], hop.share});
  return route;
}

Router::Router(const Topology& topology, RouterOptions options)
    : impl_(std::make_unique<Impl>(topology, options)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;

Route Router::route(std::uint32_t from, std::uint32_t to, std::uint64_t flow) const {
  const PathInfo info = add_route(impl_->scratch, from, to, 1.0, flow);
  return {info, impl_->scratch.take()};
}

RouteOutline Router::outline(std::uint32_t from, std::uint32_t to, std::uint64_t flow) const {
  LoadMap& load = impl_->scratch;
  RouteOutline outline{add_route(load, from, to, 1.0, flow), {}, 0};
  for (const LinkId link : load.touched_) {
    if (load.load_[index(link)] == 0) continue;
    outline.hops.push_back({link, load.load_[index(link)]});
    load.load_[index(link)] = 0;
  }
  load.touched_.clear();
  Impl::Sprayed sprayed(load.pending_.begin(), load.pending_.end());
  load.pending_.clear();
  std::ranges::sort(sprayed);
  const auto next = static_cast<std::uint32_t>(impl_->sprayed.size());
  outline.sprayed = impl_->sprayed.try_emplace(std::move(sprayed), next).first->second;
  return outline;
}

PathInfo Router::add_route(LoadMap& load, std::uint32_t from, std::uint32_t to, double bytes,
                           std::uint64_t flow) const {
  require(load.router_ == nullptr || load.router_ == this || load.pending_.empty(),
          "one router per load map");
  load.router_ = this;
  return impl_->add(load, from, to, bytes, flow);
}

void Router::settle(LoadMap& load) const {
  impl_->cluster.network().settle(load, load.pending_);
}

Route Router::to_switch(std::uint32_t rank) const {
  impl_->check_rank(rank);
  const RankPlace place = impl_->cluster.place(rank);
  return impl_->reduction(rank, impl_->cluster.interior(place.site).to_switches(place.gpu));
}

Route Router::from_switch(std::uint32_t rank) const {
  impl_->check_rank(rank);
  const RankPlace place = impl_->cluster.place(rank);
  return impl_->reduction(rank, impl_->cluster.interior(place.site).from_switches(place.gpu));
}

bool Router::has_in_switch_reduction(std::uint32_t rank) const {
  impl_->check_rank(rank);
  const Topology& topology = impl_->cluster.topology();
  const NodeId node = topology.node_of_rank(rank);
  const RankPlace place = impl_->cluster.place(rank);
  return node != no_node && topology.nodes[node].in_switch_reduction &&
         impl_->cluster.interior(place.site).to_switches(place.gpu).exists;
}

std::span<const VertexId> Router::nics(std::uint32_t rank) const {
  impl_->check_rank(rank);
  return impl_->cluster.nics(impl_->cluster.place(rank));
}

std::uint32_t Router::rail(std::uint32_t rank) const {
  impl_->check_rank(rank);
  const RankPlace place = impl_->cluster.place(rank);
  const auto ports = impl_->cluster.ports(place);
  return ports.empty() ? place.gpu : impl_->cluster.port(ports[0]).rail;
}

PathKind Router::path_kind(std::uint32_t from, std::uint32_t to) const {
  impl_->check_rank(from);
  impl_->check_rank(to);
  if (from == to) return PathKind::Self;
  if (impl_->over_network(from, to)) return PathKind::Network;
  return impl_->inside(from, to).kind;
}

}  // namespace flyover
