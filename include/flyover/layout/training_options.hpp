#pragma once

// How a model is trained, as far as memory and messages depend on it: number formats, optimizer and
// what kernels keep. The layout says where things lie, this what they are.

#include <cstdint>

#include "flyover/layout/kernel_model.hpp"

namespace flyover {

enum class Optimizer : std::uint8_t {
  Adam,      // Two moments per parameter (AdamW, Lamb as well),
  Momentum,  // one (SGD with momentum, Muon),
  Sgd        // none.
};
[[nodiscard]] constexpr std::uint32_t moments(Optimizer optimizer) {
  return optimizer == Optimizer::Adam ? 2 : optimizer == Optimizer::Momentum ? 1 : 0;
}

struct TrainingOptions {
  // What matrix multiplications read. Everything else is 16 bits wide, or 32 with Tf32.
  KernelType compute = KernelType::Bf16;
  // With 8 or 4 bits: the matrices exist in them alone (FP8 primary weights). Otherwise they are
  // kept in 16 bits,
  bool quantised_parameters = false;
  // and, with this, quantised once per step and kept so beside it (Transformer Engine). Under
  // ZeRO-3 they never are.
  bool cached_quantised = true;
  // A transposed copy of quantised matrices for the input gradients: Hopper needs one.
  bool transposed_quantised = false;
  // Gradients are added up in 32 bits (Megatron) or in 16.
  bool fp32_gradients = true;
  Optimizer optimizer = Optimizer::Adam;
  bool fp32_master = true;    // The optimizer has the parameters in 32 bits,
  bool bf16_moments = false;  // and its moments in 16 (precision-aware optimizer).
  // Attention's scores are never stored, only the log of a row's sum.
  bool flash_attention = true;
  bool dropout = false;  // Its masks are kept (GPT).
  // The loss works in place on the logits; PyTorch's own keeps a copy of them per operation.
  bool fused_loss = true;
  // Tokens of the expert rank with most, over the mean; 1: balanced, or capped at the mean.
  double expert_imbalance = 1;
};

}  // namespace flyover
