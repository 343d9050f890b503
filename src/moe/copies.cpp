#include "flyover/moe/copies.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/moe/placement.hpp"
#include "moe/count_law.hpp"
#include "moe/gate_sampler.hpp"
#include "moe/routing_check.hpp"

namespace flyover {

namespace {

using namespace moe;

constexpr std::uint32_t estimated_tokens = 1U << 18U;

// Where the copies of every expert are.
struct Homes {
  std::vector<std::uint32_t> begin;  // By expert, into `rank`; one more than experts.
  std::vector<std::uint32_t> rank;

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t expert) const {
    return std::span(rank).subspan(begin[expert], begin[expert + 1] - begin[expert]);
  }
};

Homes homes_of(const ExpertRouting& routing, const ExpertGroup& group) {
  const std::vector<std::uint32_t> expert = expert_slots(routing, group);
  const auto of_rank = static_cast<std::uint32_t>(expert.size()) / group.ranks();
  std::vector<std::vector<std::uint32_t>> ranks(routing.experts);
  for (std::uint32_t s = 0; s < expert.size(); ++s) ranks[expert[s]].push_back(s / of_rank);
  Homes homes{.begin = {0}, .rank = {}};
  for (const auto& of_expert : ranks) {
    homes.rank.insert(homes.rank.end(), of_expert.begin(), of_expert.end());
    homes.begin.push_back(static_cast<std::uint32_t>(homes.rank.size()));
  }
  return homes;
}

// What tokens of one source bring to each node and rank.
struct Reach {
  std::vector<double> node;
  std::vector<double> rank;
  std::vector<double> pairs;
};

// The probability for each of some sets of slots that a token goes there. `set_of`: by rank.
std::vector<double> hits(const ExpertRouting& routing, const CountLaw& law, const Homes& homes,
                         std::span<const std::uint32_t> set_of, std::uint32_t sets) {
  // By set and group, both in order.
  std::vector<std::map<std::uint32_t, GroupShares>> shares(sets);
  std::map<std::uint32_t, std::uint32_t> copies;  // Of an expert, by set.
  for (std::uint32_t e = 0; e < routing.experts; ++e) {
    const auto home = homes.of(e);
    copies.clear();
    for (const std::uint32_t rank : home) ++copies[set_of[rank]];
    for (const auto& [set, here] : copies) {
      shares[set][e / law.group_size].push_back(static_cast<double>(here) /
                                                static_cast<double>(home.size()));
    }
  }
  // Sets that look alike are asked for once, which also makes their numbers equal bit for bit.
  std::map<std::vector<GroupShares>, double> known;
  std::vector<double> hit;
  for (auto& by_group : shares) {
    std::vector<GroupShares> touched;
    for (auto& [g, of_group] : by_group) {
      std::ranges::sort(of_group);
      touched.push_back(std::move(of_group));
    }
    std::ranges::sort(touched);
    const auto found = known.find(touched);
    if (found != known.end()) {
      hit.push_back(found->second);
      continue;
    }
    hit.push_back(hit_probability(law, touched));
    known.emplace(std::move(touched), hit.back());
  }
  return hit;
}

Reach expected_reach(const ExpertRouting& routing, const ExpertGroup& group, const Homes& homes,
                     const CountLaw& law) {
  std::vector<std::uint32_t> itself(group.ranks());
  for (std::uint32_t r = 0; r < group.ranks(); ++r) itself[r] = r;
  Reach reach{.node = hits(routing, law, homes, group.node, group.nodes()),
              .rank = hits(routing, law, homes, itself, group.ranks()),
              .pairs = {}};
  // Each expert has k / E of the tokens. Slots by the number of copies of their expert, so that
  // ranks which hold as many of each kind get equal numbers.
  std::vector<std::map<std::size_t, std::uint32_t>> slots(group.ranks());
  for (std::uint32_t e = 0; e < routing.experts; ++e) {
    const auto home = homes.of(e);
    for (const std::uint32_t rank : home) ++slots[rank][home.size()];
  }
  for (const auto& by_copies : slots) {
    double experts = 0;
    for (const auto& [copies, number] : by_copies) {
      experts += number / static_cast<double>(copies);
    }
    reach.pairs.push_back(routing.chosen * experts / routing.experts);
  }
  return reach;
}

// Counts what tokens bring, drawn one after the other.
class Counter {
 public:
  Counter(const ExpertRouting& routing, const ExpertGroup& group, const Homes& homes)
      : sampler_(routing),
        group_(group),
        homes_(homes),
        chosen_(routing.chosen),
        node_seen_(group.nodes(), 0),
        rank_seen_(group.ranks(), 0) {}

