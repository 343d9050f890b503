// What every parallel dimension, alone and with each other one, sends: the bytes of the expanded
// operation graph against formulas written down here once more.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/layout/schedule.hpp"
#include "support/training.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

// Bytes by family of groups and operation; "pp" for sends. As CollectiveOp counts them.
using Volume = std::map<std::string, std::int64_t>;

void add(Volume& volume, GroupKind group, CollectiveOp op, std::int64_t bytes) {
  if (bytes != 0) volume[fmt::format("{} {}", to_string(group), to_string(op))] += bytes;
}

// What one rank of the program has a part in.
Volume sent(const Workload& workload, const Program& program) {
  Volume volume;
  for (const Operation& op : program.ops) {
    if (op.kind == OpKind::Send) volume["pp send"] += op.bytes.count();
    if (op.kind != OpKind::Collective) continue;
    volume[fmt::format("{} {}", workload.groups[op.group].name, to_string(op.collective))] +=
        op.bytes.count();
  }
  return volume;
}

// FORMULAS.md, section 4, with bf16 activations and parameters and fp32 gradients: what a rank of
// the stage takes part in. Everything divides.
class Formulas {
 public:
  Formulas(const Model& model, const Layout& layout)
      : model_(model),
        layout_(layout),
        t_(layout.tensor),
        c_(layout.context),
        m_(micro_batches(layout)),
        tokens_(std::int64_t{test::small_sequence} * layout.micro_batch / c_) {}

  Volume of(std::uint32_t stage) {
    const PipelineShape shape = pipeline_shape(layout_);
    const std::vector<std::uint32_t> layers = layers_of_chunks(layout_, model_);
    const auto last = static_cast<std::uint32_t>(layers.size() - 1);
    for (std::uint32_t chunk = 0; chunk <= last; ++chunk) {
      if (stage_of(shape, chunk) != stage) continue;
      tensor(layers[chunk], chunk == 0, chunk == last);
      context(layers[chunk]);
      experts(layers[chunk]);
      if (chunk < last && stage_of(shape, chunk + 1) != stage) hop();
      if (chunk > 0 && stage_of(shape, chunk - 1) != stage) hop();
      states(layers[chunk], chunk == 0, chunk == last);
    }
    const bool ends = stage == 0 || stage == stage_of(shape, last);
    if (model_.tied_embeddings && stage_of(shape, last) != 0 && ends) {
      add(volume_, GroupKind::Embedding, CollectiveOp::AllReduce, embedding() * 4);
    }
    if (group_size(layout_, GroupKind::Model) > 1) {
      add(volume_, GroupKind::Model, CollectiveOp::AllReduce, 4);
    }
    return volume_;
  }

 private:
  using Int = std::int64_t;

  void tensor(Int layers, bool first, bool last) {
    if (t_ == 1) return;
    const Int row = tokens_ * model_.hidden * 2;  // s b h w / c
    const Int ends = (first ? 1 : 0) + (last ? 1 : 0);
    // Of an FFN with experts, tensor parallelism sees nothing.
    const Int blocks = layers * (model_.experts ? 1 : 2);
    const auto tp = [&](CollectiveOp op, Int bytes) {
      add(volume_, GroupKind::Tensor, op, m_ * bytes);
    };
    if (last) tp(CollectiveOp::AllReduce, 3 * tokens_ * 4);
    if (layout_.sequence_parallel) {
      tp(CollectiveOp::AllGather, (3 * blocks + (first ? 1 : 0) + (last ? 2 : 0)) * row);
      tp(CollectiveOp::ReduceScatter, (2 * blocks + ends) * row);
    } else {
      tp(CollectiveOp::AllReduce, (2 * blocks + ends) * row);
    }
  }

  void context(Int layers) {
    if (c_ == 1) return;
    const Attention& attention = model_.attention;
    const Int d = attention.head_dim;
    const Int kv = tokens_ * 2 * attention.kv_heads * d * 2 / t_;
    const Int q = tokens_ * attention.heads * d * 2 / t_;
    const auto cp = [&](CollectiveOp op, Int bytes) {
      add(volume_, GroupKind::Context, op, m_ * layers * bytes);
    };
    switch (layout_.exchange) {
      case ContextExchange::Ring:
        return cp(CollectiveOp::SendRecv, (c_ - 1) * kv * 3);
      case ContextExchange::AllGather:
        cp(CollectiveOp::AllGather, 2 * c_ * kv);
        return cp(CollectiveOp::ReduceScatter, c_ * kv);
      case ContextExchange::AllToAll:
        return cp(CollectiveOp::AllToAll, 2 * (q + kv) + 2 * q);
    }
  }

  void experts(Int layers) {
    if (!model_.experts) return;
    const Int own = tokens_ / (layout_.sequence_parallel ? t_ : 1);
    const Int row = own * model_.experts->chosen * model_.hidden * 2;  // s b k h w
    if (layout_.expert > 1) {
      add(volume_, GroupKind::Expert, CollectiveOp::AllToAll, m_ * layers * 4 * row);
    }
    const Int etp = layout_.expert_tensor;
    if (etp > 1) {
      add(volume_, GroupKind::ExpertTensor, CollectiveOp::AllGather, m_ * layers * 2 * etp * row);
      add(volume_, GroupKind::ExpertTensor, CollectiveOp::ReduceScatter,
          m_ * layers * 2 * etp * row);
    }
  }

  void hop() {
    volume_["pp send"] += m_ * tokens_ / (layout_.sequence_parallel ? t_ : 1) * model_.hidden * 2;
  }

  [[nodiscard]] Int embedding() const { return Int{model_.hidden} * model_.vocabulary / t_; }
  [[nodiscard]] Int dense(Int layers) const {
    const Attention& attention = model_.attention;
    const Int h = model_.hidden;
    Int one = 2 * h * attention.head_dim * (attention.heads + attention.kv_heads) / t_ + 2 * h;
    one += model_.experts ? h * model_.experts->count : 3 * h * model_.ffn_hidden / t_;
    return layers * one;
  }
  [[nodiscard]] Int routed(Int layers) const {
    if (!model_.experts) return 0;
    return layers * model_.experts->count * 3 * model_.hidden * model_.experts->hidden /
           (Int{layout_.expert} * layout_.expert_tensor);
  }

  void states(Int layers, bool first, bool last) {
    Int parameters = dense(layers);
    if (first) parameters += embedding();
    if (last) {
      parameters += model_.hidden;  // The final norm.
      if (!model_.tied_embeddings || layout_.pipeline > 1) parameters += embedding();
    }
    states(parameters, GroupKind::Shard, GroupKind::Replica);
    states(routed(layers), GroupKind::ExpertShard, GroupKind::ExpertReplica);
  }

  void states(Int parameters, GroupKind shard, GroupKind replica) {
    const Int shards = group_size(layout_, shard);
    const Int replicas = group_size(layout_, replica);
    Int gathers = 1;
    Int reductions = 1;
    switch (layout_.sharding) {
      case Sharding::None:
        if (shards > 1) add(volume_, shard, CollectiveOp::AllReduce, parameters * 4);
        return;
      case Sharding::Optimizer:
        break;
      case Sharding::Gradients:
        reductions = m_;
        break;
      case Sharding::Parameters:
        reductions = m_;
        gathers = layout_.keep_gathered ? 1 : 2 * m_;
    }
    if (shards > 1) {
      add(volume_, shard, CollectiveOp::AllGather, gathers * parameters * 2);
      add(volume_, shard, CollectiveOp::ReduceScatter, reductions * parameters * 4);
    }
    if (replicas > 1) {
      add(volume_, replica, CollectiveOp::AllReduce, reductions * parameters / shards * 4);
    }
  }

  const Model& model_;
  const Layout& layout_;
  Int t_, c_, m_;
  Int tokens_;  // Of a micro-batch on one context rank.
  Volume volume_;
};

// One use of one dimension; those of one `kind` exclude each other.
struct Use {
  std::string name;
  std::string kind;
  std::function<void(Layout&)> change;
  bool experts = false;
};

std::vector<Use> uses() {
  using enum ContextExchange;
  using enum PipelineSchedule;
  std::vector<Use> list;
  const auto use = [&](std::string kind, std::string name, std::function<void(Layout&)> change,
                       bool experts = false) {
    list.push_back({std::move(name), std::move(kind), std::move(change), experts});
  };
  for (const std::uint32_t t : {2U, 3U}) {
    use("tp", fmt::format("tp {}", t), [t](Layout& l) { l.tensor = t; });
    use("tp", fmt::format("tp {} with sequence parallelism", t), [t](Layout& l) {
      l.tensor = t;
      l.sequence_parallel = true;
    });
  }
  for (const std::uint32_t c : {2U, 3U}) {
    for (const ContextExchange exchange : {Ring, AllGather, AllToAll}) {
      use("cp", fmt::format("cp {} {}", c, to_string(exchange)), [c, exchange](Layout& l) {
        l.context = c;
        l.exchange = exchange;
      });
    }
  }
  const auto pipeline = [&](std::uint32_t p, std::uint32_t v, PipelineSchedule schedule) {
    use("pp", fmt::format("pp {} {}", p, to_string(schedule)), [=](Layout& l) {
      l.pipeline = p;
      l.virtual_stages = v;
      l.schedule = schedule;
    });
  };
  pipeline(2, 1, GPipe);
  pipeline(2, 1, OneForwardOneBackward);
  pipeline(3, 1, OneForwardOneBackward);
  pipeline(2, 2, Interleaved);
  pipeline(4, 2, Interleaved);
  pipeline(3, 1, ZeroBubbleH1);
  pipeline(2, 2, ZeroBubbleV);
  const auto data = [&](std::string name, std::uint32_t d, Sharding sharding,
                        std::uint32_t group = 0, bool keep = false) {
    use("dp", std::move(name), [=](Layout& l) {
      l.data = d;
      l.sharding = sharding;
      l.shard_group = group;
      l.keep_gathered = keep;
    });
  };
  data("ddp 2", 2, Sharding::None);
  data("zero-1 6", 6, Sharding::Optimizer);
  data("zero-2 2", 2, Sharding::Gradients);
  data("zero-3 3", 3, Sharding::Parameters);
  data("zero-3 2, kept", 2, Sharding::Parameters, 0, true);
  data("two optimizer instances", 4, Sharding::Optimizer, 2);
  data("hsdp", 4, Sharding::Parameters, 2);
  // Their ranks come from data parallelism.
  const auto expert = [&](std::string name, std::uint32_t e, std::uint32_t etp) {
    use(
        "ep", std::move(name),
        [=](Layout& l) {
          l.expert = e;
          l.expert_tensor = etp;
        },
        true);
  };
  expert("experts", 1, 1);
  expert("ep 2", 2, 1);
  expert("ep 6", 6, 1);
  expert("etp 2", 1, 2);
  expert("ep 2, etp 2", 2, 2);
  expert("ep 3, etp 2", 3, 2);
  return list;
}

// Tests share the cluster: message times do not count here.
const test::Cluster& cluster() {
  static const test::Cluster made(test::crossbar(72, 100_GBps, 1us));
  return made;
}

void check(const std::string& name, Layout layout, Model model) {
  INFO(name);
  layout = test::with_batch(layout, 4);
  REQUIRE(problems(layout, model, test::small_sequence, 0) == std::vector<std::string>{});
  TrainingJob job = test::small_job(model);
  job.overlap.bucket = Bytes{3'000'000};
  const StepParts parts = test::parts_of(std::move(job));
  const MessageTimes times(cluster().topology, cluster().cost);
  const Workload workload = expand(parts, layout, times);
  validate(workload);
  REQUIRE(workload.programs.size() == layout.pipeline);
  for (std::uint32_t stage = 0; stage < layout.pipeline; ++stage) {
    INFO("stage " << stage);
    REQUIRE(sent(workload, workload.programs[stage]) == Formulas(model, layout).of(stage));
  }
}

}  // namespace

