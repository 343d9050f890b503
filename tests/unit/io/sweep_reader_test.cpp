// Does a sweep file become the space and the questions that it describes, and does a wrong one say
// where and what would be right?

#include "flyover/io/sweep_reader.hpp"

#include <filesystem>
#include <numeric>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "support/schema.hpp"

namespace flyover {
namespace {

SweepConfig parse(const std::string& text) {
  return io::read_sweep_config(io::Document::parse("s.json", text));
}

// A sweep with these members besides topology and workload.
std::string sweep(const std::string& members) {
  return R"({"topology": "dgx-h100", "workload": "w.json", )" + members + "}";
}

std::string problem(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const InputError& error) {
    CHECK(error.place().line == 1);
    return error.place().pointer + ": " + error.problem();
  }
  return "";
}

std::string words(const std::vector<SweepValue>& values) {
  std::string text;
  for (const SweepValue& value : values) text += (text.empty() ? "" : " ") + to_string(value);
  return text;
}

SweepAxis axis(const std::string& json, const std::string& more = "") {
  SweepConfig config = parse(sweep(R"("vary": {"topology.x": )" + json + "}" + more));
  return std::move(config.space.axes.at(0));
}

// The problem with one axis, without its pointer.
std::string axis_problem(const std::string& json, const std::string& more = "") {
  const std::string text = problem(sweep(R"("vary": {"topology.x": )" + json + "}" + more));
  CHECK(text.starts_with("/vary/topology.x"));
  return text.substr(std::string("/vary/topology.x").size());
}

const std::string drawn = R"(, "sampling": {"method": "random", "points": 10})";
const std::string two_axes = R"("vary": {"workload.training.layout.tp": [1, 2],
                                         "workload.training.schedule": ["1f1b", "zb-v"]})";

// The same for members after two axes, on one line.
std::string refused(const std::string& members) {
  return problem(sweep(R"("vary": {"workload.training.layout.tp": [1, 2], )"
                       R"("workload.training.schedule": ["1f1b", "zb-v"]}, )" +
                       members));
}

}  // namespace

TEST_CASE("the sweep of INTERFACES is read", "[io][sweep]") {
  const SweepConfig config = parse(R"({
    "topology": "dgx-h100:64", "workload": "workloads/llama3-70b.json",
    "vary":  { "topology.fabric.oversubscription": [1, 2, 4],
               "workload.training.layout.tp": [1, 2, 4, 8], "workload.training.layout.pp": [1, 2, 4, 8] },
    "where": "fits_in_memory", "objective": "tokens_per_s_per_gpu", "pareto": ["tokens_per_s", "cost_per_hour"]
  })");
  CHECK(config.topology == "dgx-h100:64");
  CHECK(config.workload == "workloads/llama3-70b.json");
  REQUIRE(config.space.axes.size() == 3);
  CHECK(config.space.axes[0].path == "topology.fabric.oversubscription");
  CHECK(config.space.axes[0].name == "oversubscription");
  CHECK(config.space.axes[2].name == "pp");
  CHECK(SweepPoints(config.space).size() == 48);
  CHECK(config.space.where.front().text() == "fits_in_memory");
  CHECK(config.objective->name == "tokens_per_s_per_gpu");
  CHECK(config.objective->goal == Goal::Maximise);
  REQUIRE(config.pareto.size() == 2);
  CHECK(config.pareto[1].name == "cost_per_hour");
  CHECK(config.pareto[1].goal == Goal::Minimise);
  CHECK(config.evaluate == SweepEvaluation::Replay);
  CHECK(config.top == 10);
}

TEST_CASE("lists keep their values as they are", "[io][sweep]") {
  CHECK(words(axis(R"([1, 2.5, "auto", true, 1e3])").values) == R"(1 2.5 "auto" true 1000)");
  const SweepAxis rate = axis(R"({"values": [200, 400], "unit": "Gb/s", "name": "rate"})");
  CHECK(rate.name == "rate");
  CHECK(setting_of(rate, rate.values[1]) == "400 Gb/s");
}

