#pragma once

// The parameters of a layer that one rank works with.

#include <cstdint>

#include "flyover/layout/layout.hpp"
#include "flyover/layout/model.hpp"

namespace flyover {

// By what treats them alike.
struct RankParameters {
  double matrices = 0;  // Attention, dense and shared FFN: may be quantised,
  double experts = 0;   // routed experts, too;
  double others = 0;    // norms and routers: never.
  [[nodiscard]] double total() const { return matrices + experts + others; }
};
// Projections down to a latent space serve all heads, so every tensor rank has them; of fewer
// key-value heads than ranks each rank has one.
[[nodiscard]] RankParameters rank_parameters(const Model& model, const Layout& layout,
                                             std::uint32_t layer);

}  // namespace flyover
