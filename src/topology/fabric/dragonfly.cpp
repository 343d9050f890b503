// Kim et al., Technology-Driven, Highly-Scalable Dragonfly Topology (ISCA 2008): groups of a
// routers, fully joined inside; p hosts and h global cables per router; up to a h + 1 groups.

#include <algorithm>

#include <fmt/format.h>

#include "../graph.hpp"
#include "fabric.hpp"
#include "flyover/base/error.hpp"

namespace flyover {

namespace {

struct Shape {
  std::uint64_t p = 0, a = 0, h = 0;

  [[nodiscard]] std::uint64_t ports() const { return p + a - 1 + h; }
  [[nodiscard]] std::uint64_t most_groups() const { return a * h + 1; }
  [[nodiscard]] std::uint64_t hosts() const { return p * a * most_groups(); }
};

// As asked, or the smallest balanced shape (a = 2p = 2h) that holds all NICs.
Shape shape_of(const FabricSpec& spec, std::uint64_t hosts) {
  Shape shape{spec.router_hosts, spec.group_routers, spec.router_globals};
  if (shape.p == 0 && shape.a == 0 && shape.h == 0) {
    do {
      ++shape.p;
      shape.a = 2 * shape.p;
      shape.h = shape.p;
    } while (shape.hosts() < hosts);
  }
  if (shape.p == 0 || shape.a == 0 || shape.h == 0) {
    refuse_fabric(spec,
                  "give all of hosts per router, routers per group and globals per router, "
                  "or none");
  }
  if (shape.ports() > spec.radix) {
    refuse_fabric(spec,
                  fmt::format("a router needs {} hosts + {} local + {} global = {} ports, but "
                              "a switch has {}",
                              shape.p, shape.a - 1, shape.h, shape.ports(), spec.radix));
  }
  if (shape.hosts() < hosts) {
    refuse_fabric(spec,
                  fmt::format("{} NICs do not fit: {} groups of {} routers with {} hosts hold "
                              "{}",
                              hosts, shape.most_groups(), shape.a, shape.p, shape.hosts()));
  }
  return shape;
}

}  // namespace

void join_dragonfly(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  const Shape shape = shape_of(spec, nics.size());
  const std::uint64_t groups = (nics.size() + shape.p * shape.a - 1) / (shape.p * shape.a);

  std::vector<VertexId> routers;
  for (std::uint64_t r = 0; r < groups * shape.a; ++r) {
    const auto group = static_cast<std::uint32_t>(r / shape.a);
    routers.push_back(add_vertex(topology, {.kind = VertexKind::Leaf,
                                            .index = static_cast<std::uint32_t>(r),
                                            .rail = group,
                                            .unit = group}));
  }
  for (std::size_t i = 0; i < nics.size(); ++i) {
    connect(
        topology, nics[i].nic, routers[i / shape.p],
        {.kind = LinkKind::HostLeaf, .bandwidth = nics[i].bandwidth, .latency = spec.link_latency});
  }
  Cable cable{
      .kind = LinkKind::Local, .bandwidth = spec.link_bandwidth, .latency = spec.link_latency};
  for (std::uint64_t g = 0; g < groups; ++g) {
    for (std::uint64_t i = 0; i < shape.a; ++i) {
      for (std::uint64_t j = i + 1; j < shape.a; ++j) {
        connect(topology, routers[g * shape.a + i], routers[g * shape.a + j], cable);
      }
    }
  }
  if (groups < 2) return;

  // Every pair of groups gets an equal share of the global ports; what is left over goes round the
  // ring of groups. Ports are used in order, so a group's cables are spread over its routers.
  cable.kind = LinkKind::Global;
  std::vector<std::uint64_t> used(groups, 0);
  const auto join_groups = [&](std::uint64_t from, std::uint64_t to) {
    const auto router = [&](std::uint64_t group) {
      return routers[group * shape.a + used[group]++ / shape.h];
    };
    const VertexId a = router(from);
    const VertexId b = router(to);
    connect(topology, a, b, cable);
  };
  const auto join_at_distance = [&](std::uint64_t distance) {
    const bool opposite = 2 * distance == groups;  // Each pair would be met twice.
    for (std::uint64_t g = 0; g < (opposite ? groups / 2 : groups); ++g) {
      join_groups(g, (g + distance) % groups);
    }
  };
  const std::uint64_t each = shape.a * shape.h / (groups - 1);
  for (std::uint64_t round = 0; round < each; ++round) {
    for (std::uint64_t d = 1; d <= groups / 2; ++d) join_at_distance(d);
  }
  const std::uint64_t rest = shape.a * shape.h % (groups - 1);
  for (std::uint64_t d = 1; d <= rest / 2; ++d) join_at_distance(d);
  if (rest % 2 == 1 && groups % 2 == 0) join_at_distance(groups / 2);
}

}  // namespace flyover
