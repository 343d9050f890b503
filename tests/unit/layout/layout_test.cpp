#include "flyover/layout/layout.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "models.hpp"

using namespace flyover;
using test::llama_8b;

namespace {

using Lists = std::vector<std::vector<std::uint32_t>>;
using Strings = std::vector<std::string>;
using enum Dimension;

Model expert_model() {
  Model model = llama_8b();
  model.experts = Experts{};
  model.experts->count = 16;
  model.experts->chosen = 2;
  model.experts->hidden = 2048;
  model.experts->shared_hidden = 2048;
  model.ffn_hidden = 0;
  return model;
}

constexpr std::uint32_t sequence = 4096;

// A layout that fits dense_model: 64 ranks, 32 micro-batches.
Layout fitting() {
  Layout layout;
  layout.tensor = 4;
  layout.pipeline = 4;
  layout.data = 4;
  layout.sequence_parallel = true;
  layout.global_batch = 128;
  return layout;
}

Strings reasons(const std::function<void(Layout&, Model&)>& change, Model model = llama_8b(),
                std::uint32_t tokens = sequence, std::uint32_t gpus = 0) {
  Layout layout = fitting();
  change(layout, model);
  return problems(layout, model, tokens, gpus);
}

void check_partition(const Lists& groups, std::uint32_t ranks, std::uint32_t size) {
  std::vector<std::uint32_t> all;
  std::uint32_t before = 0;
  for (const std::vector<std::uint32_t>& group : groups) {
    CHECK(group.size() == size);
    CHECK(std::ranges::is_sorted(group));
    CHECK((all.empty() || group.front() > before));
    before = group.front();
    all.insert(all.end(), group.begin(), group.end());
  }
  std::ranges::sort(all);
  std::vector<std::uint32_t> expected(ranks);
  std::iota(expected.begin(), expected.end(), 0U);
  CHECK(all == expected);
}

// Coordinates by nested counting, independent of strides: the outermost dimension counts slowest.
using Place = std::map<Dimension, std::uint32_t>;
std::vector<Place> places(const std::array<Dimension, 5>& order, const Place& sizes) {
  std::vector<Place> result{{}};
  for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
    std::vector<Place> longer;
    for (const Place& place : result) {
      for (std::uint32_t i = 0; i < sizes.at(*dimension); ++i) {
        longer.push_back(place);
        longer.back()[*dimension] = i;
      }
    }
    result = longer;
  }
  return result;
}

Lists groups_by_places(const std::vector<Place>& places, const std::vector<Dimension>& within) {
  std::map<Place, std::vector<std::uint32_t>> by_rest;
  for (std::uint32_t rank = 0; rank < places.size(); ++rank) {
    Place rest = places[rank];
    for (const Dimension dimension : within) rest.erase(dimension);
    by_rest[rest].push_back(rank);
  }
  Lists result;
  for (const auto& [rest, group] : by_rest) result.push_back(group);
  std::ranges::sort(result);
  return result;
}

}  // namespace

TEST_CASE("a layout that fits has no problems", "[layout]") {
  CHECK(problems(fitting(), llama_8b(), sequence, 64).empty());
  CHECK(problems(Layout{}, llama_8b(), sequence, 0).empty());
  CHECK(ranks(fitting()) == 64);
  CHECK(micro_batches(fitting()) == 32);
}

TEST_CASE("odd sizes fit odd models", "[layout]") {
  Model model = llama_8b();
  model.layers = 13;
  model.attention.heads = 21;
  model.attention.kv_heads = 7;
  model.ffn_hidden = 1155;
  Layout layout;
  layout.tensor = 7;
  layout.context = 3;
  layout.pipeline = 5;
  layout.data = 11;
  layout.micro_batch = 3;
  layout.global_batch = 11 * 3 * 13;
  CHECK(problems(layout, model, 4200, 1155).empty());
  CHECK(micro_batches(layout) == 13);
  const Groups all = groups(layout);
  check_partition(all.tensor, 1155, 7);
  check_partition(all.context, 1155, 3);
  check_partition(all.pipeline, 1155, 5);
  check_partition(all.data, 1155, 11);
  check_partition(all.data_context, 1155, 33);
}

