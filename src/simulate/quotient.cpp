#include "simulate/quotient.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "flyover/base/error.hpp"
#include "simulate/digest.hpp"

namespace flyover {

namespace {

enum ItemKind : std::uint8_t { NoItem, RankItem, ResourceItem, PartItem };

}  // namespace

Quotient::Quotient(const JointGraph& graph, const Blocks& blocks, const ClusterResources& resources,
                   const Ranks& ranks)
    : graph_(graph),
      blocks_(blocks),
      node_class_(refine_colours(graph.colours, graph.edges)) {
  number_items();
  colour_items(resources, ranks);
  connect_loaders();
  colours_ = refine_colours(colours_, edges_);
  edges_ = {};

  size_.assign(std::ranges::max(colours_) + std::size_t{1}, 0);
  first_resource_.resize(size_.size());
  for (std::uint32_t c = 0; c < node_count_.size(); ++c) {
    const std::uint32_t node = first_node_[c];
    for (std::uint32_t i = 0; i < items_of(node); ++i) {
      const std::uint32_t own = colours_[first_item_[c] + i];
      size_[own] += node_count_[c];
      if (const auto resource = resource_of(node, i)) {
        std::optional<ResourceId>& first = first_resource_[own];
        first = first ? std::min(*first, *resource) : *resource;
      }
    }
  }
}

std::uint32_t Quotient::items_of(std::uint32_t node) const {
  if (is_block(node)) return blocks_.gpus(node) + blocks_.places(node);
  if (node < graph_.first_loader) return 1;
  const Loader& loader = graph_.loaders[node - graph_.first_loader];
  return static_cast<std::uint32_t>(graph_.part_colours[loader.parts].size());
}

std::optional<ResourceId> Quotient::resource_of(std::uint32_t node, std::uint32_t item) const {
  if (is_block(node)) {
    if (item < blocks_.gpus(node)) return std::nullopt;
    return blocks_.resource({node, item - blocks_.gpus(node)});
  }
  if (node >= graph_.first_loader) return std::nullopt;
  return ClusterResources::of(blocks_.fabric_links()[node - graph_.first_fabric]);
}

// Classes are numbered by their smallest node, so that it is met first.
void Quotient::number_items() {
  std::uint32_t items = 0;
  for (std::uint32_t node = 0; node < node_class_.size(); ++node) {
    const std::uint32_t c = node_class_[node];
    if (c == node_count_.size()) {
      node_count_.push_back(0);
      first_node_.push_back(node);
      first_item_.push_back(items);
      items += items_of(node);
    }
    ++node_count_[c];
  }
  colours_.resize(items);
}

void Quotient::colour_items(const ClusterResources& resources, const Ranks& ranks) {
  Numbers<Digest> numbers;
  for (std::uint32_t c = 0; c < node_count_.size(); ++c) {
    const std::uint32_t node = first_node_[c];
    for (std::uint32_t i = 0; i < items_of(node); ++i) {
      Digest facts;
      const bool is_rank = is_block(node) && i < blocks_.gpus(node);
      const std::uint32_t rank = is_rank ? blocks_.first_rank(node) + i : 0;
      if (const auto resource = resource_of(node, i)) {
        facts.add(ResourceItem);
        facts.add(resources.class_of(*resource));
        facts.add(std::bit_cast<std::uint64_t>(resources.capacity(*resource)));
        facts.add(resources.cables(*resource));
        facts.add(resources.in_service(*resource) ? 1U : 0U);
      } else if (is_rank && rank < ranks.size()) {
        facts.add(RankItem);
        facts.add(ranks.program(rank));
        facts.add(resources.gpu_kind(rank));
        // A rank's kernels load its SMs and its HBM.
        const std::uint32_t own = first_item_[c] + i;
        const std::uint32_t sms = first_item_[c] + blocks_.gpus(node) + i;
        edges_.push_back({.a = own, .b = sms, .label = OwnSms});
        edges_.push_back({.a = own, .b = sms + blocks_.gpus(node), .label = OwnHbm});
      } else if (node >= graph_.first_loader) {
        const Loader& loader = graph_.loaders[node - graph_.first_loader];
        facts.add(PartItem);
        facts.add(graph_.part_colours[loader.parts][i]);
      } else {
        facts.add(NoItem);
      }
      colours_[first_item_[c] + i] = numbers(facts);
    }
  }
}

void Quotient::connect_loaders() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> seen;
  for (std::uint32_t c = 0; c < node_count_.size(); ++c) {
    if (first_node_[c] < graph_.first_loader) continue;
    const Loader& loader = graph_.loaders[first_node_[c] - graph_.first_loader];
    seen.clear();
    for (std::uint64_t e = loader.edges_begin; e < loader.edges_end; ++e) {
      ++seen[{node_class_[graph_.edges[e].b], graph_.edges[e].label}];
    }
    for (const auto& [target, times] : seen) {
      const auto [other, label] = target;
      const std::uint64_t all = std::uint64_t{times} * node_count_[c];
      require(all % node_count_[other] == 0, "nodes of a class are touched equally often");
      const auto back = static_cast<std::uint32_t>(all / node_count_[other]);
      for (const Touch& touch : graph_.touches[label]) {
        edges_.push_back({.a = first_item_[c] + touch.part,
                          .b = first_item_[other] + touch.item,
                          .label = touch.label,
                          .a_sees = times,
                          .b_sees = back});
      }
    }
  }
}

std::uint32_t Quotient::of_rank(std::uint32_t rank) const {
  const std::uint32_t block = blocks_.of_rank(rank);
  return class_of(block, rank - blocks_.first_rank(block));
}

std::uint32_t Quotient::of_resource(ResourceId resource) const {
  if (const auto place = blocks_.place(resource)) {
    return class_of(place->block, blocks_.gpus(place->block) + place->index);
  }
  const LinkId link = ClusterResources::link_of(resource);
  const auto found = std::ranges::lower_bound(blocks_.fabric_links(), link);
  const auto number = static_cast<std::uint32_t>(found - blocks_.fabric_links().begin());
  return class_of(graph_.first_fabric + number, 0);
}

std::uint32_t Quotient::of_group(std::uint32_t family, std::uint32_t group) const {
  const std::uint32_t loader = graph_.groups[family][group];
  return loader == absent ? absent : class_of(graph_.first_loader + loader, 0);
}

std::uint32_t Quotient::of_pair(std::uint32_t pair) const {
  const auto [loader, part] = graph_.pairs[pair];
  return class_of(graph_.first_loader + loader, part);
}

}  // namespace flyover
