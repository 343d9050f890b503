#include "layout/expert_work.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "layout/ffn_work.hpp"
#include "layout/fused_segments.hpp"

namespace flyover {

namespace {

// Borrows the writer.
class ExpertBlock {
 public:
  // Of one pass. Backward, what dispatch found out is known (cached).
  ExpertBlock(WorkWriter& writer, bool backward) : w_(writer) {
    const bool beside = fuses(w_.job(), w_.layout());
    const bool slowed = beside && w_.overlap().mutual_slowdown;
    const bool own_kernels = w_.overlap().dispatch == ExpertDispatch::Fused &&
                             w_.overlap().expert_kernels && w_.layout().expert > 1 &&
                             (beside || !w_.overlap().experts);
    if (own_kernels) exchange_ = exchange(backward, false);
    if (own_kernels && beside) exchange_beside_ = slowed ? exchange(backward, true) : exchange_;
  }

  void forward() {
    const Experts& experts = *w_.model().experts;
    if (experts.shared_hidden > 0) write_ffn_forward(w_, experts.shared_hidden, "shared_experts");
    w_.block("moe");
    const Count h = w_.model().hidden;
    KernelSum routing;
    route(routing, false);
    permute(routing, true);
    w_.add_forward("router", routing);
    travel_forward("dispatch", CollectiveOp::AllGather, w_.narrow());
    grouped_forward("experts-up", w_.gates() * expert_width(), h,
                    expert_tensor_message(CollectiveOp::AllGather), true);
    KernelSum activation;
    add_activation(w_, activation, arriving(), static_cast<double>(expert_width()), false);
    w_.add_forward("experts-activation", activation, "activation");
    grouped_forward("experts-down", h, expert_width(),
                    expert_tensor_message(CollectiveOp::ReduceScatter), false);
    travel_forward("combine", CollectiveOp::ReduceScatter, w_.wide());
    KernelSum back;
    permute(back, false);
    w_.add_forward("unpermute", back);
    w_.block({});
  }

  void backward() {
    const Experts& experts = *w_.model().experts;
    const Count h = w_.model().hidden;
    KernelSum back;
    permute(back, true);
    w_.add_backward("unpermute backward", back);
    travel_backward("combine backward", CollectiveOp::AllGather);
    grouped_backward("experts-down backward", "experts-down weights", h, expert_width(),
                     expert_tensor_message(CollectiveOp::AllGather), true);
    KernelSum activation;
    add_activation(w_, activation, arriving(), static_cast<double>(expert_width()), true);
    w_.add_backward("experts-activation backward", activation);
    grouped_backward("experts-up backward", "experts-up weights", w_.gates() * expert_width(), h,
                     expert_tensor_message(CollectiveOp::ReduceScatter), false);
    travel_backward("dispatch backward", CollectiveOp::ReduceScatter);
    KernelSum routing;
    permute(routing, false);
    route(routing, true);
    w_.add_backward("router backward", routing);
    if (experts.shared_hidden > 0) write_ffn_backward(w_, experts.shared_hidden);
  }

