#include "network_sum.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// The domain's switches add up what its members have and hand the head the sum; the head stores the
// total to the switches, which write it to all members, the head among them. A domain of one needs
// no switches.
DomainFlow flow(const Placement& placement, std::uint32_t domain, std::uint32_t block,
                std::uint32_t own) {
  DomainFlow flow;
  if (own == none) return flow;
  const std::uint32_t head = placement.entry(domain, block);
  const auto members = static_cast<std::uint32_t>(placement.members(domain).size());
  for (const std::uint32_t rank : placement.members(domain)) {
    flow.up.push_back({.from = rank, .to = own, .action = Action::Reduce});
  }
  flow.up.push_back(
      {.from = own, .to = head, .action = Action::Copy, .after_begin = 0, .after_end = members});
  flow.ready_begin = members;
  flow.down.push_back({.from = head, .to = own, .action = Action::Copy});
  for (const std::uint32_t rank : placement.members(domain)) {
    flow.down.push_back(
        {.from = own, .to = rank, .action = Action::Copy, .after_begin = 0, .after_end = 1});
  }
  return flow;
}

}  // namespace

Schedule nvls_network_schedule(const CollectiveShape& shape, Bytes bytes) {
  return NetworkSum(shape, head_count(shape), true, flow).schedule(bytes);
}

Summary nvls_network_summary(const CollectiveShape& shape) {
  return NetworkSum(shape, head_count(shape), true, flow).summary();
}

}  // namespace flyover
