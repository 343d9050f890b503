#include <algorithm>

#include "domain_tree.hpp"
#include "fold_writer.hpp"
#include "placement.hpp"
#include "schedule_writer.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

constexpr std::uint32_t trees = 2;

// The data is cut into shares, as many as the largest domain has members, or fewer, so that they
// spread evenly over the rails. In every domain a head stands for each share: it gets the domain's
// sum from the switch, takes part in the tree between the domains, and has the switch multicast the
// result. A domain of one needs no switch.
class Plan {
 public:
  explicit Plan(const CollectiveShape& shape)
      : shape_(shape),
        placement_(shape.group),
        shares_(placement_.even_channels()),
        headed_(shape.group.ranks()) {
    heads_.reserve(std::size_t{domains()} * shares_);
    for (std::uint32_t domain = 0; domain < domains(); ++domain) {
      const std::uint32_t size = size_of(domain);
      relay_.push_back(size > 1 ? shape.group.ranks() + relays() : none);
      if (size > 1) relay_domain_.push_back(shape.group.domain[placement_.members(domain)[0]]);
      for (std::uint32_t share = 0; share < shares_; ++share) {
        heads_.push_back(placement_.entry(domain, share));
        ++headed_[heads_.back()];
      }
    }
    for (std::uint32_t tree = 0; tree < trees; ++tree) {
      trees_.push_back(double_binary_tree(domains(), tree));
    }
  }

  [[nodiscard]] std::uint32_t domains() const { return placement_.domains(); }
  [[nodiscard]] std::span<const std::uint32_t> members(std::uint32_t domain) const {
    return placement_.members(domain);
  }
  [[nodiscard]] std::uint32_t size_of(std::uint32_t domain) const {
    return static_cast<std::uint32_t>(members(domain).size());
  }
  [[nodiscard]] std::uint32_t shares() const { return shares_; }
  [[nodiscard]] std::uint32_t head(std::uint32_t domain, std::uint32_t share) const {
    return heads_[std::size_t{domain} * shares_ + share];
  }
  // The number of shares that a rank heads.
  [[nodiscard]] std::uint32_t headed(std::uint32_t rank) const { return headed_[rank]; }
  [[nodiscard]] bool has_relay(std::uint32_t domain) const { return relay_[domain] != none; }
  [[nodiscard]] std::uint32_t relay(std::uint32_t domain) const { return relay_[domain]; }
  [[nodiscard]] std::uint32_t relays() const {
    return static_cast<std::uint32_t>(relay_domain_.size());
  }
  [[nodiscard]] const std::vector<std::uint32_t>& relay_domain() const { return relay_domain_; }
  [[nodiscard]] const DomainTree& tree(std::uint32_t channel) const {
    return trees_[channel % trees];
  }
  [[nodiscard]] std::uint32_t channels() const { return trees * shape_.channels; }
  [[nodiscard]] std::uint64_t blocks() const { return std::uint64_t{channels()} * shares_; }

 private:
  const CollectiveShape& shape_;
  Placement placement_;
  std::uint32_t shares_ = 0;
  std::vector<std::uint32_t> heads_;   // Per domain and share.
  std::vector<std::uint32_t> headed_;  // Per rank.
  std::vector<std::uint32_t> relay_;   // Per domain, or none.
  std::vector<std::uint32_t> relay_domain_;
  std::vector<DomainTree> trees_;
};

// Writes the transfers of one block after the other.
class BlockWriter {
 public:
  BlockWriter(const Plan& plan, ScheduleWriter& writer)
      : plan_(plan),
        writer_(writer),
        summed_(plan.domains()),
        up_(plan.domains()),
        down_(plan.domains()),
        children_(plan.domains()) {}

  void write(std::uint32_t channel, std::uint32_t share, std::uint32_t per_block) {
    channel_ = channel;
    share_ = share;
    per_block_ = per_block;
    const DomainTree& tree = plan_.tree(channel);
    for (auto& list : children_) list.clear();
    for (const std::uint32_t domain : tree.order) {
      if (tree.parent[domain] != none) children_[tree.parent[domain]].push_back(domain);
    }
    for (std::uint32_t domain = 0; domain < plan_.domains(); ++domain) {
      if (plan_.has_relay(domain)) sum_up(domain);
    }
    for (std::size_t i = tree.order.size() - 1; i > 0; --i) go_up(tree, tree.order[i]);
    for (std::size_t i = 1; i < tree.order.size(); ++i) go_down(tree, tree.order[i]);
    for (std::uint32_t domain = 0; domain < plan_.domains(); ++domain) {
      if (plan_.has_relay(domain)) multicast(tree, domain);
    }
  }

