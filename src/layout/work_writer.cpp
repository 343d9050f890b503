#include "layout/work_writer.hpp"

#include <algorithm>

namespace flyover {

WorkWriter::WorkWriter(const TrainingJob& job, const StepKernels& kernels, const Layout& layout,
                       std::uint32_t domain)
    : job_(job),
      kernels_(kernels),
      layout_(layout),
      tokens_(parts(Count{layout.micro_batch} * job.sequence, layout.context)),
      split_(layout.sequence_parallel ? parts(tokens_, layout.tensor) : tokens_),
      wide_(job.options.compute == KernelType::Tf32 ? 4 : 2),
      narrow_(std::min(wide_, bytes_per_element(job.options.compute))),
      domain_(std::max(domain, 1U)),
      late_weights_(splits_gradients(layout.schedule)) {}

void WorkWriter::gemm(KernelSum& sum, Count m, Count n, Count k, double output_bytes,
                      std::optional<KernelType> type) const {
  sum.add(kernels_.run(Gemm{.m = m,
                            .n = n,
                            .k = k,
                            .type = type.value_or(options().compute),
                            .output_bytes = output_bytes}));
}

void WorkWriter::elementwise(KernelSum& sum, double read, double written,
                             std::uint32_t times) const {
  sum.add(kernels_.run(Elementwise{bytes_of(read, 1), bytes_of(written, 1)}), times);
}

void WorkWriter::quantise(KernelSum& sum, double elements) const {
  sum.add(kernels_.run(
      Quantise{static_cast<std::uint64_t>(std::llround(elements)), options().compute}));
}

void WorkWriter::quantise_weights(KernelSum& sum, double elements) const {
  const bool kept = options().quantised_parameters ||
                    (options().cached_quantised && layout_.sharding != Sharding::Parameters);
  if (!kept) quantise(sum, elements);
}

double WorkWriter::gradient_bytes() const {
  return 2 * (options().fp32_gradients ? 4.0 : wide_);
}

std::optional<Message> WorkWriter::tensor_message(CollectiveOp op, double elements,
                                                  double width) const {
  if (!tensor()) return std::nullopt;
  return Message{GroupKind::Tensor, op, bytes_of(elements, width)};
}

std::optional<Message> WorkWriter::join(CollectiveOp cut_op) const {
  const CollectiveOp op = layout_.sequence_parallel ? cut_op : CollectiveOp::AllReduce;
  return tensor_message(op, static_cast<double>(tokens_) * model().hidden, wide_);
}

std::optional<Message> WorkWriter::spread(double width) const {
  if (!layout_.sequence_parallel) return std::nullopt;
  return tensor_message(CollectiveOp::AllGather, static_cast<double>(tokens_) * model().hidden,
                        width);
}

double WorkWriter::hidden_gather() const {
  return overlap().tensor == TensorOverlap::Pipelined ? 1 : 0;
}

double WorkWriter::hidden_sum() const {
  if (overlap().tensor != TensorOverlap::Pipelined || !layout_.sequence_parallel) return 0;
  return 1 - 1.0 / static_cast<double>(tensor_ranks());
}

WorkItem WorkWriter::item(std::string_view name, const KernelSum& sum) {
  WorkItem item;
  item.name = name;
  item.compute = sum.time;
  item.kernels = sum.kernels;
  item.flops = sum.flops;
  item.bytes = sum.bytes;
  item.memory_bound = sum.memory_bound;
  return item;
}

WorkItem WorkWriter::item(std::string_view name, const KernelSum& sum,
                          std::optional<Message> message, double hidden, bool first) {
  WorkItem result = item(name, sum);
  result.message = std::move(message);
  result.hidden = hidden;
  result.message_first = first;
  return result;
}

void WorkWriter::add_forward(std::string_view name, const KernelSum& sum,
                             std::optional<Message> message, double hidden, bool first,
                             std::string_view module) {
  forward_.push_back({item(name, sum, std::move(message), hidden, first), module, block_});
}

void WorkWriter::add_forward(std::string_view name, const KernelSum& sum, std::string_view module) {
  forward_.push_back({item(name, sum), module, block_});
}

void WorkWriter::add_backward(std::string_view name, const KernelSum& sum,
                              std::optional<Message> message, double hidden, bool first) {
  backward_.push_back(item(name, sum, std::move(message), hidden, first));
}

void WorkWriter::add_backward(std::string_view name, const KernelSum& sum) {
  backward_.push_back(item(name, sum));
}

void WorkWriter::linear_forward(const Linear& matrix, std::string_view module) {
  KernelSum sum;
  quantise(sum, static_cast<double>(tokens_ * matrix.in));
  quantise_weights(sum, static_cast<double>(matrix.in * matrix.out));
  gemm(sum, tokens_, matrix.out, matrix.in, wide_);
  if (matrix.adapted) adapter(sum, matrix, 1);
  switch (matrix.cut) {
    case Cut::Column:
      add_forward(matrix.name, sum, spread(narrow_), hidden_gather(), true, module);
      break;
    case Cut::Row:
      add_forward(matrix.name, sum, join(CollectiveOp::ReduceScatter), hidden_sum(), false, module);
      break;
    case Cut::Whole:
      add_forward(matrix.name, sum, module);
  }
}

void WorkWriter::linear_backward(const Linear& matrix) {
  KernelSum input;
  quantise(input, static_cast<double>(tokens_ * matrix.out));
  gemm(input, tokens_, matrix.in, matrix.out, wide_);
  if (matrix.adapted) adapter(input, matrix, 2);
  KernelSum weights;
  if (!options().lora) {
    // The transposed operand, where a type has its scales along the other dimension: half of what
    // both together cost.
    if (narrow_ < wide_) quantise(weights, static_cast<double>(tokens_ * matrix.in) / 2);
    gemm(weights, matrix.in, matrix.out, tokens_, gradient_bytes());
  }
  const bool has_weights = weights.kernels > 0;
  if (matrix.cut == Cut::Row) {
    add_backward(matrix.backward_name, input, spread(narrow_), hidden_gather(), true);
    add_weights(matrix.weight_name, weights, {});
    return;
  }
  if (matrix.cut == Cut::Whole) {
    add_backward(matrix.backward_name, input);
    add_weights(matrix.weight_name, weights, {});
    return;
  }
  // What entered is gathered again for the weights while the input gradient is computed; that
  // gradient is summed up while the weights' is. A weight gradient that waits for a gap in the
  // pipeline hides nothing of it.
  const std::optional<Message> sum = join(CollectiveOp::ReduceScatter);
  const std::optional<Message> again = options().lora ? std::nullopt : spread(narrow_);
  if (late_weights_ || !has_weights) {
    add_backward(matrix.backward_name, input, sum, hidden_sum(), false);
    add_weights(matrix.weight_name, weights, again);
    return;
  }
  add_backward(matrix.backward_name, input, again, 1, true);
  add_weights(matrix.weight_name, weights, sum, 1);
}

void WorkWriter::add_weights(std::string_view name, const KernelSum& sum,
                             std::optional<Message> message, double hidden) {
  if (sum.kernels == 0) return;
  add_backward(name, sum, std::move(message), hidden, true);
  backward_.back().weight_gradient = true;
}

void WorkWriter::adapter(KernelSum& sum, const Linear& matrix, std::uint32_t times) const {
  for (std::uint32_t i = 0; i < times; ++i) {
    gemm(sum, tokens_, options().lora->rank, matrix.in, wide_, wide_type());
    gemm(sum, tokens_, matrix.out, options().lora->rank, wide_, wide_type());
  }
}

KernelType WorkWriter::wide_type() const {
  return narrow_ < wide_ ? KernelType::Bf16 : options().compute;
}

}  // namespace flyover
