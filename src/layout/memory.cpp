#include "flyover/layout/memory.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "layout/memory_parts.hpp"

namespace flyover {

namespace {

// Bytes that every layer of one kind keeps, and what it needs more while it is at work.
struct KindActivations {
  double kept = 0;
  double working = 0;
};

KindActivations kind_activations(const Model& model, const Layout& layout,
                                 const TrainingOptions& options, std::uint32_t sequence,
                                 bool experts) {
  const LayerActivations all = all_activations(model, layout, options, sequence, experts);
  const double kept = kept_of(all, layout).total();
  // Gradients of its hidden states and of the widest tensors inside, as long as they live.
  const double gradients = all.norm_inputs + all.dense_ffn.inner + all.shared_experts.inner +
                           all.experts.inner + all.dispatched + all.scores;
  return {kept, all.total() - kept + gradients};
}

// What is the same on every stage.
struct Layers {
  Layers(const Model& model, const Layout& layout, const TrainingOptions& options,
         std::uint32_t sequence)
      : parameters(model, layout),
        dense(kind_activations(model, layout, options, sequence, false)) {
    if (model.experts) experts = kind_activations(model, layout, options, sequence, true);
    if (!options.lora) return;
    const auto adapters = [&](bool with_experts) -> AdapterParameters {
      const std::uint32_t layer = first_layer(model, with_experts);
      if (layer == model.layers) return {};
      return adapter_parameters(model, layout, *options.lora, layer);
    };
    dense_adapters = adapters(false);
    expert_adapters = adapters(true);
  }

  ParameterSums parameters;
  KindActivations dense;
  KindActivations experts;
  AdapterParameters dense_adapters;
  AdapterParameters expert_adapters;
};

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
           std::uint32_t sequence, const MemoryOptions& memory, const Layers& layers,
           const Stages& stages, std::uint32_t stage, std::vector<double>& weights)
      : model_(model),
        layout_(layout),
        options_(options),
        sequence_(sequence),
        memory_(memory),
        layers_(layers),
        stages_(stages),
        stage_(stage),
        weights_(weights),
        parameters_(layers.parameters.of(stages, stage)) {
    if (options.lora) find_adapters();
  }

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
    const std::uint32_t expert_shards = expert_shard_ranks(layout_);
    StateBytes sum;
    const auto add = [&](double parameters, std::uint32_t ranks, bool matrix, bool trained) {
      const StateBytes each = state_bytes(options_, layout_.sharding, ranks, matrix);
      sum.parameters += parameters * each.parameters;
      if (!trained) return;
      sum.gradients += parameters * each.gradients;
      sum.optimizer += parameters * each.optimizer;
    };
    const bool trained = !options_.lora;
    add(parameters_.matrices, shards, true, trained);
    add(parameters_.experts, expert_shards, true, trained);
    add(parameters_.others + parameters_.embedding + parameters_.head, shards, false, trained);
    if (options_.lora) {
      add(adapters_.dense, shards, false, true);
      add(adapters_.experts, expert_shards, false, true);
    }
    set(MemoryPart::Parameters, sum.parameters);
    set(MemoryPart::Gradients, sum.gradients);
    set(MemoryPart::Optimizer, sum.optimizer);
  }

  void find_adapters() {
    for (std::uint32_t chunk = 0; chunk < stages_.shape().chunks; ++chunk) {
      const LayerCount count = stages_.layers(stage_, chunk);
      const auto add = [&](std::uint32_t times, const AdapterParameters& each) {
        if (times == 0) return;
        adapters_.dense += times * each.dense;
        adapters_.experts += times * each.experts;
        largest_adapters_ = std::max(largest_adapters_, each.dense + each.experts);
      };
      add(count.dense, layers_.dense_adapters);
      add(count.experts, layers_.expert_adapters);
    }
  }

  void activations() {
    double working = 0;
    const auto add = [&](double& kept, std::uint32_t times, const KindActivations& layer) {
      if (times == 0) return;
      kept += times * layer.kept;
      working = std::max(working, layer.working);
    };
    for (std::uint32_t chunk = 0; chunk < stages_.shape().chunks; ++chunk) {
      const LayerCount count = stages_.layers(stage_, chunk);
      weights_[chunk] = 0;
      add(weights_[chunk], count.dense, layers_.dense);
      add(weights_[chunk], count.experts, layers_.experts);
      if (stages_.is_last(stage_, chunk)) {
        add(weights_[chunk], model_.mtp_layers,
            has_experts(model_, model_.layers - 1) ? layers_.experts : layers_.dense);
      }
    }
    const PipelineShape& shape = stages_.shape();
    set(MemoryPart::Activations, peak_in_flight(shape, stage_, weights_));
    set(MemoryPart::Working, std::max(0.0, working - passing_logits_));
    weights_.assign(weights_.size(), 1.0 / layout_.virtual_stages);
    result_.micro_batches_in_flight = peak_in_flight(shape, stage_, weights_);
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
    if (reduces_units && shard_ranks(layout_) > 1)
      sum += (options_.lora ? largest_adapters_ : parameters_.largest_layer) * gradient;

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
  const Layers& layers_;
  const Stages& stages_;
  std::uint32_t stage_;
  std::vector<double>& weights_;  // One per chunk; scratch.
  StageParameters parameters_;
  AdapterParameters adapters_;
  double largest_adapters_ = 0;  // Of one layer.
  double passing_logits_ = 0;    // Of one micro-batch.
  StageMemory result_;
};

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:.1f} GiB", std::ldexp(static_cast<double>(bytes.count()), -30));
}

}  // namespace

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
  const Layers layers(model, layout, options, sequence);
  std::vector<double> weights(stages.shape().chunks);
  MemoryUse use;
  use.capacity = capacity;
  use.stages.reserve(layout.pipeline);
  for (std::uint32_t stage = 0; stage < layout.pipeline; ++stage) {
    use.stages.push_back(
        StageSum(model, layout, options, sequence, memory, layers, stages, stage, weights).all());
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