TEST_CASE("sizes of zero are refused before all else", "[layout]") {
  CHECK(reasons([](Layout& l, Model&) {
          l.tensor = 0;
          l.data = 0;
        }) == Strings{"tensor is 0 and must be at least 1", "data is 0 and must be at least 1"});
  CHECK(reasons([](Layout&, Model&) {}, llama_8b(), 0) ==
        Strings{"sequence is 0 and must be at least 1"});
  CHECK(reasons([](Layout& l, Model&) { l.order[0] = Data; }) ==
        Strings{"the rank order names data twice and must name each of the five dimensions once"});
  CHECK(reasons([](Layout& l, Model&) { l.tensor = l.context = l.data = 4096; }) ==
        Strings{"tensor x context x pipeline x data are more than 4294967295 ranks"});
  CHECK(reasons([](Layout& l, Model&) { l.virtual_stages = 4000000000; }) ==
        Strings{"pipeline x virtual stages are more than 4294967295 chunks"});
}

TEST_CASE("the ranks are the GPUs", "[layout]") {
  const auto same = [](Layout&, Model&) {};
  CHECK(reasons(same, llama_8b(), sequence, 96) ==
        Strings{"tensor 4 x context 1 x pipeline 4 x data 4 are 64 ranks, but there are 96 GPUs; "
                "data 6 uses them all"});
  CHECK(reasons(same, llama_8b(), sequence, 65) ==
        Strings{"tensor 4 x context 1 x pipeline 4 x data 4 are 64 ranks, but there are 65 GPUs"});
}

TEST_CASE("tensor divides what it shards", "[layout]") {
  const auto tensor = [](std::uint32_t t) { return [t](Layout& l, Model&) { l.tensor = t; }; };
  // 6: not the heads, not the kv heads, not the feed-forward size, not the sequence.
  CHECK(reasons(tensor(6)) ==
        Strings{"tensor 6 does not divide the 32 attention heads",
                "tensor 6 neither divides the 8 key-value heads nor is a multiple of them",
                "tensor 6 does not divide the feed-forward size 14336",
                "sequence 4096 is not a multiple of tensor 6 x context 1 = 6, as sequence "
                "parallelism needs"});
  // Key-value heads are replicated.
  CHECK(reasons(tensor(16)).empty());
  CHECK(reasons(
            [](Layout& l, Model& m) {
              l.expert_tensor = 4;
              m.experts->hidden = 2049;
              m.experts->shared_hidden = 2049;
            },
            expert_model()) == Strings{"tensor 4 does not divide the shared experts' size 2049",
                                       "expert tensor 4 does not divide the experts' size 2049"});
  // All layers have experts: the dense size is nobody's.
  CHECK(reasons([](Layout&, Model& m) { m.ffn_hidden = 3; }, expert_model()).empty());
  // Latent attention has no key-value heads to shard.
  CHECK(reasons([](Layout& l, Model& m) {
          l.tensor = 16;
          m.attention.kv_heads = 3;
          m.attention.latent = LatentAttention{};
        }).empty());
}

TEST_CASE("the vocabulary is padded, or must divide", "[layout]") {
  CHECK(reasons([](Layout& l, Model& m) {
          l.vocabulary_multiple = 0;
          m.vocabulary = 50257;
        }) == Strings{"tensor 4 does not divide the vocabulary of 50257, which is not padded"});
  CHECK(reasons([](Layout& l, Model&) { l.vocabulary_multiple = 4000000000; }) ==
        Strings{"vocabulary multiple 4000000000 x tensor 4 pads the vocabulary of 128256 beyond "
                "all bounds"});
  Model model = llama_8b();
  model.vocabulary = 50257;
  Layout layout;
  layout.tensor = 8;
  CHECK(padded_vocabulary(layout, model) == 51200);
  layout.vocabulary_multiple = 1;
  CHECK(padded_vocabulary(layout, model) == 50264);
  layout.vocabulary_multiple = 0;
  CHECK(padded_vocabulary(layout, model) == 50257);
}