TEST_CASE("ranges are steps, factors or counts", "[io][sweep]") {
  CHECK(words(axis(R"({"from": 1, "to": 2, "step": 0.25})").values) == "1 1.25 1.5 1.75 2");
  CHECK(words(axis(R"({"from": 0, "to": 1, "step": 0.1})").values) ==
        "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1");
  CHECK(words(axis(R"({"from": 1, "to": 9, "step": 3})").values) == "1 4 7");
  CHECK(words(axis(R"({"from": 1, "to": 64, "factor": 2})").values) == "1 2 4 8 16 32 64");
  CHECK(words(axis(R"({"from": 1, "to": 2, "factor": 1.1})").values) ==
        "1 1.1 1.21 1.331 1.4641 1.61051 1.771561 1.9487171");
  CHECK(words(axis(R"({"from": 0, "to": 1, "count": 3})").values) == "0 0.5 1");
  CHECK(words(axis(R"({"from": 1, "to": 1000, "count": 4, "scale": "log"})").values) ==
        "1 10 100 1000");
  CHECK(words(axis(R"({"from": 1, "to": 4, "count": 10, "scale": "log", "whole": true})").values) ==
        "1 2 3 4");
}

TEST_CASE("a sample's ranges are drawn from, its lists drawn of", "[io][sweep]") {
  const SweepAxis ratio = axis(R"({"from": 1, "to": 4})", drawn);
  CHECK(ratio.values.empty());
  CHECK(ratio.low == 1);
  CHECK(ratio.high == 4);
  CHECK_FALSE(ratio.logarithmic);
  CHECK_FALSE(ratio.whole);
  const SweepAxis nodes = axis(R"({"from": 1, "to": 64, "scale": "log", "whole": true})", drawn);
  CHECK(nodes.logarithmic);
  CHECK(nodes.whole);
  CHECK(words(axis(R"({"from": 1, "to": 3, "step": 1})", drawn).values) == "1 2 3");
  const SweepConfig config = parse(sweep(
      R"("vary": {"topology.x": [1]}, "sampling": {"method": "latin-hypercube", "points": 7, "seed": 5})"));
  CHECK(config.space.sampling == SweepSampling::LatinHypercube);
  CHECK(config.space.points == 7);
  CHECK(config.space.seed == 5);
}

TEST_CASE("an axis is called by the last part of its path where that is unique", "[io][sweep]") {
  const SweepConfig config = parse(sweep(R"("vary": {
    "topology.overrides.0.bandwidth": [1, 2], "topology.overrides.1.bandwidth": [1, 2],
    "topology.nodes.0": [1, 2], "workload.training.layout.tp": [1, 2], "workload.gpus": [1],
    "nccl.NCCL_ALGO": {"values": ["Ring", "Tree"], "name": "algorithm"}})"));
  std::vector<std::string> names;
  for (const SweepAxis& one : config.space.axes) names.push_back(one.name);
  CHECK(names == std::vector<std::string>{"topology.overrides.0.bandwidth",
                                          "topology.overrides.1.bandwidth", "topology.nodes.0",
                                          "tp",
                                          "workload.gpus",  // "gpus" is an output.
                                          "algorithm"});
}

