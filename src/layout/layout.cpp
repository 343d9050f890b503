#include "flyover/layout/layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "layout/place.hpp"

namespace flyover {

namespace {

using Wide = std::uint64_t;

std::vector<std::vector<std::uint32_t>> partition(const Layout& layout, const Sizes& sizes,
                                                  std::span<const Dimension> within) {
  const std::uint32_t count = ranks(layout);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> strides_and_sizes;
  for (const Dimension dimension : within) {
    strides_and_sizes.emplace_back(stride(layout, sizes, dimension), size_of(sizes, dimension));
  }
  std::vector<std::vector<std::uint32_t>> result;
  std::vector<std::size_t> group_of_first(count);
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    std::uint32_t first = rank;
    for (const auto& [step, size] : strides_and_sizes) first -= rank / step % size * step;
    if (first == rank) {
      group_of_first[rank] = result.size();
      result.emplace_back();
    }
    result[group_of_first[first]].push_back(rank);
  }
  return result;
}

// The head and blocks for multi-token prediction in layers, by the multiplications of a token.
double end_weight(const Model& model) {
  const ParameterCounts all = parameter_counts(model);
  const auto body = static_cast<double>(all.active(model) - all.embedding - all.head);
  const double layer = body / model.layers;
  const double head = static_cast<double>(model.hidden) * model.vocabulary;
  return (head + model.mtp_layers * (layer + head)) / layer;
}

Wide stage_ranks(const Layout& layout) {
  return Wide{layout.tensor} * layout.context * layout.data;
}

std::uint32_t shard_groups(const Layout& layout) {
  return layout.shard_group == 0 ? 1 : layout.context * layout.data / layout.shard_group;
}

// Collects the reasons against one layout; every check assumes sizes above zero.
class Objections {
 public:
  Objections(const Layout& layout, const Model& model, std::uint32_t sequence, std::uint32_t gpus)
      : layout_(layout),
        model_(model),
        sequence_(sequence),
        gpus_(gpus) {}

