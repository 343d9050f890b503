#include "cluster.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "flyover/base/error.hpp"

namespace flyover::routing {

namespace {

// As far from `to` as `link` is from `from`.
LinkId shifted(LinkId link, LinkId from, LinkId to) {
  return LinkId{static_cast<std::uint32_t>(link) + static_cast<std::uint32_t>(to) -
                static_cast<std::uint32_t>(from)};
}

}  // namespace

Cluster::Cluster(const Topology& topology) : topology_(topology), network_(topology) {
  find_sites();
  find_interiors();
  find_nics();
}

void Cluster::find_sites() {
  for (const Node& node : topology_.nodes) sites_.push_back({node.first_vertex, node.vertices});
  for (const VertexId v : topology_.gpus) {
    if (topology_.vertices[v].node == no_node) sites_.push_back({v, 1});
  }
}

// What a site has inside but for its interior, with offsets of its own.
Cluster::Inside Cluster::lay_out(std::uint32_t site) {
  const std::vector<LinkId> links = links_inside(topology_, sites_[site]);
  Inside inside{.offsets = static_cast<std::uint32_t>(offsets_.size()),
                .links = static_cast<std::uint32_t>(links.size())};
  if (!links.empty()) inside.first_link = *std::ranges::min_element(links);
  for (const LinkId link : links) {
    offsets_.push_back(static_cast<std::uint32_t>(index(link) - index(inside.first_link)));
  }
  return inside;
}

void Cluster::find_interiors() {
  struct Known {
    std::uint32_t interior;
    std::uint32_t site;
  };
  insides_.reserve(sites_.size());
  const Fabric& fabric = network_.fabric();
  std::unordered_map<std::uint64_t, std::vector<Known>> known;
  std::unordered_map<std::uint32_t, std::uint32_t> last_of_type;  // Its site.
  // In the order in which they lie in memory, since a comparison takes as long as to fetch them.
  std::vector<std::uint32_t> in_order;
  const auto links_of_node = [&](const Node& node) {
    while (in_order.size() < node.links) {
      in_order.push_back(static_cast<std::uint32_t>(in_order.size()));
    }
    return SiteLinks{node.first_link, std::span(in_order).first(node.links)};
  };
  for (std::uint32_t s = 0; s < sites_.size(); ++s) {
    // Most nodes are like the one of their type before them.
    if (s < topology_.nodes.size() && topology_.nodes[NodeId{s}].links > 0) {
      const Node& node = topology_.nodes[NodeId{s}];
      const auto [last, first_of_type] = last_of_type.try_emplace(node.type, s);
      const std::uint32_t other = std::exchange(last->second, s);
      if (!first_of_type) {
        const Node& same = topology_.nodes[NodeId{other}];
        if (alike(topology_, fabric, sites_[other], links_of_node(same), sites_[s],
                  links_of_node(node))) {
          Inside inside = insides_[other];
          inside.first_link = shifted(inside.first_link, same.first_link, node.first_link);
          insides_.push_back(inside);
          continue;
        }
      }
    }
    Inside inside = lay_out(s);
    const SiteLinks own = links_of(inside);
    std::vector<Known>& candidates = known[fingerprint(topology_, fabric, sites_[s], own)];
    const auto match = std::ranges::find_if(candidates, [&](const Known& k) {
      return alike(topology_, fabric, sites_[k.site], links(k.site), sites_[s], own);
    });
    if (match != candidates.end()) {
      inside.interior = match->interior;
      const Inside& twin = insides_[match->site];
      if (std::ranges::equal(own.offsets, links_of(twin).offsets)) {
        offsets_.resize(inside.offsets);
        inside.offsets = twin.offsets;
      }
    } else {
      inside.interior = static_cast<std::uint32_t>(interiors_.size());
      interiors_.push_back(std::make_unique<Interior>(topology_, fabric, sites_[s], own));
      candidates.push_back({inside.interior, s});
    }
    insides_.push_back(inside);
  }
}

void Cluster::find_nics() {
  std::vector<RankPlace> place_of(topology_.vertices.size(), {none, none});
  nics_begin_.push_back(0);
  for (std::uint32_t s = 0; s < sites_.size(); ++s) {
    gpu_offset_.push_back(static_cast<std::uint32_t>(nics_begin_.size() - 1));
    const Interior& inside = interior(s);
    for (std::uint32_t g = 0; g < inside.gpus().size(); ++g) {
      place_of[index(sites_[s].vertex(inside.gpus()[g]))] = {s, g};
      for (const std::uint32_t local : inside.use(g).ports) {
        nics_.push_back(sites_[s].vertex(local));
        ports_.push_back(network_.fabric().port_of(nics_.back()));
      }
      nics_begin_.push_back(static_cast<std::uint32_t>(nics_.size()));
    }
  }
  for (const VertexId gpu : topology_.gpus) {
    require(place_of[index(gpu)].site != none, "every GPU inside a node or in none");
    places_.push_back(place_of[index(gpu)]);
  }
}

}  // namespace flyover::routing
