#pragma once

// Writes down the work of a rank with one micro-batch, item by item: what all blocks of a model
// have in common. Backwards are written in their own order, last block first.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "flyover/layout/layout.hpp"
#include "flyover/layout/step_parts.hpp"
#include "layout/kernel_sum.hpp"

namespace flyover {

using Count = std::uint64_t;

// Rounded up.
inline Count parts(Count whole, Count ways) {
  return (whole + ways - 1) / ways;
}

inline Bytes bytes_of(double elements, double width) {
  return Bytes{std::llround(elements * width)};
}

// What Layout::recompute_modules can name: an item's own part, and the block around it.
struct Tagged {
  WorkItem item;
  std::string_view module;
  std::string_view block;
};

// A matrix that tensor ranks cut by columns of its output (Column: what enters is whole, what
// leaves is cut), by rows of its input (Row: the other way round), or not at all.
enum class Cut : std::uint8_t { Column, Row, Whole };

struct Linear {
  std::string_view name;
  std::string_view backward_name;
  std::string_view weight_name;
  Cut cut = Cut::Whole;
  Count in = 1;          // Width of what enters on this rank,
  Count out = 1;         // and of what leaves.
  bool adapted = false;  // By LoRA.
};

// Borrows job, kernels and layout.
class WorkWriter {
 public:
  WorkWriter(const TrainingJob& job, const StepKernels& kernels, const Layout& layout,
             std::uint32_t domain);

  [[nodiscard]] const TrainingJob& job() const { return job_; }
  [[nodiscard]] const Model& model() const { return job_.model; }
  [[nodiscard]] const TrainingOptions& options() const { return job_.options; }
  [[nodiscard]] const Overlap& overlap() const { return job_.overlap; }
  [[nodiscard]] const StepKernels& kernels() const { return kernels_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] Count tensor_ranks() const { return layout_.tensor; }
  // Of one tensor rank: heads, heads of keys and values, and matrices that enter an activation.
  [[nodiscard]] Count heads() const { return parts(model().attention.heads, tensor_ranks()); }
  [[nodiscard]] Count kv_heads() const {
    return std::max<Count>(parts(model().attention.kv_heads, tensor_ranks()), 1);
  }
  [[nodiscard]] Count gates() const { return model().ffn_matrices - 1; }
  // Of a micro-batch on one context rank, and where tensor ranks share them out.
  [[nodiscard]] Count tokens() const { return tokens_; }
  [[nodiscard]] Count split() const { return split_; }
  // Bytes of an activation, and of what matrix multiplications read.
  [[nodiscard]] double wide() const { return wide_; }
  [[nodiscard]] double narrow() const { return narrow_; }
  [[nodiscard]] std::uint32_t domain() const { return domain_; }
  // Weight gradients wait for a gap in the pipeline.
  [[nodiscard]] bool late_weights() const { return late_weights_; }

  // Items that follow belong to this block, for what is recomputed; "" ends it.
  void block(std::string_view name) { block_ = name; }
  [[nodiscard]] const std::vector<Tagged>& forward() const { return forward_; }
  [[nodiscard]] std::vector<WorkItem> take_backward() { return std::move(backward_); }
  // Items written elsewhere.
  void append_forward(const WorkItem& item) { forward_.push_back({item, {}, {}}); }
  void append_backward(const WorkItem& item) { backward_.push_back(item); }

  [[nodiscard]] StepKernels::Slowed run(const AnyKernel& kernel) const {
    return kernels_.run(kernel);
  }
  // Kernels added to a sum; `elements` and bytes are counts.
  void gemm(KernelSum& sum, Count m, Count n, Count k, double output_bytes,
            std::optional<KernelType> type = {}) const;
  void elementwise(KernelSum& sum, double read, double written, std::uint32_t times = 1) const;
  void quantise(KernelSum& sum, double elements) const;
  // Weights that are not kept in the narrow type are brought into it for every use.
  void quantise_weights(KernelSum& sum, double elements) const;
  // Read and written where gradients are added up over micro-batches.
  [[nodiscard]] double gradient_bytes() const;

  [[nodiscard]] bool tensor() const { return tensor_ranks() > 1; }
  [[nodiscard]] std::optional<Message> tensor_message(CollectiveOp op, double elements,
                                                      double width) const;
  // Partial sums of all ranks become the sum, whole on every rank or, with sequence parallelism,
  // its tokens shared out.
  [[nodiscard]] std::optional<Message> join(CollectiveOp cut_op) const;
  // Tokens that were shared out become whole on every rank.
  [[nodiscard]] std::optional<Message> spread(double width) const;
  // Cut into as many parts as there are ranks, a sum's last part has nothing to hide behind.
  [[nodiscard]] double hidden_gather() const;
  [[nodiscard]] double hidden_sum() const;

  // `module` is the item's own name among recompute modules.
  void add_forward(std::string_view name, const KernelSum& sum, std::optional<Message> message,
                   double hidden, bool first, std::string_view module = {});
  void add_forward(std::string_view name, const KernelSum& sum, std::string_view module = {});
  void add_backward(std::string_view name, const KernelSum& sum, std::optional<Message> message,
                    double hidden, bool first);
  void add_backward(std::string_view name, const KernelSum& sum);
  // A matrix with what is quantised for it and the message that its cut needs.
  void linear_forward(const Linear& matrix, std::string_view module);
  void linear_backward(const Linear& matrix);
  // Nothing when the sum is empty, as of frozen matrices.
  void add_weights(std::string_view name, const KernelSum& sum, std::optional<Message> message,
                   double hidden = 0);
  // What is multiplied in 16 bits whatever the job's type.
  [[nodiscard]] KernelType wide_type() const;

 private:
  static WorkItem item(std::string_view name, const KernelSum& sum);
  static WorkItem item(std::string_view name, const KernelSum& sum, std::optional<Message> message,
                       double hidden, bool first);
  // Two thin matrices beside the frozen one; backward twice, for inputs and weights.
  void adapter(KernelSum& sum, const Linear& matrix, std::uint32_t times) const;

  const TrainingJob& job_;
  const StepKernels& kernels_;
  const Layout& layout_;
  Count tokens_;
  Count split_;
  double wide_;
  double narrow_;
  std::uint32_t domain_;
  bool late_weights_;
  std::string_view block_;
  std::vector<Tagged> forward_;
  std::vector<WorkItem> backward_;
};

}  // namespace flyover
