#include "flyover/layout/memory.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models.hpp"
#include "support/shared.hpp"

using namespace flyover;
using test::llama_8b;
using namespace flyover::literals;

namespace {

using nlohmann::json;
using enum MemoryPart;

constexpr double gib = 1 << 30;

double in_gib(Bytes bytes) {
  return static_cast<double>(bytes.count()) / gib;
}
double hundredths(double value) {
  return std::round(value * 100) / 100;
}

// Korthikanti et al. 2022, table 3: GPT, s = 2048, V = 51,200, four matrices of h x h per
// attention.
Model gpt(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads) {
  Model model;
  model.layers = layers;
  model.hidden = hidden;
  model.attention.heads = heads;
  model.attention.kv_heads = heads;
  model.attention.head_dim = hidden / heads;
  model.ffn_hidden = 4 * hidden;
  model.ffn_matrices = 2;
  model.vocabulary = 51200;
  model.tied_embeddings = true;
  model.positions = 2048;
  return model;
}

struct Korthikanti {
  Model model;
  Layout layout;
};
Layout korthikanti_layout(std::uint32_t p, std::uint32_t v, std::uint32_t b, std::uint32_t batch) {
  Layout layout;
  layout.tensor = 8;
  layout.pipeline = p;
  layout.virtual_stages = v;
  layout.micro_batch = b;
  layout.global_batch = batch;
  layout.sequence_parallel = true;
  layout.sharding = Sharding::None;
  layout.recompute = Recompute::Selective;
  if (v > 1) layout.schedule = PipelineSchedule::Interleaved;
  return layout;
}
Korthikanti gpt_22b() {
  return {gpt(48, 6144, 64), korthikanti_layout(1, 1, 4, 4)};
}
Korthikanti gpt_175b() {
  return {gpt(96, 12288, 96), korthikanti_layout(8, 3, 1, 64)};
}
Korthikanti gpt_530b() {
  return {gpt(105, 20480, 128), korthikanti_layout(35, 3, 1, 280)};
}
Korthikanti gpt_1t() {
  return {gpt(128, 25600, 160), korthikanti_layout(64, 1, 1, 512)};
}

TrainingOptions korthikanti_options() {
  TrainingOptions options;
  options.flash_attention = false;
  options.dropout = true;
  return options;
}

// DeepSeek-V3's layers, five of them, and one MTP block.
Model latent_experts() {
  Model model;
  model.layers = 5;
  model.hidden = 7168;
  model.attention.heads = 128;
  model.attention.kv_heads = 128;
  model.attention.head_dim = 192;
  model.attention.latent = LatentAttention{
      .query_rank = 1536, .kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128};
  model.ffn_hidden = 18432;
  model.experts = Experts{};
  model.experts->count = 256;
  model.experts->chosen = 8;
  model.experts->hidden = 2048;
  model.experts->shared_hidden = 2048;
  model.experts->first_layer = 3;
  model.vocabulary = 129280;
  return model;
}

double first_stage_activations(const Korthikanti& at, const TrainingOptions& options) {
  return in_gib(memory_use(at.model, at.layout, options, 2048, 80_GiB).stages[0][Activations]);
}

double layer_bytes(const Model& model, const Layout& layout, const TrainingOptions& options,
                   std::uint32_t sequence, std::uint32_t layer = 0) {
  return layer_activations(model, layout, options, sequence, layer).total();
}

}  // namespace

TEST_CASE("states of the 22B model on 8 tensor ranks are the published ones", "[memory]") {
  const Korthikanti at = gpt_22b();
  const StageParameters parameters = stage_parameters(at.model, at.layout, 0);
  const double per_parameter = state_bytes({}, Sharding::None, 1).total();
  CHECK(per_parameter == 18);
  // 12 L h^2 / t: FORMULAS.md, 3.1.
  CHECK(hundredths(parameters.matrices * per_parameter / gib) == 45.56);
}

