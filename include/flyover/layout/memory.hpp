#pragma once

// What lies in a GPU's memory at the fullest moment of a training step, for every pipeline stage:
// docs/layouts.md, "Memory". Arithmetic on a valid layout (`problems` empty); nothing is simulated.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/layout/layout.hpp"
#include "flyover/layout/model.hpp"
#include "flyover/layout/training_options.hpp"

namespace flyover {

// Parameters that one rank of a stage works with, by what treats them alike. Under ZeRO-3 it stores
// a part of them.
struct StageParameters {
  double matrices = 0;       // Attention, dense and shared FFN: may be quantised,
  double experts = 0;        // routed experts, too;
  double others = 0;         // norms and routers: never;
  double embedding = 0;      // tokens and positions, or a copy that tying or MTP needs;
  double head = 0;           // the output projection.
  double largest_layer = 0;  // Of matrices, experts and others.
  [[nodiscard]] double dense() const { return matrices + others + embedding + head; }
  [[nodiscard]] double total() const { return dense() + experts; }
};
[[nodiscard]] StageParameters stage_parameters(const Model& model, const Layout& layout,
                                               std::uint32_t stage);

// Parameters of LoRA's adapters of one layer on one rank; MTP blocks have none.
struct AdapterParameters {
  double dense = 0;
  double experts = 0;
};
[[nodiscard]] AdapterParameters adapter_parameters(const Model& model, const Layout& layout,
                                                   const Lora& lora, std::uint32_t layer);

// Bytes per parameter, stored by one of `shards` ranks that share the states as `sharding` says.
// `matrix`: one that may be quantised.
struct StateBytes {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;
  [[nodiscard]] double total() const { return parameters + gradients + optimizer; }
};
[[nodiscard]] StateBytes state_bytes(const TrainingOptions& options, Sharding sharding,
                                     std::uint32_t shards, bool matrix = true);

// Bytes that one rank keeps of one micro-batch in one layer between its forward and its backward.
struct FfnActivations {
  double inner = 0;    // What the activation function reads,
  double product = 0;  // and what it writes.
  [[nodiscard]] double total() const { return inner + product; }
};
struct LayerActivations {
  double norm_inputs = 0;
  double norm_outputs = 0;
  double dropout_masks = 0;
  double latents = 0;  // What latent attention makes queries, keys and values of.
  double queries_keys_values = 0;
  double scores = 0;  // Softmax and dropout, or the log-sum-exp.
  double attention_output = 0;
  FfnActivations dense_ffn;
  FfnActivations shared_experts;
  FfnActivations experts;
  double dispatched = 0;  // Tokens at their experts, before and after them.
  double adapters = 0;    // Between the two halves of LoRA's.
  [[nodiscard]] double total() const;
};
// What the layout's recomputation leaves of them; with Full the layer's input only. Frozen matrices
// do not need their inputs (TrainingOptions::lora).
[[nodiscard]] LayerActivations layer_activations(const Model& model, const Layout& layout,
                                                 const TrainingOptions& options,
                                                 std::uint32_t sequence, std::uint32_t layer);

enum class MemoryPart : std::uint8_t {
  Parameters,
  Gradients,
  Optimizer,
  Activations,  // Of all micro-batches in flight.
  // One layer's: what is recomputed, and gradients of activations; what of it exceeds the logits,
  // which are gone by then.
  Working,
  Logits,   // With the input of the head; on the stage that has it.
  Buffers,  // Gathered units, buckets, received tensors, communicators, the device's context.
  Margin    // MemoryOptions::margin of all of the above: fragmentation and workspaces.
};
inline constexpr std::size_t memory_parts = 8;
[[nodiscard]] std::string_view to_string(MemoryPart part);

struct MemoryOptions {
  double margin = 0.05;
  // A communicator's buffers: NCCL_BUFFSIZE (4 MiB by default) for each of 32 channels.
  Bytes communicator{std::int64_t{128} << 20};
  // CUDA's context and the workspaces of its libraries: what nvidia-smi shows and PyTorch's own
  // peak does not.
  Bytes context{std::int64_t{1} << 30};
};

struct StageMemory {
  std::array<Bytes, memory_parts> parts{};
  double micro_batches_in_flight = 0;  // Of the whole stage, at the peak.
  [[nodiscard]] Bytes operator[](MemoryPart part) const {
    return parts[static_cast<std::size_t>(part)];
  }
  [[nodiscard]] Bytes total() const;
  [[nodiscard]] MemoryPart largest() const;
};

struct MemoryUse {
  std::vector<StageMemory> stages;
  std::uint32_t fullest = 0;  // The stage that needs most, the first of equals.
  Bytes capacity;
  bool fits = false;
  std::string reason;  // Why it does not fit; empty when it does.
};

// O(stages x virtual stages), and the steps until the pipeline is full for stages of interleaved
// schedules whose chunks differ: microseconds.
[[nodiscard]] MemoryUse memory_use(const Model& model, const Layout& layout,
                                   const TrainingOptions& options, std::uint32_t sequence,
                                   Bytes capacity, const MemoryOptions& memory = {});

}  // namespace flyover
