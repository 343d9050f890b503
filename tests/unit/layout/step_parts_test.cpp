// The pieces of a step: what layouts share, and the traffic of states by formula.

#include "flyover/layout/step_parts.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/layout/memory.hpp"
#include "support/training.hpp"

using namespace flyover;

namespace {

Model mixed_model() {
  Model model = test::small_expert_model();
  model.ffn_hidden = 768;
  model.experts->first_layer = 3;
  return model;
}

Layout data_parallel(std::uint32_t data, Sharding sharding) {
  Layout layout;
  layout.data = data;
  layout.sharding = sharding;
  layout.vocabulary_multiple = 1;
  return layout;
}

struct Sent {
  GroupKind group;
  CollectiveOp op;
  std::int64_t bytes;
  friend bool operator==(const Sent&, const Sent&) = default;
};
std::vector<Sent> sent(const std::vector<Message>& messages) {
  std::vector<Sent> list;
  for (const Message& message : messages) {
    CHECK(message.count == 1);
    list.push_back({message.group, message.op, message.bytes.count()});
  }
  return list;
}

using enum CollectiveOp;
constexpr GroupKind shard = GroupKind::Shard;
constexpr GroupKind replica = GroupKind::Replica;
constexpr GroupKind expert_shard = GroupKind::ExpertShard;

}  // namespace

TEST_CASE("layers of one kind are worked out once, for all layouts that agree in them",
          "[step_parts]") {
  const StepParts parts = test::parts_of(test::small_job(mixed_model()));
  CHECK(parts.layer_kinds() == 2);
  CHECK(parts.layer_kind(0) == parts.layer_kind(2));
  CHECK(parts.layer_kind(2) != parts.layer_kind(3));
  Layout layout;
  layout.tensor = 2;
  const LayerWork* dense = &parts.layer(layout, 0);
  CHECK(&parts.layer(layout, 2) == dense);
  CHECK(&parts.layer(layout, 3) != dense);
  CHECK(&parts.layer(layout, 7) == &parts.layer(layout, 3));

  SECTION("whatever lies outside the layer") {
    Layout other = layout;
    other.data = 4;
    other.pipeline = 2;
    other.virtual_stages = 2;
    other.schedule = PipelineSchedule::Interleaved;
    other.global_batch = 64;
    other.sharding = Sharding::Gradients;
    other.order = {Dimension::Pipeline, Dimension::Data, Dimension::Tensor, Dimension::Context,
                   Dimension::Expert};
    CHECK(&parts.layer(other, 1) == dense);
    CHECK(&parts.embedding(other) == &parts.embedding(layout));
    CHECK(&parts.head(other) == &parts.head(layout));
  }
  SECTION("but not when one of them differs in it") {
    const auto differs = [&](auto change) {
      Layout other = layout;
      change(other);
      return &parts.layer(other, 0) != dense && &parts.head(other) != &parts.head(layout);
    };
    CHECK(differs([](Layout& l) { l.tensor = 3; }));
    CHECK(differs([](Layout& l) { l.sequence_parallel = true; }));
    CHECK(differs([](Layout& l) { l.context = 2; }));
    CHECK(differs([](Layout& l) { l.exchange = ContextExchange::AllToAll; }));
    CHECK(differs([](Layout& l) { l.expert = 2; }));
    CHECK(differs([](Layout& l) { l.expert_tensor = 2; }));
    CHECK(differs([](Layout& l) { l.micro_batch = 2; }));
    CHECK(differs([](Layout& l) { l.recompute = Recompute::Full; }));
    CHECK(differs([](Layout& l) { l.sharding = Sharding::Parameters; }));
    CHECK(differs([](Layout& l) { l.schedule = PipelineSchedule::ZeroBubbleH1; }));
  }
  // References stay valid.
  CHECK(&parts.layer(layout, 0) == dense);
}

TEST_CASE("windows make kinds of layers as well", "[step_parts]") {
  Model model = test::small_model();
  model.attention.window = 64;
  model.attention.full_every = 4;
  const StepParts parts = test::parts_of(test::small_job(model));
  CHECK(parts.layer_kinds() == 2);
  CHECK(parts.layer_kind(3) != parts.layer_kind(2));
  CHECK(parts.layer_kind(3) == parts.layer_kind(7));
}

TEST_CASE("host code takes its time per layer, more with experts, none with graphs",
          "[step_parts]") {
  TrainingJob job = test::small_job(mixed_model());
  job.stack.layer_host = std::chrono::microseconds(300);
  job.stack.expert_layer_host = std::chrono::microseconds(200);
  const StepParts parts = test::parts_of(job);
  CHECK(parts.host(0) == std::chrono::microseconds(300));
  CHECK(parts.host(3) == std::chrono::microseconds(500));
  job.options.cuda_graphs = true;
  CHECK(test::parts_of(job).host(3) == Duration{});
}

