#pragma once

// How a model is trained, as far as time, memory and messages depend on it: number formats,
// optimizer, what kernels keep, what overlaps. The layout says where things lie, this what they
// are.

#include <cstdint>
#include <memory>
#include <optional>

#include "flyover/base/units.hpp"
#include "flyover/layout/kernel_model.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

enum class Optimizer : std::uint8_t {
  Adam,      // Two moments per parameter (AdamW, Lamb as well),
  Momentum,  // one (SGD with momentum, Muon),
  Sgd        // none.
};
[[nodiscard]] constexpr std::uint32_t moments(Optimizer optimizer) {
  return optimizer == Optimizer::Adam ? 2 : optimizer == Optimizer::Momentum ? 1 : 0;
}

// Low-rank adapters (Hu et al. 2021): the model's own parameters are frozen, so they have neither
// gradients nor optimizer states, and weight gradients are those of adapters alone. An adapted
// matrix [n x k] gets rank x (n + k) parameters.
struct Lora {
  std::uint32_t rank = 16;
  bool attention = true;  // Projections of attention are adapted,
  bool ffn = false;       // and those of dense FFNs and experts.
};

// How a matrix multiplication of a tensor group overlaps with its message.
enum class TensorOverlap : std::uint8_t {
  None,      // Only what autograd overlaps: the input's gathering with the input gradient, its
             // gradient's reduction with the weight gradient.
  Pipelined  // Also forward, cut into as many parts as there are ranks (userbuffers, async-TP).
};

enum class ExpertDispatch : std::uint8_t {
  AllToAll,  // One copy per token and expert.
  Fused,     // One copy per token and node, and per GPU within it (DeepEP, HybridEP).
  AllGather  // Every token to every expert rank.
};

// What runs beside what. Where a thing cannot overlap, its switch does nothing.
struct Overlap {
  TensorOverlap tensor = TensorOverlap::None;
  bool gradients = true;   // Reduced while the last micro-batch's backward goes on.
  bool parameters = true;  // Gathered while the first forward goes on; ZeRO-3: the next unit's.
  bool pipeline = true;    // Sends and receives beside other micro-batches.
  // Without sequence parallelism too, each tensor rank sends its part of what goes to the next
  // stage, and they gather it there (Megatron's scatter-gather; the gathering, inside a node, costs
  // nothing here).
  bool scatter_boundary = false;
  bool context = true;   // A ring's next block while attention works on this one.
  bool experts = false;  // Dispatch and combine beside another micro-batch's work.
  // In fused steps both pay for it: kernels lose the SMs that messages hold, messages what was
  // measured beside kernels (ExpertKernels::overlapped_*).
  bool mutual_slowdown = true;
  ExpertDispatch dispatch = ExpertDispatch::AllToAll;
  // With Fused: the kernels that carry dispatch and combine, whose times, loads and SMs are then
  // theirs (moe/planner.hpp), beside fused steps and where nothing runs beside them. Null, or
  // hidden without fused steps: an all-to-all that loads the links as their copies do.
  std::shared_ptr<const ExpertKernels> expert_kernels;
  // Gradients are reduced in buckets of so many bytes or more, whole layers.
  Bytes bucket{std::int64_t{160} << 20};
};

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
  std::optional<Lora> lora;  // Empty: everything is trained.
  // Kernels are launched by CUDA graphs: the host costs nothing per layer.
  bool cuda_graphs = false;
};

}  // namespace flyover
