#include "layout/layer_work.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace flyover {

namespace {

using Count = std::uint64_t;

Count parts(Count whole, Count ways) {
  return (whole + ways - 1) / ways;
}

Bytes bytes_of(double elements, double width) {
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

// Writes down one block after the other; a backward is written in its own order, last block first.
class Writer {
 public:
  Writer(const TrainingJob& job, const StepKernels& kernels, const Layout& layout,
         std::uint32_t domain)
      : job_(job),
        model_(job.model),
        options_(job.options),
        overlap_(job.overlap),
        kernels_(kernels),
        layout_(layout),
        t_(layout.tensor),
        tokens_(parts(Count{layout.micro_batch} * job.sequence, layout.context)),
        split_(layout.sequence_parallel ? parts(tokens_, t_) : tokens_),
        wide_(options_.compute == KernelType::Tf32 ? 4 : 2),
        narrow_(std::min(wide_, bytes_per_element(options_.compute))),
        domain_(std::max(domain, 1U)),
        late_weights_(layout.schedule == PipelineSchedule::ZeroBubbleH1 ||
                      layout.schedule == PipelineSchedule::ZeroBubbleV) {}

  LayerWork layer(std::uint32_t index) {
    const bool experts = has_experts(model_, index);
    norm_forward("norm-attention");
    attention_forward(index);
    norm_forward("norm-ffn");
    if (experts) {
      experts_forward();
    } else {
      ffn_forward(model_.ffn_hidden, "mlp");
    }
    if (experts) {
      experts_backward();
    } else {
      ffn_backward(model_.ffn_hidden);
    }
    norm_backward("norm-ffn backward");
    attention_backward(index);
    norm_backward("norm-attention backward");
    return finish();
  }

  LayerWork embedding() {
    const double h = model_.hidden;
    const double moved = static_cast<double>(tokens_) * h * wide_;
    KernelSum look_up;
    elementwise(look_up, moved, moved);
    // Ranks have rows of their own, zeros for all others: summed up.
    add_forward("embedding", look_up, join(CollectiveOp::ReduceScatter), 0, false);
    if (!options_.lora) {
      KernelSum scatter;
      elementwise(scatter, 2 * moved, moved);
      add_backward("embedding backward", scatter, spread(wide_), 0, true);
    }
    return finish();
  }

  LayerWork head() {
    for (std::uint32_t block = 0; block < model_.mtp_layers; ++block) {
      const Count h = model_.hidden;
      const Linear projection{
          "mtp-projection", "mtp-projection backward", "mtp-projection weights", Cut::Column, 2 * h,
          parts(h, t_)};
      norm_forward("norm-mtp");
      linear_forward(projection, {});
      const LayerWork last = layer_work(job_, kernels_, layout_, model_.layers - 1, domain_);
      for (const WorkItem& item : last.forward) forward_.push_back({item, {}, {}});
      logits_forward();
      logits_backward();
      for (const WorkItem& item : last.recompute) backward_.push_back(item);
      for (const WorkItem& item : last.backward) backward_.push_back(item);
      linear_backward(projection);
      norm_backward("norm-mtp backward");
    }
    norm_forward("norm-final");
    logits_forward();
    logits_backward();
    norm_backward("norm-final backward");
    LayerWork work = finish();
    work.recompute.clear();  // Nothing after the last layer is repeated.
    return work;
  }

 private:
  // --- Kernels ---

  void gemm(KernelSum& sum, Count m, Count n, Count k, double output_bytes,
            std::optional<KernelType> type = {}) const {
    sum.add(kernels_.run(Gemm{.m = m,
                              .n = n,
                              .k = k,
                              .type = type.value_or(options_.compute),
                              .output_bytes = output_bytes}));
  }
  void elementwise(KernelSum& sum, double read, double written, std::uint32_t times = 1) const {
    sum.add(kernels_.run(Elementwise{bytes_of(read, 1), bytes_of(written, 1)}), times);
  }
  void quantise(KernelSum& sum, double elements) const {
    sum.add(kernels_.run(
        Quantise{static_cast<std::uint64_t>(std::llround(elements)), options_.compute}));
  }
  // Weights that are not kept in the narrow type are brought into it for every use.
  void quantise_weights(KernelSum& sum, double elements) const {
    const bool kept = options_.quantised_parameters ||
                      (options_.cached_quantised && layout_.sharding != Sharding::Parameters);
    if (!kept) quantise(sum, elements);
  }
  // Read and written where gradients are added up over micro-batches.
  [[nodiscard]] double gradient_bytes() const {
    return 2 * (options_.fp32_gradients ? 4.0 : wide_);
  }

  // --- Messages of the tensor group ---

  [[nodiscard]] bool tensor() const { return t_ > 1; }
  [[nodiscard]] std::optional<Message> tensor_message(CollectiveOp op, double elements,
                                                      double width) const {
    if (!tensor()) return std::nullopt;
    return Message{GroupKind::Tensor, op, bytes_of(elements, width)};
  }
  // Partial sums of all ranks become the sum, whole on every rank or, with sequence parallelism,
  // its tokens shared out.
  [[nodiscard]] std::optional<Message> join(CollectiveOp cut_op) const {
    const CollectiveOp op = layout_.sequence_parallel ? cut_op : CollectiveOp::AllReduce;
    return tensor_message(op, static_cast<double>(tokens_) * model_.hidden, wide_);
  }
  // Tokens that were shared out become whole on every rank.
  [[nodiscard]] std::optional<Message> spread(double width) const {
    if (!layout_.sequence_parallel) return std::nullopt;
    return tensor_message(CollectiveOp::AllGather, static_cast<double>(tokens_) * model_.hidden,
                          width);
  }
  // Cut into as many parts as there are ranks, a sum's last part has nothing to hide behind.
  [[nodiscard]] double hidden_gather() const {
    return overlap_.tensor == TensorOverlap::Pipelined ? 1 : 0;
  }
  [[nodiscard]] double hidden_sum() const {
    if (overlap_.tensor != TensorOverlap::Pipelined || !layout_.sequence_parallel) return 0;
    return 1 - 1.0 / static_cast<double>(t_);
  }

  // --- Items ---

  static WorkItem item(std::string_view name, const KernelSum& sum) {
    WorkItem item;
    item.name = name;
    item.compute = sum.time;
    item.kernels = sum.kernels;
    item.flops = sum.flops;
    item.bytes = sum.bytes;
    item.memory_bound = sum.memory_bound;
    return item;
  }
  static WorkItem item(std::string_view name, const KernelSum& sum, std::optional<Message> message,
                       double hidden, bool first) {
    WorkItem result = item(name, sum);
    result.message = std::move(message);
    result.hidden = hidden;
    result.message_first = first;
    return result;
  }
  void add_forward(std::string_view name, const KernelSum& sum, std::optional<Message> message,
                   double hidden, bool first, std::string_view module = {}) {
    forward_.push_back({item(name, sum, std::move(message), hidden, first), module, block_});
  }
  void add_forward(std::string_view name, const KernelSum& sum, std::string_view module = {}) {
    forward_.push_back({item(name, sum), module, block_});
  }
  void add_backward(std::string_view name, const KernelSum& sum, std::optional<Message> message,
                    double hidden, bool first) {
    backward_.push_back(item(name, sum, std::move(message), hidden, first));
  }
  void add_backward(std::string_view name, const KernelSum& sum) {
    backward_.push_back(item(name, sum));
  }

  // --- Blocks ---

  void linear_forward(const Linear& matrix, std::string_view module) {
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
        add_forward(matrix.name, sum, join(CollectiveOp::ReduceScatter), hidden_sum(), false,
                    module);
        break;
      case Cut::Whole:
        add_forward(matrix.name, sum, module);
    }
  }

  void linear_backward(const Linear& matrix) {
    KernelSum input;
    quantise(input, static_cast<double>(tokens_ * matrix.out));
    gemm(input, tokens_, matrix.in, matrix.out, wide_);
    if (matrix.adapted) adapter(input, matrix, 2);
    KernelSum weights;
    if (!options_.lora) {
      if (matrix.cut != Cut::Whole || narrow_ < wide_) {
        // The transposed operand, where a type has its scales along the other dimension.
        quantise(weights, narrow_ < wide_ ? static_cast<double>(tokens_ * matrix.in) * 0.5 : 0);
      }
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
    const std::optional<Message> again = options_.lora ? std::nullopt : spread(narrow_);
    if (late_weights_ || !has_weights) {
      add_backward(matrix.backward_name, input, sum, hidden_sum(), false);
      add_weights(matrix.weight_name, weights, again);
      return;
    }
    add_backward(matrix.backward_name, input, again, 1, true);
    add_weights(matrix.weight_name, weights, sum, 1);
  }

  void add_weights(std::string_view name, const KernelSum& sum, std::optional<Message> message,
                   double hidden = 0) {
    if (sum.kernels == 0) return;
    add_backward(name, sum, std::move(message), hidden, true);
    backward_.back().weight_gradient = true;
  }

  // Two thin matrices beside the frozen one; backward twice, for inputs and weights.
  void adapter(KernelSum& sum, const Linear& matrix, std::uint32_t times) const {
    for (std::uint32_t i = 0; i < times; ++i) {
      gemm(sum, tokens_, options_.lora->rank, matrix.in, wide_, wide_type());
      gemm(sum, tokens_, matrix.out, options_.lora->rank, wide_, wide_type());
    }
  }
  [[nodiscard]] KernelType wide_type() const {
    return narrow_ < wide_ ? KernelType::Bf16 : options_.compute;
  }

  // A norm and the addition to the residual stream before it.
  void norm_forward(std::string_view name) {
    const double row = static_cast<double>(split_) * model_.hidden * wide_;
    KernelSum sum;
    elementwise(sum, 2 * row, row);  // The addition,
    elementwise(sum, row, row);      // the norm.
    if (options_.dropout) elementwise(sum, row, 1.5 * row);
    add_forward(name, sum, "norm");
  }
  void norm_backward(std::string_view name) {
    const double row = static_cast<double>(split_) * model_.hidden * wide_;
    KernelSum sum;
    elementwise(sum, 2 * row, row);
    elementwise(sum, 2 * row, row);
    if (options_.dropout) elementwise(sum, 1.5 * row, row);
    add_backward(name, sum);
  }

  [[nodiscard]] Count heads() const { return parts(model_.attention.heads, t_); }
  [[nodiscard]] Count kv_heads() const {
    return std::max<Count>(parts(model_.attention.kv_heads, t_), 1);
  }
  [[nodiscard]] Count value_dim() const {
    const Attention& attention = model_.attention;
    return attention.latent ? attention.latent->value_dim : attention.head_dim;
  }

  // Projections before attention, in order of the forward.
  [[nodiscard]] std::vector<std::pair<Linear, std::string_view>> projections() const {
    const Attention& attention = model_.attention;
    const bool adapted = options_.lora && options_.lora->attention;
    const Count h = model_.hidden;
    if (!attention.latent) {
      const Count out = (heads() + 2 * kv_heads()) * attention.head_dim;
      return {{{"qkv", "qkv backward", "qkv weights", Cut::Column, h, out, adapted}, {}}};
    }
    const LatentAttention& latent = *attention.latent;
    const Count key = latent.nope_dim + latent.rope_dim;
    const Count query_in = latent.query_rank > 0 ? latent.query_rank : h;
    return {
        {{"latent-down", "latent-down backward", "latent-down weights", Cut::Column, h,
          latent.query_rank + latent.kv_rank + latent.rope_dim, adapted},
         {}},
        {{"q-up", "q-up backward", "q-up weights", Cut::Whole, query_in, heads() * key, adapted},
         "mla_up_proj"},
        {{"kv-up", "kv-up backward", "kv-up weights", Cut::Whole, latent.kv_rank,
          heads() * (latent.nope_dim + latent.value_dim), adapted},
         "mla_up_proj"},
    };
  }
  [[nodiscard]] Linear output_projection() const {
    return {"out",
            "out backward",
            "out weights",
            Cut::Row,
            heads() * value_dim(),
            model_.hidden,
            options_.lora && options_.lora->attention};
  }

  [[nodiscard]] AttentionKernel attention_kernel(std::uint32_t index, bool backward) const {
    const Attention& attention = model_.attention;
    AttentionKernel kernel;
    kernel.sequences = layout_.micro_batch;
    kernel.tokens = job_.sequence;
    kernel.kv_tokens = job_.sequence;
    kernel.heads = heads();
    kernel.kv_heads = std::min(kv_heads(), kernel.heads);
    if (attention.latent) kernel.kv_heads = kernel.heads;
    kernel.head_dim = attention.head_dim;
    kernel.value_dim = value_dim();
    kernel.window = has_window(model_, index) ? attention.window : 0;
    if (kernel.window >= job_.sequence) kernel.window = 0;
    kernel.backward = backward;
    kernel.type = options_.compute == KernelType::Fp16 ? KernelType::Fp16 : KernelType::Bf16;
    if (!options_.flash_attention) kernel.generation = "unfused";
    return kernel;
  }
  // A rank's share of attention over the whole sequence: with all-to-all a part of the heads, else
  // as many queries of the beginning as of the end, which balances what the mask leaves.
  void attention_core(KernelSum& sum, std::uint32_t index, bool backward) const {
    AttentionKernel kernel = attention_kernel(index, backward);
    const Count c = layout_.context;
    if (layout_.exchange == ContextExchange::AllToAll) {
      kernel.heads = parts(kernel.heads, c);
      kernel.kv_heads = std::clamp<Count>(parts(kernel.kv_heads, c), 1, kernel.heads);
      sum.add(kernels_.run(kernel));
      return;
    }
    if (c == 1) {
      sum.add(kernels_.run(kernel));
      return;
    }
    StepKernels::Slowed whole = kernels_.run(kernel);
    const Duration fixed = whole.alone.fixed;
    const auto count = static_cast<std::int64_t>(c);
    whole.time = fixed + (whole.time - fixed) / count;
    whole.alone.flops = Flops{whole.alone.flops.count() / static_cast<double>(c)};
    whole.alone.bytes = Bytes{whole.alone.bytes.count() / count};
    sum.add(whole);
    if (layout_.exchange == ContextExchange::Ring) {
      // A kernel for every block of keys.
      sum.time += fixed * (count - 1);
      sum.kernels += static_cast<std::uint32_t>(count - 1);
    }
  }

  [[nodiscard]] double key_value_row() const {
    const Attention& attention = model_.attention;
    if (attention.latent) {
      return static_cast<double>(heads()) * (attention.head_dim + attention.latent->value_dim);
    }
    return 2.0 * static_cast<double>(kv_heads()) * attention.head_dim;
  }
  [[nodiscard]] double query_row() const {
    return static_cast<double>(heads()) * model_.attention.head_dim;
  }
  [[nodiscard]] double output_row() const { return static_cast<double>(heads() * value_dim()); }
  [[nodiscard]] Message context_message(CollectiveOp op, double row, double times,
                                        std::uint32_t count = 1) const {
    return {GroupKind::Context, op, bytes_of(static_cast<double>(tokens_) * row * times, wide_),
            count};
  }

  void exchange_item(std::string_view name, const Message& message, bool backward) {
    const KernelSum none;
    if (backward) {
      add_backward(name, none, message, 0, true);
    } else {
      add_forward(name, none, message, 0, true, "attention");
    }
  }

  // Attention's core with what context ranks exchange. Backward, keys and values come once more and
  // their gradients go back.
  void attention_exchanged(std::uint32_t index, bool backward) {
    KernelSum sum;
    attention_core(sum, index, backward);
    const std::string_view name = backward ? "attention backward" : "attention";
    const auto add = [&](std::optional<Message> message, double hidden, bool first) {
      if (backward) {
        add_backward(name, sum, std::move(message), hidden, first);
      } else {
        add_forward(name, sum, std::move(message), hidden, first, "attention");
      }
    };
    const std::uint32_t c = layout_.context;
    if (c == 1) return add({}, 0, true);
    switch (layout_.exchange) {
      case ContextExchange::Ring:
        return add(
            context_message(CollectiveOp::SendRecv, key_value_row(), backward ? 2 : 1, c - 1),
            overlap_.context ? 1 : 0, true);
      case ContextExchange::AllGather:
        add(context_message(CollectiveOp::AllGather, key_value_row(), c), 0, true);
        if (backward) {
          exchange_item("gradients of keys and values",
                        context_message(CollectiveOp::ReduceScatter, key_value_row(), c), true);
        }
        return;
      case ContextExchange::AllToAll: {
        const Message apart =
            context_message(CollectiveOp::AllToAll, query_row() + key_value_row(), 1);
        const Message together = context_message(CollectiveOp::AllToAll, output_row(), 1);
        exchange_item(backward ? "heads of gradients" : "heads of queries, keys and values",
                      backward ? together : apart, backward);
        add({}, 0, true);
        exchange_item(backward ? "tokens of gradients" : "tokens of outputs",
                      backward ? apart : together, backward);
      }
    }
  }

  void rotate(KernelSum& sum) const {
    if (model_.positions > 0) return;  // Learned ones are a part of the embedding.
    const double rows = static_cast<double>(tokens_) * (query_row() + key_value_row() / 2) * wide_;
    elementwise(sum, rows, rows);
    if (model_.attention.norms) elementwise(sum, rows, rows);
  }

  void attention_forward(std::uint32_t index) {
    for (const auto& [matrix, module] : projections()) linear_forward(matrix, module);
    KernelSum rotation;
    rotate(rotation);
    if (rotation.kernels > 0) add_forward("rotary", rotation);
    attention_exchanged(index, false);
    linear_forward(output_projection(), {});
  }
  void attention_backward(std::uint32_t index) {
    linear_backward(output_projection());
    attention_exchanged(index, true);
    KernelSum rotation;
    rotate(rotation);
    if (rotation.kernels > 0) add_backward("rotary backward", rotation);
    const auto matrices = projections();
    for (auto matrix = matrices.rbegin(); matrix != matrices.rend(); ++matrix) {
      linear_backward(matrix->first);
    }
  }

  [[nodiscard]] Linear up(Count width) const {
    return {"up",
            "up backward",
            "up weights",
            Cut::Column,
            model_.hidden,
            (model_.ffn_matrices - 1) * parts(width, t_),
            options_.lora && options_.lora->ffn};
  }
  [[nodiscard]] Linear down(Count width) const {
    return {"down",
            "down backward",
            "down weights",
            Cut::Row,
            parts(width, t_),
            model_.hidden,
            options_.lora && options_.lora->ffn};
  }
  void activate(KernelSum& sum, double rows, double width, bool backward) const {
    const double row = rows * width * wide_;
    const double gates = model_.ffn_matrices - 1.0;
    elementwise(sum, gates * row + (backward ? row : 0), backward ? gates * row : row);
  }

  void ffn_forward(Count width, std::string_view block) {
    block_ = block;
    linear_forward(up(width), {});
    KernelSum activation;
    activate(activation, static_cast<double>(tokens_), static_cast<double>(parts(width, t_)),
             false);
    add_forward("activation", activation, "activation");
    linear_forward(down(width), {});
    block_ = {};
  }
  void ffn_backward(Count width) {
    linear_backward(down(width));
    KernelSum activation;
    activate(activation, static_cast<double>(tokens_), static_cast<double>(parts(width, t_)), true);
    add_backward("activation backward", activation);
    linear_backward(up(width));
  }

  // --- Experts ---

  // Tokens that this rank sends to experts, one copy per expert chosen,
  [[nodiscard]] double copies() const {
    return static_cast<double>(split_) * model_.experts->chosen;
  }
  // and that arrive at its experts, those of its expert-tensor group together.
  [[nodiscard]] double arriving() const {
    return copies() * layout_.expert_tensor * options_.expert_imbalance;
  }
  [[nodiscard]] std::optional<Message> expert_message(CollectiveOp plain, double width) const {
    if (layout_.expert == 1) return std::nullopt;
    const double h = model_.hidden;
    const double e = layout_.expert;
    double rows = copies();
    CollectiveOp op = CollectiveOp::AllToAll;
    switch (overlap_.dispatch) {
      case ExpertDispatch::AllToAll:
        break;
      case ExpertDispatch::Fused:
        rows = static_cast<double>(split_) * fused_copies();
        break;
      case ExpertDispatch::AllGather:
        op = plain;
        rows = static_cast<double>(split_) * e;
    }
    return Message{GroupKind::Expert, op, bytes_of(rows * h, width)};
  }
  // Copies of a token that a plain all-to-all would have to send to load the links as much. Within
  // a domain a rank that has several of a token's experts gets one copy; between domains a domain
  // does, and passes it on. Experts are chosen evenly, among `groups_chosen` of the groups.
  [[nodiscard]] double fused_copies() const {
    const double e = layout_.expert;
    const double k = model_.experts->chosen;
    const double span = e * layout_.expert_tensor;
    const double domains = std::ceil(span / domain_);
    if (domains <= 1) return e * (1 - std::pow(1 - 1 / e, k));
    double reached = domains * (1 - std::pow(1 - 1 / domains, k));
    if (model_.experts->groups_chosen > 0) {
      reached = std::min<double>(reached, model_.experts->groups_chosen);
    }
    return reached;
  }
  [[nodiscard]] std::optional<Message> expert_tensor_message(CollectiveOp op) const {
    if (layout_.expert_tensor == 1) return std::nullopt;
    return Message{GroupKind::ExpertTensor, op, bytes_of(arriving() * model_.hidden, wide_)};
  }
  [[nodiscard]] GroupedGemm grouped(Count n, Count k) const {
    return {.groups = parts(model_.experts->count, layout_.expert),
            .rows = std::max<Count>(static_cast<Count>(std::llround(arriving())), 1),
            .n = n,
            .k = k,
            .type = options_.compute,
            .output_bytes = wide_};
  }
  [[nodiscard]] Count expert_width() const {
    return parts(model_.experts->hidden, layout_.expert_tensor);
  }
  [[nodiscard]] Count gates() const { return model_.ffn_matrices - 1; }

  void grouped_forward(std::string_view name, Count n, Count k, std::optional<Message> message,
                       bool first) {
    KernelSum sum;
    quantise(sum, arriving() * static_cast<double>(k));
    quantise_weights(sum,
                     static_cast<double>(parts(model_.experts->count, layout_.expert) * n * k));
    sum.add(kernels_.run(grouped(n, k)));
    // Each expert's own, which no grouped kernel adds by itself.
    const double outputs = arriving() * static_cast<double>(n) * wide_;
    if (model_.ffn_bias) elementwise(sum, outputs, outputs);
    if (options_.lora && options_.lora->ffn) {
      const auto rows = static_cast<Count>(std::llround(arriving()));
      gemm(sum, std::max<Count>(rows, 1), options_.lora->rank, k, wide_, wide_type());
      gemm(sum, std::max<Count>(rows, 1), n, options_.lora->rank, wide_, wide_type());
    }
    add_forward(name, sum, std::move(message), 0, first);
  }
  void grouped_backward(std::string_view name, std::string_view weight_name, Count n, Count k,
                        std::optional<Message> message, bool first) {
    KernelSum input;
    quantise(input, arriving() * static_cast<double>(n));
    input.add(kernels_.run(grouped(k, n)));
    add_backward(name, input, std::move(message), 0, first);
    if (options_.lora) return;
    // Per expert [k x rows] times [rows x n]: the same arithmetic, all weights' gradients written.
    KernelSum weights;
    GroupedGemm kernel = grouped(n, k);
    kernel.output_bytes = 0;
    weights.add(kernels_.run(kernel));
    elementwise(weights, 0, static_cast<double>(kernel.groups * n * k) * gradient_bytes());
    if (model_.ffn_bias) elementwise(weights, arriving() * static_cast<double>(n) * wide_, 0);
    add_weights(weight_name, weights, {});
  }

  // Moves rows between the order of tokens and that of experts.
  void permute(KernelSum& sum, bool to_experts) const {
    const double h = model_.hidden;
    const double tokens = static_cast<double>(split_) * h * wide_;
    const double rows = copies() * h * wide_;
    elementwise(sum, to_experts ? tokens : rows, to_experts ? rows : tokens);
    // Rows that arrive lie by their sender: once more, by expert.
    if (layout_.expert > 1) elementwise(sum, arriving() * h * wide_, arriving() * h * wide_);
  }
  void route(KernelSum& sum, bool backward) const {
    const Experts& experts = *model_.experts;
    gemm(sum, split_, experts.count, model_.hidden, 4, wide_type());
    if (backward) gemm(sum, model_.hidden, experts.count, split_, 4, wide_type());
    // Scores, choice, counts, maps: small kernels.
    elementwise(sum, static_cast<double>(split_) * experts.count * 4,
                static_cast<double>(split_) * experts.count * 4, backward ? 2 : 4);
  }

  void experts_forward() {
    const Experts& experts = *model_.experts;
    if (experts.shared_hidden > 0) ffn_forward(experts.shared_hidden, "shared_experts");
    block_ = "moe";
    const Count h = model_.hidden;
    KernelSum routing;
    route(routing, false);
    permute(routing, true);
    add_forward("router", routing);
    travel_forward("dispatch", CollectiveOp::AllGather, narrow_);
    grouped_forward("experts-up", gates() * expert_width(), h,
                    expert_tensor_message(CollectiveOp::AllGather), true);
    KernelSum activation;
    activate(activation, arriving(), static_cast<double>(expert_width()), false);
    add_forward("experts-activation", activation, "activation");
    grouped_forward("experts-down", h, expert_width(),
                    expert_tensor_message(CollectiveOp::ReduceScatter), false);
    travel_forward("combine", CollectiveOp::ReduceScatter, wide_);
    KernelSum back;
    permute(back, false);
    add_forward("unpermute", back);
    block_ = {};
  }

  void experts_backward() {
    const Experts& experts = *model_.experts;
    const Count h = model_.hidden;
    KernelSum back;
    permute(back, true);
    add_backward("unpermute backward", back);
    travel_backward("combine backward", CollectiveOp::AllGather);
    grouped_backward("experts-down backward", "experts-down weights", h, expert_width(),
                     expert_tensor_message(CollectiveOp::AllGather), true);
    KernelSum activation;
    activate(activation, arriving(), static_cast<double>(expert_width()), true);
    add_backward("experts-activation backward", activation);
    grouped_backward("experts-up backward", "experts-up weights", gates() * expert_width(), h,
                     expert_tensor_message(CollectiveOp::ReduceScatter), false);
    travel_backward("dispatch backward", CollectiveOp::ReduceScatter);
    KernelSum routing;
    permute(routing, false);
    route(routing, true);
    add_backward("router backward", routing);
    if (experts.shared_hidden > 0) ffn_backward(experts.shared_hidden);
  }

  void travel_forward(std::string_view name, CollectiveOp op, double width) {
    const std::optional<Message> message = expert_message(op, width);
    if (message) add_forward(name, KernelSum{}, message, 0, true);
  }
  void travel_backward(std::string_view name, CollectiveOp op) {
    const std::optional<Message> message = expert_message(op, wide_);
    if (message) add_backward(name, KernelSum{}, message, 0, true);
  }

  static bool travels(const WorkItem& item) {
    return item.kernels == 0 && item.message && item.message->group == GroupKind::Expert;
  }
  // Kernels between which no message comes, as one item.
  static WorkItem together(std::string_view name, std::vector<WorkItem>& items) {
    const auto joins = [](const WorkItem& item) { return !item.message && !item.weight_gradient; };
    WorkItem sum;
    sum.name = name;
    for (const WorkItem& item : items) {
      if (!joins(item)) continue;
      sum.compute += item.compute;
      sum.kernels += item.kernels;
      sum.flops = Flops{sum.flops.count() + item.flops.count()};
      sum.bytes += item.bytes;
      sum.memory_bound += item.memory_bound;
    }
    std::erase_if(items, joins);
    return sum;
  }

  // Beside another micro-batch's other pass, dispatch and combine cost nothing while its kernels
  // run. The kernels of their own layer stand for those: of all micro-batches together they are as
  // much. Each pass gets as much of the exchange as it has of the kernels.
  void hide_travels(LayerWork& work) const {
    if (!overlap_.experts || layout_.expert == 1 ||
        overlap_.dispatch == ExpertDispatch::AllGather) {
      return;
    }
    Bytes bytes;
    for (std::vector<WorkItem>* items : {&work.forward, &work.backward}) {
      for (const WorkItem& item : *items) {
        if (travels(item)) bytes += item.message->bytes;
      }
      std::erase_if(*items, travels);
    }
    if (bytes == Bytes{}) return;
    WorkItem forward = together("layer", work.forward);
    WorkItem backward = together("layer backward", work.backward);
    const double share =
        to_seconds(forward.compute) / to_seconds(forward.compute + backward.compute);
    const Bytes first{std::llround(static_cast<double>(bytes.count()) * share)};
    const auto carry = [](WorkItem& item, Bytes part) {
      item.message = Message{GroupKind::Expert, CollectiveOp::AllToAll, part};
      item.hidden = 1;
    };
    carry(forward, first);
    carry(backward, bytes - first);
    work.forward.push_back(forward);
    work.backward.insert(work.backward.begin(), backward);
  }

  // --- Head ---

  [[nodiscard]] Linear logits() const {
    return {"logits",    "logits backward", "logits weights",
            Cut::Column, model_.hidden,     parts(padded_vocabulary(layout_, model_), t_)};
  }
  void logits_forward() {
    // In 16 bits whatever the layers multiply in.
    const Linear matrix = logits();
    KernelSum sum;
    gemm(sum, tokens_, matrix.out, matrix.in, wide_, wide_type());
    add_forward(matrix.name, sum, spread(wide_), hidden_gather(), true);
    const double scores = static_cast<double>(tokens_ * matrix.out);
    KernelSum loss;
    // Maximum and sum, then the softmax: fused, or in fp32 one operation at a time.
    if (options_.fused_loss) {
      elementwise(loss, 2 * scores * wide_, scores * wide_);
    } else {
      elementwise(loss, scores * wide_, scores * 4);
      elementwise(loss, scores * 4, scores * 4, 2);
    }
    // The maximum, the target's score, the sum of exponentials.
    std::optional<Message> row =
        tensor_message(CollectiveOp::AllReduce, static_cast<double>(tokens_), 4);
    if (row) row->count = 3;
    add_forward("loss", loss, row, 0, false);
  }
  void logits_backward() {
    const Linear matrix = logits();
    const double scores = static_cast<double>(tokens_ * matrix.out);
    KernelSum input;
    elementwise(input, scores * (options_.fused_loss ? wide_ : 4), scores * wide_);
    gemm(input, tokens_, matrix.in, matrix.out, wide_, wide_type());
    KernelSum weights;
    if (!options_.lora)
      gemm(weights, matrix.in, matrix.out, tokens_, gradient_bytes(), wide_type());
    const std::optional<Message> sum = join(CollectiveOp::ReduceScatter);
    const std::optional<Message> again = options_.lora ? std::nullopt : spread(wide_);
    if (late_weights_ || weights.kernels == 0) {
      add_backward(matrix.backward_name, input, sum, hidden_sum(), false);
      add_weights(matrix.weight_name, weights, again);
      return;
    }
    add_backward(matrix.backward_name, input, again, 1, true);
    add_weights(matrix.weight_name, weights, sum, 1);
  }

  // --- End ---

  [[nodiscard]] bool repeated(const Tagged& tagged) const {
    switch (layout_.recompute) {
      case Recompute::None:
        return false;
      case Recompute::Full:
        return true;
      case Recompute::Selective:
        break;
    }
    if (layout_.recompute_modules.empty()) return tagged.module == "attention";
    return std::ranges::any_of(layout_.recompute_modules, [&](const std::string& module) {
      return module == tagged.module || module == tagged.block;
    });
  }

  [[nodiscard]] bool names(std::string_view module) const {
    return layout_.recompute == Recompute::Selective &&
           std::ranges::find(layout_.recompute_modules, module) != layout_.recompute_modules.end();
  }
  // Of q, k, v, out, gate, up, down in this order k, out and up. Sums over ranks are kept, what was
  // gathered is not.
  void repeat_second_matrices(WorkItem item, std::vector<WorkItem>& recompute) const {
    double share = 0;
    if (item.name == "qkv") {
      share = static_cast<double>(kv_heads()) / static_cast<double>(heads() + 2 * kv_heads());
    } else if (item.name == "out") {
      share = 1;
      item.message.reset();
    } else if (item.name == "up") {
      share = 1 / static_cast<double>(gates());
    }
    if (share <= 0) return;
    item.compute = Duration{std::llround(static_cast<double>(item.compute.count()) * share)};
    item.flops = Flops{item.flops.count() * share};
    recompute.push_back(item);
  }

  LayerWork finish() {
    LayerWork work;
    work.forward.reserve(forward_.size());
    for (const Tagged& tagged : forward_) {
      if (repeated(tagged)) work.recompute.push_back(tagged.item);
      if (names("second_matrices")) repeat_second_matrices(tagged.item, work.recompute);
      work.forward.push_back(tagged.item);
    }
    // The last sum of a layer that is repeated has been had already.
    if (layout_.recompute == Recompute::Full && !work.recompute.empty() &&
        !work.recompute.back().message_first) {
      work.recompute.back().message.reset();
    }
    work.backward = std::move(backward_);
    hide_travels(work);
    return work;
  }

  const TrainingJob& job_;
  const Model& model_;
  const TrainingOptions& options_;
  const Overlap& overlap_;
  const StepKernels& kernels_;
  const Layout& layout_;
  Count t_;
  Count tokens_;   // Of a micro-batch on one context rank,
  Count split_;    // and where tensor ranks share them out.
  double wide_;    // Bytes of an activation,
  double narrow_;  // and of what matrix multiplications read.
  std::uint32_t domain_;
  bool late_weights_;
  std::string_view block_;
  std::vector<Tagged> forward_;
  std::vector<WorkItem> backward_;
};

}  // namespace

LayerWork layer_work(const TrainingJob& job, const StepKernels& kernels, const Layout& layout,
                     std::uint32_t layer, std::uint32_t domain) {
  return Writer(job, kernels, layout, domain).layer(layer);
}

LayerWork embedding_work(const TrainingJob& job, const StepKernels& kernels, const Layout& layout) {
  return Writer(job, kernels, layout, 1).embedding();
}

LayerWork head_work(const TrainingJob& job, const StepKernels& kernels, const Layout& layout,
                    std::uint32_t domain) {
  return Writer(job, kernels, layout, domain).head();
}

}  // namespace flyover