TEST_CASE("activations of the Megatron family are the published ones", "[memory]") {
  // FORMULAS.md, 3.2: with sequence parallelism and selective recomputation on the first stage,
  const TrainingOptions options = korthikanti_options();
  CHECK(hundredths(first_stage_activations(gpt_22b(), options)) == 9.56);
  CHECK(hundredths(first_stage_activations(gpt_175b(), options)) == 12.35);
  CHECK(hundredths(first_stage_activations(gpt_530b(), options)) == 23.08);
  CHECK(hundredths(first_stage_activations(gpt_1t(), options)) == 26.56);
  // and with neither.
  Korthikanti at = gpt_22b();
  at.layout.sequence_parallel = false;
  at.layout.recompute = Recompute::None;
  CHECK(hundredths(first_stage_activations(at, options)) == 59.25);
}

TEST_CASE("a GPT layer keeps what Korthikanti et al. count", "[memory]") {
  const double s = 2048;
  const double b = 2;
  const double h = 6144;
  const double a = 64;
  const double t = 8;
  const Model model = gpt(48, 6144, 64);
  TrainingOptions options = korthikanti_options();
  Layout layout;
  layout.micro_batch = 2;
  CHECK(layer_bytes(model, layout, options, 2048) == Approx(s * b * h * (34 + 5 * a * s / h)));
  layout.tensor = 8;
  CHECK(layer_bytes(model, layout, options, 2048) ==
        Approx(s * b * h * (10 + 24 / t + 5 * a * s / (h * t))));
  layout.recompute = Recompute::Full;
  CHECK(layer_bytes(model, layout, options, 2048) == 2 * s * b * h);
  layout.recompute = Recompute::None;
  layout.sequence_parallel = true;
  CHECK(layer_bytes(model, layout, options, 2048) == Approx(s * b * h / t * (34 + 5 * a * s / h)));
  layout.recompute = Recompute::Full;
  CHECK(layer_bytes(model, layout, options, 2048) == 2 * s * b * h / t);
  layout.recompute = Recompute::Selective;
  CHECK(layer_bytes(model, layout, options, 2048) == 34 * s * b * h / t);
  // A fused kernel keeps the log-sum-exp, in 32 bits.
  layout.recompute = Recompute::None;
  options.flash_attention = true;
  CHECK(layer_bytes(model, layout, options, 2048) == (34 * h + 4 * a) * s * b / t);
}

TEST_CASE("a Llama layer keeps 8h + 4(a + g)d + 6f bytes per token, and 4a", "[memory]") {
  const Model model = llama_8b();
  Layout layout;
  TrainingOptions options;
  const double h = 4096;
  const double a = 32;
  const double f = 14336;
  const double qkv = (a + 8) * 128;
  CHECK(layer_bytes(model, layout, options, 1) == 8 * h + 4 * qkv + 6 * f + 4 * a);
  layout.tensor = 4;
  layout.context = 2;
  layout.sequence_parallel = true;
  const double tokens = 8192 / 8.0;
  CHECK(layer_bytes(model, layout, options, 8192) == tokens * (8 * h + 4 * qkv + 6 * f + 4 * a));

  SECTION("less what is recomputed") {
    const auto saved = [&](const char* module) {
      Layout less = layout;
      less.recompute = Recompute::Selective;
      less.recompute_modules = {module};
      return (layer_bytes(model, layout, options, 8192) - layer_bytes(model, less, options, 8192)) /
             tokens;
    };
    CHECK(saved("norm") == 4 * h);
    CHECK(saved("activation") == 2 * f);
    CHECK(saved("mlp") == 6 * f);
    CHECK(saved("attention") == 4 * a);
    CHECK(saved("moe") == 0);
  }
  SECTION("with what matrix multiplications read in their type") {
    options.compute = KernelType::Fp8;
    CHECK(layer_bytes(model, layout, options, 8192) ==
          tokens * (6 * h + 4 * qkv - a * 128 + 5 * f + 4 * a));
    options.compute = KernelType::Mxfp8;
    CHECK(layer_bytes(model, layout, options, 8192) >
          tokens * (6 * h + 4 * qkv - a * 128 + 5 * f + 4 * a));
  }
  SECTION("with one key-value head where there are more ranks than heads") {
    layout.tensor = 16;
    const LayerActivations kept = layer_activations(model, layout, options, 8192, 0);
    CHECK(kept.queries_keys_values == 4096.0 * (a / 16 + 2) * 128 * 2);
  }
  SECTION("with what norms of queries and keys read") {
    Model normed = model;
    normed.attention.norms = true;
    CHECK(layer_bytes(normed, layout, options, 8192) - layer_bytes(model, layout, options, 8192) ==
          tokens * 2 * qkv);
  }
  SECTION("with scores where attention is not fused") {
    options.flash_attention = false;
    const LayerActivations kept = layer_activations(model, layout, options, 8192, 0);
    CHECK(kept.scores == 4096.0 * (a / 4) * 8192 * 2);
  }
}