 private:
  std::uint32_t add(std::uint32_t from, std::uint32_t to, Action action, bool in_line) {
    return writer_.add({.from = from,
                        .to = to,
                        .block = channel_ * plan_.shares() + share_,
                        .channel = static_cast<std::uint16_t>(channel_),
                        .action = action,
                        .previous = in_line && share_ > 0 ? writer_.next() - per_block_ : none});
  }
  [[nodiscard]] std::uint32_t head(std::uint32_t domain) const {
    return plan_.head(domain, share_);
  }

  void sum_up(std::uint32_t domain) {
    const std::uint32_t reads = writer_.next();
    for (const std::uint32_t rank : plan_.members(domain)) {
      add(rank, plan_.relay(domain), Action::Reduce, true);
    }
    summed_[domain] = add(plan_.relay(domain), head(domain), Action::Copy, false);
    for (std::uint32_t i = 0; i < plan_.size_of(domain); ++i) writer_.after(reads + i);
  }

  void go_up(const DomainTree& tree, std::uint32_t domain) {
    const std::uint32_t parent = tree.parent[domain];
    up_[domain] = add(head(domain), head(parent), Action::Reduce, false);
    after_children(domain);
    if (plan_.has_relay(domain)) writer_.after(summed_[domain]);
    // The parent's head must hold its domain's sum before another is added to it.
    if (plan_.has_relay(parent)) writer_.after(summed_[parent]);
  }

  void go_down(const DomainTree& tree, std::uint32_t domain) {
    down_[domain] = add(head(tree.parent[domain]), head(domain), Action::Copy, false);
    after_result(tree, tree.parent[domain]);
  }

  void multicast(const DomainTree& tree, std::uint32_t domain) {
    const std::uint32_t store = add(head(domain), plan_.relay(domain), Action::Copy, false);
    after_result(tree, domain);
    for (const std::uint32_t rank : plan_.members(domain)) {
      add(plan_.relay(domain), rank, Action::Copy, true);
      writer_.after(store);
      if (rank != head(domain)) continue;
      // The head gets its block again, when it has done sending it down.
      for (const std::uint32_t child : children_[domain]) writer_.after(down_[child]);
    }
  }

  void after_children(std::uint32_t domain) {
    for (const std::uint32_t child : children_[domain]) writer_.after(up_[child]);
  }
  void after_result(const DomainTree& tree, std::uint32_t domain) {
    if (tree.parent[domain] == none) {
      after_children(domain);
    } else {
      writer_.after(down_[domain]);
    }
  }

  const Plan& plan_;
  ScheduleWriter& writer_;
  std::uint32_t channel_ = 0;
  std::uint32_t share_ = 0;
  std::uint32_t per_block_ = 0;
  // Per domain, the transfer that brought its head the domain's sum, sent it up, brought the
  // result.
  std::vector<std::uint32_t> summed_;
  std::vector<std::uint32_t> up_;
  std::vector<std::uint32_t> down_;
  std::vector<std::vector<std::uint32_t>> children_;
};

// The longest ways of a block through one tree.
struct Reach {
  std::uint32_t depth = 0;  // Of the deepest domain.
  // Up to the root, and from the root to the last multicast, by way of a switch; empty if there is
  // none.
  Chain up;
  Chain down;
};

Reach reach(const Plan& plan, const DomainTree& tree) {
  Reach reach;
  for (std::uint32_t domain = 0; domain < plan.domains(); ++domain) {
    const std::uint32_t depth = tree.depth[domain];
    const std::uint32_t parent = tree.parent[domain];
    reach.depth = std::max(reach.depth, depth);
    // A switch sums up, and the head sends to the root; or its parent has to wait for its own
    // switch.
    if (plan.has_relay(domain) || (parent != none && plan.has_relay(parent))) {
      reach.up = std::max(reach.up, Chain{2 + depth, depth});
    }
    if (plan.has_relay(domain)) reach.down = std::max(reach.down, Chain{2 + depth, depth});
    // A head with children gets its multicast after it has sent to them.
    if (parent != none && plan.has_relay(parent)) {
      reach.down = std::max(reach.down, Chain{1 + depth, depth});
    }
  }
  return reach;
}

// The longest chains: in transfers, and in hops.
struct Lengths {
  std::uint32_t steps = 0;
  Chain longest;

  // One tree's. Shares queue for the switches, on the way up and on the way down. A chain is
  // longest when it goes through the queue in one of the two, or half in the one and half in the
  // other.
  void add(const Reach& far, bool switched, std::uint32_t shares) {
    const Chain without_switch{far.depth, far.depth};
    steps = std::max(steps, 2 * far.depth);
    if (switched) {
      const std::uint32_t queue = shares - 1;
      steps = std::max({steps, far.up.hops + far.depth + queue, far.depth + far.down.hops + queue,
                        far.up.hops + far.down.hops + queue});
    }
    longest =
        std::max(longest, std::max(far.up, without_switch) + std::max(far.down, without_switch));
  }
};

}  // namespace

