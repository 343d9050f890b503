#pragma once

// Runs the points of a sweep, on threads or handed in by other processes, and says which matter.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/study/sweep_space.hpp"

namespace flyover {

enum class PointStatus : std::uint8_t {
  Done,
  Refused,   // A condition does not hold: reason.
  Invalid,   // The inputs do not go together (an impossible layout, a bad value): reason.
  Excluded,  // A bound shows that it cannot win (adaptive sweeps): reason; outputs: the bound.
  Failed     // A simulation that could not finish: reason.
};
[[nodiscard]] std::string_view to_string(PointStatus status);  // "done", "refused"

struct PointResult {
  std::uint64_t number = 0;
  PointStatus status = PointStatus::Done;
  std::string reason;
  SweepValues inputs;
  SweepValues outputs;
  // CPU time that it took, filled in by who runs the evaluator: the only part that differs from run
  // to run.
  double seconds = 0;
};

// How much work a point is worth.
enum class Fidelity : std::uint8_t { Bound, Estimate, Replay };

// Turns a point into outputs; one per thread, so it may remember what points have in common.
// Results depend on the point alone, never on what was evaluated before.
class PointEvaluator {
 public:
  virtual ~PointEvaluator() = default;
  // Never throws for what is wrong with the point's inputs: that is a status with a reason.
  [[nodiscard]] virtual PointResult evaluate(const SweepPoint& point, Fidelity fidelity) = 0;
};
using MakeEvaluator = std::function<std::unique_ptr<PointEvaluator>()>;

// Takes results as they come, in any order, from one thread at a time. What it throws ends the
// sweep.
using ResultSink = std::function<void(const PointResult&)>;

struct SweepProgress {
  std::uint64_t done = 0;  // Of this and earlier runs.
  std::uint64_t total = 0;
  double per_second = 0;  // Lately.
  double left_seconds = 0;
};

struct SweepOptions {
  std::uint32_t threads = 0;  // 0: all cores.
  Fidelity fidelity = Fidelity::Replay;
  // Numbers that need not be run again. Never called while the sink is.
  std::function<bool(std::uint64_t)> finished;
  // At most some times per second, and at the end; from one thread at a time.
  std::function<void(const SweepProgress&)> on_progress;
};

// Every point once, handed out in order. Requires a sink. What an evaluator or the sink throws ends
// the sweep, after which no thread of it is left; results that the sink had before are good. The
// set of results does not depend on the number of threads, only their order and CPU times do.
void run_sweep(const SweepPoints& points, const MakeEvaluator& make, const ResultSink& sink,
               const SweepOptions& options);
// Where the runner evaluates, which also knows how many threads.
class PointRunner;
void run_sweep(const SweepPoints& points, PointRunner& runner, const ResultSink& sink,
               const SweepOptions& options);

}  // namespace flyover
