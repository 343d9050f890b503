#include "flyover/layout/memory.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/layout/schedule.hpp"

namespace flyover {

namespace {

double wide_bytes(const TrainingOptions& options) {
  return options.compute == KernelType::Tf32 ? 4 : 2;
}

bool quantises(const TrainingOptions& options) {
  return bytes_per_element(options.compute) < 2;
}

double quantised_bytes(const TrainingOptions& options) {
  return bytes_per_element(options.compute) * (options.transposed_quantised ? 2 : 1);
}

// Attention's projections on one tensor rank.
double attention_parameters(const Model& model, const Layout& layout, double all) {
  const Attention& attention = model.attention;
  const double t = layout.tensor;
  const double h = model.hidden;
  if (attention.latent) {
    // Projections down to the latent space serve all heads, and every rank has them.
    const LatentAttention& latent = *attention.latent;
    const double down = h * (latent.query_rank + latent.kv_rank + latent.rope_dim);
    return down + (all - down) / t;
  }
  if (layout.tensor <= attention.kv_heads) return all / t;
  // Fewer key-value heads than ranks: each rank has one.
  const double kv_head = 2 * (h + (attention.bias ? 1 : 0)) * attention.head_dim;
  return (all - kv_head * attention.kv_heads) / t + kv_head;
}

// Adds `times` layers like this one.
void add_layer(StageParameters& sum, const Model& model, const Layout& layout, std::uint32_t layer,
               double times) {
  const ParameterCounts counts = layer_parameters(model, layer);
  const double t = layout.tensor;
  const double matrices =
      attention_parameters(model, layout, static_cast<double>(counts.attention)) +
      static_cast<double>(counts.dense_ffn + counts.shared_experts) / t;
  const double experts =
      static_cast<double>(counts.experts) / (1.0 * layout.expert * layout.expert_tensor);
  const auto others = static_cast<double>(counts.norms + counts.router);
  sum.matrices += times * matrices;
  sum.experts += times * experts;
  sum.others += times * others;
  sum.largest_layer = std::max(sum.largest_layer, matrices + experts + others);
}

// The layers of a model chunk: [first, end).
struct Layers {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

// What follows from the layout for every question about one stage.
class Stages {
 public:
  Stages(const Model& model, const Layout& layout)
      : shape_(pipeline_shape(layout)),
        layers_(layers_of_chunks(layout, model)) {
    ends_.resize(layers_.size());
    std::partial_sum(layers_.begin(), layers_.end(), ends_.begin());
  }

  [[nodiscard]] const PipelineShape& shape() const { return shape_; }
  [[nodiscard]] Layers layers(std::uint32_t stage, std::uint32_t chunk) const {
    const std::uint32_t at = model_chunk(shape_, stage, chunk);
    return {ends_[at] - layers_[at], ends_[at]};
  }
  [[nodiscard]] bool has_head(std::uint32_t stage) const {
    return stage == stage_of(shape_, shape_.stages * shape_.chunks - 1);
  }
  [[nodiscard]] bool is_last(std::uint32_t stage, std::uint32_t chunk) const {
    return model_chunk(shape_, stage, chunk) + 1 == shape_.stages * shape_.chunks;
  }

