#include "network_sum.hpp"

#include <algorithm>

#include "schedule_writer.hpp"

namespace flyover {

namespace {

// The longest chain of transfers in a list.
std::uint32_t depth(const std::vector<DomainEdge>& edges) {
  std::vector<std::uint32_t> hops(edges.size(), 1);
  std::uint32_t longest = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    for (std::uint32_t before = edges[i].after_begin; before < edges[i].after_end; ++before) {
      hops[i] = std::max(hops[i], hops[before] + 1);
    }
    longest = std::max(longest, hops[i]);
  }
  return longest;
}

}  // namespace

NetworkSum::NetworkSum(const CollectiveShape& shape, std::uint32_t blocks, bool own_relays,
                       Flow domain_flow)
    : shape_(shape),
      placement_(shape.group),
      blocks_(blocks),
      flow_(domain_flow) {
  for (std::uint32_t domain = 0; domain < placement_.domains(); ++domain) {
    const auto members = placement_.members(domain);
    if (!own_relays || members.size() < 2) {
      own_.push_back(none);
      continue;
    }
    own_.push_back(shape.group.ranks() + static_cast<std::uint32_t>(relay_domain_.size()));
    relay_domain_.push_back(shape.group.domain[members.front()]);
  }
  network_ = shape.group.ranks() + static_cast<std::uint32_t>(relay_domain_.size());
  relay_domain_.push_back(network_relay);
}

Schedule NetworkSum::schedule(Bytes bytes) const {
  std::uint64_t transfers = 0;
  std::uint64_t waits = 0;
  for (std::uint32_t domain = 0; domain < placement_.domains(); ++domain) {
    const DomainFlow one = flow(domain, 0);
    transfers += one.up.size() + one.down.size() + 2;
    // Each transfer is awaited by one other, but those into the network by all out of it.
    waits += one.up.size() + 2 * one.down.size() + placement_.domains();
  }
  ScheduleWriter writer(shape_, blocks_ * transfers, blocks_ * waits);
  Schedule& schedule = writer.schedule();
  schedule.relays = static_cast<std::uint32_t>(relay_domain_.size());
  schedule.relay_domain = relay_domain_;
  schedule.block_bytes = split(bytes, blocks_);

  std::vector<DomainFlow> flows(placement_.domains());
  std::vector<std::uint32_t> into(placement_.domains());
  for (std::uint32_t block = 0; block < blocks_; ++block) {
    const auto add = [&](std::uint32_t from, std::uint32_t to, Action action) {
      return writer.add({.from = from,
                         .to = to,
                         .block = block,
                         .channel = static_cast<std::uint16_t>(block),
                         .action = action});
    };
    for (std::uint32_t domain = 0; domain < placement_.domains(); ++domain) {
      flows[domain] = flow(domain, block);
      const std::vector<DomainEdge>& up = flows[domain].up;
      const std::uint32_t first = writer.next();
      for (const DomainEdge& edge : up) {
        add(edge.from, edge.to, edge.action);
        for (std::uint32_t i = edge.after_begin; i < edge.after_end; ++i) writer.after(first + i);
      }
      into[domain] = add(placement_.entry(domain, block), network_, Action::Reduce);
      for (std::uint32_t i = flows[domain].ready_begin; i < up.size(); ++i) writer.after(first + i);
    }
    for (std::uint32_t domain = 0; domain < placement_.domains(); ++domain) {
      const std::uint32_t total = add(network_, placement_.entry(domain, block), Action::Copy);
      for (const std::uint32_t transfer : into) writer.after(transfer);
      const std::uint32_t first = writer.next();
      for (const DomainEdge& edge : flows[domain].down) {
        add(edge.from, edge.to, edge.action);
        if (edge.after_begin == edge.after_end) writer.after(total);
        for (std::uint32_t i = edge.after_begin; i < edge.after_end; ++i) writer.after(first + i);
      }
    }
  }
  return writer.finish();
}

Summary NetworkSum::summary() const {
  SummaryWriter writer(shape_);
  Summary& summary = writer.summary();
  summary.relays = static_cast<std::uint32_t>(relay_domain_.size());
  summary.relay_domain = relay_domain_;
  std::uint32_t up = 0;
  std::uint32_t down = 0;
  for (std::uint32_t block = 0; block < blocks_; ++block) {
    for (std::uint32_t domain = 0; domain < placement_.domains(); ++domain) {
      const DomainFlow here = flow(domain, block);
      for (const DomainEdge& edge : here.up) writer.add(block, edge.from, edge.to, 1);
      for (const DomainEdge& edge : here.down) writer.add(block, edge.from, edge.to, 1);
      const std::uint32_t head = placement_.entry(domain, block);
      writer.add(block, head, network_, 1);
      writer.add(block, network_, head, 1);
      up = std::max(up, depth(here.up));
      down = std::max(down, depth(here.down));
    }
  }
  summary.steps = up + 2 + down;
  set_hops(summary, {.hops = up + 2 + down, .inter = 2});
  return writer.finish(blocks_);
}

std::uint32_t head_count(const CollectiveShape& shape) {
  return Placement(shape.group).even_channels();
}

std::string network_sum_unsupported(const CollectiveShape& shape) {
  const auto& domain = shape.group.domain;
  if (std::ranges::all_of(domain, [&](std::uint32_t d) { return d == domain.front(); })) {
    return "needs more than one domain";
  }
  if (!shape.in_network_reduction) return "needs switches that reduce in the network";
  return {};
}

}  // namespace flyover
