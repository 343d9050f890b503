#include "flyover/study/sweep.hpp"

#include <mutex>

#include "flyover/base/error.hpp"
#include "flyover/study/point_runner.hpp"
#include "study/sweep_progress.hpp"

namespace flyover {

std::string_view to_string(PointStatus status) {
  switch (status) {
    case PointStatus::Done:
      return "done";
    case PointStatus::Refused:
      return "refused";
    case PointStatus::Invalid:
      return "invalid";
    case PointStatus::Excluded:
      return "excluded";
    case PointStatus::Failed:
      return "failed";
  }
  return "";
}

void run_sweep(const SweepPoints& points, const MakeEvaluator& make, const ResultSink& sink,
               const SweepOptions& options) {
  ThreadRunner runner(points, make, options.threads);
  run_sweep(points, runner, sink, options);
}

void run_sweep(const SweepPoints& points, PointRunner& runner, const ResultSink& sink,
               const SweepOptions& options) {
  require(sink != nullptr, "run_sweep: a sink");
  ProgressMeter progress(points.size(), options.on_progress);
  // The sink may be what `finished` looks at.
  std::mutex mutex;
  std::uint64_t upcoming = 0;
  runner.run(
      [&](std::size_t most) {
        const std::lock_guard lock(mutex);
        PointBatch batch{.fidelity = options.fidelity, .numbers = {}};
        for (; upcoming < points.size() && batch.numbers.size() < most; ++upcoming) {
          if (options.finished && options.finished(upcoming)) {
            progress.skipped();
          } else {
            batch.numbers.push_back(upcoming);
          }
        }
        return batch;
      },
      [&](const PointResult& result) {
        const std::lock_guard lock(mutex);
        sink(result);
        progress.finished();
      });
  progress.end();
}

}  // namespace flyover
