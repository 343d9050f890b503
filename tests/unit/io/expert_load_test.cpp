// Are loads of experts read as they stand in the file, and is what is wrong in one named?

#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/expert_load_reader.hpp"
#include "support/schema.hpp"

namespace flyover {
namespace {

const std::string by_layer = R"({
  "format": "flyover-expert-load-1", "name": "two layers", "source": "made up", "experts": 3,
  "layers": [
    { "layer": 3, "load": [1, 2, 3] },
    { "layer": 58, "load": [0, 5, 0.5] }
  ]
})";

const std::filesystem::path shipped =
    std::filesystem::path(FLYOVER_SOURCE_DIR) / "workloads" / "expert-load" / "zipf-256.json";

std::string problem(const std::string& from, const std::string& to) {
  std::string text = by_layer;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  try {
    (void)io::read_expert_load(io::Document::parse("load.json", text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("loads of experts are read by layer", "[io]") {
  const io::ExpertLoad load = io::read_expert_load(io::Document::parse("load.json", by_layer));
  CHECK(load.name == "two layers");
  CHECK(load.source == "made up");
  CHECK(load.experts == 3);
  REQUIRE(load.layers.size() == 2);
  CHECK(load.layers[1].layer == 58U);
  CHECK(load.layers[1].load == std::vector<double>{0, 5, 0.5});
  CHECK(test::Schema("expert-load.schema.json").accepts(by_layer));
}

TEST_CASE("the shipped loads follow the schema and serve every layer", "[io]") {
  CHECK(test::Schema("expert-load.schema.json").problems(test::text_of(shipped)).empty());
  const std::vector<double> load = io::read_expert_load(shipped, std::nullopt);
  CHECK(load.size() == 256);
  CHECK(io::read_expert_load(shipped, 7) == load);
}

TEST_CASE("a layer must be one of the file", "[io]") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "flyover-load.json";
  std::ofstream(path) << by_layer;
  CHECK(io::read_expert_load(path, 3) == std::vector<double>{1, 2, 3});
  CHECK_THROWS_WITH(
      io::read_expert_load(path, std::nullopt),
      Catch::Matchers::EndsWith("/layers: has loads by layer: say which layer is meant, of 3, 58"));
  CHECK_THROWS_WITH(io::read_expert_load(path, 4),
                    Catch::Matchers::EndsWith("/layers: has no layer 4, only 3, 58"));
  std::filesystem::remove(path);
}

TEST_CASE("loads of experts that cannot be are refused with their place", "[io]") {
  CHECK(problem("flyover-expert-load-1", "flyover-topology-1") ==
        "load.json:1:1: expected loads of experts (\"format\": \"flyover-expert-load-1\")");
  CHECK(problem("[1, 2, 3]", "[1, 2]") ==
        "load.json:4:27: /layers/0/load: expected a number for each of the 3 experts, got 2");
  CHECK(problem("0.5", "-0.5") ==
        "load.json:5:35: /layers/1/load/2: expected zero or more, got -0.5");
  CHECK(problem("[1, 2, 3]", "[0, 0, 0]") ==
        "load.json:4:27: /layers/0/load: expected a load above zero of some expert");
  CHECK(problem("58", "3") == "load.json:5:16: /layers/1/layer: layer 3 is listed twice");
  CHECK(problem("\"experts\": 3,", "\"experts\": 3, \"load\": [1, 1, 1],") ==
        "load.json:1:1: expected either \"load\", for all layers, or \"layers\"");
  CHECK(problem("\"experts\"", "\"expert\"").find("did you mean \"experts\"") != std::string::npos);
}

}  // namespace flyover
