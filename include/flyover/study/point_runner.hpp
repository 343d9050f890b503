#pragma once

// Where points are evaluated: on threads of this process, or by other processes too. Who asks for
// results (run_sweep, run_adaptive) does not know which.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "flyover/study/sweep.hpp"

namespace flyover {

// Points that wait for somebody to evaluate them.
struct PointBatch {
  Fidelity fidelity = Fidelity::Replay;
  std::vector<std::uint64_t> numbers;
};

// Up to so many points, which are then the caller's; none: there are no more, ask no further. May
// take its time. Called from one thread at a time.
using NextPoints = std::function<PointBatch(std::size_t most)>;

class PointRunner {
 public:
  virtual ~PointRunner() = default;
  // Evaluates all that `next` hands out, and returns when `sink` has had every result, one for each
  // point, in any order and from one thread at a time. What an evaluator, `next` or `sink` throws
  // ends the run: nothing more is handed out, results on their way are dropped, and it is thrown
  // from here (of several evaluators' errors that of the lowest point).
  virtual void run(const NextPoints& next, const ResultSink& sink) = 0;
};

// How many points to take at once: so many that taking them costs little beside evaluating them,
// and so few that nobody is left with a pile when the others are done.
class ChunkSize {
 public:
  ChunkSize(std::size_t least, std::size_t most) : least_(least), most_(most), size_(least) {}
  [[nodiscard]] std::size_t now() const { return size_; }
  // So many points took so long.
  void took(std::size_t points, std::chrono::steady_clock::duration time);

 private:
  std::size_t least_;
  std::size_t most_;
  std::size_t size_;
};

// Threads with an evaluator each, which is made when its thread first needs it and kept from run to
// run. Fills in number and CPU time of every result, and the inputs where the evaluator left them
// out; points that a condition refuses need no evaluator. Borrows the points.
class ThreadRunner : public PointRunner {
 public:
  // 0 threads: one per core. `on_failure` is called when a run will end early, from the thread that
  // failed, so that a `next` that waits can give up.
  ThreadRunner(const SweepPoints& points, MakeEvaluator make, std::uint32_t threads,
               std::function<void()> on_failure = {});
  void run(const NextPoints& next, const ResultSink& sink) override;

 private:
  const SweepPoints& points_;
  MakeEvaluator make_;
  std::function<void()> on_failure_;
  std::vector<std::unique_ptr<PointEvaluator>> evaluators_;  // By thread.
};

}  // namespace flyover
