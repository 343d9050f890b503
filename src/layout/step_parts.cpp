#include "flyover/layout/step_parts.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "flyover/base/error.hpp"
#include "flyover/layout/memory.hpp"
#include "flyover/layout/rank_parameters.hpp"
#include "flyover/layout/schedule.hpp"
#include "layout/kernel_sum.hpp"
#include "layout/layer_work.hpp"

namespace flyover {

namespace {

// All of a layout that the work of a layer depends on.
struct LayerKey {
  std::uint32_t tensor = 1, context = 1, expert = 1, expert_tensor = 1, micro_batch = 1;
  bool sequence_parallel = false;
  bool late_weights = false;
  bool fuses = false;
  bool gathered = false;  // Parameters are: nothing narrow is kept of them.
  ContextExchange exchange{};
  Recompute recompute{};
  std::vector<std::string> modules;
  std::uint32_t vocabulary_multiple = 0;
  std::uint32_t kind = 0;  // Of the layer; the embedding and the head follow.

  [[nodiscard]] auto tied() const {
    return std::tie(tensor, context, expert, expert_tensor, micro_batch, sequence_parallel,
                    late_weights, fuses, gathered, exchange, recompute, modules,
                    vocabulary_multiple, kind);
  }
  friend bool operator<(const LayerKey& a, const LayerKey& b) { return a.tied() < b.tied(); }
};

LayerKey key_of(const Layout& layout, std::uint32_t kind) {
  LayerKey key;
  key.tensor = layout.tensor;
  key.context = layout.context;
  key.expert = layout.expert;
  key.expert_tensor = layout.expert_tensor;
  key.micro_batch = layout.micro_batch;
  key.sequence_parallel = layout.sequence_parallel;
  key.late_weights = splits_gradients(layout.schedule);
  key.fuses = has_fused_steps(layout.schedule);
  key.gathered = layout.sharding == Sharding::Parameters;
  key.exchange = layout.exchange;
  key.recompute = layout.recompute;
  key.modules = layout.recompute_modules;
  key.vocabulary_multiple = layout.vocabulary_multiple;
  key.kind = kind;
  return key;
}

Bytes bytes_of(double count, double width) {
  return Bytes{std::llround(count * width)};
}

}  // namespace

struct StepParts::Impl {
  TrainingJob job;
  GpuModel gpu;
  StepKernels kernels;
  std::vector<std::uint32_t> kind_of_layer;
  std::vector<std::uint32_t> layer_of_kind;
  mutable std::map<LayerKey, LayerWork> known;

  std::uint32_t domain;

  Impl(TrainingJob the_job, const KernelModel& model, const GpuModel& the_gpu,
       std::uint32_t domain_gpus)
      : job(std::move(the_job)),
        gpu(the_gpu),
        kernels(model, gpu, job.stack, job.options.cuda_graphs),
        domain(domain_gpus) {
    std::map<std::pair<bool, bool>, std::uint32_t> kinds;
    for (std::uint32_t layer = 0; layer < job.model.layers; ++layer) {
      const auto [kind, is_new] =
          kinds.try_emplace({has_experts(job.model, layer), has_window(job.model, layer)},
                            static_cast<std::uint32_t>(layer_of_kind.size()));
      if (is_new) layer_of_kind.push_back(layer);
      kind_of_layer.push_back(kind->second);
    }
  }

  template <class Make>
  const LayerWork& find(const Layout& layout, std::uint32_t kind, Make make) const {
    LayerKey key = key_of(layout, kind);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
    return known.emplace(std::move(key), make()).first->second;
  }

  [[nodiscard]] double wide() const { return job.options.compute == KernelType::Tf32 ? 4 : 2; }

  // Everything is trained, or the adapters beside it alone.
  [[nodiscard]] OwnParameters own(double dense, double experts,
                                  const AdapterParameters& adapters) const {
    if (!job.options.lora) return {dense, experts, dense, experts};
    return {dense + adapters.dense, experts + adapters.experts, adapters.dense, adapters.experts};
  }

