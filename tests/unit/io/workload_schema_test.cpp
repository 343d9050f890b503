// The schema that editors check a workload with, and the reader, are of one mind about structure.

#include <filesystem>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/document.hpp"
#include "flyover/io/training_reader.hpp"
#include "flyover/io/workload_reader.hpp"
#include "support/schema.hpp"

using namespace flyover;

namespace {

bool reader_accepts(const std::string& text, std::uint32_t gpus) {
  try {
    (void)io::read_workload(io::Document::parse("w.json", text), gpus);
    return true;
  } catch (const InputError& error) {
    UNSCOPED_INFO(error.what());
    return false;
  }
}

// One program of all eight ranks.
std::string with_op(const std::string& op) {
  return R"({"ranks": 8, "programs": [{"ranks": "all", "ops": [)" + op + "]}]}";
}
std::string with_collective(const std::string& collective) {
  return R"({"collectives": [)" + collective + "]}";
}

}  // namespace

TEST_CASE("schema and reader accept the same good workloads", "[workload][schema]") {
  const test::Schema schema("workload.schema.json");
  for (
      const std::string& text : {
          with_collective(
              R"({"op": "all_reduce", "bytes": "1 GiB", "group": "all", "repeat": 20})"),
          with_collective(R"({"op": "alltoall_perf", "bytes": "1e3 kB", "group": "0-3, 6"})"),
          with_collective(R"({"op": "reduce", "bytes": "8 bytes", "group": [3, 1], "root": 1})"),
          with_collective(R"({"op": "barrier", "group": ["0-3", [4, 5]], "comment": {"a": 1}})"),
          with_collective(R"({"op": "gather_perf", "bytes": "8B", "dtype": "fp8", "name": "x"})"),
          std::string(R"({"$schema": "x", "name": "n", "comment": 1, "ranks": 8,
             "groups": {"tp": [[0, 1], [2, 3]], "ep": "0-7", "comment": "c"},
             "collectives": [{"op": "barrier", "group": "tp"}]})"),
          with_op(R"({"op": "compute", "flops": "2.1 TFLOP", "bytes": "1.4 GB", "dtype": "bf16",
             "efficiency": 0.5, "memory_efficiency": 1})"),
          with_op(
              R"({"op": "compute", "duration": "1.5 µs", "id": "a", "name": "b", "stream": "c"})"),
          with_op(R"({"op": "copy", "bytes": "1 MiB", "after": []})"),
          with_op(
              R"({"op": "delay", "duration": "0 ps", "id": "x"}, {"op": "barrier", "after": "x"})"),
          with_op(R"({"op": "send", "bytes": "1 B", "peer": "+1", "wrap": true, "tag": "t"})"),
          with_op(R"({"op": "scatter", "bytes": "1 B", "group": "all", "root": 7, "dtype": "x"})"),
          std::string(R"({"ranks": "0-7", "programs": [{"name": "p", "ranks": [0], "repeat": 2,
             "ops": [{"op": "recv", "bytes": "1 B", "peer": 7}]}]})"),
      }) {
    CAPTURE(text);
    CHECK(schema.accepts(text));
    CHECK(reader_accepts(text, 8));
  }
}

