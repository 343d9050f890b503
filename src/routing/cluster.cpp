#include "cluster.hpp"

#include <algorithm>
#include <unordered_map>

#include "flyover/base/error.hpp"

namespace flyover::routing {

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
  links_begin_.push_back(0);
  for (const Site& site : sites_) {
    const std::vector<LinkId> inside = links_inside(topology_, site);
    links_.insert(links_.end(), inside.begin(), inside.end());
    links_begin_.push_back(static_cast<std::uint32_t>(links_.size()));
  }
}

void Cluster::find_interiors() {
  struct Known {
    std::uint32_t interior;
    std::uint32_t site;
  };
  const Fabric& fabric = network_.fabric();
  std::unordered_map<std::uint64_t, std::vector<Known>> known;
  for (std::uint32_t s = 0; s < sites_.size(); ++s) {
    std::vector<Known>& candidates = known[fingerprint(topology_, fabric, sites_[s], links(s))];
    const auto match = std::ranges::find_if(candidates, [&](const Known& k) {
      return alike(topology_, fabric, sites_[k.site], links(k.site), sites_[s], links(s));
    });
    if (match != candidates.end()) {
      interior_of_.push_back(match->interior);
      continue;
    }
    const auto number = static_cast<std::uint32_t>(interiors_.size());
    interiors_.push_back(std::make_unique<Interior>(topology_, fabric, sites_[s], links(s)));
    candidates.push_back({number, s});
    interior_of_.push_back(number);
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