TEST_CASE("the optimizer reads gradients twice and states once, and writes states and parameters",
          "[step_parts]") {
  const KernelTimer timer(io::read_kernels(io::kernel_document("2025")), test::plain_gpu());
  const auto expected = [&](double parameters, double gradient, double states) {
    const auto bytes = [&](double width) {
      return Bytes{static_cast<std::int64_t>(parameters * width)};
    };
    return timer.elementwise({bytes(gradient), Bytes{}}).total +
           timer.elementwise({bytes(gradient + states), bytes(states + 2)}).total;
  };
  TrainingJob job = test::small_job(test::small_model());
  const StepParts parts = test::parts_of(job);
  Layout layout = data_parallel(4, Sharding::None);
  const double all = static_cast<double>(parameter_counts(job.model).total());
  CHECK(parts.optimizer(layout, 0) == expected(all, 4, 12));
  // Sharded, each rank has a part of it.
  layout.sharding = Sharding::Optimizer;
  CHECK(parts.optimizer(layout, 0) == expected(all / 4, 4, 12));
  layout.shard_group = 2;
  CHECK(parts.optimizer(layout, 0) == expected(all / 2, 4, 12));
  // On stages, each its layers: with the embedding, or with the head and its norm.
  layout = data_parallel(1, Sharding::None);
  layout.pipeline = 4;
  const double two = 2 * static_cast<double>(layer_parameters(job.model, 0).total());
  const double tokens = 384.0 * 4608;
  CHECK(parts.optimizer(layout, 0) == expected(two + tokens, 4, 12));
  CHECK(parts.optimizer(layout, 1) == expected(two, 4, 12));
  CHECK(parts.optimizer(layout, 3) == expected(two + tokens + 384, 4, 12));
  // Momentum in 16 bits, gradients and masters too.
  job.options.optimizer = Optimizer::Momentum;
  job.options.bf16_moments = true;
  job.options.fp32_gradients = false;
  job.options.fp32_master = false;
  CHECK(test::parts_of(job).optimizer(layout, 1) == expected(two, 2, 4));
}

TEST_CASE(
    "a stage sends a micro-batch's activations, each tensor rank its part where they are split",
    "[step_parts]") {
  TrainingJob job = test::small_job(test::small_model());
  Layout layout;
  layout.tensor = 2;
  layout.context = 3;
  layout.micro_batch = 2;
  const std::int64_t whole = 2 * (384 / 3) * 384 * 2;
  CHECK(test::parts_of(job).boundary_bytes(layout).count() == whole);
  layout.sequence_parallel = true;
  CHECK(test::parts_of(job).boundary_bytes(layout).count() == whole / 2);
  layout.sequence_parallel = false;
  job.overlap.scatter_boundary = true;
  CHECK(test::parts_of(job).boundary_bytes(layout).count() == whole / 2);
  layout.sequence_parallel = true;  // Not twice.
  CHECK(test::parts_of(job).boundary_bytes(layout).count() == whole / 2);
}

TEST_CASE("states are summed, or scattered and gathered", "[step_parts]") {
  const OwnParameters own{1000, 600, 1000, 600};
  const StepParts parts = test::parts_of(test::small_job(test::small_expert_model()));
  // Everyone has everything: sums alone.
  Layout layout = data_parallel(4, Sharding::None);
  layout.expert = 2;
  CHECK(sent(parts.state_messages(layout, own).reduce) ==
        std::vector<Sent>{{shard, AllReduce, 4000}, {expert_shard, AllReduce, 2400}});
  CHECK(parts.state_messages(layout, own).gather.empty());
  for (const Sharding sharding : {Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters}) {
    layout.sharding = sharding;
    const StateMessages messages = parts.state_messages(layout, own);
    CHECK(sent(messages.reduce) ==
          std::vector<Sent>{{shard, ReduceScatter, 4000}, {expert_shard, ReduceScatter, 2400}});
    CHECK(sent(messages.gather) ==
          std::vector<Sent>{{shard, AllGather, 2000}, {expert_shard, AllGather, 1200}});
  }
  // Experts of which each rank has its own are exchanged with nobody.
  layout.expert = 4;
  CHECK(sent(parts.state_messages(layout, own).reduce) ==
        std::vector<Sent>{{shard, ReduceScatter, 4000}});
  // Nor is anything on one rank.
  layout = data_parallel(1, Sharding::Parameters);
  CHECK(parts.state_messages(layout, own).gather.empty());
  CHECK(parts.state_messages(layout, own).reduce.empty());
}