 private:
  // Tokens that this rank sends to experts, one copy per expert chosen,
  [[nodiscard]] double copies() const {
    return static_cast<double>(w_.split()) * w_.model().experts->chosen;
  }
  // and that arrive at its experts, those of its expert-tensor group together.
  [[nodiscard]] double arriving() const {
    return copies() * w_.layout().expert_tensor * w_.options().expert_imbalance;
  }
  [[nodiscard]] std::shared_ptr<const ExpertExchange> exchange(bool cached, bool beside) const {
    const Experts& experts = *w_.model().experts;
    const double h = w_.model().hidden;
    auto made = std::make_shared<ExpertExchange>();
    made->name = cached ? "experts, backward" : "experts";
    if (beside) made->name += ", beside kernels";
    made->routing.experts = experts.count;
    made->routing.chosen = experts.chosen;
    if (experts.groups_chosen > 0) {
      made->routing.gate = Gate::GroupSumOfTwo;
      made->routing.groups = experts.groups;
      made->routing.groups_chosen = experts.groups_chosen;
    }
    made->tokens = static_cast<std::uint32_t>(w_.split());
    made->hidden = w_.model().hidden;
    // Blocks of 128 values have a scale of four bytes, blocks of 32 one of a byte.
    const KernelType type = w_.options().compute;
    const bool blocks = type == KernelType::Fp8Block || type == KernelType::Mxfp8;
    made->dispatch_bytes = h * w_.narrow() * (blocks ? 1 + 1.0 / 32 : 1);
    made->combine_bytes = h * w_.wide();
    made->cached = cached;
    made->overlapped = beside;
    made->kernels = w_.overlap().expert_kernels;
    return made;
  }
  [[nodiscard]] std::optional<Message> expert_message(CollectiveOp plain, double width) const {
    if (w_.layout().expert == 1) return std::nullopt;
    if (exchange_) {
      const CollectiveOp op =
          plain == CollectiveOp::AllGather ? CollectiveOp::MoeDispatch : CollectiveOp::MoeCombine;
      return Message{GroupKind::Expert, op, pair_bytes(*exchange_, op), 1, exchange_,
                     exchange_beside_};
    }
    const double h = w_.model().hidden;
    const double e = w_.layout().expert;
    double rows = copies();
    CollectiveOp op = CollectiveOp::AllToAll;
    switch (w_.overlap().dispatch) {
      case ExpertDispatch::AllToAll:
        break;
      case ExpertDispatch::Fused:
        rows = static_cast<double>(w_.split()) * fused_copies();
        break;
      case ExpertDispatch::AllGather:
        op = plain;
        rows = static_cast<double>(w_.split()) * e;
    }
    return Message{GroupKind::Expert, op, bytes_of(rows * h, width)};
  }
  // Copies of a token that a plain all-to-all would have to send to load the links as much. Within
  // a domain a rank that has several of a token's experts gets one copy; between domains a domain
  // does, and passes it on. Experts are chosen evenly, among `groups_chosen` of the groups.
  [[nodiscard]] double fused_copies() const {
    const double e = w_.layout().expert;
    const double k = w_.model().experts->chosen;
    const double span = e * w_.layout().expert_tensor;
    const double domains = std::ceil(span / w_.domain());
    if (domains <= 1) return e * (1 - std::pow(1 - 1 / e, k));
    double reached = domains * (1 - std::pow(1 - 1 / domains, k));
    if (w_.model().experts->groups_chosen > 0) {
      reached = std::min<double>(reached, w_.model().experts->groups_chosen);
    }
    return reached;
  }
  [[nodiscard]] std::optional<Message> expert_tensor_message(CollectiveOp op) const {
    if (w_.layout().expert_tensor == 1) return std::nullopt;
    return Message{GroupKind::ExpertTensor, op,
                   bytes_of(arriving() * w_.model().hidden, w_.wide())};
  }
  [[nodiscard]] GroupedGemm grouped(Count n, Count k) const {
    return {.groups = parts(w_.model().experts->count, w_.layout().expert),
            .rows = std::max<Count>(static_cast<Count>(std::llround(arriving())), 1),
            .n = n,
            .k = k,
            .type = w_.options().compute,
            .output_bytes = w_.wide()};
  }
  [[nodiscard]] Count expert_width() const {
    return parts(w_.model().experts->hidden, w_.layout().expert_tensor);
  }