TEST_CASE("the sequence is cut evenly", "[layout]") {
  CHECK(reasons([](Layout& l, Model&) { l.tensor = 1; }) ==
        Strings{"sequence parallelism needs tensor above 1, and tensor is 1"});
  CHECK(reasons([](Layout& l, Model&) { l.sequence_parallel = false; }, expert_model()) ==
        Strings{"experts with tensor 4 above 1 need sequence parallelism: without it every rank "
                "would send the same tokens"});
  CHECK(reasons([](Layout& l, Model&) { l.context = 8; }, llama_8b(), 4104) ==
        Strings{"sequence 4104 is not a multiple of 2 x context 8 = 16, which balances causal "
                "attention"});
  CHECK(reasons([](Layout&, Model& m) { m.positions = 2048; }) ==
        Strings{"sequence 4096 is longer than the 2048 learned position embeddings"});
}

TEST_CASE("context parallelism exchanges what it can", "[layout]") {
  CHECK(reasons([](Layout& l, Model& m) {
          l.context = 2;
          m.attention.window = 1024;
        }) == Strings{"a ring over context 2 cannot serve a sliding window of 1024; all-gather and "
                      "all-to-all can"});
  CHECK(reasons([](Layout& l, Model& m) {
          l.context = 2;
          l.exchange = ContextExchange::AllGather;
          m.attention.window = 1024;
        }).empty());
  CHECK(reasons([](Layout& l, Model&) {
          l.context = 16;
          l.exchange = ContextExchange::AllToAll;
        }) ==
        Strings{
            "an all-to-all over context 16 does not divide the 8 attention heads of a tensor rank",
            "an all-to-all over context 16 does not divide the 2 key-value heads of a tensor "
            "rank"});
}

TEST_CASE("layers fill the chunks of the schedule", "[layout]") {
  CHECK(reasons([](Layout& l, Model&) { l.virtual_stages = 2; }) ==
        Strings{"1f1b needs 1 virtual stage, not 2; interleaved-1f1b takes more"});
  CHECK(reasons([](Layout& l, Model&) { l.schedule = PipelineSchedule::ZeroBubbleV; }) ==
        Strings{"zb-v needs 2 virtual stages, not 1"});
  CHECK(reasons([](Layout& l, Model&) { l.schedule = PipelineSchedule::Interleaved; }) ==
        Strings{"an interleaved schedule needs pipeline and virtual stages of 2 or more, not 4 and "
                "1"});
  CHECK(reasons([](Layout& l, Model&) { l.pipeline = 33; }) ==
        Strings{"pipeline 33 x virtual stages 1 are 33 chunks, but there are 32 layers"});
  CHECK(reasons([](Layout& l, Model&) {
          l.chunk_layers = {8, 8, 16};
        }) == Strings{"3 chunks are given layers, but pipeline 4 x virtual stages 1 are 4"});
  CHECK(reasons([](Layout& l, Model&) {
          l.chunk_layers = {0, 0, 30, 0};
        }) ==
        Strings{"chunk 1 has no layers; only the first and the last of 4 can do with an embedding "
                "or a head",
                "the chunks' layers are 30 together, but the model has 32"});
  CHECK(reasons([](Layout& l, Model&) { l.chunk_layers = {0, 16, 16, 0}; }).empty());
}

