#pragma once

// A workload on a cluster as one graph: what rank classes are found on (rank_classes.hpp). Its
// nodes are the blocks of the cluster (blocks.hpp), the links inside the fabric, and what loads
// both: the groups, what the ranks of one block send to those of another, and bundles of links.

#include <cstdint>
#include <vector>

#include "simulate/colour_refinement.hpp"

namespace flyover {

struct JointContext;

// One item that an edge of the graph stands for: from a part of what loads to a rank or resource.
struct Touch {
  std::uint32_t part = 0;
  std::uint32_t label = 0;
  std::uint32_t item = 0;  // Of a block: its ranks, then its places. Else 0.

  friend auto operator<=>(const Touch&, const Touch&) = default;
};

// A group, or all pairs of one sender block and one receiver block, each a part, or a bundle.
struct Loader {
  std::uint32_t parts = 0;  // JointGraph::part_colours.
  std::uint64_t edges_begin = 0;
  std::uint64_t edges_end = 0;
};

struct JointGraph {
  // Nodes: blocks, links of Blocks::fabric_links(), loaders. By node, what is known of it alone.
  std::vector<std::uint32_t> colours;
  std::vector<LabelledEdge> edges;  // From loaders, in their order; labels number `touches`.
  std::vector<std::vector<Touch>> touches;
  std::vector<Loader> loaders;
  std::vector<std::vector<std::uint32_t>> part_colours;  // By Loader::parts, by part.
  std::uint32_t first_fabric = 0;
  std::uint32_t first_loader = 0;
  // Loaders by family and group (`absent` for groups that nobody calls), with how the group lies,
  // as an index into `geometries`, which has the ranks of one group for each way;
  std::vector<std::vector<std::uint32_t>> groups;
  std::vector<std::vector<std::uint32_t>> geometry_of;
  std::vector<std::vector<std::uint32_t>> geometries;
  // and loaders by pair, with the pair's part.
  struct PairPart {
    std::uint32_t loader = 0;
    std::uint32_t part = 0;
  };
  std::vector<PairPart> pairs;
};

// Labels of edges that are no loads.
enum JointLabel : std::uint32_t { Member, From, To, OwnSms, OwnHbm, first_load_label };

// Plans all calls and messages. Throws as the cost model does.
[[nodiscard]] JointGraph joint_graph(const JointContext& context);

}  // namespace flyover