TEST_CASE("derived values of inputs belong to the point, those of outputs are measures",
          "[io][sweep]") {
  const SweepConfig config = parse(sweep(two_axes + R"(,
    "derived": {"double": "tp * 2", "per_dollar": "tokens_per_s / cost_per_hour",
                "quadruple": "double * 2", "both": "per_dollar * double"},
    "where": ["quadruple < 8", "both > 1", "schedule != 'gpipe' or tp == 1"],
    "objective": {"maximise": "per_dollar"},
    "pareto": ["mfu", {"minimise": "tp"}, {"name": "value", "maximise": "both + 1"}],
    "find": [{"name": "cheapest", "minimise": "cost_per_hour", "where": "mfu > 0.4"},
             {"name": "any", "maximise": "mfu"}])"));
  REQUIRE(config.space.derived.size() == 2);
  CHECK(config.space.derived[1].first == "quadruple");
  REQUIRE(config.measures.size() == 2);
  CHECK(config.measures[0].first == "per_dollar");
  CHECK(config.measures[1].first == "both");
  CHECK(config.space.where.size() == 3);
  CHECK(config.objective->name == "per_dollar");
  CHECK(config.pareto[1].name == "tp");
  CHECK(config.pareto[2].name == "value");
  CHECK(config.pareto[2].expression.text() == "both + 1");
  REQUIRE(config.find.size() == 2);
  CHECK(config.find[0].name == "cheapest");
  CHECK(config.find[0].objective.goal == Goal::Minimise);
  CHECK(config.find[0].where.size() == 1);
  CHECK(config.find[1].where.empty());
  CHECK(SweepPoints(config.space).point(2).refused == "\"quadruple < 8\" does not hold");
}

TEST_CASE("topology and workload may vary themselves", "[io][sweep]") {
  const SweepConfig config =
      parse(R"({"workload": "w.json", "name": "generations", "library": "nccl-2.27",
    "vary": {"topology": ["dgx-h100:4", "dgx-b200:4"], "topology.fabric.oversubscription": [1, 2]},
    "evaluate": "estimate", "top": 3, "prices": "prices.json"})");
  CHECK(config.topology.empty());
  CHECK(config.name == "generations");
  CHECK(config.library == "nccl-2.27");
  CHECK(config.evaluate == SweepEvaluation::Estimate);
  CHECK(config.top == 3);
  CHECK(config.prices_file == "prices.json");
}

TEST_CASE("prices are paths with values", "[io][sweep]") {
  const SweepConfig config = parse(
      sweep(two_axes +
            R"(, "prices": {"gpu": {"h100": 30000, "dated": "2026-01"}, "power_per_kWh": 0.1})"));
  REQUIRE(config.prices.size() == 3);
  CHECK(config.prices[0].first == "gpu.h100");
  CHECK(config.prices[0].second == SweepValue(std::int64_t{30000}));
  CHECK(config.prices[1].second == SweepValue(std::string("2026-01")));
  CHECK(config.prices[2].first == "power_per_kWh");
}

TEST_CASE("a condition is tried on the first point, not on one of mixed kinds", "[io][sweep]") {
  CHECK(refused(R"("where": "tp > 'x'")") ==
        "/where: character 4 of \"tp > 'x'\": > compares numbers, got 1 and \"x\"");
  CHECK(refused(R"("where": ["tp"])") ==
        "/where/0: \"tp\" is 1, expected a condition, true or false");
  CHECK(refused(R"("derived": {"a": "schedule * 2"})") ==
        "/derived/a: character 10 of \"schedule * 2\": * takes numbers, got \"1f1b\"");
  CHECK(refused(R"("objective": {"minimise": "schedule"})") ==
        "/objective/minimise: \"schedule\" is \"1f1b\", expected a number");
  CHECK(refused(R"("where": "1 / (tp - 1) > 0")").empty());
  CHECK(problem(sweep(R"("vary": {"workload.dp": ["auto", 1]}, "where": "dp == 1")")).empty());
}

