#include "layout/layer_work.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "layout/attention_work.hpp"
#include "layout/expert_work.hpp"
#include "layout/ffn_work.hpp"
#include "layout/work_writer.hpp"

namespace flyover {

namespace {

// Puts blocks together, and says what of them a backward repeats.
class LayerWriter {
 public:
  LayerWriter(const TrainingJob& job, const StepKernels& kernels, const Layout& layout,
              std::uint32_t domain)
      : w_(job, kernels, layout, domain) {}

  LayerWork layer(std::uint32_t index) {
    const bool experts = has_experts(w_.model(), index);
    norm_forward("norm-attention");
    write_attention_forward(w_, index);
    norm_forward("norm-ffn");
    if (experts) {
      write_experts_forward(w_);
    } else {
      write_ffn_forward(w_, w_.model().ffn_hidden, "mlp");
    }
    if (experts) {
      write_experts_backward(w_);
    } else {
      write_ffn_backward(w_, w_.model().ffn_hidden);
    }
    norm_backward("norm-ffn backward");
    write_attention_backward(w_, index);
    norm_backward("norm-attention backward");
    return finish();
  }

  LayerWork embedding() {
    const double h = w_.model().hidden;
    const double moved = static_cast<double>(w_.tokens()) * h * w_.wide();
    KernelSum look_up;
    w_.elementwise(look_up, moved, moved);
    // Ranks have rows of their own, zeros for all others: summed up.
    w_.add_forward("embedding", look_up, w_.join(CollectiveOp::ReduceScatter), 0, false);
    if (!w_.options().lora) {
      KernelSum scatter;
      w_.elementwise(scatter, 2 * moved, moved);
      w_.add_backward("embedding backward", scatter, w_.spread(w_.wide()), 0, true);
    }
    return finish();
  }

