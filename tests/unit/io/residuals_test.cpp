// Do residuals survive their file, and does the reader say what is wrong in one?

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/embedded.hpp"
#include "flyover/io/residuals_reader.hpp"
#include "flyover/io/residuals_writer.hpp"
#include "support/schema.hpp"

namespace flyover {
namespace {

Residuals sample() {
  Residuals residuals;
  residuals.origin = ResidualOrigin::LeftOut;
  residuals.rows = 30;
  residuals.sites = 3;
  residuals.correlation = {0.5, 0.25, 0, 1};
  residuals.gpus = {"A100", "H100-SXM"};
  residuals.classes = {{"any", "any", 0, {0.8, 1.25, 30, 3}},
                       {"nvlink4", "ring", 3, {1, 1, 20, 3}}};
  residuals.fitted = {
      {"nvlink4", "ring", Bytes{8}, Bytes{1 << 30}, 8, 1, {"all_reduce"}, {"nccl"}}};
  return residuals;
}

std::string problem(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  try {
    (void)io::read_residuals(io::Document::parse("r.json", text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("residuals are read as they were written", "[io]") {
  const std::string text = io::residuals_json(sample());
  const Residuals read = io::read_residuals(io::Document::parse("r.json", text));
  CHECK(io::residuals_json(read) == text);
  CHECK(read.origin == ResidualOrigin::LeftOut);
  CHECK(read.classes[0].range.high == 1.25);
  CHECK(read.fitted[0].largest == Bytes{1 << 30});
  CHECK(test::Schema("residuals.schema.json").problems(text).empty());
}

TEST_CASE("the shipped residuals follow the schema and come from enough sites", "[io]") {
  const std::string text(io::embedded_file("residuals.json"));
  CHECK(test::Schema("residuals.schema.json").problems(text).empty());
  const Residuals shipped = io::read_residuals(io::Document::parse("residuals.json", text));
  CHECK(io::residuals_json(shipped) == text);
  CHECK(shipped.sites > 50);
  for (const ResidualClass& c : shipped.classes) {
    CHECK(c.range.rows >= 20);
    CHECK(c.range.sites >= 3);
  }
  // Whatever is asked has a range.
  for (const SizeClass& size : size_classes()) {
    CHECK(io::shipped_ranges().range("string", AlgorithmId::Pat, size.last).rows > 0);
    CHECK(io::shipped_ranges().range("string + cans", AlgorithmId::Pat, size.last).rows > 0);
  }
}

TEST_CASE("what is wrong in residuals is told with its place", "[io]") {
  const std::string text = io::residuals_json(sample());
  CHECK(problem(text, "flyover-residuals-1", "flyover-residuals-9") ==
        "r.json:1:1: expected residuals of `flyover validate --residuals` (\"format\": "
        "\"flyover-residuals-1\")");
  CHECK(problem(text, "\"low\":0.8", "\"low\":1.1") ==
        "r.json:10:66: /classes/0/low: expected at most 1: a range has its prediction inside");
  CHECK(problem(text, "\"high\":1.25", "\"high\":0.9") ==
        "r.json:10:77: /classes/0/high: expected at least 1: a range has its prediction inside");
  CHECK(problem(text, "\"largest_bytes\":1073741824", "\"largest_bytes\":4") ==
        "r.json:14:78: /fitted/0/largest_bytes: is less than smallest_bytes");
  CHECK(problem(text, "\"larger\":1", "\"larger\":2").find("expected a share from 0 to 1") !=
        std::string::npos);
  CHECK(problem(text, "\"sites\": 3,", "\"sites\": 3, \"sights\": 4,").find("sights") !=
        std::string::npos);
}

}  // namespace flyover
