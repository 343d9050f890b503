#include "flyover/io/sweep_evaluator.hpp"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/sweep_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/training_reader.hpp"
#include "flyover/io/training_step.hpp"
#include "flyover/layout/step_estimate.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/simulate/replay.hpp"
#include "flyover/study/step_replay.hpp"

using namespace flyover;
using Catch::Contains;

namespace {

const std::string folder = std::string(FLYOVER_SOURCE_DIR) + "/tests/cases/sweeps/";

// A sweep file with all that belongs to it.
struct Sweep {
  explicit Sweep(const std::string& text, io::SweepSettings settings = {})
      : document(io::Document::parse(folder + "sweep.json", text)),
        config(io::read_sweep_config(document)),
        study(document, config, std::move(settings)),
        points(config.space) {}

  [[nodiscard]] PointResult evaluate(std::uint64_t number, Fidelity fidelity) const {
    return study.make_evaluator()->evaluate(points.point(number), fidelity);
  }

  io::Document document;
  SweepConfig config;
  io::SweepStudy study;
  SweepPoints points;
};

double number(const PointResult& row, std::string_view name) {
  const SweepValue* value = find(row.outputs, name);
  INFO(name);
  REQUIRE(value != nullptr);
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  return std::get<double>(*value);
}

constexpr const char* grid = R"({
  "topology": "dgx-h100:2", "workload": "llama3-8b.json",
  "vary": {"topology.fabric.oversubscription": [1, 2],
           "workload.training.layout.tp": [1, 2, 3, 4, 8],
           "workload.training.layout.pp": [1, 2],
           "workload.training.recompute": ["none", "full"],
           "prices.quote": ["low", "typical"]},
  "evaluate": "replay"})";

}  // namespace

TEST_CASE("a point's outputs are those of plan", "[unit][io][sweep]") {
  const Sweep sweep(R"({"topology": "dgx-h100:2", "workload": "llama3-8b.json",
      "vary": {"workload.training.layout.tp": [1, 2, 4], "nccl.NCCL_ALGO": ["Ring"]}})");
  const std::uint64_t point = GENERATE(0, 1, 2);
  CAPTURE(point);

  const Topology topology = io::load_topology("dgx-h100:2", {}, io::FabricDetail::Trunks);
  const std::vector<io::Setting> ring = {{"NCCL_ALGO", "Ring"}};
  const Library library = io::load_library_input(default_library(topology), {}, ring).library;
  const Router router(topology, {.pxn = library.settings.pxn});
  const CostModel cost(topology, router, library);
  io::Document document = io::Document::load(folder + "llama3-8b.json");
  document.apply({"training.layout.tp", std::to_string(1U << point)});
  const io::TrainingWorkload training = io::read_training(document, 16, "hopper");
  const StepParts parts(training.job,
                        io::read_kernels(io::kernel_document(training.job.stack.kernels)),
                        io::only_gpu_model(topology), 8);
  const MessageTimes times(topology, cost);
  const StepEstimator estimator(parts, times);

  const StepEstimate estimate = estimator.estimate(training.layout);
  const PointResult estimated = sweep.evaluate(point, Fidelity::Estimate);
  REQUIRE(estimated.status == PointStatus::Done);
  CHECK(number(estimated, "step_s") == to_seconds(estimate.time));
  CHECK(number(estimated, "mfu") == estimate.mfu);
  CHECK(number(estimated, "bubble_s") == to_seconds(estimate[StepPart::Bubble]));
  const double sum = number(estimated, "compute_s") + number(estimated, "exposed_communication_s") +
                     number(estimated, "bubble_s") + number(estimated, "optimizer_s") +
                     number(estimated, "other_s");
  CHECK(sum == Approx(number(estimated, "step_s")));

  const StepReplay replay = replay_step(topology, cost, parts, times, training.layout, 5'000'000);
  const PointResult replayed = sweep.evaluate(point, Fidelity::Replay);
  CHECK(number(replayed, "step_s") == to_seconds(*replay.time));
  CHECK(number(replayed, "time_us") == Approx(to_seconds(replay.replayed) * 1e6));
  const Result run =
      flyover::replay(topology, cost, io::training_step(training, topology, cost).workload).result;
  CHECK(replay.replayed == run.time);

  const PointResult bound = sweep.evaluate(point, Fidelity::Bound);
  CHECK(number(bound, "step_s") <= number(replayed, "step_s"));
  CHECK(number(bound, "step_s") <= number(estimated, "step_s"));
  CHECK(number(bound, "tokens_per_dollar") >= number(replayed, "tokens_per_dollar"));
  CHECK(number(bound, "cost_per_hour") == number(replayed, "cost_per_hour"));
}