TEST_CASE("dualpipes need pairs of stages and micro-batches that fill them", "[layout]") {
  const auto dual = [](PipelineSchedule schedule, std::uint32_t p, std::uint32_t v,
                       std::uint32_t m) {
    return [=](Layout& l, Model&) {
      l.schedule = schedule;
      l.pipeline = p;
      l.virtual_stages = v;
      l.global_batch = m * l.data * l.micro_batch;
    };
  };
  using enum PipelineSchedule;
  CHECK(reasons(dual(DualPipe, 4, 1, 8)).empty());
  CHECK(reasons(dual(DualPipeV, 4, 2, 9)).empty());
  CHECK(reasons(dual(DualPipe, 4, 2, 8)) ==
        Strings{"dualpipe needs 1 virtual stage, not 2; its second chunk is the mirror stage"});
  CHECK(reasons(dual(DualPipeV, 4, 1, 8)) == Strings{"dualpipe-v needs 2 virtual stages, not 1"});
  CHECK(reasons(dual(DualPipe, 5, 1, 10)) ==
        Strings{"dualpipe needs an even pipeline, as stages are paired from both ends, not 5"});
  CHECK(reasons([&](Layout& l, Model& m) {
          dual(DualPipe, 4, 1, 6)(l, m);
          l.data = 1;
          l.global_batch = 6;
        }) == Strings{"6 micro-batches are fewer than 2 x pipeline 4 = 8, which dualpipe needs: "
                      "global batch 8 has them"});
  CHECK(reasons([&](Layout& l, Model& m) {
          dual(DualPipe, 4, 1, 9)(l, m);
          l.data = 1;
          l.global_batch = 9;
        }) == Strings{"9 micro-batches cannot enter at both ends in equal numbers, as dualpipe "
                      "needs: global batch 8 or 10 goes"});
  CHECK(reasons([&](Layout& l, Model& m) {
          dual(DualPipe, 4, 1, 8)(l, m);
          l.sharding = Sharding::Parameters;
        }) == Strings{"dualpipe adds gradients up over a whole step and goes with zero-1 at most, "
                      "not zero-3"});
}

TEST_CASE("the global batch is whole micro-batches of every replica", "[layout]") {
  CHECK(reasons([](Layout& l, Model&) {
          l.global_batch = 100;
          l.micro_batch = 2;
        }) == Strings{"global batch 100 is not a multiple of data 4 x micro-batch 2 = 8: 96 or 104 "
                      "is"});
  CHECK(reasons([](Layout& l, Model&) { l.global_batch = 3; }) ==
        Strings{"global batch 3 is not a multiple of data 4 x micro-batch 1 = 4: 4 is"});
}

TEST_CASE("an interleaved schedule wants whole groups of micro-batches", "[layout]") {
  const auto interleaved = [](std::uint32_t batch, std::uint32_t group) {
    return reasons([=](Layout& l, Model&) {
      l.schedule = PipelineSchedule::Interleaved;
      l.virtual_stages = 2;
      l.global_batch = batch;
      l.micro_batch_group = group;
    });
  };
  CHECK(interleaved(128, 0).empty());
  CHECK(interleaved(40, 0) ==
        Strings{"10 micro-batches in groups of 4 leave 2, fewer than pipeline 4: global batch 32 "
                "or 48 goes with this interleaved schedule"});
  CHECK(interleaved(8, 0) ==
        Strings{"2 micro-batches in groups of 4 leave 2, fewer than pipeline 4: global batch 16 "
                "goes with this interleaved schedule"});
  // Larger groups take other numbers.
  CHECK(interleaved(40, 5).empty());
  CHECK(interleaved(40, 6).empty());
  CHECK(interleaved(40, 3) ==
        Strings{"a micro-batch group of 3 is not between pipeline 4 and the 10 micro-batches"});
  CHECK(interleaved(40, 11) ==
        Strings{"a micro-batch group of 11 is not between pipeline 4 and the 10 micro-batches"});
}

TEST_CASE("experts spread over the ranks of a stage", "[layout]") {
  CHECK(reasons([](Layout& l, Model&) {
          l.expert = 2;
          l.expert_tensor = 2;
        }) == Strings{"expert is 2, but the model has no experts",
                      "expert tensor is 2, but the model has no experts"});
  CHECK(reasons([](Layout& l, Model&) { l.expert = 16; }, expert_model()).empty());
  CHECK(reasons(
            [](Layout& l, Model& m) {
              l.expert = 8;
              m.experts->count = 12;
            },
            expert_model()) == Strings{"expert 8 does not divide the 12 experts"});
  CHECK(reasons(
            [](Layout& l, Model&) {
              l.expert = 16;
              l.expert_tensor = 2;
            },
            expert_model()) ==
        Strings{"expert 16 x expert tensor 2 = 32 does not divide tensor 4 x context 1 x data 4 = "
                "16"});
  CHECK(reasons(
            [](Layout& l, Model&) {
              l.order = {Tensor, Pipeline, Context, Expert, Data};
            },
            expert_model()) ==
        Strings{"in this rank order pipeline stages lie 4 ranks apart for dense parts and 1 for "
                "experts; with pipeline last they always agree"});
}