  // LoRA's thin matrices beside an expert's; backward twice, for inputs and weights.
  void adapters(KernelSum& sum, Count n, Count k, std::uint32_t times) const {
    const std::optional<Lora>& lora = w_.options().lora;
    if (!lora || !lora->ffn) return;
    const Count rows = std::max<Count>(static_cast<Count>(std::llround(arriving())), 1);
    for (std::uint32_t i = 0; i < times; ++i) {
      w_.gemm(sum, rows, lora->rank, k, w_.wide(), w_.wide_type());
      w_.gemm(sum, rows, n, lora->rank, w_.wide(), w_.wide_type());
    }
  }
  void grouped_forward(std::string_view name, Count n, Count k, std::optional<Message> message,
                       bool first) {
    KernelSum sum;
    w_.quantise(sum, arriving() * static_cast<double>(k));
    w_.quantise_weights(
        sum, static_cast<double>(parts(w_.model().experts->count, w_.layout().expert) * n * k));
    sum.add(w_.run(grouped(n, k)));
    // Each expert's own, which no grouped kernel adds by itself.
    const double outputs = arriving() * static_cast<double>(n) * w_.wide();
    if (w_.model().ffn_bias) w_.elementwise(sum, outputs, outputs);
    adapters(sum, n, k, 1);
    w_.add_forward(name, sum, std::move(message), 0, first);
  }
  void grouped_backward(std::string_view name, std::string_view weight_name, Count n, Count k,
                        std::optional<Message> message, bool first) {
    KernelSum input;
    w_.quantise(input, arriving() * static_cast<double>(n));
    input.add(w_.run(grouped(k, n)));
    adapters(input, n, k, 2);
    w_.add_backward(name, input, std::move(message), 0, first);
    if (w_.options().lora) return;
    // Per expert [k x rows] times [rows x n]: the same arithmetic, all weights' gradients written.
    KernelSum weights;
    GroupedGemm kernel = grouped(n, k);
    kernel.output_bytes = 0;
    weights.add(w_.run(kernel));
    w_.elementwise(weights, 0, static_cast<double>(kernel.groups * n * k) * w_.gradient_bytes());
    if (w_.model().ffn_bias)
      w_.elementwise(weights, arriving() * static_cast<double>(n) * w_.wide(), 0);
    w_.add_weights(weight_name, weights, {});
  }

  // Moves rows between the order of tokens and that of experts.
  void permute(KernelSum& sum, bool to_experts) const {
    const double h = w_.model().hidden;
    const double tokens = static_cast<double>(w_.split()) * h * w_.wide();
    const double rows = copies() * h * w_.wide();
    w_.elementwise(sum, to_experts ? tokens : rows, to_experts ? rows : tokens);
    // Rows that arrive lie by their sender: once more, by expert.
    if (w_.layout().expert > 1)
      w_.elementwise(sum, arriving() * h * w_.wide(), arriving() * h * w_.wide());
  }
  void route(KernelSum& sum, bool backward) const {
    const Experts& experts = *w_.model().experts;
    w_.gemm(sum, w_.split(), experts.count, w_.model().hidden, 4, w_.wide_type());
    if (backward && !w_.options().lora)
      w_.gemm(sum, w_.model().hidden, experts.count, w_.split(), 4, w_.wide_type());
    // Scores, choice, counts, maps: small kernels.
    w_.elementwise(sum, static_cast<double>(w_.split()) * experts.count * 4,
                   static_cast<double>(w_.split()) * experts.count * 4, backward ? 2 : 4);
  }

  void travel_forward(std::string_view name, CollectiveOp op, double width) {
    const std::optional<Message> message = expert_message(op, width);
    if (message) w_.add_forward(name, KernelSum{}, message, 0, true);
  }
  void travel_backward(std::string_view name, CollectiveOp op) {
    const std::optional<Message> message = expert_message(op, w_.wide());
    if (message) w_.add_backward(name, KernelSum{}, message, 0, true);
  }

  WorkWriter& w_;
  std::shared_ptr<const ExpertExchange> exchange_;  // Null: collectives.
  std::shared_ptr<const ExpertExchange> exchange_beside_;
};

// Kernels between which no message comes, as one item.
WorkItem together(std::string_view name, std::vector<WorkItem>& items) {
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

}  // namespace

void write_experts_forward(WorkWriter& writer) {
  ExpertBlock(writer, false).forward();
}

void write_experts_backward(WorkWriter& writer) {
  ExpertBlock(writer, true).backward();
}

// Where a schedule has no fused steps: beside another micro-batch's other pass, dispatch and
// combine cost nothing while its kernels run. The kernels of their own layer stand for those: of
// all micro-batches together they are as much. Each pass gets as much of the exchange as it has of
// the kernels.
void hide_expert_messages(const WorkWriter& writer, LayerWork& work) {
  if (!writer.overlap().experts || writer.layout().expert == 1 ||
      writer.overlap().dispatch == ExpertDispatch::AllGather ||
      fuses(writer.job(), writer.layout())) {
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
  const double share = to_seconds(forward.compute) / to_seconds(forward.compute + backward.compute);
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

}  // namespace flyover
