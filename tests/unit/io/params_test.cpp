// Do site parameters survive their file, and does the reader say what is wrong in one?

#include "flyover/io/params.hpp"

#include <filesystem>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "support/schema.hpp"

namespace flyover {
namespace {

io::ParamsFile sample() {
  io::ParamsFile params;
  params.library = "nccl";
  params.version = "2.27";
  params.topology = "dgx-h100:2";
  params.logs = {{"a.log", "all_reduce", 16, 31}};
  params.calibration.site.launch = {-1.5e-6, 2e-7, true, ""};
  params.calibration.site.network_bandwidth = {1.02, 0.08, false, "no call crosses the network"};
  params.calibration.before = {{10, 0.2, 0.4, -0.1}, {}, {}, {3, 0.01, 0.02, 0.01}};
  params.calibration.after = {{10, 0.02, 0.04, 0}, {}, {}, {3, 0.001, 0.002, 0}};
  return params;
}

io::ParamsFile parse(const std::string& text) {
  return io::read_params(io::Document::parse("p.json", text));
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = io::params_json(sample());
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string problem(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("site parameters are read as they were written", "[io]") {
  const std::string text = io::params_json(sample());
  CHECK(test::Schema("params.schema.json").problems(text).empty());
  const io::ParamsFile read = parse(text);
  CHECK(io::params_json(read) == text);
  CHECK(read.calibration.site.launch.value == Approx(-1.5e-6));
  CHECK(read.calibration.site.launch.uncertainty == Approx(2e-7));
  CHECK(read.calibration.site.launch.determined);
  CHECK(read.calibration.site.network_bandwidth.value == 1.02);
  CHECK(read.calibration.site.network_bandwidth.reason == "no call crosses the network");
  CHECK(read.calibration.site.pipeline.value == 1);
  CHECK(read.calibration.after[3].median == 0.001);
}

TEST_CASE("parameters that a file leaves out change nothing", "[io]") {
  const auto read = parse(R"({"format": "flyover-params-1", "parameters": {},
                              "library": {"name": "nccl", "version": "2.27"}})");
  CHECK(neutral(read.calibration.site));
}

TEST_CASE("another library than the one that was fitted is noted", "[io]") {
  Library library;
  library.name = "nccl";
  library.version = "2.27";
  io::apply_params(library, sample(), "p.json");
  CHECK(library.settings.notes.empty());
  CHECK(library.site.network_bandwidth.value == 1.02);
  library.version = "2.30";
  io::apply_params(library, sample(), "p.json");
  CHECK(library.settings.notes ==
        std::vector<std::string>{"p.json was fitted with nccl 2.27, and is used with nccl 2.30"});
}

TEST_CASE("schema and reader refuse the same params files, and the reader says where", "[io]") {
  const test::Schema schema("params.schema.json");
  const auto refused = [&](const std::string& text) {
    CHECK(!schema.accepts(text));
    return problem(text);
  };
  CHECK(refused("{}") ==
        "p.json:1:1: expected a params file, an object with \"format\": \"flyover-params-1\"");
  CHECK(refused(with("flyover-params-1", "flyover-params-2")) ==
        "p.json:2:13: /format: expected \"flyover-params-1\", got \"flyover-params-2\"");
  CHECK(refused(with("network_bandwidth", "network_bandwith"))
            .ends_with("/parameters/network_bandwith: is not a known parameter, did you mean "
                       "\"network_bandwidth\"?"));
  CHECK(refused(with("1.02", "0")).find("/parameters/network_bandwidth/value: ") !=
        std::string::npos);
  CHECK(refused(with("0.08", "-1"))
            .ends_with("/parameters/network_bandwidth/uncertainty: expected zero or more"));
  CHECK(refused(with("\"larger\"", "\"huge\""))
            .ends_with("/errors/before/huge: is not a class of sizes: they are up to 32 KiB, up to "
                       "1 MiB, up to 32 "
                       "MiB, larger"));
  CHECK(refused(with("\"topology\"", "\"topologie\"")).find("did you mean \"topology\"?") !=
        std::string::npos);
  CHECK(refused(with("\"rows\": 31", "\"rows\": 0")).find("/logs/0/rows: ") != std::string::npos);
}

TEST_CASE("the example of docs/formats/params.md satisfies schema and reader", "[io]") {
  const std::string page =
      test::text_of(std::filesystem::path(FLYOVER_SOURCE_DIR) / "docs/formats/params.md");
  const std::size_t at = page.find("```json\n") + 8;
  const std::string text = page.substr(at, page.find("```", at) - at);
  CHECK(test::Schema("params.schema.json").problems(text).empty());
  CHECK(parse(text).calibration.site.network_bandwidth.value == 0.97);
}

}  // namespace flyover
