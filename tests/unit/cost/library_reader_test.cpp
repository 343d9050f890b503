#include "flyover/io/library_reader.hpp"

#include <filesystem>
#include <fstream>
#include <map>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"

namespace flyover::io {
namespace {

// A whole library; `extra` goes in at the end, `latency` replaces the only rule.
std::string text(const std::string& extra = "",
                 const std::string& latency = R"({ "base": "1 us", "source": "test" })") {
  return R"({ "format": "flyover-library-1", "name": "t", "version": "1", "summary": "for tests",
  "choice": "fastest",
  "protocols": { "Simple": { "wire_bytes": 1, "source": "test" } },
  "algorithms": { "all_reduce": ["ring", "tree"] },
  "latencies": [)" +
         latency + "]" + extra + "}";
}

std::string complaint(const std::string& input) {
  try {
    static_cast<void>(read_library(Document::parse("lib.json", input)));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("a small library is read in full", "[io][library]") {
  const Library library = read_library(
      Document::parse("lib.json", text(R"(, "tuned": ["all_reduce"], "mesh_rings": true,
    "efficiencies": [ { "where": { "links": ["nvlink"], "min_domains": 2 },
                        "share": [ { "members": 2, "share": 0.5 }, { "members": 8, "share": 0.4 } ],
                        "source": "test", "validity": "never" } ],
    "caps": [ { "per_channel": "10 GB/s", "source": "test" } ],
    "dtypes": [ { "dtypes": ["fp8"], "supported": false, "source": "test" } ],
    "channels": [ { "count": 4, "source": "test" } ],
    "defaults": { "NCCL_PXN_DISABLE": "1" })")));

  CHECK(library.choice == ChoiceRule::Fastest);
  CHECK(library.protocols == std::vector{Protocol::Simple});
  CHECK(library.algorithms.at(CollectiveOp::AllReduce) ==
        std::vector{AlgorithmId::Ring, AlgorithmId::Tree});
  CHECK(library.latencies.front().base == std::chrono::microseconds(1));
  CHECK(library.efficiencies.front().points.back().share == 0.4);
  CHECK(library.efficiencies.front().where.min_domains == 2);
  CHECK(library.efficiencies.front().evidence.validity == "never");
  CHECK(library.caps.front().per_channel == 10e9);
  CHECK_FALSE(library.dtypes.front().supported);
  CHECK(library.channels.front().count == 4);
  CHECK(library.mesh_rings);
  CHECK_FALSE(library.settings.pxn);
}

TEST_CASE("stacks and networks of a library are read", "[io][library]") {
  const std::string stacks = R"(, "stacks": {
    "plain": { "launch": "4 us", "source": "test" },
    "threads": { "launch": "4 us", "issue": "3 us", "most_gpus": 8, "overlap": 2, "source": "test" } },
    "networks": [ { "links": ["efa"], "hop": "20 us", "protocols": ["Simple"], "source": "test" } ],
    "stack": )";
  Library library = read_library(Document::parse("lib.json", text(stacks + R"("threads")")));
  CHECK(library.stack == "threads");
  CHECK(stack_in_use(library)->issue == std::chrono::microseconds(3));
  CHECK(stack_in_use(library)->most_gpus == 8);
  set_stack(library, "plain");
  CHECK(stack_in_use(library)->issue == Duration{});
  CHECK_THROWS_WITH(
      set_stack(library, "plan"),
      "expected a stack out of plain, threads, got \"plan\", did you mean \"plain\"?");
  CHECK(network_rule(library, "efa-v2")->hop == std::chrono::microseconds(20));
  CHECK(network_rule(library, "ndr") == nullptr);

  CHECK_THAT(complaint(text(stacks + R"("thread")")),
             Contains("/stack: expected a stack out of plain, threads, got \"thread\", did you "
                      "mean \"threads\"?"));
  CHECK_THAT(complaint(text(R"(, "stack": "plain")")),
             Contains("/stack: t 1 has no stacks, got \"plain\""));
  CHECK_THAT(complaint(text(R"(, "stacks": { "a": { "launch": "1 us", "issue": "1 us",
                              "most_gpus": 1, "overlap": 0, "source": "test" } }, "stack": "a")")),
             Contains("/stacks/a/overlap: expected an exponent of 1 or more"));
  CHECK_THAT(complaint(text(R"(, "networks": [ { "links": [], "source": "test" } ])")),
             Contains("/networks/0/links: expected at least one network"));
}

TEST_CASE("shipped libraries are found by name, version or file", "[io][library]") {
  CHECK(library_names() == std::vector<std::string>{"ideal", "mscclpp", "mscclpp-0.7", "nccl",
                                                    "nccl-2.17", "nccl-2.18", "nccl-2.19",
                                                    "nccl-2.21", "nccl-2.23", "nccl-2.25",
                                                    "nccl-2.27", "nccl-2.28", "nccl-2.29",
                                                    "nccl-2.30", "nccl-2.8", "rccl", "rccl-2.27"});
  CHECK(read_library(library_document("nccl")).version == "2.30");
  CHECK(read_library(library_document("rccl-2.27")).name == "rccl");
  CHECK_THROWS_WITH(library_document("nclc"),
                    "no communication library \"nclc\", did you mean \"nccl\"?; there are ideal, "
                    "mscclpp, mscclpp-0.7, "
                    "nccl, nccl-2.17, nccl-2.18, nccl-2.19, nccl-2.21, nccl-2.23, nccl-2.25, "
                    "nccl-2.27, nccl-2.28, nccl-2.29, nccl-2.30, nccl-2.8, rccl, rccl-2.27");
  CHECK_THROWS_AS(library_document("no/such.json"), InputError);
}

TEST_CASE("a version between two known ones takes the older and says so", "[io][library]") {
  const Library between = read_library(library_document("nccl-2.20"));
  CHECK(between.version == "2.19");
  REQUIRE(between.settings.notes.size() == 1);
  CHECK(between.settings.notes.front() ==
        "nccl 2.20 is not known: the nearest older one, 2.19, stands for it");
  CHECK(read_library(library_document("nccl-2.99")).version == "2.30");

  const Library patch = read_library(library_document("nccl-2.27.7"));
  CHECK(patch.version == "2.27");
  CHECK(patch.settings.notes.empty());
  CHECK_THROWS_WITH(
      library_document("nccl-2.4.8"),
      Catch::Matchers::StartsWith(
          "nccl 2.4.8 is older than all that are known of it: ideal, mscclpp, mscclpp-0.7, nccl"));
}

TEST_CASE("every shipped library can be read, and a version states only what differs",
          "[io][library]") {
  std::map<int, std::string> released;  // By minor version.
  for (const std::string& name : library_names()) {
    CAPTURE(name);
    const Library library = read_library(library_document(name));
    if (!name.starts_with("nccl-")) continue;
    CHECK(library.name == "nccl");
    CHECK(name == "nccl-" + library.version);
    released.emplace(std::stoi(library.version.substr(2)), library.released);
    CHECK(library.tuning->tree_correction[0].size() == (library.version == "2.30" ? 24 : 23));
    CHECK_FALSE(library.latencies.empty());
  }
  std::string before;
  for (const auto& [minor, month] : released) {
    CAPTURE(minor);
    CHECK(month > before);
    before = month;
  }
  const Library old = read_library(library_document("nccl-2.19"));
  CHECK(old.tuning->architectures.at("hopper").ll == 87.7);
  CHECK(old.tuning->architectures.at("hopper").tree_simple[1] == 41.4);
  CHECK_FALSE(old.tuning->latencies.contains(AlgorithmId::Pat));
}

TEST_CASE("a file may build on a shipped library", "[io][library]") {
  const auto path = std::filesystem::temp_directory_path() / "flyover-extends-test.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_library(library_document(path.string()));
  };
  const Library own = read(
      R"({ "extends": "nccl-2.27", "version": "2.27-ours", "algorithms": { "all_reduce": ["ring"] } })");
  CHECK(own.version == "2.27-ours");
  CHECK(own.algorithms.at(CollectiveOp::AllReduce) == std::vector{AlgorithmId::Ring});
  CHECK(own.algorithms.at(CollectiveOp::AllGather).size() == 3);
  CHECK_THROWS_WITH(read(R"({ "extends": "ncc" })"),
                    Contains("/extends: no communication library \"ncc\""));
  CHECK_THROWS_WITH(read(R"({ "extends": "nccl-2.27", "latency": [] })"), Contains("/latency: "));
  std::filesystem::remove(path);
}

TEST_CASE("an input error of a library names the place and what would be right", "[io][library]") {
  CHECK_THAT(complaint(text(R"(, "latency": [])")), Contains("/latency: "));
  CHECK_THAT(complaint(text("", R"({ "base": "1 us" })")), Contains("/latencies/0"));
  CHECK_THAT(complaint(text("", R"({ "base": "1 us", "source": "" })")),
             Contains("/latencies/0/source: expected where the numbers come from"));
  CHECK_THAT(complaint(text("", R"({ "base": "1", "source": "test" })")),
             Contains("/latencies/0/base"));
  CHECK_THAT(complaint(text("", R"({ "base": "1 us", "overlap": 0.5, "source": "test" })")),
             Contains("/latencies/0/overlap: expected an exponent of 1 or more"));
  CHECK_THAT(complaint(text("", R"({ "where": { "algorithms": ["rign"] }, "base": "1 us",
                                    "source": "test" })")),
             Contains("/latencies/0/where/algorithms/0: expected one of ring, tree") &&
                 Contains("got \"rign\", did you mean \"ring\"?"));
  CHECK_THAT(complaint(text("", R"({ "where": { "min_domains": 3, "max_domains": 2 },
                                    "base": "1 us", "source": "test" })")),
             Contains("no group spans at least 3 and at most 2 domains"));
  CHECK_THAT(complaint(text(R"(, "efficiencies": [ { "share": 1.2, "source": "test" } ])")),
             Contains("/efficiencies/0/share: expected a share above 0 and at most 1, got 1.2"));
  CHECK_THAT(complaint(text(R"(, "efficiencies": [ { "share": [], "source": "test" } ])")),
             Contains("expected a share, or at least one point"));
  CHECK_THAT(complaint(text(R"(, "efficiencies": [ { "share": [ { "members": 8, "share": 0.5 },
                              { "members": 8, "share": 0.4 } ], "source": "test" } ])")),
             Contains("expected more members than at the point before"));
  CHECK_THAT(complaint(text(R"(, "caps": [ { "source": "test" } ])")),
             Contains("expected \"total\" or \"per_channel\""));
  CHECK_THAT(complaint(text(R"(, "defaults": { "NCCL_PXN": "1" })")),
             Contains("NCCL_PXN: is not a variable that Flyover knows"));
}