 private:
  PipelineShape shape_;
  std::vector<std::uint32_t> layers_;
  std::vector<std::uint32_t> ends_;
};

StageParameters stage_parameters(const Model& model, const Layout& layout, const Stages& stages,
                                 std::uint32_t stage) {
  StageParameters sum;
  for (std::uint32_t chunk = 0; chunk < layout.virtual_stages; ++chunk) {
    const Layers layers = stages.layers(stage, chunk);
    for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
      add_layer(sum, model, layout, layer, 1);
    }
  }
  const double h = model.hidden;
  const double tokens = h * padded_vocabulary(layout, model) / layout.tensor;
  const double norm = h * (model.norm_bias ? 2 : 1);
  if (stage == 0) sum.embedding = tokens + h * model.positions;
  if (stages.has_head(stage)) {
    sum.others += norm;
    if (!model.tied_embeddings) sum.head = tokens;
    const bool reads_tokens = model.tied_embeddings || model.mtp_layers > 0;
    if (reads_tokens && stage != 0) sum.embedding += tokens;
    if (model.mtp_layers > 0) {
      add_layer(sum, model, layout, model.layers - 1, model.mtp_layers);
      sum.matrices += model.mtp_layers * 2 * h * h / layout.tensor;
      sum.others += model.mtp_layers * 3 * norm;
    }
  }
  return sum;
}

// Tokens of a micro-batch on one rank: all of those its context rank has,
double own_tokens(const Layout& layout, std::uint32_t sequence) {
  return 1.0 * layout.micro_batch * sequence / layout.context;
}
// and where tensor ranks share them out.
double split_tokens(const Layout& layout, std::uint32_t sequence) {
  return own_tokens(layout, sequence) / (layout.sequence_parallel ? layout.tensor : 1);
}

// Everything that a layer's backward reads.
LayerActivations all_activations(const Model& model, const Layout& layout,
                                 const TrainingOptions& options, std::uint32_t sequence,
                                 std::uint32_t layer) {
  const Attention& attention = model.attention;
  const double t = layout.tensor;
  const double whole = own_tokens(layout, sequence);
  const double split = split_tokens(layout, sequence);
  const double wide = wide_bytes(options);
  // What matrix multiplications read is kept as they read it.
  const double read = std::min(wide, bytes_per_element(options.compute));
  const double h = model.hidden;
  const double heads = attention.heads / t;

  LayerActivations bytes;
  bytes.norm_inputs = split * 2 * h * wide;
  bytes.norm_outputs = split * 2 * h * read;
  if (options.dropout) bytes.dropout_masks = split * 2 * h;

  double values = heads * attention.head_dim;
  if (attention.latent) {
    const LatentAttention& latent = *attention.latent;
    const double key_dim = latent.nope_dim + latent.rope_dim;
    values = heads * latent.value_dim;
    bytes.queries_keys_values = whole * (2 * heads * key_dim + values) * wide;
    bytes.latents =
        split * ((latent.query_rank + latent.kv_rank) * (wide + read) + latent.rope_dim * wide);
  } else {
    const double kv_heads = std::max(attention.kv_heads / t, 1.0);
    // Norms of queries and keys keep what they read.
    const double kept = heads + 2 * kv_heads + (attention.norms ? heads + kv_heads : 0);
    bytes.queries_keys_values = whole * kept * attention.head_dim * wide;
  }
  bytes.attention_output = whole * values * read;
  if (options.flash_attention) {
    bytes.scores = whole * heads * 4;
  } else {
    // The softmax; with dropout also its mask, a byte, and its output.
    bytes.scores = whole * heads * sequence * (wide + (options.dropout ? 1 + wide : 0));
  }

  const auto ffn = [&](double tokens, double width) {
    return FfnActivations{.inner = tokens * (model.ffn_matrices - 1) * width * wide,
                          .product = tokens * width * read};
  };
  if (!has_experts(model, layer)) {
    bytes.dense_ffn = ffn(whole, model.ffn_hidden / t);
    return bytes;
  }
  const Experts& experts = *model.experts;
  bytes.shared_experts = ffn(whole, experts.shared_hidden / t);
  // Ranks of an expert-tensor group gather each other's tokens, and each does a part of the width.
  const double arrived = split * experts.chosen * options.expert_imbalance * layout.expert_tensor;
  bytes.experts = ffn(arrived, 1.0 * experts.hidden / layout.expert_tensor);
  bytes.dispatched = arrived * h * (read + wide);
  return bytes;
}

void drop(LayerActivations& bytes, std::string_view module) {
  if (module == "attention") {
    bytes.scores = 0;
  } else if (module == "norm") {
    bytes.norm_outputs = 0;
  } else if (module == "activation") {
    bytes.dense_ffn.product = bytes.shared_experts.product = bytes.experts.product = 0;
  } else if (module == "mlp") {
    bytes.dense_ffn = {};
  } else if (module == "shared_experts") {
    bytes.shared_experts = {};
  } else if (module == "moe") {
    bytes.experts = {};
    bytes.dispatched = 0;
  } else if (module == "mla_up_proj") {
    bytes.queries_keys_values = 0;
  } else {
    require(false, "layer_activations: modules that `problems` knows");
  }
}

LayerActivations kept_of(LayerActivations bytes, const Layout& layout) {
  switch (layout.recompute) {
    case Recompute::None:
      break;
    case Recompute::Selective:
      if (layout.recompute_modules.empty()) drop(bytes, "attention");
      for (const std::string& module : layout.recompute_modules) drop(bytes, module);
      break;
    case Recompute::Full: {
      // One of the two norms' inputs is the layer's.
      const double input = bytes.norm_inputs / 2;
      bytes = {};
      bytes.norm_inputs = input;
    }
  }
  return bytes;
}

// Bytes of all layers of a chunk, and of the layer that needs most while it is at work.
struct ChunkActivations {
  double kept = 0;
  double working = 0;
};

void add_layer(ChunkActivations& sum, const LayerActivations& all, const LayerActivations& kept,
               double times) {
  sum.kept += times * kept.total();
  // Gradients of its hidden states and of the widest tensors inside, as long as they live.
  const double gradients = all.norm_inputs + all.dense_ffn.inner + all.shared_experts.inner +
                           all.experts.inner + all.dispatched + all.scores;
  sum.working = std::max(sum.working, all.total() - kept.total() + gradients);
}

std::uint32_t communicators(const Model& model, const Layout& layout) {
  std::uint32_t count = 0;
  const auto add = [&](std::uint64_t size) { count += size > 1 ? 1 : 0; };
  add(layout.tensor);
  add(layout.context);
  add(layout.pipeline);
  add(std::uint64_t{layout.data} * layout.context);
  if (model.experts) {
    add(layout.expert);
    // The tensor and data groups serve experts, too, where they are the same.
    if (layout.expert_tensor != layout.tensor) add(layout.expert_tensor);
    if (layout.expert_tensor != layout.tensor || layout.expert != 1) add(expert_data(layout));
  }
  return count;
}

Bytes whole_bytes(double bytes) {
  return Bytes{std::llround(bytes)};
}

// One stage's memory, part by part.
class StageSum {
 public:
  StageSum(const Model& model, const Layout& layout, const TrainingOptions& options,
           std::uint32_t sequence, const MemoryOptions& memory, const Stages& stages,
           std::uint32_t stage)
      : model_(model),
        layout_(layout),
        options_(options),
        sequence_(sequence),
        memory_(memory),
        stages_(stages),
        stage_(stage),
        parameters_(stage_parameters(model, layout, stages, stage)) {}

