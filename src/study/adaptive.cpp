#include "flyover/study/adaptive.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "study/sweep_progress.hpp"

namespace flyover {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t largest_growth = 64;

enum class Stage : std::uint8_t { Unknown, Bounded, Estimated, Replayed, Out };

// Values are such that the smallest is best.
struct Candidate {
  Stage stage = Stage::Unknown;
  double bound = infinity;
  double low = infinity;
  double high = infinity;
};

class Search {
 public:
  Search(const SweepPoints& points, PointRunner& runner, const ResultSink& sink,
         const AdaptiveObjective& objective, const AdaptiveOptions& options)
      : runner_(runner),
        sink_(sink),
        objective_(objective),
        options_(options),
        candidates_(points.size()),
        progress_(points.size(), options.on_progress) {
    counts_.points = points.size();
  }

  AdaptiveCounts run() {
    bound_all();
    while (true) {
      const double threshold = this->threshold();
      if (estimates()) {
        if (round(waiting_, Fidelity::Estimate, estimate_round_, threshold)) continue;
      }
      if (!round(estimates() ? estimated_ : waiting_, options_.fidelity, replay_round_,
                 threshold)) {
        exclude(threshold);
        progress_.end();
        return counts_;
      }
    }
  }

 private:
  // Points by what they may be worth at best, ties by number.
  using Queue = std::set<std::pair<double, std::uint64_t>>;

  [[nodiscard]] bool estimates() const {
    return options_.fidelity == Fidelity::Replay && objective_.margin.has_value();
  }

  [[nodiscard]] std::optional<double> value_of(const PointResult& result) const {
    if (result.status != PointStatus::Done) return std::nullopt;
    const std::optional<double> value = objective_.value(result.outputs);
    if (!value || std::isnan(*value)) return std::nullopt;
    return objective_.largest ? -*value : *value;
  }
  [[nodiscard]] double shown(double value) const { return objective_.largest ? -value : value; }

  // The K-th smallest high.
  [[nodiscard]] double threshold() const {
    if (highs_.size() < objective_.top) return infinity;
    auto at = highs_.begin();
    std::advance(at, objective_.top - 1);
    return *at;
  }

  // A row that will not change any more.
  void finish(PointResult result) {
    candidates_[result.number].stage = Stage::Out;
    give(std::move(result));
  }
  void give(const PointResult& result) {
    if (options_.recall && options_.recall(result.number)) {
      progress_.skipped();
      return;
    }
    sink_(result);
    progress_.finished();
  }

  // Runs these numbers, which are in order, and calls use(result) for each.
  template <class Use>
  void run_all(const std::vector<std::uint64_t>& numbers, Fidelity fidelity, Use use) {
    std::size_t upcoming = 0;
    runner_.run(
        [&](std::size_t most) {
          PointBatch batch{.fidelity = fidelity, .numbers = {}};
          for (; upcoming < numbers.size() && batch.numbers.size() < most; ++upcoming) {
            batch.numbers.push_back(numbers[upcoming]);
          }
          return batch;
        },
        use);
  }

  void bound_all() {
    std::uint64_t upcoming = 0;
    runner_.run(
        [&](std::size_t most) {
          PointBatch batch{.fidelity = Fidelity::Bound, .numbers = {}};
          for (; upcoming < candidates_.size() && batch.numbers.size() < most; ++upcoming) {
            batch.numbers.push_back(upcoming);
          }
          return batch;
        },
        [&](const PointResult& result) {
          Candidate& candidate = candidates_[result.number];
          if (result.status != PointStatus::Done) {
            finish(result);
            return;
          }
          // Without a value the bound says nothing: it cannot be excluded.
          candidate.bound = value_of(result).value_or(-infinity);
          candidate.low = candidate.bound;
          candidate.stage = Stage::Bounded;
        });
    for (std::uint64_t number = 0; number < candidates_.size(); ++number) {
      if (candidates_[number].stage != Stage::Bounded) continue;
      ++counts_.possible;
      waiting_.emplace(candidates_[number].low, number);
    }
  }

  // Evaluates the first of a queue that may still win; false: there are none.
  bool round(Queue& queue, Fidelity fidelity, std::uint64_t& size, double threshold) {
    std::vector<std::uint64_t> numbers;
    while (!queue.empty() && numbers.size() < size && queue.begin()->first <= threshold) {
      numbers.push_back(queue.begin()->second);
      queue.erase(queue.begin());
    }
    if (numbers.empty()) return false;
    size = std::min<std::uint64_t>(size * 2, options_.round * largest_growth);
    // Neighbours have most in common, which evaluators remember.
    std::ranges::sort(numbers);
    if (fidelity == options_.fidelity) {
      replay(std::move(numbers));
    } else {
      estimate(numbers);
    }
    return true;
  }