  // Adds to rows of tables.
  void count(Random& random, std::uint64_t tokens, std::span<double> node, std::span<double> rank,
             std::span<double> pairs) {
    for (std::uint64_t t = 0; t < tokens; ++t) {
      ++token_;
      sampler_.draw(random, chosen_);
      for (const std::uint32_t expert : chosen_) {
        const auto home = homes_.of(expert);
        const std::uint32_t to = home.size() == 1
                                     ? home[0]
                                     : home[random.below(static_cast<std::uint32_t>(home.size()))];
        ++pairs[to];
        if (rank_seen_[to] == token_) continue;
        rank_seen_[to] = token_;
        ++rank[to];
        const std::uint32_t at = group_.node[to];
        if (node_seen_[at] == token_) continue;
        node_seen_[at] = token_;
        ++node[at];
      }
    }
  }

 private:
  GateSampler sampler_;
  const ExpertGroup& group_;
  const Homes& homes_;
  std::vector<std::uint32_t> chosen_;
  std::uint64_t token_ = 0;
  std::vector<std::uint64_t> node_seen_;  // The last token that went there.
  std::vector<std::uint64_t> rank_seen_;
};

Reach estimated_reach(const ExpertRouting& routing, const ExpertGroup& group, const Homes& homes) {
  Reach reach{.node = std::vector<double>(group.nodes(), 0),
              .rank = std::vector<double>(group.ranks(), 0),
              .pairs = std::vector<double>(group.ranks(), 0)};
  Random random(0, 1);
  Counter(routing, group, homes)
      .count(random, estimated_tokens, reach.node, reach.rank, reach.pairs);
  for (std::vector<double>* of : {&reach.node, &reach.rank, &reach.pairs}) {
    for (double& count : *of) count /= estimated_tokens;
  }
  return reach;
}

// All that an estimate depends on.
struct ReachKey {
  std::array<std::uint32_t, 5> gate;
  std::vector<double> popularity;
  std::vector<std::uint32_t> homes_begin;
  std::vector<std::uint32_t> homes_rank;
  std::vector<std::uint32_t> node;

  auto operator<=>(const ReachKey&) const = default;
};

Reach remembered_reach(const ExpertRouting& routing, const ExpertGroup& group, const Homes& homes) {
  constexpr std::size_t most_known = 64;
  static std::mutex one_at_a_time;
  static std::map<ReachKey, Reach> known;
  ReachKey key{.gate = {routing.experts, routing.chosen, static_cast<std::uint32_t>(routing.gate),
                        routing.groups, routing.groups_chosen},
               .popularity = routing.popularity,
               .homes_begin = homes.begin,
               .homes_rank = homes.rank,
               .node = group.node};
  const std::lock_guard lock(one_at_a_time);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  Reach reach = estimated_reach(routing, group, homes);
  if (known.size() == most_known) known.clear();
  known.emplace(std::move(key), reach);
  return reach;
}

CopyTable table(std::uint32_t rows, std::uint32_t columns) {
  return {.columns = columns, .counts = std::vector<double>(std::size_t{rows} * columns, 0)};
}

std::span<double> row(CopyTable& table, std::uint32_t rank) {
  return std::span(table.counts).subspan(std::size_t{rank} * table.columns, table.columns);
}

void fill(CopyTable& table, std::span<const double> per_token, const ExpertExchange& exchange,
          std::uint32_t ranks) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto tokens = static_cast<double>(tokens_of(exchange, rank));
    const auto counts = row(table, rank);
    for (std::size_t i = 0; i < per_token.size(); ++i) counts[i] = tokens * per_token[i];
  }
}

