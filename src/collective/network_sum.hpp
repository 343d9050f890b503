#pragma once

#include <cstdint>
#include <vector>

#include "flyover/collective/algorithms.hpp"
#include "placement.hpp"

namespace flyover {

// An all-reduce in which the network's switches add up: the data is cut into blocks, each on a
// channel of its own; in every domain a head gathers the domain's sum of a block, hands it to the
// network, gets the total and spreads it. What differs between algorithms is how a domain gathers
// and spreads.

// One transfer inside a domain. It waits for those from `after_begin` up to `after_end` of its own
// list; of the way down, for the total too.
struct DomainEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Action action = Action::Copy;
  std::uint32_t after_begin = 0;
  std::uint32_t after_end = 0;
};
struct DomainFlow {
  std::vector<DomainEdge> up;
  std::vector<DomainEdge> down;
  std::uint32_t ready_begin =
      0;  // The head has the sum when these of `up` and all later ones ended.
};

class NetworkSum {
 public:
  // The flow of `block` in `domain`, whose switches are the relay `own` (none: it has none).
  using Flow = DomainFlow (*)(const Placement& placement, std::uint32_t domain, std::uint32_t block,
                              std::uint32_t own);

  // `blocks` should be a multiple of the rails. `own_relays`: domains of two or more reduce in
  // their own switches.
  NetworkSum(const CollectiveShape& shape, std::uint32_t blocks, bool own_relays, Flow domain_flow);

  [[nodiscard]] Schedule schedule(Bytes bytes) const;
  [[nodiscard]] Summary summary() const;

 private:
  [[nodiscard]] DomainFlow flow(std::uint32_t domain, std::uint32_t block) const {
    return flow_(placement_, domain, block, own_[domain]);
  }

  const CollectiveShape& shape_;
  Placement placement_;
  std::uint32_t blocks_;
  Flow flow_;
  std::vector<std::uint32_t> own_;  // Per domain: the relay of its switches, or none.
  std::vector<std::uint32_t> relay_domain_;
  std::uint32_t network_ = 0;  // The relay of the network.
};

// Shares that heads can take without one rail carrying more than another.
[[nodiscard]] std::uint32_t head_count(const CollectiveShape& shape);

// "" or why the network cannot reduce for this group.
[[nodiscard]] std::string network_sum_unsupported(const CollectiveShape& shape);

}  // namespace flyover
