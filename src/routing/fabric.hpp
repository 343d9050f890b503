#pragma once

// The network between nodes as the router sees it: its switches, and the ports (NICs, and GPUs that
// are cabled to it themselves) at its edge.

#include <cstdint>
#include <span>
#include <vector>

#include "digraph.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::routing {

// The link, its far and near ends are in service and it can carry something.
[[nodiscard]] bool in_service(const Topology& topology, const Link& link);
[[nodiscard]] bool is_scale_up(const Topology& topology, const Link& link);
// A cable between nodes or to a fabric switch, as opposed to one inside a node.
[[nodiscard]] bool is_network(const Topology& topology, const Link& link);

struct Port {
  VertexId vertex{};
  std::uint32_t rail = 0;
  bool usable = false;  // In service, with a cable in service each way.
  // A router of a torus, or cabled back to back: its own vertex in the fabric graph, and no cables
  // besides. Otherwise none.
  std::uint32_t self = none;
  std::uint32_t target =
      none;                   // The number of the set of fabric vertices that its cables come from.
  double bandwidth = 0;       // Of all its cables out.
  std::span<const Arc> up{};  // From the port's number to a fabric vertex.
  std::span<const Arc> down{};  // From a fabric vertex to the port's number.
};

class Fabric {
 public:
  explicit Fabric(const Topology& topology);

  // Links in service between fabric vertices; Arc::link is a LinkId.
  [[nodiscard]] const Digraph& graph() const { return graph_; }
  [[nodiscard]] VertexId vertex(std::uint32_t fabric_vertex) const {
    return vertices_[fabric_vertex];
  }
  [[nodiscard]] std::span<const Port> ports() const { return ports_; }
  // The port of a vertex, or none when no cable joins it to the fabric.
  [[nodiscard]] std::uint32_t port_of(VertexId v) const { return port_of_[index(v)]; }

  [[nodiscard]] std::uint32_t targets() const { return static_cast<std::uint32_t>(roots_.size()); }
  [[nodiscard]] std::span<const std::uint32_t> roots(std::uint32_t target) const {
    return roots_[target];
  }

 private:
  void number_vertices(const Topology& topology);
  void connect(const Topology& topology);
  void number_targets();

  Digraph graph_;
  std::vector<VertexId> vertices_;
  std::vector<char> transit_;
  std::vector<std::uint32_t> fabric_of_;  // By VertexId.
  std::vector<Port> ports_;
  std::vector<Arc> up_, down_;          // By port.
  std::vector<std::uint32_t> port_of_;  // By VertexId.
  std::vector<std::vector<std::uint32_t>> roots_;
};

}  // namespace flyover::routing
