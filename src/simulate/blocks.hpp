#pragma once

// The cluster cut into blocks, one per node: its GPUs' SMs and HBM, the links inside, and those at
// its ports. What joins two switches of the fabric is in none.
//
// In a tree of a fabric (a Clos network with trunks, see FabricSpec) what tells a node from others
// of its kind is which other nodes share its leaves, and their spines: what a call on some nodes
// loads is known from a call on others that lie alike.

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "flyover/topology/topology.hpp"
#include "simulate/digest.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// A resource of a block: the SMs of its GPUs, their HBM, the links that leave its vertices, and
// those that come into them, of which links inside have no place (they have one already).
struct BlockPlace {
  std::uint32_t block = 0;
  std::uint32_t index = 0;
};

// A link between switches of a tree: to or from what is above the `index`-th switch of a list.
struct TreePlace {
  std::uint32_t list = 0;
  std::uint32_t index = 0;
  bool up = false;
};

// Borrows what it is given.
class Blocks {
 public:
  Blocks(const Topology& topology, const ClusterResources& resources);

  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(topology_.nodes.size());
  }
  [[nodiscard]] std::uint32_t of_rank(std::uint32_t rank) const {
    return static_cast<std::uint32_t>(index(topology_.node_of_rank(rank)));
  }
  [[nodiscard]] std::uint32_t first_rank(std::uint32_t block) const {
    return topology_.nodes[NodeId{block}].first_gpu;
  }
  [[nodiscard]] std::uint32_t gpus(std::uint32_t block) const {
    return topology_.nodes[NodeId{block}].gpus;
  }
  // Whether scale-up links join two of its GPUs without a switch.
  [[nodiscard]] bool has_direct_links(std::uint32_t block) const;
  // Blocks of one kind have the same GPUs and resources, place by place.
  [[nodiscard]] std::uint32_t kind(std::uint32_t block) const { return kinds_[block]; }

  // Places are numbered below this; not all are taken.
  [[nodiscard]] std::uint32_t places(std::uint32_t block) const;
  // None where no resource has the place.
  [[nodiscard]] std::optional<ResourceId> resource(BlockPlace place) const;
  // None for links inside the fabric.
  [[nodiscard]] std::optional<BlockPlace> place(ResourceId resource) const;
  // Those, ascending.
  [[nodiscard]] const std::vector<LinkId>& fabric_links() const { return fabric_links_; }

  // Levels of switches when the fabric is a tree, over which routes depend on no number; else 0.
  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  // In a tree: the switches at a block's ports, as a list, and those above a list's switches. Lists
  // have no switch in common.
  [[nodiscard]] std::size_t lists() const { return lists_.size(); }
  [[nodiscard]] std::uint32_t list(std::uint32_t block) const { return lists_of_[block]; }
  [[nodiscard]] std::uint32_t above(std::uint32_t list) const { return lists_[list].above; }
  // Of links between switches of a tree.
  [[nodiscard]] TreePlace tree_place(LinkId link) const;
  [[nodiscard]] LinkId tree_link(const TreePlace& place) const;

 private:
  struct List {
    std::vector<VertexId> switches;
    std::uint32_t above = none;
  };
  struct Switch {
    std::uint32_t list = none;
    std::uint32_t index = 0;
    std::optional<LinkId> up;  // Its trunk to the level above.
    std::optional<LinkId> down;
  };
  static constexpr std::uint32_t none = 0xffffffffU;

  template <class Visit>
  void for_ports(std::uint32_t block, Visit visit) const;  // (place among links that leave, link)
  [[nodiscard]] bool same_inside(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] Digest inside_of(std::uint32_t block) const;
  void find_kinds();
  [[nodiscard]] bool find_trunks();
  [[nodiscard]] bool find_leaves();
  [[nodiscard]] std::uint32_t find_tree();  // Its levels.
  [[nodiscard]] std::uint32_t add_list(std::vector<VertexId> switches, std::size_t level_begin);

  const Topology& topology_;
  const ClusterResources& resources_;
  std::vector<std::uint32_t> kinds_;
  std::vector<LinkId> fabric_links_;
  // Of trees:
  std::uint32_t levels_ = 0;
  std::vector<std::uint32_t> lists_of_;  // By block.
  std::vector<List> lists_;
  std::unordered_map<std::uint32_t, Switch> switches_;  // By vertex.
};

// The blocks of some ranks, in order of the first rank of each.
[[nodiscard]] std::vector<std::uint32_t> distinct_blocks(const Blocks& blocks,
                                                         std::span<const std::uint32_t> ranks);

}  // namespace flyover
