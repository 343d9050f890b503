#include "flyover/io/stack_reader.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "support/schema.hpp"
#include "support/shared.hpp"

namespace flyover::io {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;

namespace {

SoftwareStack with(const Setting& setting, const std::string& stack = "nemo-25") {
  Document document = stack_document(stack);
  document.apply(setting);
  return read_stack(document);
}

}  // namespace

TEST_CASE("shipped stacks are read, fit their schema and name kernels that there are",
          "[stack][schema]") {
  const test::Schema schema("stack.schema.json");
  for (const std::string& name : stack_names()) {
    CAPTURE(name);
    const SoftwareStack stack = load_stack(name);
    CHECK(stack.name == name);
    CHECK(read_kernels(kernel_document(stack.kernels)).name == stack.kernels);
    CHECK(std::ranges::all_of(stack.message_slowdown, [](double times) { return times > 0; }));
    const fs::path file = fs::path(FLYOVER_SOURCE_DIR) / "configs" / "stacks" / (name + ".json");
    CHECK(schema.problems(test::text_of(file)).empty());
  }
  CHECK(shipped_stacks().size() == stack_names().size());
  CHECK(load_stack(default_stack()).name == "nemo-25");
  CHECK(load_stack(default_stack("cdna3")).name == "rocm-2025");
  CHECK_FALSE(schema.accepts(R"({ "name": "half" })"));
  CHECK_FALSE(schema.accepts(R"({ "extends": "nemo-25", "defaults": { "dropout": "yes" } })"));
  CHECK(schema.accepts(R"({ "extends": "nemo-25", "defaults": { "dropout": true } })"));
}

TEST_CASE("a stack's values are those of its file and of what it extends", "[stack]") {
  const SoftwareStack old = load_stack("megatron-2021");
  CHECK(old.kernels == "2021");
  CHECK(old.sharding == Sharding::None);
  CHECK(old.recompute == Recompute::Full);
  CHECK_FALSE(old.sequence_parallel);
  CHECK_FALSE(old.options.flash_attention);
  CHECK(old.options.fp32_gradients);
  CHECK_FALSE(old.overlap.gradients);
  // Fits change the numbers of shipped files.
  CHECK(with({"host.layer", "\"7 us\""}).layer_host == 7us);
  CHECK(with({"host.expert_layer", "\"8 us\""}).expert_layer_host == 8us);
  CHECK(with({"host.micro_batch", "\"9 us\""}).micro_batch_host == 9us);
  CHECK(with({"host.step", "\"3 ms\""}).step_host == 3ms);
  CHECK(with({"interference.contention", "0.25"}).contention == 0.25);
  CHECK(with({"interference.straggling", "0.01"}).straggling == 0.01);
  CHECK(with({"slowdowns.0.gemm", "1.5"}).slowdowns.front().gemm == 1.5);

  const SoftwareStack nemo = load_stack("nemo-26");
  CHECK(nemo.kernels == "2025");
  CHECK(nemo.sharding == Sharding::Optimizer);
  CHECK(nemo.recompute == Recompute::None);
  CHECK(nemo.sequence_parallel);
  CHECK(nemo.options.quantised_parameters);  // Of nemo-24.
  CHECK(nemo.overlap.tensor == TensorOverlap::Pipelined);
  CHECK(nemo.overlap.dispatch == ExpertDispatch::Fused);
  CHECK(nemo.overlap.bucket == Bytes{std::int64_t{400} << 20});

  const SoftwareStack titan = load_stack("torchtitan");
  CHECK(titan.sharding == Sharding::Parameters);
  CHECK(titan.keep_gathered);
  CHECK(titan.vocabulary_multiple == 1);
  CHECK(titan.recompute == Recompute::Selective);
  CHECK(titan.recompute_modules ==
        std::vector<std::string>{"norm", "activation", "second_matrices"});
}

TEST_CASE("a stack of one's own states what differs", "[stack]") {
  const fs::path file = fs::temp_directory_path() / "flyover_stack_reader_test.json";
  std::ofstream(file) << R"({ "extends": "nemo-25", "name": "mine", // ours
      "message_slowdown": { "dp": 1.7 }, "defaults": { "recompute": ["moe"], "optimizer": "sgd" } })";
  const SoftwareStack stack = load_stack(file.string());
  CHECK(stack.name == "mine");
  const auto slowdown = [&](GroupKind kind) {
    return stack.message_slowdown[static_cast<std::size_t>(kind)];
  };
  CHECK(slowdown(GroupKind::Shard) == 1.7);
  CHECK(slowdown(GroupKind::Tensor) ==
        load_stack("nemo-25").message_slowdown[static_cast<std::size_t>(GroupKind::Tensor)]);
  CHECK(stack.options.optimizer == Optimizer::Sgd);
  CHECK(stack.recompute_modules == std::vector<std::string>{"moe"});

  std::ofstream(file) << R"({ "extends": "nemo-52", "name": "mine" })";
  CHECK_THROWS_WITH(load_stack(file.string()),
                    Contains(":1:14: /extends: no stack \"nemo-52\", did you mean \"nemo-2") &&
                        Contains("There are automodel-2026"));
  fs::remove(file);
}

