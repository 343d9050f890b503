#pragma once

// What the router knows of a topology: the network, the insides of its nodes, and where each rank
// sits.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "flyover/topology/topology.hpp"
#include "interior.hpp"
#include "network.hpp"

namespace flyover::routing {

struct RankPlace {
  std::uint32_t site = 0;
  std::uint32_t gpu = 0;  // Index within the site.
};

// Borrows the topology.
class Cluster {
 public:
  explicit Cluster(const Topology& topology);

  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] RankPlace place(std::uint32_t rank) const { return places_[rank]; }
  [[nodiscard]] Interior& interior(std::uint32_t site) {
    return *interiors_[insides_[site].interior];
  }
  // The kinds of node told apart.
  [[nodiscard]] std::size_t interiors() const { return interiors_.size(); }

  [[nodiscard]] SiteLinks links(std::uint32_t site) const { return links_of(insides_[site]); }
  // The ports that a GPU uses, as vertices and as numbers in the network, nearest first.
  [[nodiscard]] std::span<const VertexId> nics(RankPlace place) const {
    return std::span(nics_).subspan(gpu_begin(place), gpu_end(place) - gpu_begin(place));
  }
  [[nodiscard]] std::span<const std::uint32_t> ports(RankPlace place) const {
    return std::span(ports_).subspan(gpu_begin(place), gpu_end(place) - gpu_begin(place));
  }
  [[nodiscard]] const Port& port(std::uint32_t port) const {
    return network_.fabric().ports()[port];
  }
  // The local number of a port's vertex in its site.
  [[nodiscard]] std::uint32_t local(std::uint32_t site, std::uint32_t port) const {
    return sites_[site].local(this->port(port).vertex);
  }

 private:
  struct Inside {
    std::uint32_t interior = 0;
    LinkId first_link{};
    std::uint32_t offsets = 0;  // Where they begin in offsets_, and how many they are.
    std::uint32_t links = 0;
  };

  [[nodiscard]] SiteLinks links_of(const Inside& inside) const {
    return {inside.first_link, std::span(offsets_).subspan(inside.offsets, inside.links)};
  }
  [[nodiscard]] std::uint32_t gpu_begin(RankPlace p) const {
    return nics_begin_[gpu_offset_[p.site] + p.gpu];
  }
  [[nodiscard]] std::uint32_t gpu_end(RankPlace p) const {
    return nics_begin_[gpu_offset_[p.site] + p.gpu + 1];
  }
  void find_sites();
  void find_interiors();
  Inside lay_out(std::uint32_t site);
  void find_nics();

  const Topology& topology_;
  Network network_;
  std::vector<Site> sites_;  // The nodes in order, then GPUs that are in none.
  std::vector<RankPlace> places_;
  std::vector<Inside> insides_;         // By site.
  std::vector<std::uint32_t> offsets_;  // Sites whose links are in the same order share them.
  std::vector<std::unique_ptr<Interior>> interiors_;
  std::vector<std::uint32_t> gpu_offset_;  // Of a site's first GPU in nics_begin_.
  std::vector<std::uint32_t> nics_begin_;
  std::vector<VertexId> nics_;
  std::vector<std::uint32_t> ports_;
};

}  // namespace flyover::routing
