#include <algorithm>

#include "placement.hpp"
#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// Who sends what into the network: PXN. A block for another domain goes out from the sender's rail
// when it is the receiver's too, else from a member of the sender's domain on the receiver's rail,
// and if there is none, from the sender all the same.
class Relays {
 public:
  explicit Relays(const GroupShape& shape)
      : shape_(shape),
        placement_(shape),
        turn_(shape.ranks()) {
    for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
      const auto peers = placement_.on_rail(placement_.domain_of(rank), shape.rail[rank]);
      turn_[rank] = static_cast<std::uint32_t>(std::ranges::find(peers, rank) - peers.begin());
    }
  }

  [[nodiscard]] const Placement& placement() const { return placement_; }

  // The member of the domain that forwards to rank `to`, or none. Receivers that share a rail are
  // shared out among the members on it.
  [[nodiscard]] std::uint32_t forwarder(std::uint32_t domain, std::uint32_t to) const {
    const auto candidates = placement_.on_rail(domain, shape_.rail[to]);
    return candidates.empty() ? none : candidates[turn_[to] % candidates.size()];
  }

  // The rank that puts a block on the network.
  [[nodiscard]] std::uint32_t exit(std::uint32_t from, std::uint32_t to) const {
    if (placement_.together(from, to) || shape_.rail[from] == shape_.rail[to]) return from;
    const std::uint32_t forwarder_or_none = forwarder(placement_.domain_of(from), to);
    return forwarder_or_none == none ? from : forwarder_or_none;
  }

  // How many ranks of the domain of `exit`, itself among them, send to `to` over `exit`.
  [[nodiscard]] std::uint32_t senders(std::uint32_t exit, std::uint32_t to) const {
    if (placement_.together(exit, to)) return 1;
    const std::uint32_t domain = placement_.domain_of(exit);
    const auto candidates = placement_.on_rail(domain, shape_.rail[to]);
    if (candidates.empty()) return 1;
    if (shape_.rail[exit] != shape_.rail[to]) return 0;
    const std::size_t others = placement_.members(domain).size() - candidates.size();
    return candidates[turn_[to] % candidates.size()] == exit
               ? static_cast<std::uint32_t>(1 + others)
               : 1;
  }

 private:
  const GroupShape& shape_;
  Placement placement_;
  std::vector<std::uint32_t> turn_;  // Place among the members of the domain on the same rail.
};

}  // namespace

Schedule hierarchical_schedule(const CollectiveShape& shape, Bytes bytes) {
  const std::uint32_t n = shape.group.ranks();
  const Relays relays(shape.group);
  const std::uint64_t most = std::uint64_t{n} * (n - 1) * 2;
  ScheduleWriter writer(shape, most, most / 2);
  add_all_to_all_blocks(writer.schedule(), bytes);
  for (std::uint32_t from = 0; from < n; ++from) {
    for (std::uint32_t to = 0; to < n; ++to) {
      if (to == from) continue;
      const std::uint32_t exit = relays.exit(from, to);
      if (exit != from) writer.add({.from = from, .to = exit, .block = from * n + to});
      const std::uint32_t sent = writer.add({.from = exit, .to = to, .block = from * n + to});
      if (exit != from) writer.after(sent - 1);
    }
  }
  return writer.finish();
}

Summary hierarchical_summary(const CollectiveShape& shape) {
  const std::uint32_t n = shape.group.ranks();
  const Relays relays(shape.group);
  SummaryWriter writer(shape);
  bool relayed = false;
  bool crosses = false;
  std::vector<std::uint32_t> messages(n);
  for (std::uint32_t from = 0; from < n; ++from) {
    std::ranges::fill(messages, 0);
    for (std::uint32_t to = 0; to < n; ++to) {
      if (to == from) continue;
      messages[to] += relays.senders(from, to);
      crosses = crosses || !relays.placement().together(from, to);
      const std::uint32_t exit = relays.exit(from, to);
      if (exit == from) continue;
      ++messages[exit];
      relayed = true;
    }
    for (std::uint32_t to = 0; to < n; ++to) {
      if (messages[to] > 0) writer.add(0, from, to, messages[to]);
    }
  }
  const Chain longest{relayed ? 2U : 1U, crosses ? 1U : 0U};
  writer.summary().steps = longest.hops;
  set_hops(writer.summary(), longest);
  return writer.finish(n);
}

}  // namespace flyover
