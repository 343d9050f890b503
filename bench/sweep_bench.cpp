// What a sweep costs around its evaluations: handing out, collecting, storing, reading back.

#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include "flyover/io/sweep_export.hpp"
#include "flyover/io/sweep_store.hpp"
#include "flyover/study/point_runner.hpp"
#include "flyover/study/sweep.hpp"
#include "support/made_up_points.hpp"

namespace {

using namespace flyover;

constexpr std::int64_t points_per_run = 100000;

MakeEvaluator made_up() {
  return [] { return std::make_unique<test::MadeUpEvaluator>(); };
}

// The evaluation alone, to subtract.
void evaluate_points(benchmark::State& state) {
  const SweepSpace space = test::made_up_space(points_per_run);
  const SweepPoints points(space);
  test::MadeUpEvaluator evaluator;
  for (auto _ : state) {
    for (std::uint64_t i = 0; i < points.size(); ++i) {
      benchmark::DoNotOptimize(evaluator.evaluate(points.point(i), Fidelity::Replay));
    }
  }
  state.SetItemsProcessed(state.iterations() * points_per_run);
}
BENCHMARK(evaluate_points)->Unit(benchmark::kMillisecond);

void run_points(benchmark::State& state) {
  const SweepSpace space = test::made_up_space(points_per_run);
  const SweepPoints points(space);
  SweepOptions options;
  options.threads = static_cast<std::uint32_t>(state.range(0));
  std::uint64_t results = 0;
  for (auto _ : state) {
    run_sweep(
        points, made_up(), [&](const PointResult&) { ++results; }, options);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(results));
}
BENCHMARK(run_points)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

class Rows {
 public:
  explicit Rows(std::size_t columns) {
    for (std::size_t i = 0; i < columns; ++i) {
      identity_.inputs.push_back("input" + std::to_string(i));
      identity_.outputs.push_back("output" + std::to_string(i));
    }
    result_.status = PointStatus::Done;
    for (std::size_t i = 0; i < columns; ++i) {
      result_.inputs.emplace_back(identity_.inputs[i], static_cast<std::int64_t>(8 * i));
      result_.outputs.emplace_back(identity_.outputs[i], 1.0 / static_cast<double>(i + 1));
    }
    std::string name = (std::filesystem::temp_directory_path() / "flyover-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~Rows() { std::filesystem::remove_all(folder_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  void write() {
    std::filesystem::remove(file());
    io::SweepStore store(file(), identity_, io::StoreOpening::Create);
    for (std::uint64_t i = 0; i < points_per_run; ++i) {
      result_.number = i;
      store.add(result_);
    }
    store.commit();
  }
  [[nodiscard]] std::string file() const { return (folder_ / "a.db").string(); }

 private:
  io::SweepIdentity identity_;
  PointResult result_;
  std::filesystem::path folder_;
};

// Rows of so many inputs and as many outputs.
void store_rows(benchmark::State& state) {
  Rows rows(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) rows.write();
  state.SetItemsProcessed(state.iterations() * points_per_run);
}
BENCHMARK(store_rows)->Arg(4)->Arg(16)->UseRealTime()->Unit(benchmark::kMillisecond);

void read_rows(benchmark::State& state) {
  Rows rows(16);
  rows.write();
  for (auto _ : state) benchmark::DoNotOptimize(io::read_sweep(rows.file()));
  state.SetItemsProcessed(state.iterations() * points_per_run);
}
BENCHMARK(read_rows)->Unit(benchmark::kMillisecond);

void write_csv(benchmark::State& state) {
  Rows rows(16);
  rows.write();
  const io::StoredSweep sweep = io::read_sweep(rows.file());
  for (auto _ : state) benchmark::DoNotOptimize(io::sweep_csv(sweep));
  state.SetItemsProcessed(state.iterations() * points_per_run);
}
BENCHMARK(write_csv)->Unit(benchmark::kMillisecond);

}  // namespace