  std::vector<std::string> all() && {
    sizes();
    // The others divide by sizes and multiply them.
    if (!found_.empty()) return std::move(found_);
    rank_count();
    widths();
    vocabulary();
    sequence_shards();
    context_exchange();
    chunks();
    batch();
    experts();
    sharding();
    recompute();
    return std::move(found_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, const Args&... args) {
    found_.push_back(fmt::vformat(format, fmt::make_format_args(args...)));
  }

  void sizes() {
    const std::pair<const char*, std::uint32_t> named[] = {
        {"tensor", layout_.tensor},
        {"context", layout_.context},
        {"pipeline", layout_.pipeline},
        {"data", layout_.data},
        {"expert", layout_.expert},
        {"expert tensor", layout_.expert_tensor},
        {"virtual stages", layout_.virtual_stages},
        {"micro-batch", layout_.micro_batch},
        {"global batch", layout_.global_batch},
        {"sequence", sequence_},
    };
    for (const auto& [name, size] : named) {
      if (size == 0) add("{} is 0 and must be at least 1", name);
    }
    auto order = layout_.order;
    std::ranges::sort(order);
    if (std::ranges::adjacent_find(order) != order.end()) {
      add("the rank order names {} twice and must name each of the five dimensions once",
          to_string(*std::ranges::adjacent_find(order)));
    }
    constexpr Wide most = std::numeric_limits<std::uint32_t>::max();
    Wide product = 1;
    for (const Wide size : {Wide{layout_.tensor}, Wide{layout_.context}, Wide{layout_.pipeline},
                            Wide{layout_.data}}) {
      product = size != 0 && product > most / size ? most + 1 : product * size;
    }
    if (product > most) add("tensor x context x pipeline x data are more than {} ranks", most);
    if (Wide{layout_.pipeline} * layout_.virtual_stages > most) {
      add("pipeline x virtual stages are more than {} chunks", most);
    }
  }

  void rank_count() {
    const std::uint32_t count = ranks(layout_);
    if (gpus_ == 0 || count == gpus_) return;
    const std::uint32_t replica = count / layout_.data;
    const std::string cure =
        gpus_ % replica == 0 ? fmt::format("; data {} uses them all", gpus_ / replica) : "";
    add("tensor {} x context {} x pipeline {} x data {} are {} ranks, but there are {} GPUs{}",
        layout_.tensor, layout_.context, layout_.pipeline, layout_.data, count, gpus_, cure);
  }

  void widths() {
    const std::uint32_t t = layout_.tensor;
    const Attention& attention = model_.attention;
    if (attention.heads % t != 0) {
      add("tensor {} does not divide the {} attention heads", t, attention.heads);
    }
    // Fewer key-value heads than ranks are replicated, evenly.
    if (!attention.latent && attention.kv_heads % t != 0 && t % attention.kv_heads != 0) {
      add("tensor {} neither divides the {} key-value heads nor is a multiple of them", t,
          attention.kv_heads);
    }
    if (expert_layers(model_) < model_.layers && model_.ffn_hidden % t != 0) {
      add("tensor {} does not divide the feed-forward size {}", t, model_.ffn_hidden);
    }
    if (model_.experts && model_.experts->shared_hidden % t != 0) {
      add("tensor {} does not divide the shared experts' size {}", t,
          model_.experts->shared_hidden);
    }
    if (model_.experts && model_.experts->hidden % layout_.expert_tensor != 0) {
      add("expert tensor {} does not divide the experts' size {}", layout_.expert_tensor,
          model_.experts->hidden);
    }
  }

  void vocabulary() {
    if (layout_.vocabulary_multiple == 0 && model_.vocabulary % layout_.tensor != 0) {
      add("tensor {} does not divide the vocabulary of {}, which is not padded", layout_.tensor,
          model_.vocabulary);
    }
    const Wide multiple = Wide{std::max(layout_.vocabulary_multiple, 1U)} * layout_.tensor;
    if ((model_.vocabulary + multiple - 1) / multiple * multiple >
        std::numeric_limits<std::uint32_t>::max()) {
      add("vocabulary multiple {} x tensor {} pads the vocabulary of {} beyond all bounds",
          layout_.vocabulary_multiple, layout_.tensor, model_.vocabulary);
    }
  }

  void sequence_shards() {
    const std::uint32_t t = layout_.tensor;
    const std::uint32_t c = layout_.context;
    if (layout_.sequence_parallel && t == 1) {
      add("sequence parallelism needs tensor above 1, and tensor is 1");
    }
    if (model_.experts && t > 1 && !layout_.sequence_parallel) {
      add("experts with tensor {} above 1 need sequence parallelism: without it every rank would "
          "send the same tokens",
          t);
    }
    // Causal attention is balanced by giving each rank one early and one late chunk.
    if (c > 1 && sequence_ % (Wide{2} * c) != 0) {
      add("sequence {} is not a multiple of 2 x context {} = {}, which balances causal attention",
          sequence_, c, Wide{2} * c);
    } else if (layout_.sequence_parallel && sequence_ % (Wide{c} * t) != 0) {
      add("sequence {} is not a multiple of tensor {} x context {} = {}, as sequence parallelism "
          "needs",
          sequence_, t, c, Wide{c} * t);
    }
    if (model_.positions != 0 && sequence_ > model_.positions) {
      add("sequence {} is longer than the {} learned position embeddings", sequence_,
          model_.positions);
    }
  }

  void context_exchange() {
    const std::uint32_t c = layout_.context;
    if (c == 1) return;
    const Attention& attention = model_.attention;
    if (layout_.exchange == ContextExchange::Ring && attention.window != 0) {
      add("a ring over context {} cannot serve a sliding window of {}; all-gather and all-to-all "
          "can",
          c, attention.window);
    }
    if (layout_.exchange != ContextExchange::AllToAll) return;
    const std::uint32_t heads = std::max(attention.heads / layout_.tensor, 1U);
    const std::uint32_t kv_heads =
        attention.latent ? heads : std::max(attention.kv_heads / layout_.tensor, 1U);
    if (heads % c != 0) {
      add("an all-to-all over context {} does not divide the {} attention heads of a tensor rank",
          c, heads);
    }
    if (kv_heads % c != 0) {
      add("an all-to-all over context {} does not divide the {} key-value heads of a tensor rank",
          c, kv_heads);
    }
  }

  void chunks() {
    const std::uint32_t p = layout_.pipeline;
    const std::uint32_t v = layout_.virtual_stages;
    const Wide count = Wide{p} * v;
    switch (layout_.schedule) {
      case PipelineSchedule::Interleaved:
        if (v < 2 || p < 2) {
          add("an interleaved schedule needs pipeline and virtual stages of 2 or more, not {} and "
              "{}",
              p, v);
        }
        break;
      case PipelineSchedule::ZeroBubbleV:
      case PipelineSchedule::DualPipeV:
        if (v != 2) add("{} needs 2 virtual stages, not {}", to_string(layout_.schedule), v);
        break;
      case PipelineSchedule::DualPipe:
        if (v != 1) {
          add("dualpipe needs 1 virtual stage, not {}; its second chunk is the mirror stage", v);
        }
        if (p % 2 != 0) {
          add("dualpipe needs an even pipeline, as stages are paired from both ends, not {}", p);
        }
        break;
      default:
        if (v != 1) {
          add("{} needs 1 virtual stage, not {}; interleaved-1f1b takes more",
              to_string(layout_.schedule), v);
        }
    }
    const std::vector<std::uint32_t>& given = layout_.chunk_layers;
    if (given.empty()) {
      if (count > model_.layers) {
        add("pipeline {} x virtual stages {} are {} chunks, but there are {} layers", p, v, count,
            model_.layers);
      }
      return;
    }
    if (given.size() != count) {
      add("{} chunks are given layers, but pipeline {} x virtual stages {} are {}", given.size(), p,
          v, count);
    }
    Wide sum = 0;
    for (std::size_t chunk = 0; chunk < given.size(); ++chunk) {
      sum += given[chunk];
      if (given[chunk] == 0 && chunk != 0 && chunk + 1 != given.size()) {
        add("chunk {} has no layers; only the first and the last of {} can do with an embedding or "
            "a head",
            chunk, given.size());
      }
    }
    if (sum != model_.layers) {
      add("the chunks' layers are {} together, but the model has {}", sum, model_.layers);
    }
  }

  void batch() {
    const Wide step = Wide{layout_.data} * layout_.micro_batch;
    const Wide batch = layout_.global_batch;
    if (batch % step != 0) {
      add("global batch {} is not a multiple of data {} x micro-batch {} = {}: {} is", batch,
          layout_.data, layout_.micro_batch, step, neighbours(batch, step));
      return;
    }
    if (has_fused_steps(layout_.schedule)) dual_pipe_batch(batch, step);
    if (layout_.schedule != PipelineSchedule::Interleaved) return;
    const Wide p = layout_.pipeline;
    const Wide m = batch / step;
    const Wide group = layout_.micro_batch_group == 0 ? p : layout_.micro_batch_group;
    if (group < p || group > std::max(m, p)) {
      add("a micro-batch group of {} is not between pipeline {} and the {} micro-batches", group, p,
          m);
    } else if (m < p || (m % group != 0 && m % group < p)) {
      add("{} micro-batches in groups of {} leave {}, fewer than pipeline {}: global batch {} goes "
          "with this interleaved schedule",
          m, group, m % group, p, neighbours(batch, step * group));
    }
  }

  void dual_pipe_batch(Wide batch, Wide step) {
    const Wide least = Wide{2} * layout_.pipeline;
    const Wide m = batch / step;
    if (m < least) {
      add("{} micro-batches are fewer than 2 x pipeline {} = {}, which {} needs: global batch {} "
          "has them",
          m, layout_.pipeline, least, to_string(layout_.schedule), least * step);
    } else if (goes_both_ways(layout_.schedule) && m % 2 != 0) {
      add("{} micro-batches cannot enter at both ends in equal numbers, as dualpipe needs: global "
          "batch {} goes",
          m, neighbours(batch, 2 * step));
    }
  }

  static std::string neighbours(Wide value, Wide step) {
    const Wide below = value / step * step;
    return below == 0 ? fmt::format("{}", step) : fmt::format("{} or {}", below, below + step);
  }

  void experts() {
    const std::uint32_t e = layout_.expert;
    const std::uint32_t etp = layout_.expert_tensor;
    if (!model_.experts) {
      if (e > 1) add("expert is {}, but the model has no experts", e);
      if (etp > 1) add("expert tensor is {}, but the model has no experts", etp);
      return;
    }
    if (model_.experts->count % e != 0) {
      add("expert {} does not divide the {} experts", e, model_.experts->count);
    }
    if (stage_ranks(layout_) % (Wide{e} * etp) != 0) {
      add("expert {} x expert tensor {} = {} does not divide tensor {} x context {} x data {} = {}",
          e, etp, Wide{e} * etp, layout_.tensor, layout_.context, layout_.data,
          stage_ranks(layout_));
      return;
    }
    const std::uint32_t dense = stride(layout_, dense_sizes(layout_), Dimension::Pipeline);
    const std::uint32_t expert = stride(layout_, expert_sizes(layout_), Dimension::Pipeline);
    if (layout_.pipeline > 1 && dense != expert) {
      add("in this rank order pipeline stages lie {} ranks apart for dense parts and {} for "
          "experts; with pipeline last they always agree",
          dense, expert);
    }
  }

  void sharding() {
    if (layout_.keep_gathered && layout_.sharding != Sharding::Parameters) {
      add("parameters can be kept gathered only under zero-3, not {}", to_string(layout_.sharding));
    }
    if (has_fused_steps(layout_.schedule) &&
        (layout_.sharding == Sharding::Gradients || layout_.sharding == Sharding::Parameters)) {
      add("{} adds gradients up over a whole step and goes with zero-1 at most, not {}",
          to_string(layout_.schedule), to_string(layout_.sharding));
    }
    if (layout_.shard_group == 0) return;
    const Wide replicas = Wide{layout_.data} * layout_.context;
    if (layout_.sharding == Sharding::None) {
      add("shard groups of {} are given, but nothing is sharded", layout_.shard_group);
    } else if (replicas % layout_.shard_group != 0) {
      add("shard groups of {} do not divide data {} x context {} = {}", layout_.shard_group,
          layout_.data, layout_.context, replicas);
    } else if (const Wide held = Wide{layout_.expert} * layout_.expert_tensor;
               model_.experts && stage_ranks(layout_) % held == 0 &&
               expert_data(layout_) % shard_groups(layout_) != 0) {
      add("{} shard groups do not divide the {} ranks that hold the same experts",
          shard_groups(layout_), expert_data(layout_));
    }
  }

  void recompute() {
    const std::vector<std::string>& modules = layout_.recompute_modules;
    if (!modules.empty() && layout_.recompute != Recompute::Selective) {
      add("modules to recompute are named, but recompute is {}, not selective",
          to_string(layout_.recompute));
    }
    const std::vector<std::string> known(recompute_module_names.begin(),
                                         recompute_module_names.end());
    for (const std::string& module : modules) {
      if (std::ranges::find(known, module) == known.end()) {
        add("\"{}\" is not a module to recompute{}: expected one of {}", module,
            did_you_mean(module, known), fmt::join(known, ", "));
      } else if (module == "mla_up_proj" && !model_.attention.latent) {
        add("\"mla_up_proj\" cannot be recomputed: the model has no latent attention");
      } else if ((module == "moe" || module == "shared_experts") && !model_.experts) {
        add("\"{}\" cannot be recomputed: the model has no experts", module);
      }
    }
  }

  const Layout& layout_;
  const Model& model_;
  std::uint32_t sequence_;
  std::uint32_t gpus_;
  std::vector<std::string> found_;
};

}  // namespace

std::string_view to_string(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::GPipe:
      return "gpipe";
    case PipelineSchedule::OneForwardOneBackward:
      return "1f1b";
    case PipelineSchedule::Interleaved:
      return "interleaved-1f1b";
    case PipelineSchedule::ZeroBubbleH1:
      return "zb-h1";
    case PipelineSchedule::ZeroBubbleV:
      return "zb-v";
    case PipelineSchedule::DualPipe:
      return "dualpipe";
    case PipelineSchedule::DualPipeV:
      return "dualpipe-v";
  }
  return "";
}