TEST_CASE("experts keep k tokens and latent attention its latents", "[memory]") {
  const Model model = latent_experts();
  Layout layout;
  layout.expert = 8;
  layout.data = 8;
  TrainingOptions options;
  LayerActivations kept = layer_activations(model, layout, options, 4096, 4);
  const double s = 4096;
  CHECK(kept.queries_keys_values == s * 128 * (192 + 192 + 128) * 2);
  CHECK(kept.latents == s * (4 * (1536 + 512) + 2 * 64));
  CHECK(kept.attention_output == s * 128 * 128 * 2);
  CHECK(kept.experts.total() == s * 8 * 6 * 2048);
  CHECK(kept.shared_experts.total() == s * 6 * 2048);
  CHECK(kept.dispatched == s * 8 * 4 * 7168);
  CHECK(kept.dense_ffn.total() == 0);
  CHECK(layer_activations(model, layout, options, 4096, 0).dense_ffn.total() == s * 6 * 18432);

  SECTION("more with imbalance") {
    options.expert_imbalance = 1.5;
    CHECK(layer_activations(model, layout, options, 4096, 4).experts.total() ==
          1.5 * kept.experts.total());
  }
  SECTION("the same width and more tokens with expert tensor parallelism") {
    layout.tensor = 2;
    layout.sequence_parallel = true;
    layout.expert_tensor = 2;
    const LayerActivations split = layer_activations(model, layout, options, 4096, 4);
    CHECK(split.experts.total() == kept.experts.total() / 2);
    CHECK(split.dispatched == kept.dispatched);
  }
  SECTION("less what is recomputed, in any combination") {
    layout.recompute = Recompute::Selective;
    layout.recompute_modules = {"moe", "shared_experts", "mla_up_proj"};
    kept = layer_activations(model, layout, options, 4096, 4);
    CHECK(kept.experts.total() + kept.shared_experts.total() + kept.dispatched +
              kept.queries_keys_values ==
          0);
    CHECK(kept.latents > 0);
    layout.recompute_modules = {"activation"};
    kept = layer_activations(model, layout, options, 4096, 4);
    CHECK(kept.experts.product + kept.shared_experts.product == 0);
    CHECK(kept.experts.inner == s * 8 * 4 * 2048);
  }
}

TEST_CASE("states take the published bytes per parameter", "[memory]") {
  const std::uint32_t dp = GENERATE(1U, 4U, 64U);
  const double n = dp;
  TrainingOptions options;
  // FORMULAS.md, 3.1.
  CHECK(state_bytes(options, Sharding::None, dp).total() == 18);
  CHECK(state_bytes(options, Sharding::Optimizer, dp).total() == 6 + 12 / n);
  options.fp32_gradients = false;
  CHECK(state_bytes(options, Sharding::None, dp).total() == 16);
  CHECK(state_bytes(options, Sharding::Optimizer, dp).total() == 4 + 12 / n);
  CHECK(state_bytes(options, Sharding::Gradients, dp).total() == 2 + 14 / n);
  CHECK(state_bytes(options, Sharding::Parameters, dp).total() == 16 / n);
  options.bf16_moments = true;
  CHECK(state_bytes(options, Sharding::Optimizer, dp).optimizer == 8 / n);
  options.optimizer = Optimizer::Momentum;
  CHECK(state_bytes(options, Sharding::Optimizer, dp).optimizer == 6 / n);
  options.optimizer = Optimizer::Sgd;
  options.fp32_master = false;
  CHECK(state_bytes(options, Sharding::Optimizer, dp).optimizer == 0);
}

