#pragma once

// One pass through a layer, the embedding or the head, with all worked out that stays the same from
// micro-batch to micro-batch.

#include <cstdint>
#include <map>
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

// Borrows all that it is given.
class Passes {
 public:
  Passes(const StepParts& parts, const Layout& layout, const MessageTimes& times)
      : parts_(parts),
        layout_(layout),
        times_(times) {}

  // `host`: what its host code takes for the forward. The reference stays valid.
  [[nodiscard]] const PreparedPass& of(const LayerWork& work, Pass pass, Duration host);
  [[nodiscard]] Duration time(const std::vector<Message>& messages) const;
  // What kernels lose to messages that go on beside them for so long.
  [[nodiscard]] Duration contention(Duration kernels, Duration messages) const;

 private:
  void add(PreparedPass& pass, const WorkItem& item) const;
  [[nodiscard]] double seconds(const Message& message) const;

  const StepParts& parts_;
  const Layout& layout_;
  const MessageTimes& times_;
  std::map<std::pair<const LayerWork*, Pass>, PreparedPass> known_;
};

}  // namespace flyover
