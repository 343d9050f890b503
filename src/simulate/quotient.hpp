#pragma once

// The coarsest classes of everything in a joint graph, found in two steps: colour refinement of the
// graph tells its nodes apart; then the items of one node of each class (a block's ranks and
// places, a loader's parts) are told apart by another one, on the graph of classes. A partition of
// a quotient by an equitable one is equitable, and the coarsest of both is the same.

#include <cstdint>
#include <optional>
#include <vector>

#include "simulate/blocks.hpp"
#include "simulate/joint_graph.hpp"
#include "simulate/program.hpp"

namespace flyover {

// Borrows the graph and blocks.
class Quotient {
 public:
  Quotient(const JointGraph& graph, const Blocks& blocks, const ClusterResources& resources,
           const Ranks& ranks);

  // Classes are numbered from 0, ranks', resources', groups' and pairs' together.
  [[nodiscard]] std::uint32_t classes() const { return static_cast<std::uint32_t>(size_.size()); }
  [[nodiscard]] std::uint32_t size(std::uint32_t c) const { return size_[c]; }

  [[nodiscard]] std::uint32_t of_rank(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t of_resource(ResourceId resource) const;
  // `absent` for a group that nobody calls.
  [[nodiscard]] std::uint32_t of_group(std::uint32_t family, std::uint32_t group) const;
  [[nodiscard]] std::uint32_t of_pair(std::uint32_t pair) const;

  // Equal for blocks whose ranks and places are of equal classes, one by one.
  [[nodiscard]] std::uint32_t class_of_block(std::uint32_t block) const {
    return node_class_[block];
  }

  // By class, its first resource; none where it is not of resources.
  [[nodiscard]] const std::vector<std::optional<ResourceId>>& first_resources() const {
    return first_resource_;
  }

 private:
  void number_items();
  void colour_items(const ClusterResources& resources, const Ranks& ranks);
  void connect_loaders();

  [[nodiscard]] bool is_block(std::uint32_t node) const { return node < graph_.first_fabric; }
  [[nodiscard]] std::uint32_t items_of(std::uint32_t node) const;
  [[nodiscard]] std::optional<ResourceId> resource_of(std::uint32_t node, std::uint32_t item) const;
  [[nodiscard]] std::uint32_t class_of(std::uint32_t node, std::uint32_t item) const {
    return colours_[first_item_[node_class_[node]] + item];
  }

  const JointGraph& graph_;
  const Blocks& blocks_;
  std::vector<std::uint32_t> node_class_;  // By node of the graph.
  std::vector<std::uint32_t> node_count_;  // By class of nodes,
  std::vector<std::uint32_t> first_node_;
  std::vector<std::uint32_t> first_item_;
  std::vector<std::uint32_t> colours_;  // By item, what is known of it alone; then its class.
  std::vector<LabelledEdge> edges_;     // Between items.
  std::vector<std::uint32_t> size_;     // By class.
  std::vector<std::optional<ResourceId>> first_resource_;
};

}  // namespace flyover