TEST_CASE("quantised parameters are kept alone, beside, or made when needed", "[memory]") {
  TrainingOptions options;
  options.compute = KernelType::Fp8;
  CHECK(state_bytes(options, Sharding::Optimizer, 8).parameters == 3);
  CHECK(state_bytes(options, Sharding::Optimizer, 8, false).parameters == 2);
  CHECK(state_bytes(options, Sharding::Parameters, 8).parameters == 0.25);
  options.transposed_quantised = true;
  CHECK(state_bytes(options, Sharding::Optimizer, 8).parameters == 4);
  options.cached_quantised = false;
  CHECK(state_bytes(options, Sharding::Optimizer, 8).parameters == 2);
  options.quantised_parameters = true;
  CHECK(state_bytes(options, Sharding::Optimizer, 8).parameters == 2);
  options.transposed_quantised = false;
  CHECK(state_bytes(options, Sharding::Optimizer, 8).parameters == 1);
  CHECK(state_bytes(options, Sharding::Optimizer, 8, false).parameters == 2);
}

TEST_CASE("the ranks of a model together hold its parameters", "[memory]") {
  const Model model = llama_8b();
  Layout layout;
  layout.tensor = 4;
  layout.pipeline = GENERATE(1U, 3U, 8U);
  layout.vocabulary_multiple = 1;
  double matrices = 0;
  double others = 0;
  double ends = 0;
  for (std::uint32_t stage = 0; stage < layout.pipeline; ++stage) {
    const StageParameters part = stage_parameters(model, layout, stage);
    matrices += part.matrices;
    others += part.others;
    ends += part.embedding + part.head;
  }
  const ParameterCounts counts = parameter_counts(model);
  CHECK(4 * matrices == static_cast<double>(counts.attention + counts.dense_ffn));
  CHECK(others == static_cast<double>(counts.norms));
  CHECK(4 * ends == static_cast<double>(counts.embedding + counts.head));
}

TEST_CASE("replicated parameters are on every tensor rank", "[memory]") {
  Model model = llama_8b();
  Layout layout;
  layout.tensor = 16;
  // One of 8 key-value heads per rank: 2 h d; of queries and output 2 of 32: 2 h 2 d; 3 h f / 16.
  CHECK(stage_parameters(model, layout, 0).matrices ==
        32.0 * (2 * 4096 * 128 + 2 * 4096 * 2 * 128 + 3 * 4096 * 14336 / 16));
  model = latent_experts();
  // The projections down, and an eighth of the rest.
  layout.tensor = 8;
  layout.sequence_parallel = true;
  const double down = 7168.0 * (1536 + 512 + 64);
  const double up = 1536.0 * 128 * 192 + 512.0 * 128 * 256 + 128.0 * 128 * 7168;
  const StageParameters part = stage_parameters(model, layout, 0);
  CHECK(part.matrices ==
        Approx(5 * (down + up / 8) + 3.0 * (3 * 7168.0 * 18432 / 8) + 2 * 3 * 7168.0 * 2048 / 8));
  CHECK(part.experts == 2.0 * 256 * 3 * 7168 * 2048);
  layout.data = 8;
  layout.expert = 32;
  layout.expert_tensor = 2;
  CHECK(stage_parameters(model, layout, 0).experts == part.experts / 64);
}

TEST_CASE("the head's stage has a copy of what it shares with the embedding", "[memory]") {
  Model model = llama_8b();
  Layout layout;
  layout.pipeline = 4;
  layout.vocabulary_multiple = 1;
  const double tokens = 128256.0 * 4096;
  CHECK(stage_parameters(model, layout, 0).embedding == tokens);
  CHECK(stage_parameters(model, layout, 1).embedding == 0);
  CHECK(stage_parameters(model, layout, 3).head == tokens);
  model.tied_embeddings = true;
  CHECK(stage_parameters(model, layout, 3).head == 0);
  CHECK(stage_parameters(model, layout, 3).embedding == tokens);
  // The V of zb-v ends where it began.
  layout.virtual_stages = 2;
  layout.schedule = PipelineSchedule::ZeroBubbleV;
  CHECK(stage_parameters(model, layout, 0).embedding == tokens);
  CHECK(stage_parameters(model, layout, 3).embedding == 0);
  model.tied_embeddings = false;
  CHECK(stage_parameters(model, layout, 0).head == tokens);
  // An MTP block: a layer, 2h x h, norms, and the embedding.
  model.mtp_layers = 1;
  layout.virtual_stages = 1;
  layout.schedule = PipelineSchedule::OneForwardOneBackward;
  const StageParameters last = stage_parameters(model, layout, 3);
  CHECK(last.matrices == stage_parameters(model, layout, 2).matrices / 8 * 9 + 2 * 4096.0 * 4096);
  CHECK(last.embedding == tokens);
}