TEST_CASE("a sweep without what it needs says so", "[io][sweep]") {
  const test::Schema schema("sweep.schema.json");
  const auto both = [&](const std::string& text) {
    CHECK_FALSE(schema.accepts(text));
    return problem(text);
  };
  CHECK(both("[]") == ": expected a sweep, an object with \"vary\"");
  CHECK(both(R"({"topology": "a", "workload": "b"})").starts_with(": "));
  CHECK(both(R"({"topology": "a", "workload": "b"})").find("vary") != std::string::npos);
  CHECK(problem(R"({"workload": "b", "vary": {"topology.x": [1]}})").find("topology") !=
        std::string::npos);
  CHECK(problem(R"({"topology": "b", "vary": {"topology.x": [1]}})").find("workload") !=
        std::string::npos);
  CHECK(both(sweep(R"("vary": {})")) == "/vary: expected at least one input that varies");
  CHECK(both(sweep(R"("vary": [])")) ==
        "/vary: expected an object: paths of inputs with their values");
  CHECK(both(sweep(R"("vry": {"topology.x": [1]})")) ==
        "/vry: is not a known option, did you mean \"vary\"?");
  CHECK(problem(sweep(R"("vary": {"topology": ["a"]})")) ==
        "/topology: \"vary\" has \"topology\" too: leave one out");
}

TEST_CASE("paths that no input has are refused with the nearest", "[io][sweep]") {
  const auto with_path = [](const std::string& path) {
    const std::string text = problem(sweep("\"vary\": {\"" + path + "\": [1]}"));
    return text.substr(text.find(": ") + 2);
  };
  CHECK(with_path("topolgy.fabric") == "there is no input \"topolgy\", did you mean \"topology\"?");
  CHECK(with_path("fabric.rate") ==
        "there is no input \"fabric\": paths begin with topology, "
        "workload, library, nccl or prices");
  CHECK(with_path("topology..x") ==
        "expected a path such as \"topology.fabric.oversubscription\", got \"topology..x\"");
  CHECK(with_path("/topology/x") ==
        "expected a path such as \"topology.fabric.oversubscription\", got \"/topology/x\"");
  CHECK(with_path("nccl") == "expected one value of nccl, such as \"nccl.NCCL_ALGO\"");
  CHECK(with_path("prices") == "expected one value of prices, such as \"prices.gpu_hour\"");
  CHECK(with_path("workload.a-b") ==
        "\"workload.a-b\" cannot stand in expressions: give it a \"name\"");
  CHECK(problem(sweep(R"("vary": {"topology.fabric.rate": [1], "topology.fabric": ["a"]})")) ==
        "/vary/topology.fabric: would overwrite \"topology.fabric.rate\": it must stand before it");
}

TEST_CASE("wrong values of an input are refused where they stand", "[io][sweep]") {
  CHECK(axis_problem("[]") == ": expected at least one value");
  CHECK(axis_problem("[1, 2, 1.0]") == "/2: 1 is there twice");
  CHECK(axis_problem("[1, null]") == "/1: expected a number, a string, true or false");
  CHECK(axis_problem("[[1]]") == "/0: expected a number, a string, true or false");
  CHECK(axis_problem("3") ==
        ": expected a list of values, or an object with \"values\", or \"from\" and \"to\"");
  CHECK(axis_problem(R"({"values": [1, "a"], "unit": "Gb/s"})") ==
        "/values/1: expected a number of Gb/s");
  CHECK(axis_problem(R"({"values": [1], "step": 2})") ==
        "/step: is not a known option, known are \"values\", \"when\", \"unit\" and \"name\"");
  CHECK(axis_problem(R"({"from": 1})").find("\"to\"") != std::string::npos);
  CHECK(axis_problem(R"({"from": 1, "to": 1, "step": 1})") == "/to: expected more than 1");
  CHECK(axis_problem(R"({"from": 1, "to": 2})") ==
        ": a grid needs values: give \"step\", \"factor\" or \"count\", or draw a sample");
  CHECK(axis_problem(R"({"from": 1, "to": 2, "step": 1, "count": 3})") ==
        "/count: \"step\" says it already: leave one out");
  CHECK(axis_problem(R"({"from": 1, "to": 2, "step": 1, "scale": "log"})") ==
        "/scale: \"step\" says it already: leave it out");
  CHECK(axis_problem(R"({"from": 0, "to": 2, "factor": 2})") ==
        "/from: expected a number above zero");
  CHECK(axis_problem(R"({"from": 0, "to": 2, "scale": "log"})", drawn) ==
        "/from: expected a number above zero");
  CHECK(axis_problem(R"({"from": 1, "to": 2, "factor": 1})") ==
        "/factor: expected more than 1, got 1");
  CHECK(axis_problem(R"({"from": 1, "to": 2, "step": 1e-9})") ==
        "/step: gives more than 1000000 values");
  CHECK(axis_problem(R"({"from": 1, "to": 2, "factor": 1.0000001})") ==
        "/factor: gives more than 1000000 values");
  CHECK(axis_problem(R"({"from": -1e308, "to": 1e308, "count": 3})") == ": the range is too wide");
  CHECK(axis_problem(R"({"from": 1.5, "to": 2, "count": 2, "whole": true})") ==
        "/from: expected a whole number, as \"whole\" says");
  CHECK(axis_problem(R"({"from": 1, "to": 2, "count": 2, "scale": "lgo"})")
            .find("did you mean \"log\"?") != std::string::npos);
  CHECK(
      axis_problem(R"({"values": [1], "name": "a b"})") ==
      "/name: expected a name of letters, digits, \"_\" and \".\" that is no word of expressions, "
      "got \"a b\"");
  CHECK(axis_problem(R"({"values": [1], "name": "mfu"})") ==
        "/name: \"mfu\" is the name of an output");
}