bool all_equal(std::span<const double> values) {
  return std::ranges::adjacent_find(values, std::not_equal_to<>()) == values.end();
}

bool symmetric(const ExpertExchange& exchange, const ExpertGroup& group, const Reach& reach) {
  for (const auto& members : group.members) {
    if (members.size() != group.members[0].size()) return false;
  }
  for (std::uint32_t rank = 1; rank < group.ranks(); ++rank) {
    if (tokens_of(exchange, rank) != tokens_of(exchange, 0)) return false;
  }
  return all_equal(reach.node) && all_equal(reach.rank) && all_equal(reach.pairs);
}

ExpertCopies copies_of(const ExpertExchange& exchange, const ExpertRouting& routing,
                       const ExpertGroup& group) {
  if (!exchange.rank_tokens.empty() && exchange.rank_tokens.size() != group.ranks()) {
    throw InputError(fmt::format("tokens of {} ranks are given, and the group has {}",
                                 exchange.rank_tokens.size(), group.ranks()));
  }
  const Homes homes = homes_of(routing, group);
  ExpertCopies copies{.to_node = table(group.ranks(), group.nodes()),
                      .to_rank = table(group.ranks(), group.ranks()),
                      .pairs = table(group.ranks(), group.ranks()),
                      .balanced = false,
                      .basis = {}};
  if (routing.sampled) {
    Counter counter(routing, group, homes);
    for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
      // A stream for every rank: what others send changes nothing.
      Random random(routing.seed, rank);
      counter.count(random, tokens_of(exchange, rank), row(copies.to_node, rank),
                    row(copies.to_rank, rank), row(copies.pairs, rank));
    }
    copies.basis = fmt::format("sampled, seed {}", routing.seed);
    return copies;
  }

  Reach reach;
  std::uint32_t estimated_from = estimated_tokens;
  if (routing.popularity.empty()) {
    const CountLaw law = count_law(routing);
    reach = expected_reach(routing, group, homes, law);
    estimated_from = law.estimated_from;
    copies.balanced = symmetric(exchange, group, reach);
  } else {
    reach = remembered_reach(routing, group, homes);
  }
  fill(copies.to_node, reach.node, exchange, group.ranks());
  fill(copies.to_rank, reach.rank, exchange, group.ranks());
  fill(copies.pairs, reach.pairs, exchange, group.ranks());
  copies.basis = estimated_from == 0
                     ? "expected, closed form"
                     : fmt::format("expected, estimated from {} tokens", estimated_from);
  return copies;
}

}  // namespace

ExpertGroup expert_group(std::span<const std::uint32_t> domain) {
  ExpertGroup group;
  std::vector<std::uint32_t> seen;  // Domains, in order.
  for (std::uint32_t rank = 0; rank < domain.size(); ++rank) {
    const auto found = std::ranges::find(seen, domain[rank]);
    const auto node = static_cast<std::uint32_t>(found - seen.begin());
    if (found == seen.end()) {
      seen.push_back(domain[rank]);
      group.members.emplace_back();
    }
    group.node.push_back(node);
    group.index.push_back(static_cast<std::uint32_t>(group.members[node].size()));
    group.members[node].push_back(rank);
  }
  return group;
}

ExpertCopies expert_copies(const ExpertExchange& exchange, const ExpertGroup& group) {
  try {
    if (all_equal(exchange.routing.popularity) && !exchange.routing.popularity.empty() &&
        exchange.routing.popularity[0] > 0) {
      check_routing(exchange.routing, group);
      ExpertRouting alike = exchange.routing;
      alike.popularity.clear();
      return copies_of(exchange, alike, group);
    }
    return copies_of(exchange, exchange.routing, group);
  } catch (const InputError& error) {
    throw InputError(fmt::format("expert exchange \"{}\": {}", exchange.name, error.problem()));
  }
}

}  // namespace flyover