TEST_CASE("a stage of dualpipe has its mirror image's parameters beside its own", "[memory]") {
  Model model = llama_8b();
  Layout plain;
  plain.pipeline = 4;
  plain.data = 2;
  plain.global_batch = 32;
  plain.vocabulary_multiple = 1;
  Layout dual = plain;
  dual.schedule = PipelineSchedule::DualPipe;
  const MemoryUse one = memory_use(model, plain, {}, 4096, 80_GiB);
  const MemoryUse two = memory_use(model, dual, {}, 4096, 80_GiB);
  for (std::uint32_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(stage_parameters(model, dual, i).total() ==
          stage_parameters(model, plain, i).total() +
              stage_parameters(model, plain, 3 - i).total());
    CHECK(two.stages[i].micro_batches_in_flight == 5);  // PP + 1
    const auto sum = [&](MemoryPart part) { return one.stages[i][part] + one.stages[3 - i][part]; };
    CHECK(two.stages[i][Parameters] == sum(Parameters));
    CHECK(two.stages[i][Gradients] == sum(Gradients));
    // Twice as many ranks share the optimizer's states.
    CHECK(two.stages[i][MemoryPart::Optimizer].count() ==
          Approx(static_cast<double>(sum(MemoryPart::Optimizer).count()) / 2));
    CHECK(two.stages[i][Activations] == one.stages[3][Activations] * 5);
  }
  CHECK(stage_parameters(model, dual, 3).head == 128256.0 * 4096);
  model.tied_embeddings = true;
  CHECK(stage_parameters(model, dual, 0).embedding == 128256.0 * 4096);
}

TEST_CASE("each part of a stage's memory is its formula", "[memory]") {
  const Model model = llama_8b();
  Layout layout;
  layout.tensor = 2;
  layout.sequence_parallel = true;
  layout.pipeline = 4;
  layout.data = 8;
  layout.global_batch = 128;
  const TrainingOptions options;
  const MemoryUse use = memory_use(model, layout, options, 8192, 80_GiB);
  REQUIRE(use.stages.size() == 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const StageMemory& stage = use.stages[i];
    CAPTURE(i);
    CHECK(stage.micro_batches_in_flight == 4 - i);
    const double parameters = stage_parameters(model, layout, i).total();
    CHECK(static_cast<double>(stage[Parameters].count()) == 2 * parameters);
    CHECK(static_cast<double>(stage[Gradients].count()) == 4 * parameters);
    CHECK(static_cast<double>(stage[MemoryPart::Optimizer].count()) == 12 * parameters / 8);
    CHECK(static_cast<double>(stage[Activations].count()) ==
          (4 - i) * 8 * layer_bytes(model, layout, options, 8192));
    const double hidden = 8192.0 * 4096 * 2;
    CHECK(static_cast<double>(stage[Logits].count()) ==
          (i == 3 ? 8192.0 * 128256 / 2 * 6 + 2 * hidden : 0));
    // Recomputed nothing; gradients of a layer's states, and of gate and up.
    CHECK(static_cast<double>(stage[Working].count()) ==
          (i == 3 ? 0 : 8192.0 / 2 * (4 * 4096 + 4 * 14336 + 4 * 32)));
    // Two tensors each way, one gathered sequence; tensor, pipeline and data communicators.
    CHECK(static_cast<double>(stage[Buffers].count()) ==
          4 * hidden / 2 + hidden + gib + 3 * 128.0 * (1 << 20));
    CHECK(stage.total() == std::accumulate(stage.parts.begin(), stage.parts.end(), 0_B));
    CHECK(static_cast<double>(stage[Margin].count()) ==
          Approx(static_cast<double>((stage.total() - stage[Margin]).count()) * 0.05));
  }
  CHECK(use.fullest == 0);
  CHECK(use.fits);
  CHECK(use.reason.empty());
}