  StageMemory all() && {
    states();
    logits();
    activations();
    buffers();
    double sum = 0;
    for (const Bytes part : result_.parts) sum += static_cast<double>(part.count());
    set(MemoryPart::Margin, memory_.margin * sum);
    return result_;
  }

 private:
  void set(MemoryPart part, double bytes) {
    result_.parts[static_cast<std::size_t>(part)] = whole_bytes(bytes);
  }

  void states() {
    const std::uint32_t shards = shard_ranks(layout_);
    StateBytes sum;
    const auto add = [&](double parameters, std::uint32_t ranks, bool matrix) {
      const StateBytes each = state_bytes(options_, layout_.sharding, ranks, matrix);
      sum.parameters += parameters * each.parameters;
      sum.gradients += parameters * each.gradients;
      sum.optimizer += parameters * each.optimizer;
    };
    add(parameters_.matrices, shards, true);
    add(parameters_.experts, expert_shard_ranks(layout_), true);
    add(parameters_.others + parameters_.embedding + parameters_.head, shards, false);
    set(MemoryPart::Parameters, sum.parameters);
    set(MemoryPart::Gradients, sum.gradients);
    set(MemoryPart::Optimizer, sum.optimizer);
  }

  void activations() {
    const std::uint32_t v = layout_.virtual_stages;
    std::vector<double> weights(v);
    double working = 0;
    for (std::uint32_t chunk = 0; chunk < v; ++chunk) {
      const Layers layers = stages_.layers(stage_, chunk);
      ChunkActivations sum;
      for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) add(sum, layer, 1);
      if (stages_.is_last(stage_, chunk) && model_.mtp_layers > 0) {
        add(sum, model_.layers - 1, model_.mtp_layers);
      }
      weights[chunk] = sum.kept;
      working = std::max(working, sum.working);
    }
    const PipelineShape& shape = stages_.shape();
    set(MemoryPart::Activations, peak_in_flight(shape, stage_, weights));
    set(MemoryPart::Working, std::max(0.0, working - passing_logits_));
    weights.assign(v, 1.0 / v);
    result_.micro_batches_in_flight = peak_in_flight(shape, stage_, weights);
  }

