// Do libraries that were fitted without a site differ in what was fitted and in nothing else?

#include "flyover/io/left_out.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/measurement_reader.hpp"

namespace flyover::io {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

// Two parameters, and what they are without the site "here".
std::string text(const std::string& values = R"("7 us", 0.5)",
                 const std::string& format = "flyover-left-out-1") {
  return fmt::format(R"({{ "format": "{}", "summary": "for tests",
  "parameters": [ {{ "library": "nccl-2.27", "at": "/stacks/process-per-gpu/launch" }},
                  {{ "library": "nccl-2.27", "at": "/efficiencies/0/share" }} ],
  "sites": {{ "here": [{}] }} }})",
                     format, values);
}

LeftOut parse(const std::string& input) {
  return LeftOut(Document::parse("left.json", input));
}

std::string complaint(const std::string& input) {
  try {
    static_cast<void>(parse(input));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

json config(const std::string& path) {
  const auto file = std::filesystem::path(FLYOVER_SOURCE_DIR) / "configs" / path;
  return json::parse(std::ifstream(file));
}

Duration launch(const Library& library) {
  return stack_in_use(library)->launch;
}

// Every value that the shipped libraries say was fitted, as "nccl-2.27/latencies/0/base".
std::set<std::string> fitted_values() {
  std::set<std::string> found;
  const auto collect = [&](const auto& self, const json& value, const std::string& place) -> void {
    if (value.is_object() && value.contains("fitted")) {
      for (const auto& [key, fitted] : value["fitted"].items()) {
        const json& number = value[key];
        if (!number.is_array()) found.insert(place + "/" + key);
        for (std::size_t i = 0; number.is_array() && i < number.size(); ++i) {
          found.insert(fmt::format("{}/{}/{}/share", place, key, i));
        }
      }
    }
    if (!value.is_structured()) return;
    for (const auto& [key, part] : value.items()) {
      if (key != "fitted") self(self, part, place + "/" + key);
    }
  };
  const auto folder = std::filesystem::path(FLYOVER_SOURCE_DIR) / "configs" / "libraries";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    collect(collect, config("libraries/" + name), file.path().stem().string());
  }
  return found;
}

}  // namespace

TEST_CASE("a library without a site has the values that were fitted without it", "[io][left-out]") {
  const LeftOut left_out = parse(text());
  CHECK(left_out.knows("here"));
  CHECK_FALSE(left_out.knows("there"));
  const Library shipped = read_library(library_document("nccl-2.27"));
  const Library library = left_out.library("nccl-2.27", "here");
  CHECK(launch(library) == std::chrono::microseconds(7));
  CHECK(library.efficiencies.front().points.front().share == 0.5);

  CHECK(library.version == shipped.version);
  CHECK(library.stacks.back().launch == shipped.stacks.back().launch);
  CHECK(library.latencies.front().base == shipped.latencies.front().base);
  CHECK(library.efficiencies.back().points.back().share ==
        shipped.efficiencies.back().points.back().share);
}

TEST_CASE("versions that extend a library take its left-out values", "[io][left-out]") {
  const LeftOut left_out = parse(text());
  for (const std::string& name : library_names()) {
    const Library shipped = read_library(library_document(name));
    if (shipped.name != "nccl" || name == "nccl") continue;
    CAPTURE(name);
    const Library library = left_out.library(name, "here");
    CHECK(library.version == shipped.version);
    CHECK(launch(library) == std::chrono::microseconds(7));
    CHECK(library.efficiencies.front().points.front().share == 0.5);
  }
  // Others have nothing of it.
  const Library rccl = read_library(library_document("rccl-2.27"));
  CHECK(launch(left_out.library("rccl-2.27", "here")) == launch(rccl));
}

TEST_CASE("left-out values must fit the parameters", "[io][left-out]") {
  CHECK_THAT(complaint(text(R"("7 us", 0.5)", "flyover-left-out-9")),
             Contains("left.json:1:13: /format: expected \"flyover-left-out-1\""));
  CHECK_THAT(complaint(text(R"("7 us")")), Contains("/sites/here: expected 2 values, got 1"));
  CHECK_THAT(complaint(text(R"("7 us", 0.5, 1)")),
             Contains("/sites/here: expected 2 values, got 3"));
  CHECK_THAT(complaint(text(R"("7 us", [])")), Contains("/sites/here/1: "));
  CHECK_THAT(complaint(R"({ "format": "flyover-left-out-1", "parameters": [], "site": {} })"),
             Contains("/site: "));
  CHECK_THAT(complaint(R"({ "format": "flyover-left-out-1", "sites": {},
                            "parameters": [ { "library": "nccl-2.27" } ] })"),
             Contains("/parameters/0") && Contains("at"));
  CHECK_THAT(complaint(R"({ "format": "flyover-left-out-1", "parameters": [] })"),
             Contains("sites"));
}

TEST_CASE("a value that a library would refuse is refused", "[io][left-out]") {
  const LeftOut left_out = parse(text(R"("7 us", 1.5)"));
  CHECK_THROWS_WITH(left_out.library("nccl-2.27", "here"),
                    Contains("/efficiencies/0/share: expected a share above 0 and at most 1"));
}

TEST_CASE("all fitted values of the shipped libraries are left out, and nothing else",
          "[io][left-out]") {
  std::set<std::string> left_out;
  const json file = config("left-out.json");
  for (const json& parameter : file["parameters"]) {
    left_out.insert(parameter["library"].get<std::string>() + parameter["at"].get<std::string>());
  }
  CHECK(left_out == fitted_values());
}

TEST_CASE("shipped left-out libraries are read, and are of sites that were measured",
          "[io][left-out]") {
  const LeftOut left_out;
  std::set<std::string> measured;
  std::size_t known = 0;
  for (const Measurement& record : shipped_measurements()) {
    if (!measured.insert(record.site).second || !left_out.knows(record.site)) continue;
    ++known;
    for (const char* name : {"nccl-2.27", "nccl-2.19", "rccl-2.27"}) {
      CAPTURE(record.site, name);
      const Library shipped = read_library(library_document(name));
      const Library library = left_out.library(name, record.site);
      CHECK(library.version == shipped.version);
      CHECK(library.algorithms == shipped.algorithms);
      CHECK(library.wire_bytes == shipped.wire_bytes);
      REQUIRE(library.latencies.size() == shipped.latencies.size());
      for (std::size_t i = 0; i < shipped.latencies.size(); ++i) {
        CHECK(library.latencies[i].overlap == shipped.latencies[i].overlap);
        CHECK(library.latencies[i].network_wire == shipped.latencies[i].network_wire);
        CHECK(library.latencies[i].evidence.source == shipped.latencies[i].evidence.source);
      }
    }
  }
  const std::size_t sites = config("left-out.json")["sites"].size();
  CHECK(known == sites);
  CHECK(sites >= 50);
}

}  // namespace flyover::io