TEST_CASE("what does not fit says which stage and what takes the most", "[memory]") {
  Layout layout;
  layout.sharding = Sharding::None;
  const MemoryUse use = memory_use(llama_8b(), layout, {}, 8192, 80_GiB);
  CHECK_FALSE(use.fits);
  CHECK(use.stages[0].largest() == MemoryPart::Optimizer);
  CHECK(use.reason == fmt::format("stage 0 of 1 needs {:.1f} GiB of the 80.0 GiB there are; the "
                                  "most go to optimizer, 89.7 GiB",
                                  in_gib(use.stages[0].total())));
  // The gate from both sides.
  const Bytes needed = use.stages[0].total();
  CHECK(memory_use(llama_8b(), layout, {}, 8192, needed).fits);
  CHECK_FALSE(memory_use(llama_8b(), layout, {}, 8192, needed - 1_B).fits);
}

TEST_CASE("full sharding gathers units, and keeps them when told", "[memory]") {
  const Model model = llama_8b();
  Layout layout;
  layout.data = 8;
  layout.global_batch = 8;
  layout.sharding = Sharding::Parameters;
  TrainingOptions options;
  options.fp32_gradients = false;
  const auto buffers = [&] {
    return static_cast<double>(
        memory_use(model, layout, options, 8192, 80_GiB).stages[0][Buffers].count());
  };
  const StageParameters parameters = stage_parameters(model, layout, 0);
  const double fixed = gib + 128.0 * (1 << 20);
  const double ends = 2 * (parameters.embedding + parameters.head);
  // Two units gathered and one unit's gradients.
  CHECK(buffers() == fixed + ends + (2 * 2 + 2) * parameters.largest_layer);
  layout.keep_gathered = true;
  CHECK(buffers() == fixed + 2 * parameters.total() + 2 * parameters.largest_layer);
  layout.keep_gathered = false;
  layout.sharding = Sharding::Gradients;
  CHECK(buffers() == fixed + 2 * parameters.largest_layer);
  layout.sharding = Sharding::Optimizer;
  CHECK(buffers() == fixed);
}

TEST_CASE("groups of shards and experts' own groups divide their states", "[memory]") {
  const Model model = latent_experts();
  Layout layout;
  layout.data = 16;
  layout.expert = 8;
  layout.global_batch = 16;
  const auto optimizer = [&] {
    return static_cast<double>(
        memory_use(model, layout, {}, 4096, 80_GiB).stages[0][MemoryPart::Optimizer].count());
  };
  const StageParameters parameters = stage_parameters(model, layout, 0);
  CHECK(optimizer() == Approx(12 * (parameters.dense() / 16 + parameters.experts / 2)));
  layout.shard_group = 8;
  CHECK(optimizer() == Approx(12 * (parameters.dense() / 8 + parameters.experts / 1)));
}

TEST_CASE("gpipe holds logits of every micro-batch", "[memory]") {
  Layout layout;
  layout.pipeline = 2;
  layout.global_batch = 6;
  const auto logits = [&] {
    return static_cast<double>(
        memory_use(llama_8b(), layout, {}, 1024, 80_GiB).stages[1][Logits].count());
  };
  const double values = 1024.0 * 128256;
  const double inputs = 1024.0 * 4 * 4096;
  const double gradient = 1024.0 * 2 * 4096;
  CHECK(logits() == 6 * values + inputs + gradient);
  layout.schedule = PipelineSchedule::GPipe;
  CHECK(logits() == 6 * (4 * values + inputs) + 2 * values + gradient);
}

TEST_CASE("more micro-batches than fill the pipeline take no more memory", "[memory]") {
  Layout layout;
  layout.pipeline = 4;
  std::tie(layout.schedule, layout.virtual_stages) =
      GENERATE(table<PipelineSchedule, std::uint32_t>({{PipelineSchedule::OneForwardOneBackward, 1},
                                                       {PipelineSchedule::Interleaved, 3},
                                                       {PipelineSchedule::ZeroBubbleH1, 1},
                                                       {PipelineSchedule::ZeroBubbleV, 2},
                                                       {PipelineSchedule::DualPipe, 1},
                                                       {PipelineSchedule::DualPipeV, 2}}));
  Model model = llama_8b();
  model.layers = 31;  // Uneven chunks.
  const auto totals = [&](std::uint32_t m) {
    layout.global_batch = m;
    std::vector<Bytes> sums;
    for (const StageMemory& stage : memory_use(model, layout, {}, 1024, 80_GiB).stages) {
      sums.push_back(stage.total());
    }
    return sums;
  };
  const std::vector<Bytes> full = totals(16);
  CHECK(totals(64) == full);
  CHECK(totals(256) == full);
}

