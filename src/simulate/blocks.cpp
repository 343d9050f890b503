#include "simulate/blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "flyover/base/error.hpp"
#include "simulate/digest.hpp"

namespace flyover {

namespace {

void add_facts(Digest& digest, const Link& link) {
  digest.add(std::bit_cast<std::uint64_t>(link.bandwidth.per_second()));
  digest.add(static_cast<std::uint64_t>(link.latency.count()));
  digest.add(static_cast<std::uint64_t>(link.kind) | (link.up ? 1U : 0U) << 8U |
             std::uint64_t{link.lanes} << 16 | std::uint64_t{link.cables} << 40);
}

bool alike(const Link& a, const Link& b) {
  return a.bandwidth == b.bandwidth && a.latency == b.latency && a.kind == b.kind &&
         a.cables == b.cables;
}

std::uint32_t vertex_number(VertexId v) {
  return static_cast<std::uint32_t>(index(v));
}

// Which of a list's switches are one.
std::vector<std::size_t> pattern(const std::vector<VertexId>& list) {
  std::vector<std::size_t> first;
  for (const VertexId v : list) {
    first.push_back(static_cast<std::size_t>(std::ranges::find(list, v) - list.begin()));
  }
  return first;
}

}  // namespace

Blocks::Blocks(const Topology& topology, const ClusterResources& resources)
    : topology_(topology),
      resources_(resources) {
  find_kinds();
  levels_ = find_tree();
}

bool Blocks::has_direct_links(std::uint32_t block) const {
  const auto is_gpu = [&](VertexId v) { return topology_.vertices[v].kind == VertexKind::Gpu; };
  return std::ranges::any_of(topology_.out(NodeId{block}), [&](LinkId id) {
    const Link& link = topology_.links[id];
    return (link.kind == LinkKind::NvLink || link.kind == LinkKind::Xgmi) && is_gpu(link.from) &&
           is_gpu(link.to);
  });
}

std::uint32_t Blocks::places(std::uint32_t block) const {
  const NodeId node{block};
  return 2 * gpus(block) +
         static_cast<std::uint32_t>(topology_.out(node).size() + topology_.in(node).size());
}

std::optional<ResourceId> Blocks::resource(BlockPlace place) const {
  const std::uint32_t own = gpus(place.block);
  const std::uint32_t first = first_rank(place.block);
  if (place.index < own) return resources_.sms(first + place.index);
  if (place.index < 2 * own) return resources_.hbm(first + place.index - own);
  const std::size_t link = place.index - 2 * own;
  const NodeId node{place.block};
  const auto out = topology_.out(node);
  if (link < out.size()) return ClusterResources::of(out[link]);
  const LinkId in = topology_.in(node)[link - out.size()];
  if (topology_.vertices[topology_.links[in].from].node != no_node) return std::nullopt;
  return ClusterResources::of(in);
}

std::optional<BlockPlace> Blocks::place(ResourceId resource) const {
  if (const auto gpu = resources_.gpu_of(resource)) {
    const std::uint32_t block = of_rank(*gpu);
    const std::uint32_t own = *gpu - first_rank(block);
    return BlockPlace{block, resource == resources_.sms(*gpu) ? own : gpus(block) + own};
  }
  const LinkId id = resources_.link_of(resource);
  const Link& link = topology_.links[id];
  const bool leaves = topology_.vertices[link.from].node != no_node;
  const VertexId end = leaves ? link.from : link.to;
  const NodeId node = topology_.vertices[end].node;
  if (node == no_node) return std::nullopt;
  const auto block = static_cast<std::uint32_t>(index(node));
  const auto own = leaves ? topology_.out(end) : topology_.in(end);
  const auto all = leaves ? topology_.out(node) : topology_.in(node);
  const auto before = static_cast<std::uint32_t>(own.data() - all.data());
  const auto at = static_cast<std::uint32_t>(std::ranges::find(own, id) - own.begin());
  const auto outs = static_cast<std::uint32_t>(leaves ? 0 : topology_.out(node).size());
  return BlockPlace{block, 2 * gpus(block) + outs + before + at};
}

// Whether two nodes of one type, whose own links come in the same order, are alike but for their
// ports and GPUs.
bool Blocks::same_inside(std::uint32_t a, std::uint32_t b) const {
  const Node& one = topology_.nodes[NodeId{a}];
  const Node& other = topology_.nodes[NodeId{b}];
  if (one.type != other.type || one.links == 0 || one.links != other.links) return false;
  for (std::uint32_t i = 0; i < one.links; ++i) {
    const Link& x = topology_.links[LinkId(index(one.first_link) + i)];
    const Link& y = topology_.links[LinkId(index(other.first_link) + i)];
    if (x.up != y.up || !alike(x, y)) return false;
  }
  for (std::uint32_t i = 0; i < one.vertices; ++i) {
    const Vertex& x = topology_.vertices[VertexId(index(one.first_vertex) + i)];
    const Vertex& y = topology_.vertices[VertexId(index(other.first_vertex) + i)];
    if (x.up != y.up || x.kind != y.kind || x.rail != y.rail) return false;
  }
  return true;
}

Digest Blocks::inside_of(std::uint32_t block) const {
  const Node& node = topology_.nodes[NodeId{block}];
  const std::size_t first = index(node.first_vertex);
  Digest inside;
  inside.add(node.type);
  for (std::uint32_t i = 0; i < node.vertices; ++i) {
    const Vertex& vertex = topology_.vertices[VertexId(first + i)];
    inside.add(static_cast<std::uint64_t>(vertex.kind) | (vertex.up ? 1U : 0U) << 8U |
               std::uint64_t{vertex.rail} << 16);
  }
  for (const LinkId id : topology_.out(NodeId{block})) {
    const Link& link = topology_.links[id];
    if (topology_.vertices[link.to].node != NodeId{block}) continue;
    add_facts(inside, link);
    inside.add((index(link.from) - first) << 32U | (index(link.to) - first));
  }
  return inside;
}

// Links that came with the node need not be looked at to know that they stay in it.
template <class Visit>
void Blocks::for_ports(std::uint32_t block, Visit visit) const {
  const Node& node = topology_.nodes[NodeId{block}];
  const auto out = topology_.out(NodeId{block});
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    if (index(out[i]) - index(node.first_link) < node.links) continue;
    const Link& link = topology_.links[out[i]];
    if (topology_.vertices[link.to].node != NodeId{block}) visit(i, link);
  }
}