TEST_CASE("what was fitted of a rule is a value that it has, with a spread", "[io][library]") {
  const auto fitted = [](const std::string& entry) {
    return complaint(
        text("", R"({ "base": "1 us", "source": "test", "fitted": {)" + entry + "} }"));
  };
  CHECK(fitted(R"("base": { "prior": "2 us", "spread": 0.3, "group": "base", "uncertainty": 0.1,
                            "rows": 7 })") == "no complaint");
  CHECK_THAT(fitted(R"("domain_hop": { "prior": "1 us", "spread": 0.3 })"),
             Contains("/latencies/0/fitted/domain_hop: the rule has no \"domain_hop\""));
  CHECK_THAT(fitted(R"("base": { "prior": "2 us" })"),
             Contains("/latencies/0/fitted/base") && Contains("spread"));
  CHECK_THAT(fitted(R"("base": { "prior": "2 us", "spread": 0 })"),
             Contains("/latencies/0/fitted/base/spread: "));
  CHECK_THAT(fitted(R"("base": { "prior": "2 us", "spread": 0.3, "sprad": 1 })"),
             Contains("/latencies/0/fitted/base/sprad: "));
  CHECK_THAT(complaint(text(R"(, "caps": [ { "total": "1 GB/s", "source": "test",
                              "fitted": { "per_channel": { "spread": 0.3 } } } ])")),
             Contains("/caps/0/fitted/per_channel: the rule has no \"per_channel\""));
}

