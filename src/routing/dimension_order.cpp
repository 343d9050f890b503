#include "dimension_order.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ecmp.hpp"
#include "flyover/base/error.hpp"

namespace flyover::routing {

DimensionOrder::DimensionOrder(const Topology& topology, const Fabric& fabric)
    : fabric_(&fabric),
      extents_(topology.torus),
      position_of_(fabric.graph().size(), none) {
  if (extents_.empty()) {
    throw InputError(
        fmt::format("dimension-order routing needs a torus, but the fabric is \"{}\"; use \"ecmp\" "
                    "or \"adaptive\"",
                    topology.fabric));
  }
  std::uint64_t product = 1;
  for (const std::uint32_t extent : extents_) product *= extent;
  for (std::uint32_t v = 0; v < fabric.graph().size(); ++v) {
    if (!fabric.graph().transit(v)) continue;
    routers_.push_back(v);
  }
  if (routers_.size() != product) {
    throw InputError(
        fmt::format("the torus has {} places, but {} routers", product, routers_.size()));
  }
  std::ranges::sort(routers_, {}, [&](std::uint32_t v) { return fabric.vertex(v); });
  for (std::uint32_t k = 0; k < routers_.size(); ++k) position_of_[routers_[k]] = k;
}

bool DimensionOrder::find(std::uint32_t from, std::uint32_t to, std::uint64_t key,
                          std::vector<Arc>& path) const {
  path.clear();
  std::uint32_t here = position_of_[from];
  const std::uint32_t there = position_of_[to];
  if (here == none || there == none) return false;
  std::uint32_t stride = 1;
  for (const std::uint32_t extent : extents_) {
    const std::uint32_t goal = there / stride % extent;
    const std::uint32_t ahead = (goal + extent - here / stride % extent) % extent;
    const bool upwards = ahead <= extent - ahead;
    while (here / stride % extent != goal) {
      const std::uint32_t at = here / stride % extent;
      const std::uint32_t next_at = (upwards ? at + 1 : at + extent - 1) % extent;
      const std::uint32_t next = here - at * stride + next_at * stride;
      const Arc* cable = pick(fabric_->graph().out(routers_[here]), hop_key(key, here),
                              [&](const Arc& arc) { return arc.to == routers_[next]; });
      if (cable == nullptr) return false;
      path.push_back(*cable);
      here = next;
    }
    stride *= extent;
  }
  return true;
}

}  // namespace flyover::routing