namespace {

// What published records say about the model and the layout; nullopt where that is not enough.
std::optional<Model> model_of(const json& arch) {
  if (arch.value("experts", 0) != 0 || arch.contains("mla")) return std::nullopt;
  Model model;
  model.layers = arch.at("layers");
  model.hidden = arch.at("hidden");
  model.attention.heads = arch.at("heads");
  model.attention.kv_heads = arch.value("kv_heads", model.attention.heads);
  model.attention.head_dim = arch.value("head_dim", model.hidden / model.attention.heads);
  model.ffn_hidden = arch.at("ffn");
  model.ffn_matrices = arch.at("ffn_matrices");
  model.vocabulary = arch.at("vocab");
  model.tied_embeddings = arch.value("tied_embeddings", false);
  return model;
}

}  // namespace

TEST_CASE("published peaks of memory are near what is predicted", "[memory]") {
  const auto path = test::shared_material("training/results.json");
  if (!path) return;
  std::ifstream file(*path);
  std::map<std::string, std::vector<double>> errors;  // Per source.
  for (const json& record : json::parse(file)) {
    const json& measured = record.at("measured");
    double peak = measured.value("peak_memory_gib", 0.0) * gib;
    if (peak == 0) peak = measured.value("peak_memory_gb", 0.0) * 1e9;
    if (peak == 0 || record.at("quality") != "A") continue;
    const json& given = record.at("layout");
    // Selective per operator (torchtitan) keeps every other product of a layer, which no module
    // names.
    const std::optional<Model> model = model_of(record.at("model").at("arch"));
    if (!model || given.at("recompute") != "full") continue;
    Layout layout;
    layout.tensor = given.at("tp");
    layout.pipeline = given.at("pp");
    layout.context = given.at("cp");
    layout.data = given.at("dp");
    layout.micro_batch = given.at("mbs");
    layout.global_batch = given.at("gbs");
    layout.sequence_parallel = given.value("sp", false);
    layout.recompute = Recompute::Full;
    TrainingOptions options;
    options.fp32_gradients = false;
    MemoryOptions memory;
    if (given.at("zero") == 3) {  // torchtitan: PyTorch's loss, and its own account of memory.
      layout.sharding = Sharding::Parameters;
      options.fused_loss = false;
      memory.context = 0_B;
    } else {  // Megatron-DeepSpeed of 2021.
      options.flash_attention = false;
      options.dropout = true;
    }
    if (record.at("precision") == "fp8") options.compute = KernelType::Fp8;
    const std::uint32_t sequence = record.at("model").at("seq");
    REQUIRE(problems(layout, *model, sequence, record.at("hardware").at("gpus")).empty());
    const MemoryUse use = memory_use(*model, layout, options, sequence, 80_GiB, memory);
    const StageMemory& stage = use.stages[use.fullest];
    errors[record.at("source_key")].push_back(static_cast<double>(stage.total().count()) / peak -
                                              1);
  }
  const auto median = [](std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  };
  for (const auto& [source, values] : errors) {
    std::vector<double> sizes;
    for (const double error : values) sizes.push_back(std::abs(error));
    UNSCOPED_INFO(fmt::format("{}: {} peaks, median error {:+.1f} %, median size {:.1f} %", source,
                              values.size(), 100 * median(values), 100 * median(sizes)));
  }
  REQUIRE(errors.size() == 2);
  CHECK(std::abs(median(errors.at("titan-2412"))) < 0.05);
  // Runs of one layout differ by half here: 44 to 67 GB.
  CHECK(std::abs(median(errors.at("bigscience-prequel"))) < 0.2);
}