std::string nvls_tree_unsupported(const CollectiveShape& shape) {
  if (!shape.in_switch_reduction) return "needs NVLS in every domain";
  const auto& domain = shape.group.domain;
  if (std::ranges::all_of(domain, [&](std::uint32_t d) { return d == domain.front(); })) {
    return "needs more than one domain";
  }
  return {};
}

Schedule nvls_tree_schedule(const CollectiveShape& shape, Bytes bytes) {
  const Plan plan(shape);
  std::uint32_t per_block = 2 * (plan.domains() - 1);
  for (std::uint32_t domain = 0; domain < plan.domains(); ++domain) {
    if (plan.has_relay(domain)) per_block += 2 * (plan.size_of(domain) + 1);
  }
  // Each transfer is awaited by one other, but for sums, which two edges up may wait for.
  const std::uint64_t count = plan.blocks() * per_block;
  ScheduleWriter writer(shape, count, count + plan.blocks() * 2 * plan.domains());
  Schedule& schedule = writer.schedule();
  schedule.relays = plan.relays();
  schedule.relay_domain = plan.relay_domain();
  schedule.block_bytes = split(bytes, plan.blocks());
  BlockWriter blocks(plan, writer);
  for (std::uint32_t channel = 0; channel < plan.channels(); ++channel) {
    for (std::uint32_t share = 0; share < plan.shares(); ++share) {
      blocks.write(channel, share, per_block);
    }
  }
  return writer.finish();
}

Summary nvls_tree_summary(const CollectiveShape& shape) {
  const Plan plan(shape);
  const std::uint32_t shares = plan.shares();
  SummaryWriter writer(shape);
  Summary& summary = writer.summary();
  summary.relays = plan.relays();
  summary.relay_domain = plan.relay_domain();
  writer.reserve(std::size_t{plan.channels()} * 2 *
                 (shape.group.ranks() + shares * plan.domains()));
  for (std::uint32_t channel = 0; channel < plan.channels(); ++channel) {
    const DomainTree& tree = plan.tree(channel);
    for (std::uint32_t domain = 0; domain < plan.domains(); ++domain) {
      if (plan.has_relay(domain)) {
        for (const std::uint32_t rank : plan.members(domain)) {
          const std::uint32_t headed = plan.headed(rank);
          writer.add(channel, rank, plan.relay(domain), shares + headed);
          writer.add(channel, plan.relay(domain), rank, headed + shares);
        }
      }
      const std::uint32_t parent = tree.parent[domain];
      for (std::uint32_t share = 0; parent != none && share < shares; ++share) {
        writer.add(channel, plan.head(domain, share), plan.head(parent, share), 1);
        writer.add(channel, plan.head(parent, share), plan.head(domain, share), 1);
      }
    }
  }

  Lengths far;
  for (std::uint32_t t = 0; t < trees; ++t) {
    far.add(reach(plan, plan.tree(t)), plan.relays() > 0, shares);
  }
  summary.steps = far.steps;
  set_hops(summary, far.longest);
  return writer.finish(plan.blocks());
}

std::optional<FoldedSummary> nvls_tree_fold(const CollectiveShape& shape, std::uint32_t domains) {
  const Plan plan(shape);  // Of one of the domains.
  const std::uint32_t members = plan.size_of(0);
  const std::uint32_t shares = plan.shares();
  const auto blocks = static_cast<double>(plan.blocks());

  FoldedSummary summary;
  FoldWriter inside(members);
  FoldWriter between(members);
  for (std::uint32_t i = 0; members > 1 && i < members; ++i) {
    const double fraction = plan.channels() * (shares + plan.headed(plan.members(0)[i])) / blocks;
    inside.add(i, members, fraction, plan.channels());
    inside.add(members, i, fraction, plan.channels());
  }
  for (std::uint32_t share = 0; share < shares; ++share) {
    const auto head = static_cast<std::uint32_t>(
        std::ranges::find(plan.members(0), plan.head(0, share)) - plan.members(0).begin());
    between.add(head, head, shape.channels / blocks, shape.channels);
  }
  Lengths far;
  for (std::uint32_t t = 0; t < trees; ++t) {
    const DomainTree tree = double_binary_tree(domains, t);
    for (std::uint32_t d = 0; d < domains; ++d) {
      if (tree.parent[d] == none) continue;
      summary.edges.push_back({d, tree.parent[d], 0});
      summary.edges.push_back({tree.parent[d], d, 0});
    }
    const std::uint32_t depth = std::ranges::max(tree.depth);
    const Chain by_switch = members > 1 ? Chain{2 + depth, depth} : Chain{};
    far.add({depth, by_switch, by_switch}, members > 1, shares);
  }
  summary.steps = far.steps;
  summary.inter_hops = far.longest.inter;
  summary.intra_hops = far.longest.hops - far.longest.inter;
  summary.inside = inside.take();
  summary.between.push_back(between.take());
  return summary;
}

}  // namespace flyover