TEST_CASE("a condition of an input is on inputs before it", "[io][sweep]") {
  const auto with_when = [](const std::string& when) {
    return problem(
        sweep(R"("vary": {"topology.a": [1, 2], "topology.b": {"values": [1], "when": ")" + when +
              R"("}, "topology.c": [1]})"));
  };
  CHECK(with_when("a == 2").empty());
  CHECK(with_when("c == 1") == "/vary/topology.b/when: \"c\" must stand before what depends on it");
  CHECK(with_when("b == 1") == "/vary/topology.b/when: \"b\" must stand before what depends on it");
  CHECK(with_when("mfu > 1") == "/vary/topology.b/when: \"mfu\" is no input that varies");
  CHECK(with_when("a >") == "/vary/topology.b/when: end of \"a >\": expected a value");
  CHECK(with_when("a") == "/vary/topology.b/when: \"a\" is 1, expected a condition, true or false");
}

TEST_CASE("sampling says what it needs and nothing else", "[io][sweep]") {
  const auto with_sampling = [](const std::string& members) {
    return problem(sweep(R"("vary": {"topology.x": [1]}, "sampling": {)" + members + "}"));
  };
  CHECK(with_sampling(R"("method": "sobl", "points": 3)").find("did you mean \"sobol\"?") !=
        std::string::npos);
  CHECK(with_sampling(R"("method": "random")").find("\"points\"") != std::string::npos);
  CHECK(with_sampling(R"("method": "random", "points": 0)").starts_with("/sampling/points: "));
  CHECK(with_sampling(R"("method": "grid", "points": 5)") ==
        "/sampling/points: a grid has all of its points: leave it out");
  CHECK(with_sampling(R"("method": "sobol", "points": 5, "seed": 2)") ==
        "/sampling/seed: nothing is random in \"sobol\": leave it out");
  CHECK(with_sampling(R"("method": "random", "points": 5, "seed": -2)") ==
        "/sampling/seed: expected a whole number of at least 0, got -2");
  CHECK(problem(sweep(R"("vary": {"topology.a": {"from": 1, "to": 1000000, "step": 1},
    "topology.b": {"from": 1, "to": 1000000, "step": 1}, "topology.c": {"from": 1, "to": 1000000, "step": 1},
    "topology.d": {"from": 1, "to": 1000000, "step": 1}})")) ==
        "/vary: the grid has more than 9e18 points: shorten lists or draw a sample");
}

