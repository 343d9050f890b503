#include "layout/attention_work.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace flyover {

namespace {

// Borrows the writer.
class AttentionBlock {
 public:
  AttentionBlock(WorkWriter& writer, std::uint32_t layer) : w_(writer), layer_(layer) {}

  void forward() {
    for (const auto& [matrix, module] : projections()) w_.linear_forward(matrix, module);
    KernelSum rotation;
    rotate(rotation);
    if (rotation.kernels > 0) w_.add_forward("rotary", rotation);
    exchanged(false);
    w_.linear_forward(output_projection(), {});
  }
  void backward() {
    w_.linear_backward(output_projection());
    exchanged(true);
    KernelSum rotation;
    rotate(rotation);
    if (rotation.kernels > 0) w_.add_backward("rotary backward", rotation);
    const auto matrices = projections();
    for (auto matrix = matrices.rbegin(); matrix != matrices.rend(); ++matrix) {
      w_.linear_backward(matrix->first);
    }
  }

 private:
  [[nodiscard]] Count value_dim() const {
    const Attention& attention = w_.model().attention;
    return attention.latent ? attention.latent->value_dim : attention.head_dim;
  }

  // Projections before attention, in order of the forward.
  [[nodiscard]] std::vector<std::pair<Linear, std::string_view>> projections() const {
    const Attention& attention = w_.model().attention;
    const bool adapted = w_.options().lora && w_.options().lora->attention;
    const Count h = w_.model().hidden;
    if (!attention.latent) {
      const Count out = (w_.heads() + 2 * w_.kv_heads()) * attention.head_dim;
      return {{{"qkv", "qkv backward", "qkv weights", Cut::Column, h, out, adapted}, {}}};
    }
    const LatentAttention& latent = *attention.latent;
    const Count key = latent.nope_dim + latent.rope_dim;
    const Count query_in = latent.query_rank > 0 ? latent.query_rank : h;
    return {
        {{"latent-down", "latent-down backward", "latent-down weights", Cut::Column, h,
          latent.query_rank + latent.kv_rank + latent.rope_dim, adapted},
         {}},
        {{"q-up", "q-up backward", "q-up weights", Cut::Whole, query_in, w_.heads() * key, adapted},
         "mla_up_proj"},
        {{"kv-up", "kv-up backward", "kv-up weights", Cut::Whole, latent.kv_rank,
          w_.heads() * (latent.nope_dim + latent.value_dim), adapted},
         "mla_up_proj"},
    };
  }
  [[nodiscard]] Linear output_projection() const {
    return {"out",
            "out backward",
            "out weights",
            Cut::Row,
            w_.heads() * value_dim(),
            w_.model().hidden,
            w_.options().lora && w_.options().lora->attention};
  }

