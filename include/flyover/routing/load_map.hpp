#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
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
  explicit LoadMap(std::size_t links);

  // Requires an amount of at least zero.
  void add(LinkId link, double amount) {
    double& load = load_[index(link)];
    if (load == 0) touched_.push_back(link);
    load += amount;
  }
  void add(const Route& route, double bytes) {
    for (const Hop& hop : route.hops) add(hop.link, bytes * hop.share);
  }
  // The links that carry load since the last take, ascending. Empties the map.
  [[nodiscard]] std::vector<Hop> take();

 private:
  friend class Router;

  struct Free {
    void operator()(double* array) const { std::free(array); }
  };

  std::unique_ptr<double[], Free> load_;  // By link.
  // Each link with load, and now and then one without.
  std::vector<LinkId> touched_;
  const Router* router_ = nullptr;
  // Bytes by (destination, fabric vertex) on their way down, as the router numbers them.
  std::unordered_map<std::uint64_t, double> pending_;
};

}  // namespace flyover