TEST_CASE("names in expressions are checked, with the nearest", "[io][sweep]") {
  CHECK(refused(R"("where": "fits_in_memry")") ==
        "/where: \"fits_in_memry\" is no input that varies, derived value or output, did you mean "
        "\"fits_in_memory\"?");
  CHECK(refused(R"("where": ["tp > 1", "shedule == 'a'"])") ==
        "/where/1: \"shedule\" is no input that varies, derived value or output, did you mean "
        "\"schedule\"?");
  CHECK(refused(R"("where": 3)") == "/where: expected a condition or a list of them");
  CHECK(refused(R"("derived": {"a": "b + 1", "b": "tp"})") ==
        "/derived/a: \"b\" must stand before what is derived from it");
  CHECK(refused(R"("derived": {"a": "a + 1"})") == "/derived/a: \"a\" is derived from itself");
  CHECK(refused(R"("derived": {"tp": "1"})") == "/derived/tp: there are two of the name \"tp\"");
  CHECK(refused(R"("derived": {"mfu": "1"})") == "/derived/mfu: \"mfu\" is the name of an output");
  CHECK(refused(R"("derived": {"and": "1"})")
            .starts_with("/derived/and: expected a name of letters"));
  CHECK(refused(R"("derived": {"a": "tp +"})") == "/derived/a: end of \"tp +\": expected a value");
  CHECK(refused(R"("derived": ["tp"])") ==
        "/derived: expected an object: names with their expressions");
}

TEST_CASE("an objective says which way is better, unless that goes without saying", "[io][sweep]") {
  CHECK(refused(R"("objective": "tokens_per_sec")") ==
        "/objective: \"tokens_per_sec\" is no output, did you mean \"tokens_per_s\"?");
  CHECK(refused(R"("objective": "zzz")")
            .starts_with("/objective: \"zzz\" is no output, expected one of time_us, step_s, "));
  CHECK(refused(R"("objective": "tp")") ==
        "/objective: say which way: {\"maximise\": \"tp\"} or {\"minimise\": \"tp\"}");
  CHECK(refused(R"("objective": "gpus")") ==
        "/objective: say which way: {\"maximise\": \"gpus\"} or {\"minimise\": \"gpus\"}");
  CHECK(refused(R"("objective": {"maximise": "mfu", "minimise": "tp"})") ==
        "/objective: expected either \"maximise\" or \"minimise\"");
  CHECK(refused(R"("objective": {"name": "x"})") ==
        "/objective: expected either \"maximise\" or \"minimise\"");
  CHECK(refused(R"("objective": {"maximize": "mfu"})") ==
        "/objective/maximize: is not a known option, did you mean \"maximise\"?");
  CHECK(refused(R"("objective": {"maximise": "mfuu"})") ==
        "/objective/maximise: \"mfuu\" is no input that varies, derived value or output, did you "
        "mean "
        "\"mfu\"?");
  CHECK(refused(R"("objective": 3)") ==
        "/objective: expected the name of an output, {\"maximise\": ...} or {\"minimise\": ...}");
  CHECK(refused(R"("objective": {"maximise": "mfu", "where": "tp > 1"})")
            .starts_with("/objective/where: is not a known option"));
  CHECK(refused(R"("pareto": ["mfu"])") == "/pareto: expected at least two objectives");
  CHECK(refused(R"("pareto": ["mfu", "mfu"])") == "/pareto/1: \"mfu\" is there twice");
  CHECK(refused(R"("find": [{"maximise": "mfu"}])").find("\"name\"") != std::string::npos);
  CHECK(refused(R"("find": ["mfu"])") ==
        "/find/0: expected an object with \"name\", \"maximise\" or \"minimise\", and \"where\"");
  CHECK(
      refused(R"("find": [{"name": "a", "maximise": "mfu"}, {"name": "a", "maximise": "mfu"}])") ==
      "/find/1/name: \"a\" is there twice");
  CHECK(refused(R"("evaluate": "adaptive")") ==
        "/evaluate: only an \"objective\" tells what can be among the best: there is none");
  CHECK(
      refused(R"("evaluate": "adaptiv", "objective": "mfu")").find("did you mean \"adaptive\"?") !=
      std::string::npos);
  CHECK(refused(R"("prices": 3)") ==
        "/prices: expected an object of prices, or the name of a file");
  CHECK(refused(R"("prices": {"a": [1]})") ==
        "/prices/a: expected a number, a string, true or false");
  CHECK(refused(R"("top": 0)").starts_with("/top: "));
}

