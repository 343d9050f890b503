#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/base/units.hpp"

namespace flyover::routing {

inline constexpr std::uint32_t none = 0xffffffffU;

// A link in service, before it is indexed. `link` is whatever the owner of the graph calls it.
struct Arc {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t link = 0;
  double bandwidth = 0;
  Duration latency{};
};

// The part of a topology that one kind of path may use: vertices numbered from 0, and of those
// which may be passed through (all may begin and end a path).
class Digraph {
 public:
  Digraph() = default;
  Digraph(std::span<const Arc> arcs, std::vector<char> transit);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(transit_.size()); }
  [[nodiscard]] bool transit(std::uint32_t v) const { return transit_[v] != 0; }
  // Links that leave v, by target; parallel ones in the order of the arcs.
  [[nodiscard]] std::span<const Arc> out(std::uint32_t v) const {
    return std::span(out_).subspan(out_begin_[v], out_begin_[v + 1] - out_begin_[v]);
  }
  // Those of them that lead to `to`, found by bisection.
  [[nodiscard]] std::span<const Arc> between(std::uint32_t v, std::uint32_t to) const;
  // The vertices with a link to v, each once however many cables there are.
  [[nodiscard]] std::span<const std::uint32_t> before(std::uint32_t v) const {
    return std::span(before_).subspan(before_begin_[v], before_begin_[v + 1] - before_begin_[v]);
  }

 private:
  std::vector<char> transit_;
  std::vector<Arc> out_;
  std::vector<std::uint32_t> out_begin_{0};
  std::vector<std::uint32_t> before_;
  std::vector<std::uint32_t> before_begin_{0};
};

}  // namespace flyover::routing
