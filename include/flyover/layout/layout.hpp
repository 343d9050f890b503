#pragma once

// How a model is cut over GPUs: the sizes of the parallel dimensions, what each of them shards, and
// which ranks form its groups. Valid or not is a question with reasons for an answer.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/layout/model.hpp"

namespace flyover {

enum class PipelineSchedule : std::uint8_t {
  GPipe,
  OneForwardOneBackward,
  Interleaved,
  ZeroBubbleH1,
  ZeroBubbleV,
  DualPipe,
  DualPipeV
};

// What data parallelism shards: nothing (DDP), optimizer states (ZeRO-1), also gradients (2), also
// parameters (3, FSDP). All of them go with pipelines; under ZeRO-2 and 3 every micro-batch then
// reduces its gradients anew, which is why DeepSpeed refuses the pair and torchtitan keeps
// parameters gathered (keep_gathered).
enum class Sharding : std::uint8_t { None, Optimizer, Gradients, Parameters };

enum class ContextExchange : std::uint8_t { Ring, AllGather, AllToAll };

enum class Recompute : std::uint8_t {
  None,
  Selective,  // Attention's core, or what Layout::recompute_modules names.
  Full
};

enum class Dimension : std::uint8_t { Tensor, Context, Expert, Data, Pipeline };

// The names in files and reports: "gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe",
// "dualpipe-v"; "none", "zero-1", "zero-2", "zero-3"; "ring", "all-gather", "all-to-all"; "none",
// "selective", "full"; "tensor", "context", "expert", "data", "pipeline".
[[nodiscard]] std::string_view to_string(PipelineSchedule schedule);
[[nodiscard]] std::string_view to_string(Sharding sharding);
[[nodiscard]] std::string_view to_string(ContextExchange exchange);
[[nodiscard]] std::string_view to_string(Recompute recompute);
[[nodiscard]] std::string_view to_string(Dimension dimension);

inline constexpr std::array all_pipeline_schedules = {
    PipelineSchedule::GPipe,       PipelineSchedule::OneForwardOneBackward,
    PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubbleH1,
    PipelineSchedule::ZeroBubbleV, PipelineSchedule::DualPipe,
    PipelineSchedule::DualPipeV};
[[nodiscard]] std::optional<PipelineSchedule> pipeline_schedule(std::string_view name);

// Whether weight gradients are, or may be, steps of their own.
[[nodiscard]] constexpr bool splits_gradients(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::ZeroBubbleH1 || schedule == PipelineSchedule::ZeroBubbleV ||
         schedule == PipelineSchedule::DualPipe || schedule == PipelineSchedule::DualPipeV;
}
// Whether it has steps that go forward with one micro-batch and back with another.
[[nodiscard]] constexpr bool has_fused_steps(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::DualPipe || schedule == PipelineSchedule::DualPipeV;
}
// Two micro-batches that come from both ends share a stage: two chunks of the model on every rank,
// its own stage and the mirror image's, and so two copies of every parameter in the pipeline.
[[nodiscard]] constexpr bool goes_both_ways(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::DualPipe;
}

// What Layout::recompute_modules may name. "attention": its core (unfused scores, or the
// log-sum-exp of a fused kernel); "norm": the outputs of norms; "activation": the product that
// enters the last matrix of the FFN or of an expert; "mlp", "shared_experts", "moe": everything
// inside a dense FFN, the shared experts, the routed experts with their dispatch; "mla_up_proj":
// queries, keys and values of latent attention; "second_matrices": of a layer's products with
// weights every second one (torchtitan's choice per operation).
inline constexpr std::array<std::string_view, 8> recompute_module_names = {
    "attention",      "norm", "activation",  "mlp",
    "shared_experts", "moe",  "mla_up_proj", "second_matrices"};

struct Layout {
  std::uint32_t tensor = 1;    // t
  std::uint32_t context = 1;   // c
  std::uint32_t pipeline = 1;  // p
  std::uint32_t data = 1;      // dp; ranks = t c p dp
  // e and etp, taken from the tensor x context x data ranks of a stage; what is left of them, edp,
  // replicates an expert.
  std::uint32_t expert = 1;
  std::uint32_t expert_tensor = 1;
  // v, per pipeline rank. With dualpipe 1, though a rank has two chunks: there are p different
  // ones.
  std::uint32_t virtual_stages = 1;
  // Micro-batches that an interleaved schedule sends through a chunk before it turns to the next;
  // 0: p of them.
  std::uint32_t micro_batch_group = 0;
  bool sequence_parallel = false;  // With tensor > 1.
  ContextExchange exchange = ContextExchange::Ring;
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  Sharding sharding = Sharding::Optimizer;
  // HSDP, or several instances of a distributed optimizer: shards lie in groups of so many ranks,
  // with dualpipe and as many of the mirror stage; 0: all of data x context.
  std::uint32_t shard_group = 0;
  // ZeRO-3 only: parameters stay gathered between a unit's forward and its last backward
  // (reshard_after_forward = False).
  bool keep_gathered = false;
  Recompute recompute = Recompute::None;
  std::vector<std::string> recompute_modules;  // Of recompute_module_names; with Selective.
  std::uint32_t micro_batch = 1;               // b, sequences.
  std::uint32_t global_batch = 1;              // B, sequences.
  // Layers of each of the pipeline x virtual_stages chunks, in model order; empty: as many each,
  // and where that cannot be, as even as can be with the head and blocks for multi-token prediction
  // counted as what they multiply, the earlier chunks taking what is left over. The first and the
  // last may be empty: an embedding or a head alone.
  std::vector<std::uint32_t> chunk_layers;
  // The vocabulary is padded to a multiple of this x tensor (128 is Megatron's); 0: it is not, and
  // tensor must divide it.
  std::uint32_t vocabulary_multiple = 128;
  // From neighbouring ranks outward. Megatron's order is the default.
  std::array<Dimension, 5> order = {Dimension::Tensor, Dimension::Context, Dimension::Expert,
                                    Dimension::Data, Dimension::Pipeline};
};

// t c p dp. Requires the product to fit.
[[nodiscard]] std::uint32_t ranks(const Layout& layout);
// m, per pipeline and step; edp; the ranks that share one copy of the states of dense parameters,
// and of experts (both 1 without sharding; with dualpipe those of the mirror stage are among them);
// the vocabulary with padding. Require a layout without problems.
[[nodiscard]] std::uint32_t micro_batches(const Layout& layout);
[[nodiscard]] std::uint32_t expert_data(const Layout& layout);
[[nodiscard]] std::uint32_t shard_ranks(const Layout& layout);
[[nodiscard]] std::uint32_t expert_shard_ranks(const Layout& layout);
[[nodiscard]] std::uint32_t padded_vocabulary(const Layout& layout, const Model& model);

// Why the layout is impossible for the model and sequence length, one sentence each that names the
// two numbers that do not fit; empty: it is possible. `gpus` 0: any number. The reasons are those
// of Megatron-Core, Transformer Engine, DeepSpeed and torchtitan: see docs/layouts.md.
[[nodiscard]] std::vector<std::string> problems(const Layout& layout, const Model& model,
                                                std::uint32_t sequence, std::uint32_t gpus);

// The layers of every chunk, in model order. Requires a layout without problems.
[[nodiscard]] std::vector<std::uint32_t> layers_of_chunks(const Layout& layout, const Model& model);

// The ranks of every group of one kind; groups of one rank are there too. Ranks rise within a
// group, and groups by their first rank.
//
// A rank's place in the dense dimensions is read off its number in mixed radix, the first of
// `order` changing fastest; Expert counts for nothing there. The same number read with etp in
// Tensor's place, e in Expert's, edp in Data's and nothing in Context's gives its place in the
// expert dimensions (Megatron-Core's two rank generators). The mirror stages of dualpipe are apart
// here; who reduces gradients together, group_kind.hpp says.
struct Groups {
  std::vector<std::vector<std::uint32_t>> tensor;
  std::vector<std::vector<std::uint32_t>> context;
  std::vector<std::vector<std::uint32_t>> pipeline;
  std::vector<std::vector<std::uint32_t>> data;  // data only,
  std::vector<std::vector<std::uint32_t>>
      data_context;  // and with context: gradients of dense parts.
  std::vector<std::vector<std::uint32_t>> expert;
  std::vector<std::vector<std::uint32_t>> expert_tensor;
  std::vector<std::vector<std::uint32_t>> expert_data;  // Gradients of experts.
};
// Requires a layout without problems; the expert kinds mean nothing for a model without experts.
[[nodiscard]] Groups groups(const Layout& layout);

}  // namespace flyover
