#include "flyover/study/point_runner.hpp"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

using Clock = std::chrono::steady_clock;

double thread_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The first reason to end a run early; of errors of points that of the lowest number.
class Failure {
 public:
  [[nodiscard]] bool happened() const { return happened_.load(std::memory_order_relaxed); }
  // From inside a handler.
  void note(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (!error_ || number < number_) {
      error_ = std::current_exception();
      number_ = number;
    }
    happened_ = true;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> happened_ = false;
  std::exception_ptr error_;
  std::uint64_t number_ = 0;
};

// What is nobody's fault in particular yields to the error of a point, which says more.
constexpr std::uint64_t no_point = std::numeric_limits<std::uint64_t>::max();

PointResult evaluate(const SweepPoint& point, Fidelity fidelity, const MakeEvaluator& make,
                     std::unique_ptr<PointEvaluator>& evaluator) {
  const double before = thread_seconds();
  PointResult result;
  if (point.refused.empty()) {
    if (!evaluator) evaluator = make();
    result = evaluator->evaluate(point, fidelity);
  } else {
    result.status = PointStatus::Refused;
    result.reason = point.refused;
  }
  result.number = point.number;
  if (result.inputs.empty()) result.inputs = point.inputs;
  result.seconds = thread_seconds() - before;
  return result;
}

}  // namespace

void ChunkSize::took(std::size_t points, Clock::duration time) {
  using std::chrono::milliseconds;
  if (points >= size_ && time < milliseconds(10)) {
    size_ = std::min(size_ * 2, most_);
  } else if (time > milliseconds(50)) {
    size_ = std::max(size_ / 2, least_);
  }
}

ThreadRunner::ThreadRunner(const SweepPoints& points, MakeEvaluator make, std::uint32_t threads,
                           std::function<void()> on_failure)
    : points_(points),
      make_(std::move(make)),
      on_failure_(std::move(on_failure)),
      evaluators_(threads > 0 ? threads : std::max(std::thread::hardware_concurrency(), 1U)) {}

void ThreadRunner::run(const NextPoints& next, const ResultSink& sink) {
  std::mutex taking;
  std::mutex giving;
  bool exhausted = false;
  Failure failure;

  const auto take = [&](std::size_t most) {
    const std::lock_guard lock(taking);
    PointBatch batch;
    if (exhausted || failure.happened()) return batch;
    batch = next(most);
    exhausted = batch.numbers.empty();
    return batch;
  };
  const auto work = [&](std::unique_ptr<PointEvaluator>& evaluator) {
    ChunkSize chunk(1, 64);
    std::uint64_t at = no_point;
    try {
      while (true) {
        const PointBatch batch = take(chunk.now());
        if (batch.numbers.empty()) return;
        const Clock::time_point start = Clock::now();
        for (const std::uint64_t number : batch.numbers) {
          if (failure.happened()) return;
          at = number;
          PointResult result = evaluate(points_.point(number), batch.fidelity, make_, evaluator);
          at = no_point;
          const std::lock_guard lock(giving);
          if (failure.happened()) return;
          sink(result);
        }
        chunk.took(batch.numbers.size(), Clock::now() - start);
      }
    } catch (...) {
      failure.note(at);
      if (on_failure_) on_failure_();
    }
  };

  std::vector<std::thread> others;
  try {
    for (std::size_t i = 1; i < evaluators_.size(); ++i) {
      others.emplace_back(work, std::ref(evaluators_[i]));
    }
  } catch (...) {
    failure.note(no_point);
  }
  work(evaluators_[0]);
  for (std::thread& thread : others) thread.join();
  failure.rethrow();
}

}  // namespace flyover