TEST_CASE("schema and reader agree on the forms of a sweep", "[io][sweep]") {
  const test::Schema schema("sweep.schema.json");
  for (
      const std::string members :
      {R"("vary": {"topology.x": [1, "a", true]}, "comment": "why")",
       R"("vary": {"topology.x": {"values": [1], "unit": "Gb/s", "name": "n"}})",
       R"("vary": {"topology.x": {"from": 1, "to": 4, "factor": 2}}, "where": ["x > 1"], "top": 3)",
       R"("vary": {"topology.x": {"from": 1, "to": 4, "scale": "log", "whole": true}},
              "sampling": {"method": "sobol", "points": 8})",
       R"("vary": {"topology.x": [1], "topology.y": {"values": [2], "when": "x == 1"}},
              "derived": {"z": "x + 1"}, "objective": {"minimise": "z"}, "pareto": ["mfu", {"minimise": "z"}],
              "find": [{"name": "f", "minimise": "z", "where": "z > 1"}], "evaluate": "adaptive",
              "prices": {"gpu": {"h100": 1}}, "library": "nccl", "name": "n")"}) {
    CAPTURE(members);
    CHECK(schema.problems(sweep(members)).empty());
    CHECK_NOTHROW(parse(sweep(members)));
  }
  for (const std::string members :
       {R"("vary": {"topology.x": []})", R"("vary": {"topology.x": [null]})",
        R"("vary": {"topology.x": {"from": 1}})",
        R"("vary": {"topology.x": {"values": [1], "step": 2}})",
        R"("vary": {"topology.x": [1]}, "sampling": {"method": "dice", "points": 3})",
        R"("vary": {"topology.x": [1]}, "sampling": {"method": "random"})",
        R"("vary": {"topology.x": [1]}, "objective": {"maximise": "mfu", "minimise": "mfu"})",
        R"("vary": {"topology.x": [1]}, "pareto": ["mfu"])",
        R"("vary": {"topology.x": [1]}, "find": [{"minimise": "step_s"}])",
        R"("vary": {"topology.x": [1]}, "evaluate": "guess")",
        R"("vary": {"topology.x": [1]}, "top": 0)",
        R"("vary": {"topology.x": [1]}, "wher": "x")"}) {
    CAPTURE(members);
    CHECK_FALSE(schema.accepts(sweep(members)));
    CHECK_THROWS_AS(parse(sweep(members)), InputError);
  }
}

TEST_CASE("the examples of docs/formats/sweep.md satisfy schema and reader", "[io][sweep]") {
  const test::Schema schema("sweep.schema.json");
  const std::string page =
      test::text_of(std::filesystem::path(FLYOVER_SOURCE_DIR) / "docs/formats/sweep.md");
  int examples = 0;
  for (std::size_t at = page.find("```json\n"); at != std::string::npos;
       at = page.find("```json\n", at)) {
    at += 8;
    const std::string text = page.substr(at, page.find("```", at) - at);
    CAPTURE(text);
    CHECK(schema.problems(text).empty());
    CHECK_NOTHROW(parse(text));
    ++examples;
  }
  CHECK(examples >= 2);
}

TEST_CASE("docs/formats/sweep.md names every output", "[io][sweep]") {
  const std::string page =
      test::text_of(std::filesystem::path(FLYOVER_SOURCE_DIR) / "docs/formats/sweep.md");
  for (const SweepOutput& output : sweep_outputs()) {
    CAPTURE(output.name);
    CHECK(page.find("| `" + std::string(output.name) + "` |") != std::string::npos);
  }
}

}  // namespace flyover
