#include "simulate/loader_writer.hpp"

#include <algorithm>

namespace flyover {

std::uint32_t LoaderWriter::add_node(const Digest& facts) {
  out_.colours.push_back(numbers_(facts));
  return static_cast<std::uint32_t>(out_.colours.size()) - 1;
}

// --- Loaders ---

std::uint32_t LoaderWriter::parts_of(const std::vector<std::uint32_t>& colours) {
  const auto [number, fresh] = shapes_.find(colours);
  if (fresh) out_.part_colours.push_back(colours);
  return number;
}

std::uint32_t LoaderWriter::add_loader(std::uint32_t parts, const Edges& edges,
                                       std::span<const std::uint32_t> blocks) {
  Digest facts;
  facts.add(LoaderNode);
  facts.add(parts);
  const std::uint32_t node = add_node(facts);
  Loader loader{parts, out_.edges.size(), 0};
  for (const auto& [spot, label] : edges) {
    out_.edges.push_back({.a = node, .b = node_of(spot, blocks), .label = label});
  }
  loader.edges_end = out_.edges.size();
  out_.loaders.push_back(loader);
  return node - out_.first_loader;
}

std::uint32_t LoaderWriter::node_of(const Spot& spot, std::span<const std::uint32_t> blocks) const {
  switch (spot.kind) {
    case Spot::Kind::Block:
      return blocks[spot.number];
    case Spot::Kind::Tree: {
      std::uint32_t list = blocks_.list(blocks[spot.number]);
      for (std::uint32_t level = 0; level < spot.level; ++level) list = blocks_.above(list);
      return fabric_node(blocks_.tree_link({list, spot.index, spot.up}));
    }
    case Spot::Kind::Node:
      break;
  }
  return spot.number;
}

std::pair<Spot, std::uint32_t> LoaderWriter::spot_of(ResourceId resource) const {
  if (const auto place = blocks_.place(resource)) {
    const std::uint32_t item = blocks_.gpus(place->block) + place->index;
    const std::uint32_t number = footing_.number(place->block);
    if (number == absent) return {Spot{.number = place->block}, item};
    return {Spot{.kind = Spot::Kind::Block, .number = number}, item};
  }
  const LinkId link = ClusterResources::link_of(resource);
  if (blocks_.levels() > 0) {
    if (const auto spot = footing_.spot(blocks_.tree_place(link))) return {*spot, 0};
  }
  return {Spot{.number = fabric_node(link)}, 0};
}

std::uint32_t LoaderWriter::label_of(std::vector<Touch>& touches) {
  std::ranges::sort(touches);
  Digest digest;
  for (const Touch& touch : touches) {
    digest.add(std::uint64_t{touch.part} << 32 | touch.label);
    digest.add(touch.item);
  }
  const auto [label, fresh] = touch_numbers_.find(digest);
  if (fresh) out_.touches.push_back(touches);
  return label;
}

Edges LoaderWriter::edges_of(Touches& touches) {
  std::ranges::stable_sort(touches, {}, &std::pair<Spot, Touch>::first);
  Edges edges;
  std::vector<Touch> own;
  for (auto first = touches.begin(); first != touches.end();) {
    own.clear();
    auto last = first;
    for (; last != touches.end() && last->first == first->first; ++last) {
      own.push_back(last->second);
    }
    edges.emplace_back(first->first, label_of(own));
    first = last;
  }
  return edges;
}

std::uint32_t LoaderWriter::fabric_node(LinkId link) const {
  const auto found = std::ranges::lower_bound(blocks_.fabric_links(), link);
  return out_.first_fabric + static_cast<std::uint32_t>(found - blocks_.fabric_links().begin());
}

std::uint32_t LoaderWriter::load_label(std::uint32_t set, std::uint32_t weight) {
  if (set >= labels_.size()) labels_.resize(set + 1);
  std::vector<std::uint32_t>& by_weight = labels_[set];
  if (weight >= by_weight.size()) by_weight.resize(weight + 1, absent);
  if (by_weight[weight] == absent) by_weight[weight] = next_label_++;
  return by_weight[weight];
}

void LoaderWriter::add_plan(Digest& facts, const CollectivePlan& plan, std::uint64_t set) {
  facts.add(static_cast<std::uint64_t>(plan.algorithm));
  facts.add(static_cast<std::uint64_t>(plan.protocol));
  facts.add(plan.channels);
  facts.add(static_cast<std::uint64_t>(plan.startup.count()));
  facts.add(weights_(plan.rate_cap));
  facts.add(set);
}

std::uint32_t LoaderWriter::bundle(
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& links) {
  Digest digest;
  for (const auto& [node, weight] : links) digest.add(std::uint64_t{node} << 32 | weight);
  const auto [entry, fresh] = bundles_.try_emplace(digest, 0);
  if (fresh) {
    Touches touches;
    for (const auto& [node, weight] : links) {
      touches.push_back({{.number = node}, {0, load_label(0, weight), 0}});
    }
    Digest facts;
    facts.add(BundlePart);
    facts.add(links.size());
    entry->second =
        out_.first_loader + add_loader(parts_of({colour(facts)}), edges_of(touches), {});
  }
  return entry->second;
}

}  // namespace flyover