TEST_CASE("unknown stacks are named with those that there are", "[stack]") {
  CHECK_THROWS_WITH(stack_document("torchtitam"),
                    Contains("no stack \"torchtitam\", did you mean \"torchtitan\"? There are "
                             "automodel-2026, fsdp-2023"));
  CHECK_THROWS_WITH(stack_document("xyz"), Contains("no stack \"xyz\". There are automodel-2026"));
  CHECK_THROWS_WITH(stack_document("none/such.json"), Contains("none/such.json"));
}

TEST_CASE("a wrong stack is refused with the place and what would be right", "[stack]") {
  const auto refused = [](const Setting& setting, const std::string& message) {
    CAPTURE(setting.path, setting.value);
    CHECK_THROWS_WITH(with(setting), Contains("--set " + setting.path) && Contains(message));
  };
  refused({"format", "\"flyover-stack-9\""},
          "expected \"flyover-stack-1\", got \"flyover-stack-9\"");
  refused({"sumary", "1"}, "did you mean \"summary\"");
  refused({"date", "\"May 2024\""}, "expected a month such as \"2024-11\", got \"May 2024\"");
  refused({"date", "\"2024-13\""}, "expected a month such as \"2024-11\", got \"2024-13\"");
  refused({"kernels", "\"2052\""}, "did you mean \"202");
  refused({"source", "\"\""}, "expected where the stack is described");
  refused({"frameworks.0.name", "\"\""}, "expected how the framework's name begins");
  refused({"frameworks.0.release", "\"1\""}, "is not a known option");
  refused({"slowdowns.0.gem", "1"}, "did you mean \"gemm\"");
  refused({"slowdowns.0.gemm", "0"}, "above zero");
  refused({"slowdowns.0.source", "\"\""}, "expected where the numbers come from");
  refused({"slowdowns.0.where", R"({ "types": ["fp9"] })"}, "fp8");
  refused({"slowdowns", R"([{ "source": "x" }])"},
          "expected \"gemm\", \"grouped_gemm\", \"attention\" or \"elementwise\" in a rule");
  refused({"slowdowns", R"([{ "where": { "gpus": ["H100-SXM"] }, "gemm": 1, "source": "x" }])"},
          "expected a rule without \"where\" that states \"gemm\", \"attention\" and");
  refused({"host.layer", "100"}, "expected");
  refused({"host.fitted", R"({ "kernel": { "spread": 1 } })"}, "the rule has no \"kernel\"");
  refused({"message_slowdown.tp", "-1"}, "above zero");
  refused({"message_slowdown.ddp", "1"}, "did you mean \"dp\"");
  refused({"interference.contention", "1.5"}, "expected a share from 0 to 1, got 1.5");
  refused({"interference.straggling", "-0.1"}, "expected a share from 0 to 1, got -0.1");
  refused({"defaults.sharding", "\"zero-4\""}, "zero-");
  refused({"defaults.recompute", "\"all\""}, "none");
  refused({"defaults.recompute", "\"moe\""}, "modules stand in a list: [\"moe\"]");
  refused({"defaults.recompute", "3"},
          "expected \"none\", \"selective\", \"full\" or a list of modules (attention, norm,");
  refused({"defaults.recompute", R"(["mpl"])"}, "did you mean \"mlp\"");
  refused({"defaults.recompute", R"(["mlp", "mlp"])"}, "\"mlp\" is named twice");
  refused({"defaults.optimizer", "\"adamw\""}, "did you mean \"adam\"");
  refused({"defaults.expert_imbalance", "0.5"},
          "expected tokens of the fullest expert rank over the mean, 1 or more, got 0.5");
  refused({"defaults.vocabulary_multiple", "-1"}, "expected");
  refused({"defaults.overlap.tensor", "\"yes\""}, "pipelined");
  refused({"defaults.overlap.dispatch", "\"fuse\""}, "did you mean \"fused\"");
  refused({"defaults.overlap.bucket", "\"0 B\""}, "above zero");
  refused({"defaults.overlap.expert", "true"}, "did you mean \"experts\"");
  refused({"defaults.flash", "true"}, "is not a known option");
}