TEST_CASE("shards of replicas are summed between them", "[step_parts]") {
  const OwnParameters own{1000, 0, 1000, 0};
  const StepParts parts = test::parts_of(test::small_job(test::small_model()));
  Layout layout = data_parallel(8, Sharding::Parameters);
  layout.shard_group = 4;
  const StateMessages messages = parts.state_messages(layout, own);
  CHECK(sent(messages.reduce) ==
        std::vector<Sent>{{shard, ReduceScatter, 4000}, {replica, AllReduce, 1000}});
  CHECK(sent(messages.gather) == std::vector<Sent>{{shard, AllGather, 2000}});
}

TEST_CASE("states travel in the widths that they are kept in", "[step_parts]") {
  const OwnParameters own{1000, 0, 1000, 0};
  TrainingJob job = test::small_job(test::small_model());
  job.options.fp32_gradients = false;
  GpuModel gpu = test::plain_gpu();
  gpu.flops["fp8"] = FlopRate{200e12};
  const Layout layout = data_parallel(2, Sharding::Optimizer);
  const auto widths = [&] {
    const StateMessages messages = test::parts_of(job, gpu).state_messages(layout, own);
    return std::pair{messages.gather[0].bytes.count(), messages.reduce[0].bytes.count()};
  };
  CHECK(widths() == std::pair<std::int64_t, std::int64_t>{2000, 2000});
  job.options.compute = KernelType::Fp8;
  CHECK(widths() == std::pair<std::int64_t, std::int64_t>{2000, 2000});
  job.options.quantised_parameters = true;
  CHECK(widths() == std::pair<std::int64_t, std::int64_t>{1000, 2000});
}

TEST_CASE("with adapters only they are reduced, and under ZeRO-3 everything is gathered",
          "[step_parts]") {
  TrainingJob job = test::small_job(test::small_model());
  job.options.lora = Lora{.rank = 8, .attention = true, .ffn = true};
  const StepParts parts = test::parts_of(job);
  Layout layout = data_parallel(2, Sharding::Optimizer);
  const OwnParameters own = parts.layer_parameters(layout, 0);
  const double adapters = 8 * ((384 + 24 * 32) + (12 * 32 + 384) + (384 + 2 * 768) + (768 + 384));
  CHECK(own.trained_dense == adapters);
  CHECK(own.dense == static_cast<double>(layer_parameters(job.model, 0).total()) + adapters);
  CHECK(own.experts == 0);
  const auto bytes = [](double count, int width) {
    return static_cast<std::int64_t>(count) * width;
  };
  StateMessages messages = parts.state_messages(layout, own);
  CHECK(sent(messages.gather) == std::vector<Sent>{{shard, AllGather, bytes(adapters, 2)}});
  CHECK(sent(messages.reduce) == std::vector<Sent>{{shard, ReduceScatter, bytes(adapters, 4)}});
  layout.sharding = Sharding::Parameters;
  messages = parts.state_messages(layout, own);
  CHECK(sent(messages.gather) == std::vector<Sent>{{shard, AllGather, bytes(own.dense, 2)}});
  CHECK(sent(messages.reduce) == std::vector<Sent>{{shard, ReduceScatter, bytes(adapters, 4)}});
  // Embedding and head are frozen.
  CHECK(parts.embedding_parameters(layout).trained_dense == 0);
  CHECK(parts.state_messages(layout, parts.head_parameters(layout)).reduce.empty());
}

TEST_CASE("adapters of a step are those of its memory", "[step_parts]") {
  TrainingJob job = test::small_job(test::small_expert_model());
  job.options.lora = Lora{.rank = 8, .attention = true, .ffn = true};
  const StepParts parts = test::parts_of(job);
  Layout layout = data_parallel(6, Sharding::Optimizer);
  layout.tensor = 2;
  layout.expert = 3;
  layout.expert_tensor = 2;
  const AdapterParameters kept = adapter_parameters(job.model, layout, *job.options.lora, 0);
  const OwnParameters own = parts.layer_parameters(layout, 0);
  CHECK(own.trained_dense == Approx(kept.dense));
  CHECK(own.trained_experts == Approx(kept.experts));
}

TEST_CASE("a tied head has a copy of the embedding on another stage alone", "[step_parts]") {
  Model model = test::small_model();
  model.tied_embeddings = true;
  const StepParts parts = test::parts_of(test::small_job(model));
  Layout layout = data_parallel(1, Sharding::None);
  CHECK(parts.head_parameters(layout).dense == 384);
  layout.pipeline = 2;
  CHECK(parts.head_parameters(layout).dense == 384 + 384.0 * 4608);
  CHECK(parts.embedding_parameters(layout).dense == 384.0 * 4608);
}