std::string_view to_string(Sharding sharding) {
  switch (sharding) {
    case Sharding::None:
      return "none";
    case Sharding::Optimizer:
      return "zero-1";
    case Sharding::Gradients:
      return "zero-2";
    case Sharding::Parameters:
      return "zero-3";
  }
  return "";
}

std::string_view to_string(ContextExchange exchange) {
  switch (exchange) {
    case ContextExchange::Ring:
      return "ring";
    case ContextExchange::AllGather:
      return "all-gather";
    case ContextExchange::AllToAll:
      return "all-to-all";
  }
  return "";
}

std::string_view to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::None:
      return "none";
    case Recompute::Selective:
      return "selective";
    case Recompute::Full:
      return "full";
  }
  return "";
}

std::string_view to_string(Dimension dimension) {
  switch (dimension) {
    case Dimension::Tensor:
      return "tensor";
    case Dimension::Context:
      return "context";
    case Dimension::Expert:
      return "expert";
    case Dimension::Data:
      return "data";
    case Dimension::Pipeline:
      return "pipeline";
  }
  return "";
}

std::optional<PipelineSchedule> pipeline_schedule(std::string_view name) {
  for (const PipelineSchedule schedule : all_pipeline_schedules) {
    if (name == to_string(schedule)) return schedule;
  }
  return std::nullopt;
}