TEST_CASE("a stack that extends none states everything", "[stack][schema]") {
  const nlohmann::json whole = nlohmann::json::parse(
      test::text_of(fs::path(FLYOVER_SOURCE_DIR) / "configs" / "stacks" / "megatron-2021.json"));
  const auto without = [&](const std::string& pointer) {
    nlohmann::json copy = whole;
    const nlohmann::json::json_pointer place(pointer);
    copy[place.parent_pointer()].erase(place.back());
    return copy.dump();
  };
  const test::Schema schema("stack.schema.json");
  std::vector<std::string> members;
  for (const char* parent :
       {"", "/host", "/message_slowdown", "/interference", "/defaults", "/defaults/overlap"}) {
    for (const auto& [key, value] : whole[nlohmann::json::json_pointer(parent)].items()) {
      if (key == "fitted" || (std::string(parent) == "/defaults/overlap" && key == "source")) {
        continue;
      }
      members.push_back(std::string(parent) + "/" + key);
    }
  }
  CHECK(members.size() > 40);
  for (const std::string& member : members) {
    CAPTURE(member);
    const std::string text = without(member);
    CHECK_FALSE(schema.accepts(text));
    CHECK_THROWS_WITH(read_stack(Document::parse("s.json", text)),
                      Contains("\"" + member.substr(member.rfind('/') + 1) + "\""));
  }
}

TEST_CASE("every published result of quality A has one stack, none has two", "[stack][shared]") {
  const std::vector<SoftwareStack> stacks = shipped_stacks();
  const auto file = test::shared_material("training/results.json");
  if (!file) return;
  const nlohmann::json results = nlohmann::json::parse(test::text_of(*file));
  std::map<std::string, std::set<std::string>> without;
  for (const auto& record : results) {
    const std::string name = record["framework"]["name"];
    const std::string version = record["framework"].value("version", "");
    std::vector<std::string> found;
    for (const SoftwareStack& stack : stacks) {
      if (speaks_for(stack, name, version)) found.push_back(stack.name);
    }
    CAPTURE(name, version, found);
    CHECK(found.size() <= 1);
    if (found.empty()) without[record["quality"]].insert(name);
  }
  CHECK(without.count("A") == 0);
  CHECK(without.count("B") == 0);
  CHECK(without["C"].size() == 3);  // Two of graph networks, and Meta's own code of 2023.
}

}  // namespace flyover::io