TEST_CASE("shards lie in groups that divide the replicas", "[layout]") {
  CHECK(reasons([](Layout& l, Model&) { l.keep_gathered = true; }) ==
        Strings{"parameters can be kept gathered only under zero-3, not zero-1"});
  CHECK(reasons([](Layout& l, Model&) {
          l.sharding = Sharding::None;
          l.shard_group = 2;
        }) == Strings{"shard groups of 2 are given, but nothing is sharded"});
  CHECK(reasons([](Layout& l, Model&) { l.shard_group = 3; }) ==
        Strings{"shard groups of 3 do not divide data 4 x context 1 = 4"});
  CHECK(reasons(
            [](Layout& l, Model&) {
              l.expert = 16;
              l.shard_group = 2;
            },
            expert_model()) ==
        Strings{"2 shard groups do not divide the 1 ranks that hold the same experts"});
  // zero-3 goes with pipelines.
  CHECK(reasons([](Layout& l, Model&) { l.sharding = Sharding::Parameters; }).empty());
}

TEST_CASE("states are shared by the ranks of a shard group", "[layout]") {
  Layout layout = fitting();
  layout.context = 2;
  layout.expert = 4;
  CHECK(expert_data(layout) == 8);
  CHECK(shard_ranks(layout) == 8);
  CHECK(expert_shard_ranks(layout) == 8);
  layout.shard_group = 4;
  CHECK(shard_ranks(layout) == 4);
  CHECK(expert_shard_ranks(layout) == 4);
  layout.sharding = Sharding::None;
  layout.shard_group = 0;
  CHECK(shard_ranks(layout) == 1);
  CHECK(expert_shard_ranks(layout) == 1);
}

TEST_CASE("modules to recompute are known and there", "[layout]") {
  const auto modules = [](Recompute recompute, Strings names) {
    return reasons([&](Layout& l, Model&) {
      l.recompute = recompute;
      l.recompute_modules = names;
    });
  };
  CHECK(modules(Recompute::Selective, {"attention", "norm", "mlp"}).empty());
  CHECK(modules(Recompute::Full, {"norm"}) ==
        Strings{"modules to recompute are named, but recompute is full, not selective"});
  CHECK(modules(Recompute::Selective, {"atention"}) ==
        Strings{"\"atention\" is not a module to recompute, did you mean \"attention\"?: expected "
                "one of attention, norm, activation, mlp, shared_experts, moe, mla_up_proj, "
                "second_matrices"});
  CHECK(modules(Recompute::Selective, {"moe", "mla_up_proj"}) ==
        Strings{"\"moe\" cannot be recomputed: the model has no experts",
                "\"mla_up_proj\" cannot be recomputed: the model has no latent attention"});
}

TEST_CASE("layers go to chunks as evenly as they can, or as told", "[layout]") {
  Layout layout = fitting();
  Model model = llama_8b();
  CHECK(layers_of_chunks(layout, model) == std::vector<std::uint32_t>{8, 8, 8, 8});
  model.layers = 126;
  layout.pipeline = 16;
  CHECK(layers_of_chunks(layout, model) ==
        std::vector<std::uint32_t>{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 6});
  // Llama 3 405B on 16 stages: one layer fewer on the first and the last.
  std::vector<std::uint32_t> lighter(16, 8);
  lighter.front() = lighter.back() = 7;
  layout.chunk_layers = lighter;
  CHECK(problems(layout, model, sequence, 0).empty());
  CHECK(layers_of_chunks(layout, model) == lighter);
}

