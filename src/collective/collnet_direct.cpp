#include "network_sum.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// Every member sends the head its block, and gets the total from it.
DomainFlow flow(const Placement& placement, std::uint32_t domain, std::uint32_t block,
                std::uint32_t /*own*/) {
  const std::uint32_t head = placement.entry(domain, block);
  DomainFlow flow;
  for (const std::uint32_t rank : placement.members(domain)) {
    if (rank == head) continue;
    flow.up.push_back({.from = rank, .to = head, .action = Action::Reduce});
    flow.down.push_back({.from = head, .to = rank, .action = Action::Copy});
  }
  return flow;
}

}  // namespace

std::string collnet_unsupported(const CollectiveShape& shape) {
  return network_sum_unsupported(shape);
}

Schedule collnet_direct_schedule(const CollectiveShape& shape, Bytes bytes) {
  return NetworkSum(shape, head_count(shape), false, flow).schedule(bytes);
}

Summary collnet_direct_summary(const CollectiveShape& shape) {
  return NetworkSum(shape, head_count(shape), false, flow).summary();
}

}  // namespace flyover