  void add_messages(StateMessages& messages, const Layout& layout, GroupKind shard,
                    GroupKind replica, double gathered, double trained) const {
    const double gradient = job.options.fp32_gradients ? 4 : wide();
    const double parameter = job.options.quantised_parameters
                                 ? std::min(wide(), bytes_per_element(job.options.compute))
                                 : wide();
    const std::uint32_t shards = group_size(layout, shard);
    const std::uint32_t replicas = group_size(layout, replica);
    const auto add = [](std::vector<Message>& list, GroupKind group, CollectiveOp op, Bytes bytes) {
      if (bytes > Bytes{}) list.push_back({group, op, bytes});
    };
    if (layout.sharding == Sharding::None) {
      if (shards > 1) {
        add(messages.reduce, shard, CollectiveOp::AllReduce, bytes_of(trained, gradient));
      }
      return;
    }
    if (shards > 1) {
      add(messages.gather, shard, CollectiveOp::AllGather, bytes_of(gathered, parameter));
      add(messages.reduce, shard, CollectiveOp::ReduceScatter, bytes_of(trained, gradient));
    }
    if (replicas > 1) {
      add(messages.reduce, replica, CollectiveOp::AllReduce, bytes_of(trained / shards, gradient));
    }
  }
};

StepParts::StepParts(TrainingJob job, const KernelModel& kernels, const GpuModel& gpu,
                     std::uint32_t domain)
    : impl_(std::make_unique<Impl>(std::move(job), kernels, gpu, domain)) {}
StepParts::~StepParts() = default;
StepParts::StepParts(StepParts&&) noexcept = default;

const TrainingJob& StepParts::job() const {
  return impl_->job;
}

const GpuModel& StepParts::gpu() const {
  return impl_->gpu;
}

std::uint32_t StepParts::layer_kind(std::uint32_t layer) const {
  return impl_->kind_of_layer.at(layer);
}

std::uint32_t StepParts::layer_kinds() const {
  return static_cast<std::uint32_t>(impl_->layer_of_kind.size());
}

Duration StepParts::host(std::uint32_t layer) const {
  const SoftwareStack& stack = impl_->job.stack;
  if (impl_->job.options.cuda_graphs) return {};
  return stack.layer_host +
         (has_experts(impl_->job.model, layer) ? stack.expert_layer_host : Duration{});
}

const LayerWork& StepParts::layer(const Layout& layout, std::uint32_t layer) const {
  const std::uint32_t kind = layer_kind(layer);
  return impl_->find(layout, kind, [&] {
    return layer_work(impl_->job, impl_->kernels, layout, impl_->layer_of_kind[kind],
                      impl_->domain);
  });
}

const LayerWork& StepParts::embedding(const Layout& layout) const {
  return impl_->find(layout, layer_kinds(),
                     [&] { return embedding_work(impl_->job, impl_->kernels, layout); });
}

const LayerWork& StepParts::head(const Layout& layout) const {
  return impl_->find(layout, layer_kinds() + 1,
                     [&] { return head_work(impl_->job, impl_->kernels, layout, impl_->domain); });
}

StateMessages StepParts::state_messages(const Layout& layout,
                                        const OwnParameters& parameters) const {
  // Under ZeRO-3 frozen parameters are stored in parts too; else only what the optimizer changed
  // has to be gathered.
  const bool all = layout.sharding == Sharding::Parameters;
  StateMessages messages;
  impl_->add_messages(messages, layout, GroupKind::Shard, GroupKind::Replica,
                      all ? parameters.dense : parameters.trained_dense, parameters.trained_dense);
  impl_->add_messages(messages, layout, GroupKind::ExpertShard, GroupKind::ExpertReplica,
                      all ? parameters.experts : parameters.trained_experts,
                      parameters.trained_experts);
  return messages;
}

OwnParameters StepParts::layer_parameters(const Layout& layout, std::uint32_t layer) const {
  const RankParameters rank = rank_parameters(impl_->job.model, layout, layer);
  const std::optional<Lora>& lora = impl_->job.options.lora;
  const AdapterParameters adapters =
      lora ? adapter_parameters(impl_->job.model, layout, *lora, layer) : AdapterParameters{};
  return impl_->own(rank.matrices + rank.others, rank.experts, adapters);
}

OwnParameters StepParts::embedding_parameters(const Layout& layout) const {
  const Model& model = impl_->job.model;
  const double h = model.hidden;
  return impl_->own(h * padded_vocabulary(layout, model) / layout.tensor + h * model.positions, 0,
                    {});
}

OwnParameters StepParts::head_parameters(const Layout& layout) const {
  const Model& model = impl_->job.model;
  const double h = model.hidden;
  const double norm = h * (model.norm_bias ? 2 : 1);
  double dense = norm;
  double experts = 0;
  // With one stage a tied head is the embedding itself; else the last stage has a copy.
  if (!model.tied_embeddings || layout.pipeline > 1) {
    dense += h * padded_vocabulary(layout, model) / layout.tensor;
  }
  if (model.mtp_layers > 0) {
    const RankParameters last = rank_parameters(model, layout, model.layers - 1);
    dense +=
        model.mtp_layers * (last.matrices + last.others + 2 * h * h / layout.tensor + 3 * norm);
    experts += model.mtp_layers * last.experts;
  }
  return impl_->own(dense, experts, {});
}

std::vector<OwnParameters> StepParts::stage_parameters(const Layout& layout) const {
  const PipelineShape shape = pipeline_shape(layout);
  const std::vector<std::uint32_t> layers = layers_of_chunks(layout, impl_->job.model);
  const auto chunks = static_cast<std::uint32_t>(layers.size());
  std::vector<OwnParameters> of_kind;
  for (const std::uint32_t layer : impl_->layer_of_kind) {
    of_kind.push_back(layer_parameters(layout, layer));
  }
  std::vector<OwnParameters> stages(layout.pipeline);
  for (std::uint32_t stream = 0; stream < streams(shape); ++stream) {
    std::uint32_t layer = 0;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      OwnParameters& own = stages[stage_of(shape, chunk, stream)];
      for (const std::uint32_t end = layer + layers[chunk]; layer < end; ++layer) {
        own += of_kind[layer_kind(layer)];
      }
    }
    stages[stage_of(shape, 0, stream)] += embedding_parameters(layout);
    stages[stage_of(shape, chunks - 1, stream)] += head_parameters(layout);
  }
  return stages;
}

