#include "flyover/study/layout_space.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"

using namespace flyover;

namespace {

Model small_model() {
  Model model;
  model.layers = 6;
  model.hidden = 1024;
  model.attention.heads = 8;
  model.attention.kv_heads = 4;
  model.attention.head_dim = 128;
  model.ffn_hidden = 4096;
  model.vocabulary = 32000;
  return model;
}

Model expert_model() {
  Model model = small_model();
  model.experts = Experts{};
  model.experts->count = 8;
  model.experts->chosen = 2;
  model.experts->hidden = 2048;
  return model;
}

LayoutSearch search_of(Model model, std::uint32_t gpus, std::uint32_t batch) {
  return {.model = std::move(model),
          .sequence = 8192,
          .gpus = gpus,
          .global_batch = batch,
          .domain = 4,
          .sequence_parallel = true,
          .flash_attention = true,
          .choices = {}};
}

std::vector<Layout> all_of(const LayoutSpace& space, Refusals& refused) {
  std::vector<Layout> layouts;
  for (const Layout& family : space.families(refused)) space.variants(family, layouts, refused);
  return layouts;
}

}  // namespace

TEST_CASE("a space has only layouts without problems, each once", "[plan]") {
  const std::uint32_t gpus = GENERATE(1U, 6U, 8U, 16U);
  CAPTURE(gpus);
  for (const Model& model : {small_model(), expert_model()}) {
    const LayoutSpace space(search_of(model, gpus, 48));
    Refusals refused;
    const std::vector<Layout> layouts = all_of(space, refused);
    REQUIRE_FALSE(layouts.empty());
    std::set<std::string> words;
    for (const Layout& layout : layouts) {
      REQUIRE(problems(layout, model, 8192, gpus).empty());
      REQUIRE(ranks(layout) == gpus);
      CHECK(layout.tensor <= 4);
      CHECK(words.insert(layout_words(layout)).second);
    }
    Refusals again;
    CHECK(all_of(space, again).size() == layouts.size());
    CHECK(again.layouts() == refused.layouts());
  }
}

// Every axis is checked alone; here all combinations are checked together.
TEST_CASE("checking axes one by one refuses what checking combinations refuses", "[plan]") {
  const std::uint32_t gpus = 16;
  const Model model = expert_model();
  LayoutSearch search = search_of(model, gpus, 48);
  search.choices.tensor = {1, 2};
  search.choices.pipeline = {1, 2, 4, 8};
  search.choices.virtual_stages = {2, 3};
  search.choices.micro_batch = {1, 2, 3};
  search.choices.expert = {1, 2, 8};
  search.choices.expert_tensor = {1};
  search.choices.shard_group = {0, 2, 4};
  search.choices.sharding = {Sharding::Optimizer};
  search.choices.recompute = {Recompute::None};
  search.choices.exchanges = {ContextExchange::Ring, ContextExchange::AllToAll};
  search.choices.schedules = {PipelineSchedule::OneForwardOneBackward,
                              PipelineSchedule::Interleaved};
  const LayoutSpace space(search);
  Refusals refused;
  const std::vector<Layout> layouts = all_of(space, refused);

  std::set<std::string> expected;
  std::uint64_t impossible = 0;
  for (const Layout& family : space.families(refused)) {
    for (const std::uint32_t b : {1U, 2U, 3U}) {
      for (const std::uint32_t v : {1U, 2U, 3U}) {
        for (const std::uint32_t group : {0U, 2U, 4U}) {
          for (const ContextExchange exchange :
               {ContextExchange::Ring, ContextExchange::AllToAll}) {
            Layout layout = family;
            if (v > 1 && layout.pipeline == 1) continue;
            const bool alone = layout.context * layout.data == 1;
            if (alone && group != 0) continue;
            if (layout.context == 1 && exchange != ContextExchange::Ring) continue;
            layout.micro_batch = b;
            layout.virtual_stages = v;
            if (v > 1) layout.schedule = PipelineSchedule::Interleaved;
            layout.sharding = alone ? Sharding::None : Sharding::Optimizer;
            layout.shard_group = group;
            layout.exchange = exchange;
            if (problems(layout, model, 8192, gpus).empty()) {
              expected.insert(layout_words(layout));
            } else {
              ++impossible;
            }
          }
        }
      }
    }
  }
  std::set<std::string> found;
  for (const Layout& layout : layouts) {
    if (layout.chunk_layers.empty()) found.insert(layout_words(layout));
  }
  CHECK(found == expected);
  CHECK(impossible > 0);
  CHECK(refused.layouts() >= impossible);
}

