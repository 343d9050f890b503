#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/routing/route.hpp"

namespace flyover {

class Router;

// Adds up the load that many transfers put on links: the weights of a stream.
//
// What Router::add_route sprays over a fabric is kept per pair of places (switch, destination) and
// goes down to the links only in take(), once for all transfers that share a destination. A map
// thus belongs to the one router that added to it, which must outlive it.
class LoadMap {
 public:
  explicit LoadMap(std::size_t links) : load_(links, 0.0), seen_(links, 0) {}

  void add(LinkId link, double amount) {
    if (!seen_[index(link)]) {
      seen_[index(link)] = 1;
      touched_.push_back(link);
    }
    load_[index(link)] += amount;
  }
  void add(const Route& route, double bytes) {
    for (const Hop& hop : route.hops) add(hop.link, bytes * hop.share);
  }
  // The links that carry load since the last take, ascending. Empties the map.
  [[nodiscard]] std::vector<Hop> take();

 private:
  friend class Router;

  std::vector<double> load_;
  std::vector<char> seen_;
  std::vector<LinkId> touched_;
  const Router* router_ = nullptr;
  // Bytes by (destination, fabric vertex) on their way down, as the router numbers them.
  std::unordered_map<std::uint64_t, double> pending_;
};

}  // namespace flyover