void Blocks::find_kinds() {
  std::vector<Digest> digests(size());
  Digest inside;
  for (std::uint32_t b = 0; b < size(); ++b) {
    if (b == 0 || !same_inside(b - 1, b)) inside = inside_of(b);
    Digest& own = digests[b] = inside;
    for (std::uint32_t i = 0; i < gpus(b); ++i) own.add(resources_.gpu_kind(first_rank(b) + i));
    for_ports(b, [&](std::uint32_t place, const Link& link) {
      own.add(place);
      add_facts(own, link);
    });
  }
  for (std::uint32_t v = 0; v < topology_.vertices.size(); ++v) {
    if (topology_.vertices[VertexId{v}].node != no_node) continue;
    for (const LinkId id : topology_.out(VertexId{v})) {
      const Link& link = topology_.links[id];
      const NodeId node = topology_.vertices[link.to].node;
      if (node == no_node) {
        fabric_links_.push_back(id);
        continue;
      }
      // Links come in any order: their digests are added up.
      const auto in = topology_.in(link.to);
      Digest port;
      add_facts(port, link);
      port.add((index(link.to) - index(topology_.nodes[node].first_vertex)) << 32U |
               static_cast<std::uint64_t>(std::ranges::find(in, id) - in.begin()));
      digests[index(node)].low += port.low;
      digests[index(node)].high += port.high;
    }
  }
  std::ranges::sort(fabric_links_);
  Numbers<Digest> numbers;
  for (std::uint32_t b = 0; b < size(); ++b) {
    const bool same = b > 0 && digests[b] == digests[b - 1];
    kinds_.push_back(same ? kinds_.back() : numbers(digests[b]));
  }
}