TEST_CASE("a library must be whole", "[io][library]") {
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string input = text();
    input.replace(input.find(from), from.size(), to);
    return complaint(input);
  };
  CHECK_THAT(changed("flyover-library-1", "flyover-library-9"),
             Contains("/format: expected \"flyover-library-1\", got \"flyover-library-9\""));
  CHECK_THAT(changed("\"fastest\"", "\"nccl-model\""),
             Contains("/choice: \"nccl-model\" needs \"tuning\""));
  CHECK_THAT(changed("\"fastest\"", "\"fast\""), Contains("/choice"));
  CHECK_THAT(changed("\"tree\"]", "\"pat\"]"),
             Contains("/algorithms/all_reduce/1: there is no pat for all_reduce"));
  CHECK_THAT(changed("\"tree\"]", "\"ring\"]"), Contains("is listed twice"));
  CHECK_THAT(changed("all_reduce", "all_redcue"),
             Contains("\"all_redcue\" is not a collective, did you mean \"all_reduce\"?"));
  CHECK_THAT(changed("\"wire_bytes\": 1", "\"wire_bytes\": 0.5"),
             Contains("expected at least one byte per byte of payload"));
  CHECK_THAT(changed("\"Simple\"", "\"Simples\""), Contains("expected LL, LL128 or Simple"));
}

}  // namespace flyover::io
