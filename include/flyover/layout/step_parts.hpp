#pragma once

// What one rank does in a training step, piece by piece: kernels with their times, and the messages
// between them with what they may run beside. The closed form (step_estimate.hpp) and the operation
// graph (expand.hpp) are made of the same pieces. docs/layouts.md, "Work and messages".

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/layout/group_kind.hpp"
#include "flyover/layout/kernel_time.hpp"
#include "flyover/layout/layout.hpp"
#include "flyover/layout/model.hpp"
#include "flyover/layout/stack.hpp"
#include "flyover/layout/training_options.hpp"
#include "flyover/workload/collective_op.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

// A job without its layout: what stays the same while layouts are compared.
struct TrainingJob {
  Model model;
  std::uint32_t sequence = 0;  // s
  TrainingOptions options;
  Overlap overlap;
  SoftwareStack stack;
};

// Of every member of this rank's group, `count` times in a row. Bytes as CollectiveOp counts them.
struct Message {
  GroupKind group = GroupKind::Tensor;
  CollectiveOp op = CollectiveOp::AllReduce;
  Bytes bytes;
  std::uint32_t count = 1;
  // Of dispatch and combine by kernels of their own; `bytes` is pair_bytes(). Null: a collective.
  std::shared_ptr<const ExpertExchange> exchange = {};
  // The same while a fused step's kernels run beside it.
  std::shared_ptr<const ExpertExchange> exchange_beside = {};
};

// A few kernels in a row, and at most one message. `hidden` of the message (1: all) runs beside the
// kernels, the rest before them or after them:
//
//   time = (1 - hidden) M + max(K', hidden M)     K' = K + contention x min(K, hidden M)
struct WorkItem {
  std::string_view name;  // "qkv", "attention", ...; has static storage.
  Duration compute{};     // K, of the kernels in this stack.
  std::uint32_t kernels = 0;
  Flops flops;              // Done, recomputation included.
  Bytes bytes;              // Through memory, at least.
  Duration memory_bound{};  // Of K, kernels that wait for memory or for their own start.
  std::optional<Message> message;
  bool message_first = true;  // What is not hidden comes before the kernels.
  double hidden = 0;
  bool weight_gradient = false;  // Of a backward: may be done whenever there is time.
};

struct LayerWork {
  std::vector<WorkItem> forward;
  // What a backward repeats of the forward first.
  std::vector<WorkItem> recompute;
  std::vector<WorkItem> backward;
};

// The traffic of states.
struct StateMessages {
  std::vector<Message> gather;  // Parameters, before they are used (ZeRO-1 to 3).
  std::vector<Message> reduce;  // Gradients.
};

// Parameters that one rank works with, of experts and others (dense).
struct OwnParameters {
  double dense = 0;
  double experts = 0;
  double trained_dense = 0;  // Of them; all but with LoRA.
  double trained_experts = 0;
  OwnParameters& operator+=(const OwnParameters& other) {
    dense += other.dense;
    experts += other.experts;
    trained_dense += other.trained_dense;
    trained_experts += other.trained_experts;
    return *this;
  }
};

// Pieces of a job on one kind of GPU. Layers are the same for all layouts that agree in what a
// layer depends on (tensor, context, expert, micro-batch, ...): found by that key, computed once.
class StepParts {
 public:
  // Throws InputError when the kernel model or the GPU cannot do what the job asks for.
  // `domain`: GPUs of one scale-up domain, which a fused dispatch sends one copy of a token to.
  StepParts(TrainingJob job, const KernelModel& kernels, const GpuModel& gpu, std::uint32_t domain);
  ~StepParts();
  StepParts(StepParts&&) noexcept;

  [[nodiscard]] const TrainingJob& job() const;
  [[nodiscard]] const GpuModel& gpu() const;
  // Layers with one number do the same work: layer_kind(i) < layer_kinds().
  [[nodiscard]] std::uint32_t layer_kind(std::uint32_t layer) const;
  [[nodiscard]] std::uint32_t layer_kinds() const;
  // What host code takes for a layer's forward; for its backward twice that.
  [[nodiscard]] Duration host(std::uint32_t layer) const;

  // These require a layout without problems. References stay valid.
  [[nodiscard]] const LayerWork& layer(const Layout& layout, std::uint32_t layer) const;
  [[nodiscard]] const LayerWork& embedding(const Layout& layout) const;
  [[nodiscard]] const LayerWork& head(const Layout& layout) const;  // With the loss and MTP.

  // Messages for so many parameters that a rank works with. Under ZeRO-3 of one layer, for each of
  // its passes; otherwise of what a bucket holds. None where groups have one rank.
  [[nodiscard]] StateMessages state_messages(const Layout& layout,
                                             const OwnParameters& parameters) const;
  // Of one layer; of the embedding, or the copy of it that a tied head has; of the head with its
  // norm and blocks for multi-token prediction.
  [[nodiscard]] OwnParameters layer_parameters(const Layout& layout, std::uint32_t layer) const;
  [[nodiscard]] OwnParameters embedding_parameters(const Layout& layout) const;
  [[nodiscard]] OwnParameters head_parameters(const Layout& layout) const;

  // What one rank of every stage works with: its layers, on the first stage the embedding, on the
  // last the head.
  [[nodiscard]] std::vector<OwnParameters> stage_parameters(const Layout& layout) const;
  // The optimizer's kernels for what a rank works with, without messages.
  [[nodiscard]] Duration optimizer(const Layout& layout, const OwnParameters& own) const;
  [[nodiscard]] Duration optimizer(const Layout& layout, std::uint32_t stage) const;
  // Of activations, between two stages.
  [[nodiscard]] Bytes boundary_bytes(const Layout& layout) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover
