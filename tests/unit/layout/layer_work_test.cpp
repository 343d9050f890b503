// The kernels and messages of a layer: do they do the model's arithmetic, and what is repeated,
// frozen or hidden?

#include "layout/layer_work.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "support/training.hpp"

using namespace flyover;

namespace {

using Items = std::vector<WorkItem>;

Model latent_model() {
  Model model = test::small_model();
  model.attention.kv_heads = 12;
  model.attention.head_dim = 48;
  model.attention.latent = LatentAttention{
      .query_rank = 96, .kv_rank = 64, .nope_dim = 32, .rope_dim = 16, .value_dim = 32};
  return model;
}

Model shared_expert_model() {
  Model model = test::small_expert_model();
  model.experts->shared_hidden = 192;
  return model;
}

LayerWork work_of(const TrainingJob& job, const Layout& layout, std::uint32_t domain = 8) {
  GpuModel gpu = test::plain_gpu();
  gpu.flops["fp8"] = FlopRate{200e12};
  const StepKernels kernels(io::read_kernels(io::kernel_document("2025")), gpu, job.stack, false);
  return layer_work(job, kernels, layout, job.model.layers - 1, domain);
}

Layout cut(std::uint32_t tensor, std::uint32_t context = 1, std::uint32_t expert = 1,
           std::uint32_t expert_tensor = 1) {
  Layout layout;
  layout.tensor = tensor;
  layout.sequence_parallel = tensor > 1;
  layout.context = context;
  layout.expert = expert;
  layout.expert_tensor = expert_tensor;
  layout.micro_batch = 2;
  return layout;
}

double flops(const Items& items) {
  double sum = 0;
  for (const WorkItem& item : items) sum += item.flops.count();
  return sum;
}
Duration compute(const Items& items) {
  Duration sum{};
  for (const WorkItem& item : items) sum += item.compute;
  return sum;
}
std::uint32_t kernels(const Items& items) {
  std::uint32_t sum = 0;
  for (const WorkItem& item : items) sum += item.kernels;
  return sum;
}
Bytes bytes(const Items& items, GroupKind kind) {
  Bytes sum;
  for (const WorkItem& item : items) {
    if (item.message && item.message->group == kind) sum += item.message->bytes;
  }
  return sum;
}

// Attention's own kernels are apart: fused ones compute scores anew in the backward.
bool is_attention(const WorkItem& item) {
  return item.name.starts_with("attention");
}
double attention_flops(const Items& items) {
  double sum = 0;
  for (const WorkItem& item : items) sum += is_attention(item) ? item.flops.count() : 0;
  return sum;
}
double other_flops(const Items& items) {
  return flops(items) - attention_flops(items);
}

const WorkItem& named(const Items& items, std::string_view name) {
  const auto found = std::ranges::find(items, name, &WorkItem::name);
  INFO("looking for " << name);
  REQUIRE(found != items.end());
  return *found;
}
std::vector<std::string> names(const Items& items) {
  std::vector<std::string> all;
  for (const WorkItem& item : items) all.emplace_back(item.name);
  return all;
}

Bytes bytes_of(double elements, double width) {
  return Bytes{std::llround(elements * width)};
}

// Of the micro-batches of cut().
constexpr double tokens = 2.0 * test::small_sequence;

}  // namespace

TEST_CASE("ranks share a layer's arithmetic, and the backward does it twice", "[layer_work]") {
  const Model model =
      GENERATE(test::small_model(), test::small_expert_model(), shared_expert_model());
  for (const auto& [t, c] : {std::pair{1U, 1U}, {2U, 1U}, {1U, 3U}, {3U, 2U}}) {
    for (const auto& [e, etp] : {std::pair{1U, 1U}, {2U, 1U}, {2U, 2U}, {6U, 1U}}) {
      if (!model.experts && e * etp > 1) continue;
      CAPTURE(t, c, e, etp);
      const LayerWork work = work_of(test::small_job(model), cut(t, c, e, etp));
      const ForwardFlops one =
          layer_flops(model, model.layers - 1, test::small_sequence, /*causal=*/true);
      const double share = tokens / (t * c);
      CHECK(other_flops(work.forward) == Approx((one.attention_projections + one.ffn) * share));
      CHECK(other_flops(work.backward) == Approx(2 * other_flops(work.forward)));
      // A query sees itself as well: (s + 1) / 2 keys. Backward: five products for two.
      const double seen = (test::small_sequence + 1.0) / test::small_sequence;
      CHECK(attention_flops(work.forward) == Approx(one.attention_scores * seen * share));
      CHECK(attention_flops(work.backward) == Approx(2.5 * attention_flops(work.forward)));
      CHECK(work.recompute.empty());
    }
  }
}

TEST_CASE("what leads down to latents every tensor rank does", "[layer_work]") {
  const Model model = latent_model();
  const LatentAttention& latent = *model.attention.latent;
  for (const std::uint32_t t : {1U, 2U, 4U}) {
    CAPTURE(t);
    const LayerWork work = work_of(test::small_job(model), cut(t));
    const ForwardFlops one = layer_flops(model, 0, test::small_sequence, true);
    const double down =
        2.0 * model.hidden * (latent.query_rank + latent.kv_rank + latent.rope_dim) * tokens;
    CHECK(named(work.forward, "latent-down").flops.count() == Approx(down));
    CHECK(other_flops(work.forward) - down ==
          Approx(((one.attention_projections + one.ffn) * tokens - down) / t));
    CHECK(other_flops(work.backward) == Approx(2 * other_flops(work.forward)));
    // Scores over 48 dimensions, values over 32: three products and two.
    CHECK(attention_flops(work.backward) / attention_flops(work.forward) ==
          Approx((3 * 48.0 + 2 * 32) / (48 + 32)));
  }
}

TEST_CASE("a window makes attention cheaper and nothing else", "[layer_work]") {
  Model model = test::small_model();
  const LayerWork whole = work_of(test::small_job(model), cut(1));
  model.attention.window = 32;
  const LayerWork window = work_of(test::small_job(model), cut(1));
  CHECK(other_flops(window.forward) == other_flops(whole.forward));
  // A kernel's blocks do not use that the first queries have fewer keys than the window.
  const double keys = mean_keys(model, 0, test::small_sequence, true);
  const double one = layer_flops(model, 0, test::small_sequence, true).attention_scores * tokens;
  CHECK(attention_flops(window.forward) == Approx(one * 32 / keys));
  CHECK(attention_flops(window.forward) < attention_flops(whole.forward) / 5);
}

TEST_CASE("full recomputation repeats the forward but for its last sum", "[layer_work]") {
  const Model model = GENERATE(test::small_model(), shared_expert_model(), latent_model());
  TrainingJob job = test::small_job(model);
  Layout layout = cut(2, 2);
  const LayerWork plain = work_of(job, layout);
  layout.recompute = Recompute::Full;
  const LayerWork work = work_of(job, layout);
  REQUIRE(names(work.recompute) == names(work.forward));
  CHECK(compute(work.recompute) == compute(work.forward));
  CHECK(flops(work.recompute) == flops(work.forward));
  for (std::size_t i = 0; i + 1 < work.forward.size(); ++i) {
    CHECK(work.recompute[i].message.has_value() == work.forward[i].message.has_value());
  }
  CHECK_FALSE(work.recompute.back().message);
  // The passes themselves stay what they are.
  CHECK(compute(work.forward) == compute(plain.forward));
  CHECK(compute(work.backward) == compute(plain.backward));
}

TEST_CASE("each module that is recomputed repeats its kernels", "[layer_work]") {
  struct Case {
    Model model;
    std::vector<std::string> modules;
    std::vector<std::string> repeated;
  };
  const std::vector<Case> cases = {
      {test::small_model(), {}, {"attention"}},
      {test::small_model(), {"attention"}, {"attention"}},
      {test::small_model(), {"norm"}, {"norm-attention", "norm-ffn"}},
      {test::small_model(), {"activation"}, {"activation"}},
      {test::small_model(), {"mlp"}, {"up", "activation", "down"}},
      {test::small_model(), {"second_matrices"}, {"qkv", "out", "up"}},
      {test::small_model(), {"norm", "activation"}, {"norm-attention", "norm-ffn", "activation"}},
      {latent_model(), {"mla_up_proj"}, {"q-up", "kv-up"}},
      {shared_expert_model(), {"shared_experts"}, {"up", "activation", "down"}},
      {shared_expert_model(), {"activation"}, {"activation", "experts-activation"}},
      {shared_expert_model(),
       {"moe"},
       {"router", "dispatch", "experts-up", "experts-activation", "experts-down", "combine",
        "unpermute"}},
      {test::small_model(), {"moe"}, {}},
  };
  for (const Case& each : cases) {
    CAPTURE(each.modules);
    Layout layout = cut(1, 1, each.model.experts ? 2 : 1);
    layout.recompute = Recompute::Selective;
    layout.recompute_modules = each.modules;
    const LayerWork work = work_of(test::small_job(each.model), layout);
    REQUIRE(names(work.recompute) == each.repeated);
    for (const WorkItem& item : work.recompute) {
      const WorkItem& first = named(work.forward, item.name);
      if (each.modules == std::vector<std::string>{"second_matrices"}) {
        // k of q, k and v; all of the output; up, but not gate.
        const double share = item.name == "qkv" ? 6.0 / 24 : item.name == "out" ? 1 : 0.5;
        CHECK(item.flops.count() == Approx(first.flops.count() * share));
      } else {
        CHECK(item.compute == first.compute);
        CHECK(item.message.has_value() == first.message.has_value());
      }
    }
  }
}

TEST_CASE("a sum that was had is not had again for every second matrix", "[layer_work]") {
  Layout layout = cut(2);
  layout.recompute = Recompute::Selective;
  layout.recompute_modules = {"second_matrices"};
  const LayerWork work = work_of(test::small_job(test::small_model()), layout);
  CHECK(named(work.forward, "out").message);
  CHECK_FALSE(named(work.recompute, "out").message);
  CHECK(named(work.recompute, "up").message);  // What was gathered is not kept.
}

TEST_CASE("frozen matrices have no weight gradients, adapters both", "[layer_work]") {
  const Model model = GENERATE(test::small_model(), test::small_expert_model());
  TrainingJob job = test::small_job(model);
  const LayerWork all = work_of(job, cut(1));
  job.options.lora = Lora{.rank = 8, .attention = true, .ffn = true};
  const LayerWork work = work_of(job, cut(1));
  CHECK(std::ranges::any_of(all.backward, &WorkItem::weight_gradient));
  CHECK(std::ranges::none_of(work.backward, &WorkItem::weight_gradient));
  // r (n + k) multiply-adds per token and matrix; twice in the backward.
  const double h = model.hidden;
  const double width = model.experts ? model.experts->hidden : model.ffn_hidden;
  const double times = model.experts ? model.experts->chosen : 1;
  const double adapters =
      2 * 8 * tokens * ((h + 24 * 32) + (12 * 32 + h) + times * ((h + 2 * width) + (width + h)));
  CHECK(other_flops(work.forward) == Approx(other_flops(all.forward) + adapters));
  CHECK(other_flops(work.backward) == Approx(other_flops(all.forward) + 2 * adapters));
}

TEST_CASE("messages that experts hide keep their bytes, and kernels stay", "[layer_work]") {
  for (const std::uint32_t t : {1U, 2U}) {
    for (const ExpertDispatch dispatch : {ExpertDispatch::AllToAll, ExpertDispatch::Fused}) {
      CAPTURE(t);
      TrainingJob job = test::small_job(shared_expert_model());
      job.overlap.dispatch = dispatch;
      const LayerWork open = work_of(job, cut(t, 1, 3));
      job.overlap.experts = true;
      const LayerWork hidden = work_of(job, cut(t, 1, 3));
      const auto both = [](const LayerWork& work, const auto& of) {
        return of(work.forward) + of(work.backward);
      };
      const auto expert = [](const Items& items) { return bytes(items, GroupKind::Expert); };
      const auto tensor = [](const Items& items) { return bytes(items, GroupKind::Tensor); };
      CHECK(both(hidden, expert) == both(open, expert));
      CHECK(both(hidden, tensor) == both(open, tensor));
      CHECK(both(hidden, compute) == both(open, compute));
      CHECK(both(hidden, kernels) == both(open, kernels));
      CHECK(both(hidden, flops) == Approx(both(open, flops)));
      for (const Items* items : {&hidden.forward, &hidden.backward}) {
        const auto carries = [](const WorkItem& item) {
          return item.message && item.message->group == GroupKind::Expert;
        };
        CHECK(std::ranges::count_if(*items, carries) == 1);
        CHECK(std::ranges::find_if(*items, carries)->hidden == 1);
      }
    }
  }
  // There is nothing to hide within one rank, and what gathers all tokens is not hidden.
  TrainingJob job = test::small_job(shared_expert_model());
  job.overlap.experts = true;
  CHECK(names(work_of(job, cut(1)).forward).front() == "norm-attention");
  job.overlap.dispatch = ExpertDispatch::AllGather;
  CHECK(named(work_of(job, cut(1, 1, 3)).forward, "dispatch").hidden == 0);
}

TEST_CASE("tensor ranks gather before a matrix and sum after the next", "[layer_work]") {
  TrainingJob job = test::small_job(test::small_model());
  const Bytes whole = bytes_of(tokens * 384, 2);
  Layout layout = cut(2);
  const LayerWork work = work_of(job, layout);
  for (const char* name : {"qkv", "up"}) {
    const WorkItem& item = named(work.forward, name);
    CHECK(item.message->op == CollectiveOp::AllGather);
    CHECK(item.message->bytes == whole);
    CHECK(item.message_first);
    CHECK(item.hidden == 0);
  }
  for (const char* name : {"out", "down"}) {
    const WorkItem& item = named(work.forward, name);
    CHECK(item.message->op == CollectiveOp::ReduceScatter);
    CHECK(item.message->bytes == whole);
    CHECK_FALSE(item.message_first);
  }
  // Autograd hides the second gathering behind the input's gradient, its sum behind the weights'.
  CHECK(named(work.backward, "qkv backward").message->op == CollectiveOp::AllGather);
  CHECK(named(work.backward, "qkv backward").hidden == 1);
  CHECK(named(work.backward, "qkv weights").message->op == CollectiveOp::ReduceScatter);
  CHECK(named(work.backward, "qkv weights").hidden == 1);

  SECTION("without sequence parallelism one sum after each pair") {
    layout.sequence_parallel = false;
    const LayerWork plain = work_of(job, layout);
    CHECK_FALSE(named(plain.forward, "qkv").message);
    CHECK(named(plain.forward, "out").message->op == CollectiveOp::AllReduce);
    CHECK(named(plain.forward, "out").message->bytes == whole);
    CHECK(named(plain.backward, "qkv weights").message->op == CollectiveOp::AllReduce);
  }
  SECTION("cut into as many parts as ranks, a sum's last one stays in sight") {
    job.overlap.tensor = TensorOverlap::Pipelined;
    const LayerWork overlapped = work_of(job, layout);
    CHECK(named(overlapped.forward, "qkv").hidden == 1);
    CHECK(named(overlapped.forward, "out").hidden == 0.5);
  }
  SECTION("a weight gradient that waits hides nothing of the sum") {
    layout.schedule = PipelineSchedule::ZeroBubbleH1;
    const LayerWork late = work_of(job, layout);
    CHECK(named(late.backward, "qkv backward").message->op == CollectiveOp::ReduceScatter);
    CHECK(named(late.backward, "qkv backward").hidden == 0);
    CHECK(named(late.backward, "qkv weights").message->op == CollectiveOp::AllGather);
  }
  SECTION("what is multiplied in 8 bits is gathered in 8 bits") {
    job.options.compute = KernelType::Fp8;
    const LayerWork narrow = work_of(job, layout);
    const double width = bytes_per_element(KernelType::Fp8);
    CHECK(named(narrow.forward, "qkv").message->bytes == bytes_of(tokens * 384, width));
    CHECK(named(narrow.forward, "out").message->bytes == whole);
  }
}

TEST_CASE("context ranks exchange keys and values, or heads for tokens", "[layer_work]") {
  TrainingJob job = test::small_job(test::small_model());
  Layout layout = cut(1, 3);
  const double own = tokens / 3;
  const double keys_values = own * 2 * 6 * 32;
  SECTION("in a ring beside the kernels") {
    const LayerWork work = work_of(job, layout);
    const WorkItem& forward = named(work.forward, "attention");
    CHECK(forward.message->op == CollectiveOp::SendRecv);
    CHECK(forward.message->bytes == bytes_of(keys_values, 2));
    CHECK(forward.message->count == 2);
    CHECK(forward.hidden == 1);
    CHECK(named(work.backward, "attention backward").message->bytes ==
          bytes_of(2 * keys_values, 2));
    job.overlap.context = false;
    CHECK(named(work_of(job, layout).forward, "attention").hidden == 0);
  }
  SECTION("gathered before") {
    layout.exchange = ContextExchange::AllGather;
    const LayerWork work = work_of(job, layout);
    CHECK(named(work.forward, "attention").message->bytes == bytes_of(3 * keys_values, 2));
    CHECK(named(work.backward, "gradients of keys and values").message->op ==
          CollectiveOp::ReduceScatter);
  }
  SECTION("all to all on both sides") {
    layout.exchange = ContextExchange::AllToAll;
    const LayerWork work = work_of(job, layout);
    CHECK(named(work.forward, "heads of queries, keys and values").message->bytes ==
          bytes_of(own * (12 + 2 * 6) * 32, 2));
    CHECK(named(work.forward, "tokens of outputs").message->bytes == bytes_of(own * 12 * 32, 2));
    CHECK_FALSE(named(work.forward, "attention").message);
  }
}

TEST_CASE("a dispatch sends copies per expert, per rank or domain, or of everything",
          "[layer_work]") {
  TrainingJob job = test::small_job(test::small_expert_model());
  const auto dispatch = [&](const Layout& layout, std::uint32_t domain) {
    const LayerWork work = work_of(job, layout, domain);
    CHECK(named(work.forward, "combine").message->op !=
          (job.overlap.dispatch == ExpertDispatch::AllGather ? CollectiveOp::AllToAll
                                                             : CollectiveOp::ReduceScatter));
    return named(work.forward, "dispatch").message->bytes;
  };
  const double row = 384 * 2;
  CHECK(dispatch(cut(1, 1, 6), 8) == bytes_of(tokens * 2, row));
  CHECK(dispatch(cut(2, 1, 6), 8) == bytes_of(tokens / 2 * 2, row));  // Of tokens shared out.
  job.overlap.dispatch = ExpertDispatch::Fused;
  // Two experts of a token lie on one of six ranks with a chance of 1/6: 11/6 of them are reached.
  CHECK(dispatch(cut(1, 1, 6), 8) == bytes_of(tokens * 11 / 6, row));
  // And of two domains 3/2.
  CHECK(dispatch(cut(1, 1, 6), 3) == bytes_of(tokens * 2 * 0.75, row));
  job.model.experts->groups = 2;
  job.model.experts->groups_chosen = 1;
  CHECK(dispatch(cut(1, 1, 6), 3) == bytes_of(tokens, row));
  job.overlap.dispatch = ExpertDispatch::AllGather;
  CHECK(dispatch(cut(1, 1, 6), 8) == bytes_of(tokens * 6, row));
}

TEST_CASE("the head multiplies by the vocabulary, MTP blocks by a layer and the head once more",
          "[layer_work]") {
  TrainingJob job = test::small_job(test::small_model());
  const StepKernels step(io::read_kernels(io::kernel_document("2025")), test::plain_gpu(),
                         job.stack, false);
  Layout layout = cut(2);
  layout.vocabulary_multiple = 1;
  const LayerWork head = head_work(job, step, layout, 8);
  const double logits = 2.0 * 384 * 4608 * tokens / 2;
  CHECK(flops(head.forward) == Approx(logits));
  CHECK(flops(head.backward) == Approx(2 * logits));
  const WorkItem& loss = named(head.forward, "loss");
  CHECK(loss.message->count == 3);  // Maximum, target, sum of exponentials.
  CHECK(loss.message->bytes == bytes_of(tokens, 4));

  job.model.mtp_layers = 1;
  layout.recompute = Recompute::Full;
  const LayerWork with = head_work(job, step, layout, 8);
  const LayerWork layer = layer_work(job, step, layout, 0, 8);
  const double projection = 2.0 * 2 * 384 * 384 * tokens / 2;
  CHECK(flops(with.forward) == Approx(2 * logits + flops(layer.forward) + projection));
  CHECK(flops(with.backward) ==
        Approx(4 * logits + flops(layer.backward) + flops(layer.recompute) + 2 * projection));
  CHECK(with.recompute.empty());
  // Frozen, the head has no gradient of its own and nothing scatters into the embedding.
  job.options.lora = Lora{};
  job.model.mtp_layers = 0;
  CHECK(flops(head_work(job, step, layout, 8).backward) == Approx(logits));
  CHECK(embedding_work(job, step, layout).backward.empty());
}