std::uint32_t ranks(const Layout& layout) {
  return layout.tensor * layout.context * layout.pipeline * layout.data;
}

std::uint32_t micro_batches(const Layout& layout) {
  return layout.global_batch / (layout.data * layout.micro_batch);
}

std::uint32_t expert_data(const Layout& layout) {
  return static_cast<std::uint32_t>(stage_ranks(layout) /
                                    (Wide{layout.expert} * layout.expert_tensor));
}

std::uint32_t shard_ranks(const Layout& layout) {
  if (layout.sharding == Sharding::None) return 1;
  return (layout.shard_group == 0 ? layout.context * layout.data : layout.shard_group) *
         copies_in_pipeline(layout);
}

std::uint32_t expert_shard_ranks(const Layout& layout) {
  if (layout.sharding == Sharding::None) return 1;
  return expert_data(layout) / shard_groups(layout) * copies_in_pipeline(layout);
}

std::uint32_t padded_vocabulary(const Layout& layout, const Model& model) {
  const std::uint32_t multiple = std::max(layout.vocabulary_multiple, 1U) * layout.tensor;
  if (layout.vocabulary_multiple == 0) return model.vocabulary;
  return (model.vocabulary + multiple - 1) / multiple * multiple;
}

std::vector<std::string> problems(const Layout& layout, const Model& model, std::uint32_t sequence,
                                  std::uint32_t gpus) {
  return Objections(layout, model, sequence, gpus).all();
}