TEST_CASE("choices restrict a space to what they state", "[plan]") {
  LayoutSearch search = search_of(small_model(), 16, 64);
  search.choices.tensor = {2};
  search.choices.pipeline = {1, 2};
  search.choices.sharding = {Sharding::Parameters};
  search.choices.recompute = {Recompute::Full};
  search.choices.micro_batch = {2};
  Refusals refused;
  const std::vector<Layout> layouts = all_of(LayoutSpace(search), refused);
  REQUIRE_FALSE(layouts.empty());
  for (const Layout& layout : layouts) {
    CHECK(layout.tensor == 2);
    CHECK(layout.sequence_parallel);
    CHECK(layout.pipeline <= 2);
    CHECK(layout.sharding == Sharding::Parameters);
    CHECK(layout.recompute == Recompute::Full);
    CHECK(layout.micro_batch == 2);
  }
  search.choices.micro_batch = {0};
  CHECK_THROWS_WITH(LayoutSpace(search), "micro-batch: sizes are 1 or more, got 0");
}

TEST_CASE("a stated size that does not divide the GPUs is refused in words", "[plan]") {
  LayoutSearch search = search_of(small_model(), 16, 64);
  search.choices.tensor = {3};
  search.choices.pipeline = {1};
  Refusals refused(true);
  CHECK(LayoutSpace(search).families(refused).empty());
  REQUIRE(refused.kinds().size() == 1);
  CHECK(refused.kinds().front().example_reason ==
        "tensor 3 x context 1 x pipeline 1 = 3 does not divide 16 GPUs");
  CHECK(refused.layouts() == 3);  // Contexts of 1, 2 and 4.
  CHECK(refused.all().size() == 3);
}

TEST_CASE("context parallelism waits for sequences that are long enough", "[plan]") {
  const auto largest = [](std::uint32_t sequence, std::uint32_t most) {
    LayoutSearch search = search_of(small_model(), 64, 64);
    search.sequence = sequence;
    search.choices.most_context = most;
    Refusals refused;
    std::uint32_t context = 0;
    for (const Layout& family : LayoutSpace(search).families(refused)) {
      context = std::max(context, family.context);
    }
    return context;
  };
  CHECK(largest(2048, 16) == 1);
  CHECK(largest(8192, 16) == 4);
  CHECK(largest(131072, 16) == 16);
  CHECK(largest(131072, 8) == 8);
}

TEST_CASE("the ends of a pipeline may have a layer less, so that 126 layers fill 128 chunks",
          "[plan]") {
  Model model = small_model();
  model.layers = 14;
  LayoutSearch search = search_of(model, 8, 64);
  search.choices.pipeline = {4};
  Refusals refused;
  bool found = false;
  for (const Layout& layout : all_of(LayoutSpace(search), refused)) {
    if (layout.virtual_stages != 4 || layout.chunk_layers.empty()) continue;
    found = true;
    CHECK(layout.chunk_layers.front() == 0);
    CHECK(layout.chunk_layers[1] == 1);
    CHECK(layout.chunk_layers.back() == 0);
  }
  CHECK(found);
}

TEST_CASE("reasons that differ in numbers alone are one kind", "[plan]") {
  Layout layout;
  layout.tensor = 8;
  Refusals refused;
  refused.add(layout, "tensor 8 does not divide the 12 attention heads", 3);
  layout.tensor = 16;
  refused.add(layout, "tensor 16 does not divide the 12 attention heads", 4);
  Refusals more;
  more.add(layout, "sequence 3 is odd", 1);
  refused.add(std::move(more));
  CHECK(refused.layouts() == 8);
  const std::vector<Refusals::Kind> kinds = refused.kinds();
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].layouts == 7);
  CHECK(kinds[0].example_reason == "tensor 8 does not divide the 12 attention heads");
  CHECK(kinds[0].example == "tp 8 dp 1, zero-1, no sequence parallelism, micro-batch 1");
  CHECK(refused.all().empty());
}

TEST_CASE("a layout is told in words without what is off", "[plan]") {
  Layout layout;
  layout.tensor = 8;
  layout.sequence_parallel = true;
  layout.pipeline = 4;
  layout.virtual_stages = 5;
  layout.schedule = PipelineSchedule::Interleaved;
  layout.context = 2;
  layout.data = 16;
  layout.shard_group = 8;
  layout.recompute = Recompute::Selective;
  layout.recompute_modules = {"norm", "activation"};
  CHECK(layout_words(layout) ==
        "tp 8 cp 2 pp 4 vp 5 dp 16, interleaved-1f1b, cp ring, zero-1 in groups of 8, "
        "micro-batch 1, recompute of norm+activation");
}