TEST_CASE("every dimension alone, and every two together, send what the formulas say", "[volume]") {
  const std::vector<Use> list = uses();
  std::map<std::pair<std::string, std::string>, int> checked;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = i; j < list.size(); ++j) {
      const Use& a = list[i];
      const Use& b = list[j];
      if (i != j && a.kind == b.kind) continue;
      const bool experts = a.experts || b.experts;
      Layout layout;
      layout.vocabulary_multiple = 1;
      a.change(layout);
      if (i != j) b.change(layout);
      // Experts need ranks, and each tensor rank tokens of its own.
      const std::uint32_t held = layout.expert * layout.expert_tensor;
      if (experts && layout.tensor * layout.context * layout.data % held != 0) layout.data *= held;
      const Model model = experts ? test::small_expert_model() : test::small_model();
      if (!problems(test::with_batch(layout, 4), model, test::small_sequence, 0).empty()) continue;
      check(i == j ? a.name : a.name + " and " + b.name, layout, model);
      ++checked[{a.kind, i == j ? a.kind : b.kind}];
    }
  }
  for (const std::string a : {"tp", "cp", "pp", "dp", "ep"}) {
    for (const std::string b : {"tp", "cp", "pp", "dp", "ep"}) {
      INFO(a << " with " << b);
      CHECK(checked[{a, b}] + checked[{b, a}] > 0);
    }
  }
}

TEST_CASE("a tied embedding's gradient is summed between first and last stage", "[volume]") {
  Model model = test::small_model();
  model.tied_embeddings = true;
  Layout layout;
  layout.vocabulary_multiple = 1;
  check("one stage", layout, model);
  layout.pipeline = 3;
  layout.tensor = 2;
  layout.data = 2;
  check("three stages", layout, model);
}

TEST_CASE("all dimensions together send what the formulas say, in any order of ranks", "[volume]") {
  Layout layout;
  layout.vocabulary_multiple = 1;
  layout.tensor = 2;
  layout.sequence_parallel = true;
  layout.context = 3;
  layout.pipeline = 2;
  layout.virtual_stages = 2;
  layout.schedule = PipelineSchedule::Interleaved;
  layout.data = 4;
  layout.expert = 6;
  layout.expert_tensor = 2;
  layout.sharding = Sharding::Gradients;
  layout.shard_group = 6;
  check("all", layout, test::small_expert_model());
  layout.order = {Dimension::Data, Dimension::Expert, Dimension::Context, Dimension::Tensor,
                  Dimension::Pipeline};
  check("all, tensor outside", layout, test::small_expert_model());
}

TEST_CASE("a ring's rank sends (n - 1) / n of a gathering, and twice that of a sum", "[volume]") {
  // The factors by which section 4 turns buffers into bytes on the wire.
  CHECK(bus_factor(CollectiveOp::AllGather, 3) == Approx(2.0 / 3));
  CHECK(bus_factor(CollectiveOp::ReduceScatter, 3) == Approx(2.0 / 3));
  CHECK(bus_factor(CollectiveOp::AllReduce, 3) == Approx(4.0 / 3));
  CHECK(bus_factor(CollectiveOp::AllToAll, 3) == Approx(2.0 / 3));
  CHECK(bus_factor(CollectiveOp::SendRecv, 3) == 1);
}

TEST_CASE("how messages are hidden and bucketed changes no volume", "[volume]") {
  Layout layout;
  layout.vocabulary_multiple = 1;
  layout.tensor = 3;
  layout.sequence_parallel = true;
  layout.context = 2;
  layout.data = 2;
  layout = test::with_batch(layout, 2);
  const MessageTimes times(cluster().topology, cluster().cost);
  std::optional<Volume> before;
  for (const std::int64_t bucket : {0, 1'000'000, 1'000'000'000}) {
    for (const bool hidden : {false, true}) {
      TrainingJob job = test::small_job(test::small_model());
      job.overlap.bucket = Bytes{bucket};
      job.overlap.tensor = hidden ? TensorOverlap::Pipelined : TensorOverlap::None;
      job.overlap.gradients = job.overlap.parameters = job.overlap.context = hidden;
      const StepParts parts = test::parts_of(std::move(job));
      const Workload workload = expand(parts, layout, times);
      const Volume volume = sent(workload, workload.programs[0]);
      if (before) CHECK(volume == *before);
      before = volume;
    }
  }
}