TEST_CASE("schema and reader refuse the same malformed workloads", "[workload][schema]") {
  const test::Schema schema("workload.schema.json");
  for (const std::string& text : {
           std::string("{}"),
           std::string("[]"),
           std::string(R"({"collectives": []})"),
           std::string(R"({"collectives": [{"op": "barrier"}], "programs": []})"),
           std::string(R"({"collectives": [{"op": "barrier"}], "extra": 1})"),
           std::string(R"({"collectives": [{"op": "barrier"}], "groups": {"all": "0-3"}})"),
           std::string(R"({"collectives": [{"op": "barrier"}], "groups": {"4": "0-3"}})"),
           std::string(R"({"collectives": [{"op": "barrier"}], "groups": {"tp": []}})"),
           std::string(R"({"collectives": [{"op": "barrier"}], "ranks": 0})"),
           std::string(R"({"programs": [{"ranks": "all", "ops": [{"op": "barrier"}]}]})"),
           std::string(R"({"ranks": 8, "programs": [{"ranks": "all", "ops": []}]})"),
           std::string(R"({"ranks": 8, "programs": [{"ops": [{"op": "barrier"}]}]})"),
           with_collective(R"({"op": "all_reduce"})"),
           with_collective(R"({"op": "all_reduce", "bytes": 8})"),
           with_collective(R"({"op": "all_reduce", "bytes": "8"})"),
           with_collective(R"({"op": "all_reduce", "bytes": "8 Gb"})"),
           with_collective(R"({"op": "all_reduce", "bytes": "-8 B"})"),
           with_collective(R"({"op": "all_reduce", "bytes": "8 B", "root": 0})"),
           with_collective(R"({"op": "all_reduced", "bytes": "8 B"})"),
           with_collective(R"({"op": "barrier", "bytes": "8 B"})"),
           with_collective(R"({"op": "barrier", "repeat": 0})"),
           with_collective(R"({"op": "barrier", "group": "0-"})"),
           with_collective(R"({"op": "barrier", "group": [0, 0]})"),
           with_collective(R"({"op": "barrier", "group": []})"),
           with_op(R"({"op": "compute"})"),
           with_op(R"({"op": "compute", "flops": "1 TFLOPS"})"),
           with_op(R"({"op": "compute", "flops": "1 TFLOP", "duration": "1 us"})"),
           with_op(R"({"op": "compute", "bytes": "1 B", "efficiency": 0})"),
           with_op(R"({"op": "compute", "bytes": "1 B", "efficiency": 1.1})"),
           with_op(R"({"op": "copy", "duration": "1 us"})"),
           with_op(R"({"op": "delay", "duration": 5})"),
           with_op(R"({"op": "delay", "duration": "5"})"),
           with_op(R"({"op": "send", "bytes": "1 B"})"),
           with_op(R"({"op": "send", "bytes": "1 B", "peer": "next"})"),
           with_op(R"({"op": "barrier", "after": [1]})"),
           with_op(R"({"op": "barrier", "stream": ""})"),
           with_op(R"({"op": "wait"})"),
       }) {
    CAPTURE(text);
    CHECK_FALSE(schema.accepts(text));
    CHECK_FALSE(reader_accepts(text, 8));
  }
}

TEST_CASE("the shipped workloads satisfy schema and reader", "[workload][schema]") {
  const test::Schema schema("workload.schema.json");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(FLYOVER_SOURCE_DIR) / "workloads")) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path().string());
    const std::string text = test::text_of(entry.path());
    CHECK(schema.accepts(text));
    ++files;
    const auto file = nlohmann::json::parse(text, nullptr, true, true);
    if (file.contains("training")) {
      const std::uint32_t gpus = entry.path().stem() == "deepseek-v3-2048" ? 2048 : 64;
      CHECK_NOTHROW(io::read_training(io::Document::load(entry.path()), gpus));
      continue;
    }
    const auto ranks = file.value("ranks", nlohmann::json(64));
    CHECK(reader_accepts(text, ranks.is_number() ? ranks.get<std::uint32_t>() : 64));
  }
  CHECK(files > 0);
}

TEST_CASE("the examples of docs/formats/workload.md satisfy schema and reader",
          "[workload][schema]") {
  const test::Schema schema("workload.schema.json");
  const std::string page =
      test::text_of(std::filesystem::path(FLYOVER_SOURCE_DIR) / "docs/formats/workload.md");
  std::size_t examples = 0;
  for (std::size_t at = page.find("```json\n"); at != std::string::npos;
       at = page.find("```json\n", at)) {
    at += 8;
    const std::string text = page.substr(at, page.find("```", at) - at);
    CAPTURE(text);
    CHECK(schema.accepts(text));
    if (text.find("\"training\"") == std::string::npos) {
      CHECK(reader_accepts(text, 16));
    } else {
      CHECK_NOTHROW(io::read_training(io::Document::parse("example.json", text), 64));
    }
    ++examples;
  }
  CHECK(examples >= 3);
}
