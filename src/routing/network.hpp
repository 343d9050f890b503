#pragma once

// Paths between ports: up a cable, over the fabric as its policy has it, down a cable.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dimension_order.hpp"
#include "fabric.hpp"
#include "flyover/routing/load_map.hpp"
#include "flyover/routing/route.hpp"
#include "shortest_paths.hpp"

namespace flyover::routing {

// Borrows the topology.
class Network {
 public:
  // By (target, fabric vertex): bytes at that vertex on their way to the target.
  using Pending = std::unordered_map<std::uint64_t, double>;

  explicit Network(const Topology& topology);
  Network(const Network&) = delete;  // Its members point at each other.

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }

  // Both ports are in service and a path leads from one to the other.
  [[nodiscard]] bool joined(std::uint32_t from, std::uint32_t to);
  // Adds the load of a transfer between two ports that are joined; what can be sprayed together
  // with other transfers is left in `pending`.
  PathInfo add(LoadMap& load, Pending& pending, std::uint32_t from, std::uint32_t to, double bytes,
               std::uint64_t flow);
  // Brings what is pending down to the links.
  void settle(LoadMap& load, Pending& pending);

 private:
  // A way onto the shortest paths: the cable, unless the port is on the fabric itself, and the
  // slot.
  struct Entry {
    const Arc* cable = nullptr;
    std::uint32_t slot = 0;
    double amount = 0;  // Of the transfer in hand.
  };

  ShortestPaths& paths_to(std::uint32_t target);
  void find_entries(const Port& from, ShortestPaths& paths);
  PathInfo add_sprayed(LoadMap& load, Pending& pending, const Port& from, const Port& to,
                       double bytes);
  Duration add_down(LoadMap& load, const ShortestPaths& paths, const Port& to);
  PathInfo add_hashed(LoadMap& load, const Port& from, const Port& to, double bytes,
                      std::uint64_t key);
  bool add_in_dimension_order(LoadMap& load, const Port& from, const Port& to, double bytes,
                              std::uint64_t key, PathInfo& info);

  const Topology& topology_;
  Fabric fabric_;
  std::optional<DimensionOrder> dimension_order_;
  std::vector<std::optional<ShortestPaths>> paths_;  // By target.
  std::vector<std::uint32_t> kept_;                  // Targets that have paths.
  // Scratch, kept so that a route allocates nothing.
  std::vector<Entry> entries_;
  std::vector<double> amounts_;
  std::vector<Arc> torus_path_;
};

}  // namespace flyover::routing
