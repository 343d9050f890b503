#pragma once

// The order of a fused pair of micro-batches (fused_chunk.hpp), for all that writes it down.

#include <cstddef>

namespace flyover {

// Calls the sink's functions, each with the number of a layer, in an order that keeps the order of
// both streams. The sink lets experts wait for their dispatch, what follows a combine for it.
template <class Sink>
void in_fused_order(Sink& sink, std::size_t forward, std::size_t backward) {
  if (backward > 0) {
    sink.before(0);
    sink.combine_backward(0);
  }
  for (std::size_t i = 0; i < forward || i < backward; ++i) {
    if (i < forward) {
      if (i > 0) sink.after(i - 1);
      sink.attention(i);
      sink.dispatch(i);
    }
    if (i < backward) {
      sink.experts_backward(i);
      sink.dispatch_backward(i);
      sink.expert_weights(i);
    }
    if (i < forward) {
      sink.experts(i);
      sink.combine(i);
    }
    if (i < backward) {
      sink.attention_backward(i);
      if (i + 1 < backward) {
        sink.before(i + 1);
        sink.combine_backward(i + 1);
      }
      sink.weights(i);
    }
    if (i + 1 == forward) sink.after(i);
  }
}

}  // namespace flyover
