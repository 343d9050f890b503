#include "flyover/io/kernel_reader.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "support/schema.hpp"

namespace flyover::io {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

namespace {

KernelModel with(const Setting& setting) {
  Document document = kernel_document("2025");
  document.apply(setting);
  return read_kernels(document);
}

}  // namespace

TEST_CASE("shipped kernel models are read, and fit their schema", "[kernel][schema]") {
  const test::Schema schema("kernels.schema.json");
  for (const std::string& name : kernel_model_names()) {
    CAPTURE(name);
    CHECK(read_kernels(kernel_document(name)).name == name);
    const fs::path file = fs::path(FLYOVER_SOURCE_DIR) / "configs" / "kernels" / (name + ".json");
    CHECK(schema.problems(test::text_of(file)).empty());
  }
  CHECK(kernel_model_names() == std::vector<std::string>{"2021", "2023", "2025"});
  CHECK_FALSE(schema.accepts(R"({ "name": "half", "summary": "" })"));
  CHECK_FALSE(schema.accepts(
      R"({ "extends": "2025", "name": "x", "summary": "", "rates": [{ "share": 2, "source": "x" }] })"));
}

TEST_CASE("a kernel model of one's own states what differs", "[kernel]") {
  const fs::path file = fs::temp_directory_path() / "flyover_kernel_reader_test.json";
  std::ofstream(file) << R"({ "extends": "2025", "name": "mine", "summary": "slow starts",
      "launch": { "host": "9 us" } })";
  const KernelModel model = read_kernels(kernel_document(file.string()));
  CHECK(model.name == "mine");
  CHECK(model.launch == std::chrono::microseconds(9));
  CHECK(model.rates.size() == read_kernels(kernel_document("2025")).rates.size());

  std::ofstream(file) << R"({ "extends": "2052", "name": "mine" })";
  CHECK_THROWS_WITH(kernel_document(file.string()),
                    Contains("/extends: no kernels \"2052\"") && Contains("2021, 2023, 2025"));
  fs::remove(file);
}

TEST_CASE("unknown kernel models are named with those that there are", "[kernel]") {
  CHECK_THROWS_WITH(kernel_document("2026"), Contains("no kernels \"2026\", did you mean \"202") &&
                                                 Contains("There are 2021, 2023, 2025"));
}

TEST_CASE("a wrong kernel model is refused with the place and what would be right", "[kernel]") {
  CHECK_THROWS_WITH(with({"rates.0.share", "1.5"}),
                    Contains("expected a share above 0 and at most 1, got 1.5"));
  CHECK_THROWS_WITH(with({"rates.0.source", "\"\""}),
                    Contains("expected where the numbers come from"));
  CHECK_THROWS_WITH(with({"rates.0.shares", "1"}), Contains("did you mean \"share\""));
  CHECK_THROWS_WITH(with({"rates.0.fitted", R"({ "tail": { "spread": 1 } })"}),
                    Contains("the rule has no \"tail\""));
  CHECK_THROWS_WITH(with({"rates.1.where.types", R"(["fp9"])"}), Contains("fp8"));
  CHECK_THROWS_WITH(with({"tiles.0.tiles", "[]"}), Contains("expected at least one tile"));
  CHECK_THROWS_WITH(with({"tiles.0.tiles", "[[64]]"}), Contains("expected [rows, columns]"));
  CHECK_THROWS_WITH(with({"tiles.0.overlap", "0.5"}),
                    Contains("expected an exponent of 1 or more"));
  CHECK_THROWS_WITH(with({"tiles.0.half_intensity", "-1"}),
                    Contains("expected zero or more, got -1"));
  CHECK_THROWS_WITH(with({"memory.4.cache_gain", "0.5"}), Contains("expected a gain of 1 or more"));
  CHECK_THROWS_WITH(
      with({"attention.0.forward",
            R"([{ "head_dim": 64, "share": 0.5 }, { "head_dim": 64, "share": 0.5 }])"}),
      Contains("expected a larger head than at the point before"));
  CHECK_THROWS_WITH(with({"attention.0.backward", "[]"}), Contains("expected at least one point"));
  CHECK_THROWS_WITH(with({"default_attention.hopper", "\"fa4\""}), Contains("did you mean \"fa"));
  CHECK_THROWS_WITH(with({"format", "\"flyover-kernels-9\""}),
                    Contains("expected \"flyover-kernels-1\", got \"flyover-kernels-9\""));
}

TEST_CASE("measurements are kernels one after the other", "[kernel]") {
  const auto read = [](const std::string& kernels, const std::string& source = "here") {
    return read_kernel_measurements(Document::parse("m.json", R"({
      "format": "flyover-kernel-measurements-1", "sources": { "here": "a page" }, "gpus": {},
      "records": [{ "id": "1", "op": "gemm", "gpu": "h100", "time_us": 5, "source": ")" +
                                                                  source + R"(",
        "kernels": )" + kernels + "}] }"));
  };
  const auto records =
      read(R"([{ "kind": "gemm", "type": "bf16", "m": 1, "n": 2, "k": 3, "calls": 2 },
               { "kind": "attention", "type": "bf16", "tokens": 8, "heads": 2, "head_dim": 64 }])");
  REQUIRE(records.size() == 1);
  REQUIRE(records[0].kernels.size() == 3);
  CHECK(std::get<Gemm>(records[0].kernels[1]).k == 3);
  CHECK(std::get<AttentionKernel>(records[0].kernels[2]).kv_heads == 2);
  CHECK(records[0].gpu.name == "H100-SXM");

  CHECK_THROWS_WITH(read(R"([{ "kind": "gemm", "type": "bf16", "m": 0, "n": 2, "k": 3 }])"),
                    Contains("expected a whole number of at least 1, got 0"));
  CHECK_THROWS_WITH(read(R"([{ "kind": "gem", "type": "bf16" }])"), Contains("gemm"));
  CHECK_THROWS_WITH(read(R"([{ "kind": "attention", "type": "bf16", "tokens": 8, "kv_tokens": 4,
                               "heads": 2, "head_dim": 64 }])"),
                    Contains("expected at least as many keys as queries"));
  CHECK_THROWS_WITH(read("[]", "there"), Contains("\"there\" is not one of the sources"));
}

}  // namespace flyover::io
