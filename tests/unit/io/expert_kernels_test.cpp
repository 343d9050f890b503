#include <filesystem>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/expert_kernels_reader.hpp"
#include "support/schema.hpp"

using namespace flyover;
using namespace flyover::io;
using namespace flyover::literals;
using Catch::Matchers::Contains;

namespace {

std::string text_of_shipped(const std::string& name) {
  return test::text_of(std::filesystem::path(FLYOVER_SOURCE_DIR) / "configs" / "moe" /
                       (name + ".json"));
}

// deepep-v1 with a merge patch over it.
ExpertKernels patched(const std::string& patch, ExpertMode mode = ExpertMode::Normal) {
  nlohmann::json whole = nlohmann::json::parse(text_of_shipped("deepep-v1"));
  whole.merge_patch(nlohmann::json::parse(patch));
  return read_expert_kernels(Document::parse("ours.json", whole.dump(1)), mode);
}

}  // namespace

TEST_CASE("shipped expert kernels are read and fit their schema", "[moe][schema]") {
  const test::Schema schema("expert-kernels.schema.json");
  CHECK(expert_kernels_names() ==
        std::vector<std::string>{"deepep-v1", "deepep-v1-2025-02", "deepep-v2", "megamoe"});
  for (const std::string& name : expert_kernels_names()) {
    CAPTURE(name);
    CHECK(read_expert_kernels(expert_kernels_document(name), ExpertMode::Nccl).name == name);
    CHECK(schema.problems(text_of_shipped(name)).empty());
  }
  CHECK_FALSE(schema.accepts(R"({"name": "half"})"));
  CHECK_FALSE(schema.accepts(
      R"({"extends": "deepep-v1", "name": "x", "modes": {"normal": {"start": {"mixed": 3, "source": "s"}}}})"));
  CHECK(schema.accepts(R"({"extends": "deepep-v1", "name": "ours"})"));
}

TEST_CASE("kernels are those of the mode that is asked for", "[moe]") {
  const Document v1 = expert_kernels_document("deepep-v1");
  const ExpertKernels normal = read_expert_kernels(v1, ExpertMode::Normal);
  CHECK(normal.name == "deepep-v1");
  CHECK(normal.sms_per_channel == 2);
  CHECK(normal.header == 8);
  CHECK(normal.per_choice == 8);
  CHECK(normal.ring_tokens == 128);
  CHECK(normal.most_ranks == 160);
  CHECK(normal.chunks.size() == 3);
  CHECK(normal.notify == 50us);
  CHECK(normal.nvlink.front().links == "nvlink4");
  CHECK(normal.overlapped_cached_dispatch == 0.77);
  const ExpertKernels low_latency = read_expert_kernels(v1, ExpertMode::LowLatency);
  CHECK(low_latency.sms == 128);
  CHECK(low_latency.header == 16);
  CHECK(low_latency.mixed_start == 10us);
  CHECK(low_latency.overlapped_dispatch == 1);

  // What the first release does not state it has from the current one.
  const ExpertKernels first =
      read_expert_kernels(expert_kernels_document("deepep-v1-2025-02"), ExpertMode::Normal);
  CHECK(first.post == 11500ns);
  CHECK(first.ring_tokens == 128);
  CHECK(first.sm_write_GBps == 36);

  const ExpertKernels fused =
      read_expert_kernels(expert_kernels_document("megamoe"), ExpertMode::Fused);
  CHECK(fused.weight_bytes == 0.53125);
  CHECK(fused.most_ranks == 72);
}

TEST_CASE("a library without kernels for a mode says which it has", "[moe]") {
  CHECK_THROWS_WITH(
      read_expert_kernels(expert_kernels_document("deepep-v2"), ExpertMode::LowLatency),
      Contains("/modes: deepep-v2 has no low-latency kernels; it has normal, direct"));
  CHECK_THROWS_WITH(expert_kernels_document("deepep-v3"),
                    Contains("no expert kernel library \"deepep-v3\"") && Contains("deepep-v"));
}

TEST_CASE("impossible numbers of kernels are refused at their place", "[moe]") {
  CHECK_THROWS_WITH(patched(R"({"modes": {"normal": {"nvlink": [{"dispatch": 1.2, "combine": 1,
                                                                 "source": "s"}]}}})"),
                    Contains("/modes/normal/nvlink/0/dispatch") && Contains("at most 1"));
  CHECK_THROWS_WITH(patched(R"({"modes": {"normal": {"start": {"source": ""}}}})"),
                    Contains("/modes/normal/start/source") && Contains("come from"));
  CHECK_THROWS_WITH(patched(R"({"modes": {"normal": {"writes": {"pots": "1 us"}}}})"),
                    Contains("did you mean \"post\""));
  CHECK_THROWS_WITH(patched(R"({"modes": {"normal": {"writes": {"chunks": [
                  {"ranks": 16, "dispatch": 8, "combine": 8},
                  {"ranks": 16, "dispatch": 8, "combine": 8}]}}}})"),
                    Contains("/modes/normal/writes/chunks/1/ranks") && Contains("more ranks"));
  CHECK_THROWS_WITH(patched(R"({"modes": {"normal": {"sms": {"count": null}}}})"),
                    Contains("\"count\""));
  CHECK_THROWS_WITH(patched(R"({"format": "flyover-expert-kernels-2"})"),
                    Contains("expected \"flyover-expert-kernels-1\""));
  // Errors in other modes show too.
  CHECK_THROWS_WITH(patched(R"({"modes": {"low-latency": {"sms": {"count": 0}}}})"),
                    Contains("/modes/low-latency/sms/count"));
}