TEST_CASE("adapters have rank x (n + k) parameters, cut where their matrix is", "[memory]") {
  const Model model = llama_8b();
  Layout layout;
  const Lora lora{.rank = 16, .attention = true, .ffn = true};
  const double h = 4096;
  const double qkv = (32 + 2 * 8) * 128;
  const double f = 14336;
  CHECK(adapter_parameters(model, layout, lora, 0).dense ==
        16 * ((h + qkv) + (h + h) + (h + 2 * f) + (f + h)));
  layout.tensor = 4;
  CHECK(adapter_parameters(model, layout, lora, 0).dense ==
        16 * ((h + qkv / 4) + (h / 4 + h) + (h + 2 * f / 4) + (f / 4 + h)));
  CHECK(adapter_parameters(model, layout, {.rank = 16, .attention = true, .ffn = false}, 0).dense ==
        16 * ((h + qkv / 4) + (h / 4 + h)));

  SECTION("of experts on the ranks that have them") {
    const Model experts = latent_experts();
    layout.tensor = 1;
    layout.expert = 8;
    layout.data = 8;
    const AdapterParameters own = adapter_parameters(experts, layout, lora, 4);
    CHECK(own.experts == 256 / 8 * 16.0 * ((7168 + 2 * 2048) + (2048 + 7168)));
    CHECK(adapter_parameters(experts, layout, lora, 0).experts == 0);
  }
}

TEST_CASE("frozen parameters have neither gradients nor optimizer states", "[memory]") {
  const Model model = llama_8b();
  const Layout layout;
  TrainingOptions options;
  const StageMemory full = memory_use(model, layout, options, 4096, 80_GiB).stages[0];
  options.lora = Lora{.rank = 16, .attention = true, .ffn = true};
  const StageMemory tuned = memory_use(model, layout, options, 4096, 80_GiB).stages[0];
  const double adapters = 32 * adapter_parameters(model, layout, *options.lora, 0).dense;
  const double parameters = stage_parameters(model, layout, 0).total();
  CHECK(tuned[Parameters] == Bytes{std::llround(2 * (parameters + adapters))});
  CHECK(tuned[Gradients] == Bytes{std::llround(4 * adapters)});
  CHECK(tuned[MemoryPart::Optimizer] == Bytes{std::llround(12 * adapters)});
  CHECK(full[Gradients] == Bytes{std::llround(4 * parameters)});
}

TEST_CASE("frozen matrices do not keep their inputs, adapters theirs", "[memory]") {
  const Model model = llama_8b();
  const Layout layout;
  TrainingOptions options;
  const LayerActivations full = layer_activations(model, layout, options, 1024, 0);
  options.lora = Lora{.rank = 8, .attention = true, .ffn = false};
  LayerActivations kept = layer_activations(model, layout, options, 1024, 0);
  CHECK(kept.norm_inputs == full.norm_inputs);
  CHECK(kept.norm_outputs == full.norm_outputs / 2);
  CHECK(kept.attention_output == full.attention_output);
  CHECK(kept.dense_ffn.inner == full.dense_ffn.inner);
  CHECK(kept.dense_ffn.product == 0);
  CHECK(kept.adapters == 1024.0 * 2 * 8 * 2);

  options.lora = Lora{.rank = 8, .attention = false, .ffn = true};
  kept = layer_activations(model, layout, options, 1024, 0);
  CHECK(kept.norm_outputs == full.norm_outputs / 2);
  CHECK(kept.attention_output == full.attention_output);  // Fused attention reads it.
  CHECK(kept.dense_ffn.product == full.dense_ffn.product);
  options.flash_attention = false;
  CHECK(layer_activations(model, layout, options, 1024, 0).attention_output == 0);

  SECTION("with experts and latents") {
    options.flash_attention = true;
    const Model experts = latent_experts();
    TrainingOptions all;
    const LayerActivations trained = layer_activations(experts, layout, all, 1024, 4);
    options.lora = Lora{.rank = 8, .attention = false, .ffn = false};
    kept = layer_activations(experts, layout, options, 1024, 4);
    CHECK(kept.dispatched == trained.dispatched / 2);
    CHECK(kept.experts.product == 0);
    CHECK(kept.latents == trained.latents - 1024.0 * (1536 + 512) * 2);
    CHECK(kept.adapters == 0);
  }
  SECTION("and full recomputation keeps the layer's input as ever") {
    Layout again = layout;
    again.recompute = Recompute::Full;
    CHECK(layer_activations(model, again, options, 1024, 0).total() == 1024.0 * 4096 * 2);
  }
}
