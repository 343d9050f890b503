#pragma once

// Equal-cost multipath: each switch sends all packets of a flow over one of its equally short next
// hops, chosen by a hash of the flow.

#include <cstdint>
#include <span>

#include "flyover/base/ids.hpp"
#include "hash.hpp"

namespace flyover::routing {

// What the switches hash: the same for every packet of the flow.
[[nodiscard]] constexpr std::uint64_t flow_key(std::uint64_t seed, VertexId from, VertexId to,
                                               std::uint64_t flow) {
  return combine(combine(combine(mix(seed), index(from)), index(to)), flow);
}

// Differs from switch to switch, so that the choice at one says nothing about the choice at the
// next.
[[nodiscard]] constexpr std::uint64_t hop_key(std::uint64_t flow_key, std::uint64_t vertex) {
  return combine(flow_key, vertex);
}

// An even choice among n, from a well-mixed key: its upper half as a fraction of n.
[[nodiscard]] constexpr std::uint32_t choice(std::uint64_t key, std::size_t n) {
  return static_cast<std::uint32_t>(((key >> 32) * n) >> 32);
}

// One of the items that qualify, or nullptr.
template <class T, class Predicate>
[[nodiscard]] const T* pick(std::span<const T> items, std::uint64_t key, Predicate qualifies) {
  std::size_t n = 0;
  for (const T& item : items) n += qualifies(item) ? 1 : 0;
  if (n == 0) return nullptr;
  std::uint32_t k = choice(key, n);
  for (const T& item : items) {
    if (qualifies(item) && k-- == 0) return &item;
  }
  return nullptr;
}

}  // namespace flyover::routing