  void add(ChunkActivations& sum, std::uint32_t layer, double times) const {
    const LayerActivations all = all_activations(model_, layout_, options_, sequence_, layer);
    add_layer(sum, all, kept_of(all, layout_), times);
  }

  void logits() {
    if (!stages_.has_head(stage_)) return;
    // Every other schedule goes back through the last chunk as soon as it went forward.
    const double held = layout_.schedule == PipelineSchedule::GPipe ? micro_batches(layout_) : 1;
    const double wide = wide_bytes(options_);
    const double values = own_tokens(layout_, sequence_) * padded_vocabulary(layout_, model_) /
                          layout_.tensor * (1 + model_.mtp_layers);
    // In 32 bits, in place. PyTorch's own loss keeps the 16-bit logits and the log-softmax beside
    // them, and makes a gradient in 32 bits.
    const double kept = options_.fused_loss ? 4 : wide + 8;
    const double passing = options_.fused_loss ? wide : 4;
    const double input = model_.hidden * wide;
    // The final norm's input and output; and the gradient that leaves the head.
    const double each = values * kept + split_tokens(layout_, sequence_) * 2 * input;
    const double working = values * passing + own_tokens(layout_, sequence_) * input;
    set(MemoryPart::Logits, held * each + working);
    passing_logits_ = each + working;
  }

  void buffers() {
    const double wide = wide_bytes(options_);
    const double matrix = options_.quantised_parameters ? quantised_bytes(options_) : wide;
    const double gradient = options_.fp32_gradients ? 4 : wide;
    double sum = 0;
    if (layout_.sharding == Sharding::Parameters && shard_ranks(layout_) > 1) {
      const double ends = (parameters_.embedding + parameters_.head) * wide;
      // The unit at work and the next; embedding and head are units that stay.
      sum += layout_.keep_gathered
                 ? (parameters_.matrices + parameters_.experts) * matrix + parameters_.others * wide
                 : 2 * parameters_.largest_layer * matrix;
      sum += ends;
    }
    const bool reduces_units =
        layout_.sharding == Sharding::Gradients || layout_.sharding == Sharding::Parameters;
    // What one unit's backward makes, until it is reduced.
    if (reduces_units && shard_ranks(layout_) > 1) sum += parameters_.largest_layer * gradient;

    const double state = model_.hidden * wide;
    if (layout_.pipeline > 1) {
      // One sent and one received, each way.
      sum += 4 * split_tokens(layout_, sequence_) * state;
    }
    if (layout_.sequence_parallel) sum += own_tokens(layout_, sequence_) * state;
    sum += static_cast<double>(memory_.context.count());
    sum += communicators(model_, layout_) * static_cast<double>(memory_.communicator.count());
    set(MemoryPart::Buffers, sum);
  }

