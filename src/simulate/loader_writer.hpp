#pragma once

// Writes the nodes of a joint graph, its loaders and what they touch.

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "simulate/footing.hpp"
#include "simulate/joint_graph.hpp"

namespace flyover {

enum NodeKind : std::uint8_t { BlockNode, LinkNode, LoaderNode, GroupPart, PairPart, BundlePart };

using Touches = std::vector<std::pair<Spot, Touch>>;
using Edges = std::vector<std::pair<Spot, std::uint32_t>>;  // With the label.

// What loaders have in common that differ in their places only.
struct LoaderShape {
  std::uint32_t parts = 0;  // JointGraph::part_colours.
  std::shared_ptr<const Edges> edges;
};

[[nodiscard]] inline bool same_loads(const CollectivePlan& a, const CollectivePlan& b) {
  return a.loads == b.loads && a.channels == b.channels && a.rate_cap == b.rate_cap;
}

// Numbers for doubles, one for all that differ by rounding only.
class Weights {
 public:
  std::uint32_t operator()(double weight) {
    if (weight == last_weight_) return last_;
    last_weight_ = weight;
    return last_ = find(weight);
  }

 private:
  // Steps of 2^-40, about 1e-12, of which the neighbours are tried as well.
  std::uint32_t find(double weight) {
    constexpr unsigned dropped = 12;
    const std::uint64_t step =
        (std::bit_cast<std::uint64_t>(weight) + (std::uint64_t{1} << (dropped - 1))) >> dropped;
    for (const std::uint64_t near : {step, step - 1, step + 1}) {
      if (const auto known = known_.find(near); known != known_.end()) return known->second;
    }
    const auto fresh = static_cast<std::uint32_t>(known_.size());
    known_.emplace(step, fresh);
    return fresh;
  }

  std::unordered_map<std::uint64_t, std::uint32_t> known_;
  double last_weight_ = -1;
  std::uint32_t last_ = 0;
};

// Borrows what it is given.
class LoaderWriter {
 public:
  LoaderWriter(const Blocks& blocks, JointGraph& out)
      : blocks_(blocks),
        out_(out),
        footing_(blocks) {}

  std::uint32_t colour(const Digest& facts) { return numbers_(facts); }
  std::uint32_t add_node(const Digest& facts);
  std::uint32_t parts_of(const std::vector<std::uint32_t>& colours);
  // Returns its number among the loaders. `blocks`: that it stands on.
  std::uint32_t add_loader(std::uint32_t parts, const Edges& edges,
                           std::span<const std::uint32_t> blocks);

  // Of the loader at hand.
  [[nodiscard]] Footing& footing() { return footing_; }
  // Where a resource is that it loads, and which item there.
  [[nodiscard]] std::pair<Spot, std::uint32_t> spot_of(ResourceId resource) const;
  [[nodiscard]] Spot spot_of_block(std::uint32_t block) const {
    return {.kind = Spot::Kind::Block, .number = footing_.number(block)};
  }
  [[nodiscard]] std::uint32_t fabric_node(LinkId link) const;

  // The number of a list of touches, which is left sorted.
  std::uint32_t label_of(std::vector<Touch>& touches);
  Edges edges_of(Touches& touches);

  // Equal for weights that differ by rounding only.
  std::uint32_t weight(double weight) { return weights_(weight); }
  // Of a load with the set-th plan of a loader.
  std::uint32_t load_label(std::uint32_t set, std::uint32_t weight);
  // Adds what a replay depends on besides the loads, which are those of the set-th plan.
  void add_plan(Digest& facts, const CollectivePlan& plan, std::uint64_t set);

  // The node of a loader between those that load the same links inside the fabric with the same
  // weights and those links: messages that are sprayed from one leaf to another over thousands of
  // paths are many, the paths are listed once. A partition that is equitable with such nodes is so
  // without. `links`: nodes and weights.
  std::uint32_t bundle(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& links);

 private:
  [[nodiscard]] std::uint32_t node_of(const Spot& spot,
                                      std::span<const std::uint32_t> blocks) const;

  const Blocks& blocks_;
  JointGraph& out_;
  Footing footing_;
  Numbers<Digest> numbers_;
  Numbers<Digest> touch_numbers_;
  Numbers<std::vector<std::uint32_t>> shapes_;
  Weights weights_;
  std::vector<std::vector<std::uint32_t>> labels_;  // By set of loads, by weight.
  std::uint32_t next_label_ = first_load_label;
  std::map<Digest, std::uint32_t> bundles_;  // Nodes.
};

}  // namespace flyover