std::vector<std::uint32_t> layers_of_chunks(const Layout& layout, const Model& model) {
  if (!layout.chunk_layers.empty()) return layout.chunk_layers;
  const std::uint32_t count = layout.pipeline * layout.virtual_stages;
  std::vector<std::uint32_t> layers(count, model.layers / count);
  if (model.layers % count == 0) return layers;
  // What the last chunk has besides, in layers.
  const double beside = end_weight(model);
  const double share = (model.layers + beside) / count;
  const auto last = static_cast<std::uint32_t>(
      std::clamp(std::round(share - beside), 0.0, static_cast<double>(layers.back())));
  const std::uint32_t others = model.layers - last;
  std::fill(layers.begin(), layers.end() - 1, others / (count - 1));
  for (std::uint32_t chunk = 0; chunk < others % (count - 1); ++chunk) ++layers[chunk];
  layers.back() = last;
  return layers;
}

Sizes dense_sizes(const Layout& layout) {
  Sizes sizes{};
  size_of(sizes, Dimension::Tensor) = layout.tensor;
  size_of(sizes, Dimension::Context) = layout.context;
  size_of(sizes, Dimension::Expert) = 1;
  size_of(sizes, Dimension::Data) = layout.data;
  size_of(sizes, Dimension::Pipeline) = layout.pipeline;
  return sizes;
}

Sizes expert_sizes(const Layout& layout) {
  Sizes sizes{};
  size_of(sizes, Dimension::Tensor) = layout.expert_tensor;
  size_of(sizes, Dimension::Context) = 1;
  size_of(sizes, Dimension::Expert) = layout.expert;
  size_of(sizes, Dimension::Data) = expert_data(layout);
  size_of(sizes, Dimension::Pipeline) = layout.pipeline;
  return sizes;
}

std::uint32_t stride(const Layout& layout, const Sizes& sizes, Dimension dimension) {
  std::uint32_t product = 1;
  for (const Dimension inner : layout.order) {
    if (inner == dimension) break;
    product *= size_of(sizes, inner);
  }
  return product;
}

Groups groups(const Layout& layout) {
  using enum Dimension;
  const Sizes dense = dense_sizes(layout);
  const Sizes experts = expert_sizes(layout);
  require(
      Wide{size_of(experts, Data)} * layout.expert * layout.expert_tensor == stage_ranks(layout),
      "groups: a layout without problems");
  const auto of = [&](const Sizes& sizes, std::initializer_list<Dimension> within) {
    return partition(layout, sizes, std::span(within.begin(), within.size()));
  };
  return {
      .tensor = of(dense, {Tensor}),
      .context = of(dense, {Context}),
      .pipeline = of(dense, {Pipeline}),
      .data = of(dense, {Data}),
      .data_context = of(dense, {Data, Context}),
      .expert = of(experts, {Expert}),
      .expert_tensor = of(experts, {Tensor}),
      .expert_data = of(experts, {Data}),
  };
}

}  // namespace flyover