  const Model& model_;
  const Layout& layout_;
  const TrainingOptions& options_;
  std::uint32_t sequence_;
  const MemoryOptions& memory_;
  const Stages& stages_;
  std::uint32_t stage_;
  StageParameters parameters_;
  double passing_logits_ = 0;  // Of one micro-batch.
  StageMemory result_;
};

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:.1f} GiB", std::ldexp(static_cast<double>(bytes.count()), -30));
}

}  // namespace

StageParameters stage_parameters(const Model& model, const Layout& layout, std::uint32_t stage) {
  return stage_parameters(model, layout, Stages(model, layout), stage);
}

StateBytes state_bytes(const TrainingOptions& options, Sharding sharding, std::uint32_t shards,
                       bool matrix) {
  require(shards > 0, "state_bytes: at least one rank");
  const double wide = wide_bytes(options);
  const double n = shards;
  const bool parameters_sharded = sharding == Sharding::Parameters;
  StateBytes bytes;
  bytes.parameters = wide;
  if (matrix && quantises(options)) {
    if (options.quantised_parameters) {
      bytes.parameters = quantised_bytes(options);
    } else if (options.cached_quantised && !parameters_sharded) {
      bytes.parameters += quantised_bytes(options);
    }
  }
  bytes.gradients = options.fp32_gradients ? 4 : wide;
  bytes.optimizer =
      (options.fp32_master ? 4 : 0) + moments(options.optimizer) * (options.bf16_moments ? 2 : 4);
  if (sharding != Sharding::None) bytes.optimizer /= n;
  if (sharding == Sharding::Gradients || parameters_sharded) bytes.gradients /= n;
  if (parameters_sharded) bytes.parameters /= n;
  return bytes;
}

double LayerActivations::total() const {
  return norm_inputs + norm_outputs + dropout_masks + latents + queries_keys_values + scores +
         attention_output + dense_ffn.total() + shared_experts.total() + experts.total() +
         dispatched;
}

LayerActivations layer_activations(const Model& model, const Layout& layout,
                                   const TrainingOptions& options, std::uint32_t sequence,
                                   std::uint32_t layer) {
  return kept_of(all_activations(model, layout, options, sequence, layer), layout);
}

std::string_view to_string(MemoryPart part) {
  switch (part) {
    case MemoryPart::Parameters:
      return "parameters";
    case MemoryPart::Gradients:
      return "gradients";
    case MemoryPart::Optimizer:
      return "optimizer";
    case MemoryPart::Activations:
      return "activations";
    case MemoryPart::Working:
      return "working set";
    case MemoryPart::Logits:
      return "logits";
    case MemoryPart::Buffers:
      return "buffers";
    case MemoryPart::Margin:
      return "margin";
  }
  return "";
}

Bytes StageMemory::total() const {
  return std::accumulate(parts.begin(), parts.end(), Bytes{});
}

MemoryPart StageMemory::largest() const {
  return static_cast<MemoryPart>(std::ranges::max_element(parts) - parts.begin());
}

MemoryUse memory_use(const Model& model, const Layout& layout, const TrainingOptions& options,
                     std::uint32_t sequence, Bytes capacity, const MemoryOptions& memory) {
  const Stages stages(model, layout);
  MemoryUse use;
  use.capacity = capacity;
  use.stages.reserve(layout.pipeline);
  for (std::uint32_t stage = 0; stage < layout.pipeline; ++stage) {
    use.stages.push_back(StageSum(model, layout, options, sequence, memory, stages, stage).all());
    if (use.stages[stage].total() > use.stages[use.fullest].total()) use.fullest = stage;
  }
  const StageMemory& most = use.stages[use.fullest];
  use.fits = most.total() <= capacity;
  if (!use.fits) {
    const MemoryPart part = most.largest();
    use.reason = fmt::format("stage {} of {} needs {} of the {} there are; the most go to {}, {}",
                             use.fullest, layout.pipeline, gibibytes(most.total()),
                             gibibytes(capacity), to_string(part), gibibytes(most[part]));
  }
  return use;
}

}  // namespace flyover
