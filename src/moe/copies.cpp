#include "flyover/moe/copies.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "moe/expert_homes.hpp"
#include "moe/reach.hpp"
#include "moe/routing_check.hpp"
#include "moe/token_counter.hpp"

namespace flyover {

namespace {

using namespace moe;

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
  const ExpertHomes homes = expert_homes(routing, group);
  ExpertCopies copies{.to_node = table(group.ranks(), group.nodes()),
                      .to_rank = table(group.ranks(), group.ranks()),
                      .pairs = table(group.ranks(), group.ranks()),
                      .balanced = false,
                      .basis = {}};
  if (routing.sampled) {
    TokenCounter counter(routing, group, homes);
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
  if (routing.popularity.empty()) {
    reach = expected_reach(routing, group, homes);
    copies.balanced = symmetric(exchange, group, reach);
    copies.basis = "expected, closed form";
  } else {
    reach = estimated_reach(routing, group, homes);
    copies.basis = fmt::format("expected, estimated from {} tokens", estimated_tokens);
  }
  fill(copies.to_node, reach.node, exchange, group.ranks());
  fill(copies.to_rank, reach.rank, exchange, group.ranks());
  fill(copies.pairs, reach.pairs, exchange, group.ranks());
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