TEST_CASE("neighbouring ranks share a tensor group, and stages lie farthest apart", "[layout]") {
  Layout layout;
  layout.tensor = 2;
  layout.context = 2;
  layout.data = 2;
  layout.pipeline = 2;
  const Groups all = groups(layout);
  CHECK(all.tensor == Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(all.context == Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(all.data == Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}});
  CHECK(all.data_context == Lists{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}});
  CHECK(all.pipeline ==
        Lists{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}});
}

TEST_CASE("pipelines may lie inside data parallelism", "[layout]") {
  Layout layout;
  layout.tensor = 2;
  layout.data = 2;
  layout.pipeline = 2;
  layout.order = {Tensor, Context, Expert, Pipeline, Data};
  const Groups all = groups(layout);
  CHECK(all.pipeline == Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(all.data == Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("experts take neighbouring ranks across tensor, context and data", "[layout]") {
  Layout layout;
  layout.tensor = 2;
  layout.context = 1;
  layout.data = 4;
  layout.pipeline = 2;
  layout.expert = 4;
  Groups all = groups(layout);
  CHECK(all.expert == Lists{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}});
  CHECK(all.expert_data ==
        Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}});
  layout.expert_tensor = 2;
  all = groups(layout);
  CHECK(all.expert_tensor == all.tensor);
  CHECK(all.expert == Lists{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}});
}

TEST_CASE("groups agree with places counted by hand, in every order", "[layout]") {
  std::array<Dimension, 5> order = {Tensor, Context, Expert, Data, Pipeline};
  do {
    for (const auto& [t, c, p, dp, e, etp] :
         std::vector<std::array<std::uint32_t, 6>>{{1, 1, 1, 1, 1, 1},
                                                   {2, 1, 3, 2, 2, 1},
                                                   {2, 3, 1, 4, 4, 3},
                                                   {4, 2, 2, 3, 6, 2},
                                                   {1, 5, 2, 1, 5, 1},
                                                   {3, 1, 2, 2, 1, 1}}) {
      Layout layout;
      layout.tensor = t;
      layout.context = c;
      layout.pipeline = p;
      layout.data = dp;
      layout.expert = e;
      layout.expert_tensor = etp;
      layout.order = order;
      const auto dense =
          places(order, {{Tensor, t}, {Context, c}, {Expert, 1}, {Data, dp}, {Pipeline, p}});
      const std::uint32_t edp = t * c * dp / (e * etp);
      const auto experts =
          places(order, {{Tensor, etp}, {Context, 1}, {Expert, e}, {Data, edp}, {Pipeline, p}});
      const Groups all = groups(layout);
      REQUIRE(all.tensor == groups_by_places(dense, {Tensor}));
      REQUIRE(all.context == groups_by_places(dense, {Context}));
      REQUIRE(all.pipeline == groups_by_places(dense, {Pipeline}));
      REQUIRE(all.data == groups_by_places(dense, {Data}));
      REQUIRE(all.data_context == groups_by_places(dense, {Data, Context}));
      REQUIRE(all.expert == groups_by_places(experts, {Expert}));
      REQUIRE(all.expert_tensor == groups_by_places(experts, {Tensor}));
      REQUIRE(all.expert_data == groups_by_places(experts, {Data}));
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("names of layouts are those of files", "[layout]") {
  CHECK(to_string(Sharding::None) == "none");
  CHECK(to_string(Sharding::Optimizer) == "zero-1");
  CHECK(to_string(Sharding::Gradients) == "zero-2");
  CHECK(to_string(Sharding::Parameters) == "zero-3");
  CHECK(to_string(ContextExchange::Ring) == "ring");
  CHECK(to_string(ContextExchange::AllGather) == "all-gather");
  CHECK(to_string(ContextExchange::AllToAll) == "all-to-all");
  CHECK(to_string(Recompute::None) == "none");
  CHECK(to_string(Recompute::Selective) == "selective");
  CHECK(to_string(Recompute::Full) == "full");
  CHECK(to_string(Tensor) == "tensor");
  CHECK(to_string(Pipeline) == "pipeline");
}