// Every switch has one trunk up or none; those of a level are alike.
bool Blocks::find_trunks() {
  if (topology_.routing != RoutingPolicy::Adaptive) return false;
  std::array<const Link*, 2> first{};
  for (const LinkId id : fabric_links_) {
    const Link& link = topology_.links[id];
    const bool leaf_spine = link.kind == LinkKind::LeafSpine;
    if (!leaf_spine && link.kind != LinkKind::SpineCore) return false;
    const VertexKind lower = leaf_spine ? VertexKind::Leaf : VertexKind::Spine;
    const bool up = topology_.vertices[link.from].kind == lower;
    const Link*& other = first[leaf_spine ? 0 : 1];
    if (other == nullptr) other = &link;
    if (!link.up || !alike(link, *other)) return false;
    Switch& below = switches_[vertex_number(up ? link.from : link.to)];
    std::optional<LinkId>& own = up ? below.up : below.down;
    if (own) return false;
    own = id;
  }
  for (const auto& [vertex, below] : switches_) {
    if (below.up.has_value() != below.down.has_value()) return false;
  }
  return std::ranges::none_of(topology_.vertices, [](const Vertex& vertex) {
    return vertex.node == no_node && !vertex.up;
  });
}

// `none` where it shares some switches with another list, but not all, or is not built like those
// of its level, which begin at `level_begin`.
std::uint32_t Blocks::add_list(std::vector<VertexId> switches, std::size_t level_begin) {
  if (switches.empty()) return none;
  if (const std::uint32_t known = switches_[vertex_number(switches.front())].list; known != none) {
    return lists_[known].switches == switches ? known : none;
  }
  const auto fresh = static_cast<std::uint32_t>(lists_.size());
  if (fresh > level_begin && pattern(switches) != pattern(lists_[level_begin].switches))
    return none;
  for (std::uint32_t i = 0; i < switches.size(); ++i) {
    Switch& own = switches_[vertex_number(switches[i])];
    if (own.list == fresh) continue;
    if (own.list != none) return none;
    own.list = fresh;
    own.index = i;
  }
  lists_.push_back({std::move(switches), none});
  return fresh;
}

bool Blocks::find_leaves() {
  std::vector<VertexId> leaves;
  for (std::uint32_t b = 0; b < size(); ++b) {
    leaves.clear();
    bool to_nodes = false;
    for_ports(b, [&](std::uint32_t, const Link& link) {
      leaves.push_back(link.to);
      to_nodes = to_nodes || topology_.vertices[link.to].node != no_node;
    });
    if (to_nodes) return false;
    const bool same = b > 0 && leaves == lists_[lists_of_.back()].switches;
    lists_of_.push_back(same ? lists_of_.back() : add_list(leaves, 0));
    if (lists_of_.back() == none) return false;
  }
  return true;
}

std::uint32_t Blocks::find_tree() {
  if (fabric_links_.empty() || !find_trunks() || !find_leaves()) return 0;
  std::uint32_t levels = 1;
  for (std::size_t begin = 0; begin < lists_.size(); ++levels) {
    const std::size_t end = lists_.size();
    std::size_t below_others = 0;
    for (std::size_t l = begin; l < end; ++l) {
      std::vector<VertexId> up;
      for (const VertexId v : lists_[l].switches) {
        const Switch& own = switches_[vertex_number(v)];
        if (own.up) up.push_back(topology_.links[*own.up].to);
      }
      if (up.empty()) continue;
      ++below_others;
      if (up.size() != lists_[l].switches.size()) return 0;
      const std::uint32_t above = add_list(std::move(up), end);
      if (above == none) return 0;
      lists_[l].above = above;
    }
    if (below_others == 0) break;
    if (below_others != end - begin) return 0;
    begin = end;
  }
  return levels;
}

TreePlace Blocks::tree_place(LinkId link) const {
  const Link& trunk = topology_.links[link];
  const auto below = switches_.find(vertex_number(trunk.from));
  if (below != switches_.end() && below->second.up == link) {
    return {below->second.list, below->second.index, true};
  }
  const Switch& own = switches_.at(vertex_number(trunk.to));
  require(own.down == link, "a trunk of the tree");
  return {own.list, own.index, false};
}

LinkId Blocks::tree_link(const TreePlace& place) const {
  const VertexId below = lists_[place.list].switches[place.index];
  const Switch& own = switches_.at(vertex_number(below));
  return place.up ? *own.up : *own.down;
}

std::vector<std::uint32_t> distinct_blocks(const Blocks& blocks,
                                           std::span<const std::uint32_t> ranks) {
  std::vector<std::uint32_t> distinct;
  std::vector<bool> seen(blocks.size(), false);
  for (const std::uint32_t rank : ranks) {
    const std::uint32_t block = blocks.of_rank(rank);
    if (seen[block]) continue;
    seen[block] = true;
    distinct.push_back(block);
  }
  return distinct;
}

}  // namespace flyover