  void estimate(const std::vector<std::uint64_t>& numbers) {
    counts_.estimates += numbers.size();
    run_all(numbers, Fidelity::Estimate, [&](const PointResult& result) {
      if (result.status != PointStatus::Done) {
        finish(result);
        return;
      }
      Candidate& candidate = candidates_[result.number];
      candidate.stage = Stage::Estimated;
      if (const std::optional<double> value = value_of(result)) {
        const double off = *objective_.margin * std::abs(*value);
        candidate.low = std::max(candidate.bound, *value - off);
        // Where the two contradict each other the bound is proven and the margin is experience.
        candidate.high = std::max(candidate.low, *value + off);
      }
    });
    for (const std::uint64_t number : numbers) {
      const Candidate& candidate = candidates_[number];
      if (candidate.stage != Stage::Estimated) continue;
      estimated_.emplace(candidate.low, number);
      if (candidate.high < infinity) highs_.insert(candidate.high);
    }
  }

  void replay(std::vector<std::uint64_t> numbers) {
    counts_.replays += numbers.size();
    for (const std::uint64_t number : numbers) {
      const auto known = highs_.find(candidates_[number].high);
      if (candidates_[number].high < infinity) highs_.erase(known);
      candidates_[number].high = infinity;
    }
    const auto use = [&](const PointResult& result) {
      const std::optional<double> value = value_of(result);
      Candidate& candidate = candidates_[result.number];
      candidate.stage = Stage::Replayed;
      candidate.high = value.value_or(infinity);
      give(result);
    };
    const std::vector<std::uint64_t> all = numbers;
    if (options_.recall) {
      std::erase_if(numbers, [&](std::uint64_t number) {
        const std::optional<PointResult> row = options_.recall(number);
        if (!row) return false;
        require(row->status != PointStatus::Excluded, "a point that wins is not excluded earlier");
        use(*row);
        return true;
      });
    }
    run_all(numbers, options_.fidelity, use);
    for (const std::uint64_t number : all) {
      if (candidates_[number].high < infinity) highs_.insert(candidates_[number].high);
    }
  }

  void exclude(double threshold) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t number = 0; number < candidates_.size(); ++number) {
      const Stage stage = candidates_[number].stage;
      if (stage != Stage::Bounded && stage != Stage::Estimated) continue;
      ++(stage == Stage::Bounded ? counts_.excluded_by_bound : counts_.excluded_by_estimate);
      if (options_.recall && options_.recall(number)) {
        progress_.skipped();
      } else {
        numbers.push_back(number);
      }
    }
    run_all(numbers, Fidelity::Bound, [&](PointResult result) {
      const Candidate& candidate = candidates_[result.number];
      result.status = PointStatus::Excluded;
      result.reason =
          fmt::format("{} {} is no match for the {} best, which reach {}",
                      candidate.stage == Stage::Bounded ? "its bound" : "its estimate, at best,",
                      shown(candidate.low), objective_.top, shown(threshold));
      sink_(result);
      progress_.finished();
    });
  }

  PointRunner& runner_;
  const ResultSink& sink_;
  const AdaptiveObjective& objective_;
  const AdaptiveOptions& options_;
  std::vector<Candidate> candidates_;
  ProgressMeter progress_;
  AdaptiveCounts counts_;
  Queue waiting_;                // With a bound only.
  Queue estimated_;              // Not yet replayed.
  std::multiset<double> highs_;  // That are finite.
  std::uint64_t estimate_round_ = options_.round;
  std::uint64_t replay_round_ = options_.round;
};

}  // namespace

AdaptiveCounts run_adaptive(const SweepPoints& points, PointRunner& runner, const ResultSink& sink,
                            const AdaptiveObjective& objective, const AdaptiveOptions& options) {
  require(sink && objective.value, "run_adaptive: a sink and an objective");
  require(objective.top > 0 && options.round > 0, "run_adaptive: at least one point per round");
  require(objective.margin.value_or(0) >= 0, "run_adaptive: a margin of zero or more");
  require(options.fidelity != Fidelity::Bound, "run_adaptive: values that are more than bounds");
  return Search(points, runner, sink, objective, options).run();
}

}  // namespace flyover
