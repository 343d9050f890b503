#include "layout/expand_fused.hpp"

#include <algorithm>
#include <utility>

#include "layout/fused_order.hpp"

namespace flyover {

namespace {

// The sink of in_fused_order.
class FusedWriter {
 public:
  FusedWriter(ProgramWriter& writer, Passes& passes, const FusedStep& step, bool contends)
      : writer_(writer),
        passes_(passes),
        step_(step),
        contends_(contends) {}

  void attention(std::size_t i) { write(i, forward_of(i).attention); }
  void dispatch(std::size_t i) { arriving_ = send(i, forward_of(i).dispatch); }
  void experts(std::size_t i) {
    writer_.wait_for(std::exchange(arriving_, {}));
    write(i, forward_of(i).experts);
  }
  void combine(std::size_t i) { arriving_ = send(i, forward_of(i).combine); }
  void after(std::size_t i) {
    writer_.wait_for(std::exchange(arriving_, {}));
    write(i, forward_of(i).after);
    if (i + 1 == step_.forward->units.size()) step_.forward_done();
  }

  void before(std::size_t i) { write_back(i, backward_of(i).before); }
  void combine_backward(std::size_t i) { returning_ = send_back(i, backward_of(i).combine); }
  void experts_backward(std::size_t i) {
    writer_.wait_for(std::exchange(returning_, {}));
    write_back(i, backward_of(i).experts);
  }
  void dispatch_backward(std::size_t i) { returning_ = send_back(i, backward_of(i).dispatch); }
  void expert_weights(std::size_t i) { write_back(i, backward_of(i).expert_weights); }
  void attention_backward(std::size_t i) {
    writer_.wait_for(std::exchange(returning_, {}));
    write_back(i, backward_of(i).attention);
    if (i + 1 == step_.backward->units.size()) step_.backward_done();
  }
  void weights(std::size_t i) {
    write_back(i, backward_of(i).weights);
    end_pair(i);
  }

  // What kernels lose and wait for, once both layers of a pair are written.
  void end_pair(std::size_t i) {
    Duration kernels{};
    Duration messages{};
    Duration host{};
    if (i < step_.forward->units.size()) {
      kernels += forward_of(i).kernels;
      messages += forward_of(i).messages;
      host += passes_.host(Pass::Forward, forward(i).host);
    }
    if (i < step_.backward->units.size()) {
      kernels += backward_of(i).kernels;
      messages += backward_of(i).messages;
      host += passes_.host(Pass::Backward, backward(i).host);
    }
    const Duration lost = contends_ ? passes_.contention(kernels, messages) : Duration{};
    writer_.kernels("contention", lost);
    writer_.host(std::max(Duration{}, host - kernels - lost));
  }

 private:
  [[nodiscard]] const StageUnit& forward(std::size_t i) const { return step_.forward->units[i]; }
  // Last layer first.
  [[nodiscard]] const StageUnit& backward(std::size_t i) const {
    return step_.backward->units[step_.backward->units.size() - 1 - i];
  }
  [[nodiscard]] const FusedForward& forward_of(std::size_t i) {
    return passes_.fused_forward(*forward(i).work);
  }
  [[nodiscard]] const FusedBackward& backward_of(std::size_t i) {
    return passes_.fused_backward(*backward(i).work);
  }
  void label(std::size_t i) {
    writer_.label(forward(i).name, to_string(Pass::Forward), step_.forward_micro_batch);
  }
  void label_back(std::size_t i) {
    writer_.label(backward(i).name, to_string(Pass::Backward), step_.backward_micro_batch);
  }
  void write(std::size_t i, const std::vector<PassItem>& items) {
    label(i);
    for (const PassItem& item : items) writer_.item(item);
  }
  void write_back(std::size_t i, const std::vector<PassItem>& items) {
    label_back(i);
    for (const PassItem& item : items) writer_.item(item);
  }
  ProgramWriter::Ops send(std::size_t i, const std::optional<PassItem>& item) {
    label(i);
    return send(item);
  }
  ProgramWriter::Ops send_back(std::size_t i, const std::optional<PassItem>& item) {
    label_back(i);
    return send(item);
  }
  ProgramWriter::Ops send(const std::optional<PassItem>& item) {
    if (!item) return {};
    return writer_.beside(item->name, item->exposed, writer_.front());
  }

  ProgramWriter& writer_;
  Passes& passes_;
  const FusedStep& step_;
  bool contends_;                // Kernels lose a share of the messages' time.
  ProgramWriter::Ops arriving_;  // The last message of the forward, and of the backward.
  ProgramWriter::Ops returning_;
};

}  // namespace

void write_fused(ProgramWriter& writer, Passes& passes, const FusedStep& step,
                 std::uint32_t held_sms, bool contends) {
  FusedWriter sink(writer, passes, step, contends);
  writer.hold_sms(held_sms);
  const std::size_t forward = step.forward->units.size();
  const std::size_t backward = step.backward->units.size();
  in_fused_order(sink, forward, backward);
  for (std::size_t i = backward; i < forward; ++i) sink.end_pair(i);
  writer.hold_sms(0);
}

}  // namespace flyover