  [[nodiscard]] AttentionKernel kernel_of(bool backward) const {
    const Attention& attention = w_.model().attention;
    AttentionKernel kernel;
    kernel.sequences = w_.layout().micro_batch;
    kernel.tokens = w_.job().sequence;
    kernel.kv_tokens = w_.job().sequence;
    kernel.heads = w_.heads();
    kernel.kv_heads = std::min(w_.kv_heads(), kernel.heads);
    if (attention.latent) kernel.kv_heads = kernel.heads;
    kernel.head_dim = attention.head_dim;
    kernel.value_dim = value_dim();
    kernel.window = has_window(w_.model(), layer_) ? attention.window : 0;
    if (kernel.window >= w_.job().sequence) kernel.window = 0;
    kernel.backward = backward;
    kernel.type = w_.options().compute == KernelType::Fp16 ? KernelType::Fp16 : KernelType::Bf16;
    if (!w_.options().flash_attention) kernel.generation = "unfused";
    return kernel;
  }
  // A rank's share of attention over the whole sequence: with all-to-all a part of the heads, else
  // as many queries of the beginning as of the end, which balances what the mask leaves.
  void core(KernelSum& sum, bool backward) const {
    AttentionKernel kernel = kernel_of(backward);
    const Count c = w_.layout().context;
    if (w_.layout().exchange == ContextExchange::AllToAll) {
      kernel.heads = parts(kernel.heads, c);
      kernel.kv_heads = std::clamp<Count>(parts(kernel.kv_heads, c), 1, kernel.heads);
      sum.add(w_.run(kernel));
      return;
    }
    if (c == 1) {
      sum.add(w_.run(kernel));
      return;
    }
    StepKernels::Slowed whole = w_.run(kernel);
    const Duration fixed = whole.alone.fixed;
    const auto count = static_cast<std::int64_t>(c);
    whole.time = fixed + (whole.time - fixed) / count;
    whole.alone.flops = Flops{whole.alone.flops.count() / static_cast<double>(c)};
    whole.alone.bytes = Bytes{whole.alone.bytes.count() / count};
    sum.add(whole);
    if (w_.layout().exchange == ContextExchange::Ring) {
      // A kernel for every block of keys.
      sum.time += fixed * (count - 1);
      sum.kernels += static_cast<std::uint32_t>(count - 1);
    }
  }

  [[nodiscard]] double key_value_row() const {
    const Attention& attention = w_.model().attention;
    if (attention.latent) {
      return static_cast<double>(w_.heads()) * (attention.head_dim + attention.latent->value_dim);
    }
    return 2.0 * static_cast<double>(w_.kv_heads()) * attention.head_dim;
  }
  [[nodiscard]] double query_row() const {
    return static_cast<double>(w_.heads()) * w_.model().attention.head_dim;
  }
  [[nodiscard]] double output_row() const { return static_cast<double>(w_.heads() * value_dim()); }
  [[nodiscard]] Message context_message(CollectiveOp op, double row, double times,
                                        std::uint32_t count = 1) const {
    return {GroupKind::Context, op,
            bytes_of(static_cast<double>(w_.tokens()) * row * times, w_.wide()), count};
  }

  void exchange_item(std::string_view name, const Message& message, bool backward) {
    const KernelSum none;
    if (backward) {
      w_.add_backward(name, none, message, 0, true);
    } else {
      w_.add_forward(name, none, message, 0, true, "attention");
    }
  }

  // Attention's core with what context ranks exchange. Backward, keys and values come once more and
  // their gradients go back.
  void exchanged(bool backward) {
    KernelSum sum;
    core(sum, backward);
    const std::string_view name = backward ? "attention backward" : "attention";
    const auto add = [&](std::optional<Message> message, double hidden, bool first) {
      if (backward) {
        w_.add_backward(name, sum, std::move(message), hidden, first);
      } else {
        w_.add_forward(name, sum, std::move(message), hidden, first, "attention");
      }
    };
    const std::uint32_t c = w_.layout().context;
    if (c == 1) return add({}, 0, true);
    switch (w_.layout().exchange) {
      case ContextExchange::Ring:
        return add(
            context_message(CollectiveOp::SendRecv, key_value_row(), backward ? 2 : 1, c - 1),
            w_.overlap().context ? 1 : 0, true);
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
    if (w_.model().positions > 0) return;  // Learned ones are a part of the embedding.
    const double rows =
        static_cast<double>(w_.tokens()) * (query_row() + key_value_row() / 2) * w_.wide();
    w_.elementwise(sum, rows, rows);
    if (w_.model().attention.norms) w_.elementwise(sum, rows, rows);
  }

  WorkWriter& w_;
  std::uint32_t layer_;
};

}  // namespace

void write_attention_forward(WorkWriter& writer, std::uint32_t layer) {
  AttentionBlock(writer, layer).forward();
}

void write_attention_backward(WorkWriter& writer, std::uint32_t layer) {
  AttentionBlock(writer, layer).backward();
}

}  // namespace flyover