Duration StepParts::optimizer(const Layout& layout, const OwnParameters& own) const {
  const TrainingOptions& options = impl_->job.options;
  const double shards = group_size(layout, GroupKind::Shard);
  const double expert_shards = group_size(layout, GroupKind::ExpertShard);
  const bool sharded = layout.sharding != Sharding::None;
  const double updated = own.trained_dense / (sharded ? shards : 1) +
                         own.trained_experts / (sharded ? expert_shards : 1);
  const double wide = impl_->wide();
  const double gradient = options.fp32_gradients ? 4 : wide;
  const double master = options.fp32_master ? 4 : wide;
  const double moment = options.bf16_moments ? 2 : 4;
  const double states = master + moments(options.optimizer) * moment;
  // The norm of gradients reads them once more. Both are long kernels over flat buffers, which no
  // stack slows down.
  const KernelTimer& timer = impl_->kernels.timer();
  Duration time =
      timer.elementwise({bytes_of(updated, gradient), Bytes{}}).total +
      timer.elementwise({bytes_of(updated, gradient + states), bytes_of(updated, states + wide)})
          .total;
  // What has changed is brought into the narrow type anew.
  if (options.cached_quantised && !options.quantised_parameters &&
      layout.sharding != Sharding::Parameters) {
    const double elements = own.trained_dense + own.trained_experts;
    time +=
        timer.quantise({static_cast<std::uint64_t>(std::llround(elements)), options.compute}).total;
  }
  return time;
}

Duration StepParts::optimizer(const Layout& layout, std::uint32_t stage) const {
  return optimizer(layout, stage_parameters(layout).at(stage));
}

Bytes StepParts::boundary_bytes(const Layout& layout) const {
  const Model& model = impl_->job.model;
  const bool split = layout.sequence_parallel || impl_->job.overlap.scatter_boundary;
  const double tokens =
      1.0 * layout.micro_batch * impl_->job.sequence / layout.context / (split ? layout.tensor : 1);
  return bytes_of(tokens * model.hidden, impl_->wide());
}

}  // namespace flyover
