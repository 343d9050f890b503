#pragma once

// What a stage is made of: chunks of units, and how the states of units travel.

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/layout/schedule.hpp"
#include "flyover/layout/step_parts.hpp"

namespace flyover {

// The embedding, a layer, or the head.
struct StageUnit {
  std::string name;  // "layer 12"
  const LayerWork* work = nullptr;
  Duration host{};           // What host code takes for the forward.
  std::uint32_t bucket = 0;  // Of its chunk's.
  StateMessages states;      // Under ZeRO-3, else empty.
  // Messages that go on beside a pass: under ZeRO-3 as long as the unit's own, else its share of
  // its bucket's.
  Duration gathering{};
  Duration reducing{};
};

// Units whose states travel together under ZeRO-0 to 2.
struct StateBucket {
  std::uint32_t first_unit = 0;  // The last one to have its gradients.
  StateMessages states;
};

struct StageChunk {
  std::uint32_t number = 0;          // Of the model's.
  std::vector<StageUnit> units;      // In order of the forward.
  std::vector<StateBucket> buckets;  // In order of the backward; none under ZeRO-3.
};

// The chunks of a stage. Buckets are whole units with gradients of `overlap.bucket` bytes or more,
// but for a chunk's last.
[[nodiscard]] std::vector<StageChunk> stage_chunks(const StepParts& parts, const Layout& layout,
                                                   std::uint32_t stage);

// Bytes of the gradient of a tied embedding on one rank.
[[nodiscard]] Bytes embedding_gradient_bytes(const StepParts& parts, const Layout& layout);

}  // namespace flyover