  LayerWork head() {
    for (std::uint32_t block = 0; block < w_.model().mtp_layers; ++block) {
      const Count h = w_.model().hidden;
      const Linear projection{"mtp-projection",
                              "mtp-projection backward",
                              "mtp-projection weights",
                              Cut::Column,
                              2 * h,
                              parts(h, w_.tensor_ranks())};
      norm_forward("norm-mtp");
      w_.linear_forward(projection, {});
      const LayerWork last =
          layer_work(w_.job(), w_.kernels(), w_.layout(), w_.model().layers - 1, w_.domain());
      for (const WorkItem& item : last.forward) w_.append_forward(item);
      logits_forward();
      logits_backward();
      for (const WorkItem& item : last.recompute) w_.append_backward(item);
      for (const WorkItem& item : last.backward) w_.append_backward(item);
      w_.linear_backward(projection);
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
  // A norm and the addition to the residual stream before it.
  void norm_forward(std::string_view name) {
    const double row = static_cast<double>(w_.split()) * w_.model().hidden * w_.wide();
    KernelSum sum;
    w_.elementwise(sum, 2 * row, row);  // The addition,
    w_.elementwise(sum, row, row);      // the norm.
    if (w_.options().dropout) w_.elementwise(sum, row, 1.5 * row);
    w_.add_forward(name, sum, "norm");
  }
  void norm_backward(std::string_view name) {
    const double row = static_cast<double>(w_.split()) * w_.model().hidden * w_.wide();
    KernelSum sum;
    w_.elementwise(sum, 2 * row, row);
    w_.elementwise(sum, 2 * row, row);
    if (w_.options().dropout) w_.elementwise(sum, 1.5 * row, row);
    w_.add_backward(name, sum);
  }

  [[nodiscard]] Linear logits() const {
    return {
        "logits",          "logits backward",
        "logits weights",  Cut::Column,
        w_.model().hidden, parts(padded_vocabulary(w_.layout(), w_.model()), w_.tensor_ranks())};
  }
  void logits_forward() {
    // In 16 bits whatever the layers multiply in.
    const Linear matrix = logits();
    KernelSum sum;
    w_.gemm(sum, w_.tokens(), matrix.out, matrix.in, w_.wide(), w_.wide_type());
    w_.add_forward(matrix.name, sum, w_.spread(w_.wide()), w_.hidden_gather(), true);
    const double scores = static_cast<double>(w_.tokens() * matrix.out);
    KernelSum loss;
    // Maximum and sum, then the softmax: fused, or in fp32 one operation at a time.
    if (w_.options().fused_loss) {
      w_.elementwise(loss, 2 * scores * w_.wide(), scores * w_.wide());
    } else {
      w_.elementwise(loss, scores * w_.wide(), scores * 4);
      w_.elementwise(loss, scores * 4, scores * 4, 2);
    }
    // The maximum, the target's score, the sum of exponentials.
    std::optional<Message> row =
        w_.tensor_message(CollectiveOp::AllReduce, static_cast<double>(w_.tokens()), 4);
    if (row) row->count = 3;
    w_.add_forward("loss", loss, row, 0, false);
  }
  void logits_backward() {
    const Linear matrix = logits();
    const double scores = static_cast<double>(w_.tokens() * matrix.out);
    KernelSum input;
    w_.elementwise(input, scores * (w_.options().fused_loss ? w_.wide() : 4), scores * w_.wide());
    w_.gemm(input, w_.tokens(), matrix.in, matrix.out, w_.wide(), w_.wide_type());
    KernelSum weights;
    if (!w_.options().lora)
      w_.gemm(weights, matrix.in, matrix.out, w_.tokens(), w_.gradient_bytes(), w_.wide_type());
    const std::optional<Message> sum = w_.join(CollectiveOp::ReduceScatter);
    const std::optional<Message> again = w_.options().lora ? std::nullopt : w_.spread(w_.wide());
    if (w_.late_weights() || weights.kernels == 0) {
      w_.add_backward(matrix.backward_name, input, sum, w_.hidden_sum(), false);
      w_.add_weights(matrix.weight_name, weights, again);
      return;
    }
    w_.add_backward(matrix.backward_name, input, again, 1, true);
    w_.add_weights(matrix.weight_name, weights, sum, 1);
  }

  [[nodiscard]] bool repeated(const Tagged& tagged) const {
    switch (w_.layout().recompute) {
      case Recompute::None:
        return false;
      case Recompute::Full:
        return true;
      case Recompute::Selective:
        break;
    }
    if (w_.layout().recompute_modules.empty()) return tagged.module == "attention";
    return std::ranges::any_of(w_.layout().recompute_modules, [&](const std::string& module) {
      return module == tagged.module || module == tagged.block;
    });
  }

  [[nodiscard]] bool names(std::string_view module) const {
    return w_.layout().recompute == Recompute::Selective &&
           std::ranges::find(w_.layout().recompute_modules, module) !=
               w_.layout().recompute_modules.end();
  }
  // Of q, k, v, out, gate, up, down in this order k, out and up. Sums over ranks are kept, what was
  // gathered is not.
  void repeat_second_matrices(WorkItem item, std::vector<WorkItem>& recompute) const {
    double share = 0;
    if (item.name == "qkv") {
      share =
          static_cast<double>(w_.kv_heads()) / static_cast<double>(w_.heads() + 2 * w_.kv_heads());
    } else if (item.name == "out") {
      share = 1;
      item.message.reset();
    } else if (item.name == "up") {
      share = 1 / static_cast<double>(w_.gates());
    }
    if (share <= 0) return;
    item.compute = Duration{std::llround(static_cast<double>(item.compute.count()) * share)};
    item.flops = Flops{item.flops.count() * share};
    recompute.push_back(item);
  }

  LayerWork finish() {
    LayerWork work;
    work.forward.reserve(w_.forward().size());
    for (const Tagged& tagged : w_.forward()) {
      if (repeated(tagged)) work.recompute.push_back(tagged.item);
      if (names("second_matrices")) repeat_second_matrices(tagged.item, work.recompute);
      work.forward.push_back(tagged.item);
    }
    // The last sum of a layer that is repeated has been had already.
    if (w_.layout().recompute == Recompute::Full && !work.recompute.empty() &&
        !work.recompute.back().message_first) {
      work.recompute.back().message.reset();
    }
    work.backward = w_.take_backward();
    hide_expert_messages(w_, work);
    return work;
  }

  WorkWriter w_;
};

}  // namespace

LayerWork layer_work(const TrainingJob& job, const StepKernels& kernels, const Layout& layout,
                     std::uint32_t layer, std::uint32_t domain) {
  return LayerWriter(job, kernels, layout, domain).layer(layer);
}

LayerWork embedding_work(const TrainingJob& job, const StepKernels& kernels, const Layout& layout) {
  return LayerWriter(job, kernels, layout, 1).embedding();
}

LayerWork head_work(const TrainingJob& job, const StepKernels& kernels, const Layout& layout,
                    std::uint32_t domain) {
  return LayerWriter(job, kernels, layout, domain).head();
}

}  // namespace flyover
