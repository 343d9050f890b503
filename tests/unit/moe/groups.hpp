#pragma once

// Groups and exchanges that tests of moe/ share.

#include <cstdint>
#include <vector>

#include "flyover/moe/copies.hpp"

namespace flyover::test {

inline ExpertGroup nodes_of(std::uint32_t gpus, std::uint32_t ranks) {
  std::vector<std::uint32_t> domain;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) domain.push_back(rank / gpus);
  return expert_group(domain);
}

inline ExpertRouting top_k(std::uint32_t experts, std::uint32_t chosen) {
  ExpertRouting routing;
  routing.experts = experts;
  routing.chosen = chosen;
  return routing;
}

inline ExpertRouting grouped(Gate gate, std::uint32_t experts, std::uint32_t chosen,
                             std::uint32_t groups, std::uint32_t groups_chosen) {
  ExpertRouting routing = top_k(experts, chosen);
  routing.gate = gate;
  routing.groups = groups;
  routing.groups_chosen = groups_chosen;
  return routing;
}

inline ExpertExchange exchange_of(ExpertRouting routing, std::uint32_t tokens) {
  ExpertExchange exchange;
  exchange.name = "layer";
  exchange.routing = std::move(routing);
  exchange.tokens = tokens;
  return exchange;
}

inline double sum_of_row(const CopyTable& table, std::uint32_t row) {
  double sum = 0;
  for (std::uint32_t column = 0; column < table.columns; ++column) sum += table.at(row, column);
  return sum;
}

}  // namespace flyover::test
