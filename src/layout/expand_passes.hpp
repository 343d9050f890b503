#pragma once

// One pass through a layer, the embedding or the head, with all worked out that stays the same from
// micro-batch to micro-batch.

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "flyover/layout/message_times.hpp"
#include "flyover/layout/step_parts.hpp"

namespace flyover {

enum class Pass : std::uint8_t {
  Forward,
  Backward,  // Both gradients, or one of them.
  InputGradient,
  WeightGradient
};
[[nodiscard]] std::string_view to_string(Pass pass);

struct PassItem {
  std::string_view name;
  Duration compute{};  // Beside the hidden message, if there is one.
  Flops flops;
  Bytes bytes;
  Duration memory_bound{};  // As WorkItem's.
  // Of the message: what is waited for, and what runs beside the kernels.
  Message exposed;
  Message hidden;
  bool message_first = true;
};

struct PreparedPass {
  std::vector<PassItem> items;
  Duration time{};  // With its messages, while nothing else runs,
  Duration host{};  // and for how long the GPU then waits for host code.
};

// The segments of fused_chunk.hpp; messages are `exposed` of their items.
struct FusedForward {
  std::vector<PassItem> attention;
  std::optional<PassItem> dispatch;
  std::vector<PassItem> experts;
  std::optional<PassItem> combine;
  std::vector<PassItem> after;
  Duration kernels{};   // Of all segments,
  Duration messages{};  // and of dispatch and combine.
};
struct FusedBackward {
  std::vector<PassItem> before;
  std::optional<PassItem> combine;
  std::vector<PassItem> experts;
  std::vector<PassItem> expert_weights;
  std::optional<PassItem> dispatch;
  std::vector<PassItem> attention;
  std::vector<PassItem> weights;
  Duration kernels{};
  Duration messages{};
};

// Borrows all that it is given.
class Passes {
 public:
  Passes(const StepParts& parts, const Layout& layout, const MessageTimes& times)
      : parts_(parts),
        layout_(layout),
        times_(times) {}

  // `host`: what its host code takes for the forward. The reference stays valid.
  [[nodiscard]] const PreparedPass& of(const LayerWork& work, Pass pass, Duration host);
  // The same for a fused step. References stay valid.
  [[nodiscard]] const FusedForward& fused_forward(const LayerWork& work);
  [[nodiscard]] const FusedBackward& fused_backward(const LayerWork& work);
  // What host code takes for a pass of which a forward takes `forward`.
  [[nodiscard]] Duration host(Pass pass, Duration forward) const;
  [[nodiscard]] Duration time(const std::vector<Message>& messages) const;
  // What kernels lose to messages that go on beside them for so long.
  [[nodiscard]] Duration contention(Duration kernels, Duration messages) const;

 private:
  struct TimedItem {
    PassItem item;
    Duration time{};  // With its message.
  };
  [[nodiscard]] TimedItem timed(const WorkItem& item) const;
  void add(PreparedPass& pass, const WorkItem& item) const;
  // Writes a segment's items, and adds what their kernels and messages in between take.
  void segment(std::vector<PassItem>& items, const std::vector<const WorkItem*>& from,
               Duration& kernels) const;
  void message(std::optional<PassItem>& item, const WorkItem* from, Duration& messages) const;
  [[nodiscard]] double seconds(const Message& message) const;

  const StepParts& parts_;
  const Layout& layout_;
  const MessageTimes& times_;
  std::map<std::pair<const LayerWork*, Pass>, PreparedPass> known_;
  std::map<const LayerWork*, FusedForward> fused_forwards_;
  std::map<const LayerWork*, FusedBackward> fused_backwards_;
};

}  // namespace flyover