TEST_CASE("results do not depend on what was evaluated before", "[unit][io][sweep]") {
  const Sweep sweep(grid);
  std::vector<std::uint64_t> order(sweep.points.size());
  std::iota(order.begin(), order.end(), 0);
  const Fidelity fidelity = GENERATE(Fidelity::Bound, Fidelity::Estimate, Fidelity::Replay);
  const auto run = [&] {
    std::vector<PointResult> rows(order.size());
    const auto evaluator = sweep.study.make_evaluator();
    for (const std::uint64_t point : order) {
      rows[point] = evaluator->evaluate(sweep.points.point(point), fidelity);
    }
    return rows;
  };
  const std::vector<PointResult> rows = run();
  // Every seventh, round and round: 80 has no factor 7.
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = (i * 7 + 3) % order.size();
  const std::vector<PointResult> shuffled = run();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(rows[i].status == shuffled[i].status);
    CHECK(rows[i].reason == shuffled[i].reason);
    CHECK(rows[i].outputs == shuffled[i].outputs);
  }
}

TEST_CASE("no bound is above its replay, no estimate far off", "[unit][io][sweep]") {
  const Sweep sweep(grid);
  for (std::uint64_t point = 0; point < sweep.points.size(); point += 2) {
    const PointResult replayed = sweep.evaluate(point, Fidelity::Replay);
    if (replayed.status != PointStatus::Done) continue;
    CAPTURE(point);
    const double step = number(replayed, "step_s");
    CHECK(number(sweep.evaluate(point, Fidelity::Bound), "step_s") <= step);
    CHECK(number(sweep.evaluate(point, Fidelity::Estimate), "step_s") == Approx(step).epsilon(0.3));
  }
}

TEST_CASE("what does not go together is invalid, with the reason", "[unit][io][sweep]") {
  const Sweep sweep(grid);
  const PointResult row = sweep.evaluate(16, Fidelity::Estimate);
  CHECK(row.status == PointStatus::Invalid);
  CHECK_THAT(row.reason, Contains("tensor 3"));
  CHECK(row.outputs.empty());
}

TEST_CASE("a layout that does not fit is refused before it is timed", "[unit][io][sweep]") {
  const Sweep sweep(R"({"topology": "dgx-h100:1", "workload": "llama3-8b.json",
      "vary": {"workload.training.layout.tp": [1], "workload.training.global_batch": [128],
               "workload.training.micro_batch": [16]},
      "where": ["fits_in_memory", "mfu > 0.9"], "evaluate": "estimate"})");
  const PointResult row = sweep.evaluate(0, Fidelity::Estimate);
  CHECK(row.status == PointStatus::Refused);
  CHECK(row.reason == "\"fits_in_memory\" does not hold");
  CHECK(find(row.outputs, "step_s") == nullptr);
  CHECK(number(row, "memory_GiB") > 80);
}

TEST_CASE("settings of the command line hold below those that vary", "[unit][io][sweep]") {
  io::SweepSettings settings;
  settings.topology = {{"fabric.oversubscription", "4"}};
  settings.prices = {{"gpu_hour", "1"}};
  const std::string text = R"({"topology": "dgx-h100:40", "workload": "all-reduce.json",
      "vary": {"topology.fabric.oversubscription": {"values": [1], "when": "quote == 'low'"},
               "prices.quote": ["low"]}})";
  const std::string reordered = R"({"topology": "dgx-h100:40", "workload": "all-reduce.json",
      "vary": {"prices.quote": ["low", "high"],
               "topology.fabric.oversubscription": {"values": [1], "when": "quote == 'low'"}}})";
  CHECK_THROWS_AS(Sweep(text), InputError);
  const Sweep sweep(reordered, settings);
  const PointResult varied = sweep.evaluate(0, Fidelity::Bound);
  const PointResult fixed = sweep.evaluate(1, Fidelity::Bound);
  CHECK(number(varied, "switches") > number(fixed, "switches"));
  CHECK(number(varied, "cost_per_hour") == 320);
  CHECK(sweep.study.digest() != Sweep(reordered).study.digest());
}

TEST_CASE("a workload that trains nothing is replayed", "[unit][io][sweep]") {
  const Sweep sweep(R"({"topology": "dgx-h100:2", "workload": "all-reduce.json",
      "vary": {"nccl.NCCL_ALGO": ["Ring", "Tree"]}})");
  const PointResult ring = sweep.evaluate(0, Fidelity::Replay);
  CHECK(ring.status == PointStatus::Done);
  CHECK(number(ring, "busbw_GBps") > 100);
  CHECK(ring.outputs == sweep.evaluate(0, Fidelity::Estimate).outputs);
  CHECK(find(sweep.evaluate(0, Fidelity::Bound).outputs, "time_us") == nullptr);
  CHECK(number(ring, "time_us") != number(sweep.evaluate(1, Fidelity::Replay), "time_us"));
}

TEST_CASE("files that are not there are told at once", "[unit][io][sweep]") {
  CHECK_THROWS_WITH(Sweep(R"({"topology": "dgx-h100:2", "workload": "nowhere.json",
      "vary": {"workload.training.layout.tp": [1]}})"),
                    Contains("nowhere.json"));
  CHECK_THROWS_WITH(Sweep(R"({"topology": "dgx-h10:2", "workload": "all-reduce.json",
      "vary": {"nccl.NCCL_ALGO": ["Ring"]}})"),
                    Contains("did you mean"));
}
