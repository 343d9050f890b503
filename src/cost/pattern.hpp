#pragma once

#include <cstdint>
#include <span>

#include "flyover/cost/pattern.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

[[nodiscard]] Pattern trace_pattern(const Topology& topology, const Router& router,
                                    LoadMap& scratch, std::span<const std::uint32_t> ranks,
                                    const CollectiveShape& shape, const Algorithm& algorithm,
                                    const PatternOptions& options);

}  // namespace flyover
