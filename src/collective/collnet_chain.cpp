#include "network_sum.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// Along a chain of the members to the head at its end, and back.
DomainFlow flow(const Placement& placement, std::uint32_t domain, std::uint32_t block,
                std::uint32_t /*own*/) {
  std::vector<std::uint32_t> chain;  // From the head.
  placement.append_from_entry(domain, block, chain);
  const auto hops = static_cast<std::uint32_t>(chain.size() - 1);
  DomainFlow flow;
  for (std::uint32_t i = 0; i < hops; ++i) {
    const std::uint32_t before = i == 0 ? 0 : i - 1;
    flow.up.push_back({.from = chain[hops - i],
                       .to = chain[hops - i - 1],
                       .action = Action::Reduce,
                       .after_begin = before,
                       .after_end = i});
    flow.down.push_back({.from = chain[i],
                         .to = chain[i + 1],
                         .action = Action::Copy,
                         .after_begin = before,
                         .after_end = i});
  }
  flow.ready_begin = hops == 0 ? 0 : hops - 1;
  return flow;
}

}  // namespace

Schedule collnet_chain_schedule(const CollectiveShape& shape, Bytes bytes) {
  return NetworkSum(shape, shape.channels, false, flow).schedule(bytes);
}

Summary collnet_chain_summary(const CollectiveShape& shape) {
  return NetworkSum(shape, shape.channels, false, flow).summary();
}

}  // namespace flyover
