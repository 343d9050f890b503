#include "flyover/study/plan.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Threads with a timer each, which is made when it is first needed and kept between jobs.
class Workers {
 public:
  Workers(std::uint32_t threads, const std::function<LayoutTimer()>& make_timer)
      : make_timer_(make_timer),
        timers_(std::max(threads, 1U)) {}

  // Calls work(worker, i) for every i below `count`, in any order. Rethrows the error of the lowest
  // i, so that it does not depend on the threads either.
  template <class Work>
  void run(std::size_t count, Work work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::size_t failed = count;
    std::exception_ptr error;
    const auto loop = [&](std::size_t worker) {
      for (std::size_t i = next++; i < count; i = next++) {
        try {
          work(worker, i);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (i < failed) {
            failed = i;
            error = std::current_exception();
          }
        }
      }
    };
    std::vector<std::thread> others;
    const std::size_t useful = std::min(timers_.size(), std::max<std::size_t>(count, 1));
    for (std::size_t worker = 1; worker < useful; ++worker) others.emplace_back(loop, worker);
    loop(0);
    for (std::thread& thread : others) thread.join();
    if (error) std::rethrow_exception(error);
  }

  const LayoutTimer& timer(std::size_t worker) {
    if (!timers_[worker]) timers_[worker] = make_timer_();
    return *timers_[worker];
  }
  [[nodiscard]] std::size_t size() const { return timers_.size(); }

 private:
  const std::function<LayoutTimer()>& make_timer_;
  std::vector<std::optional<LayoutTimer>> timers_;
};

struct Candidate {
  Layout layout;
  Bytes memory;
  Duration bound{};
  StepEstimate estimate;
};

// What came of one family.
struct FamilyResult {
  std::vector<Candidate> fitting;
  Refusals refused;
  std::uint64_t too_large = 0;
  std::array<std::uint64_t, memory_parts> too_large_by{};
  std::optional<PlanMiss> miss;
};

// Which layouts compete for one place among the best.
using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                         std::size_t>;
Place place_of(const Layout& layout, std::size_t candidate, bool every_variant) {
  return {layout.tensor, layout.pipeline, layout.context,
          layout.expert, layout.data,     every_variant ? candidate : 0};
}

// The best layouts seen so far, ties going to the earlier candidate.
class Podium {
 public:
  Podium(std::uint32_t top, bool every_variant) : top_(top), every_variant_(every_variant) {}

  void offer(const std::vector<Candidate>& candidates, std::size_t i) {
    const auto [place, is_new] =
        best_.try_emplace(place_of(candidates[i].layout, i, every_variant_), i);
    if (!is_new && before(candidates, i, place->second)) place->second = i;
  }
  [[nodiscard]] std::vector<std::size_t> top(const std::vector<Candidate>& candidates) const {
    std::vector<std::size_t> sorted;
    sorted.reserve(best_.size());
    for (const auto& [place, i] : best_) sorted.push_back(i);
    std::ranges::sort(sorted, [&](auto a, auto b) { return before(candidates, a, b); });
    sorted.resize(std::min<std::size_t>(sorted.size(), top_));
    return sorted;
  }
  static bool before(const std::vector<Candidate>& candidates, std::size_t a, std::size_t b) {
    return std::pair(candidates[a].estimate.time, a) < std::pair(candidates[b].estimate.time, b);
  }

 private:
  std::uint32_t top_;
  bool every_variant_;
  std::map<Place, std::size_t> best_;
};

void add_misses(std::vector<PlanMiss>& misses, std::vector<FamilyResult>& families,
                std::uint32_t most) {
  for (FamilyResult& family : families) {
    if (family.miss) misses.push_back(std::move(*family.miss));
  }
  std::ranges::stable_sort(misses, std::ranges::less(), &PlanMiss::needed);
  if (misses.size() > most) misses.erase(misses.begin() + most, misses.end());
}

}  // namespace

Plan make_plan(const LayoutSpace& space, const TrainingOptions& options, Bytes capacity,
               const std::function<LayoutTimer()>& make_timer, const PlanOptions& plan,
               const MemoryOptions& memory, bool keep_refusals) {
  require(plan.top > 0, "make_plan: at least one place among the best");
  const Model& model = space.search().model;
  const std::uint32_t sequence = space.search().sequence;
  Plan result;
  result.refused = Refusals(keep_refusals);
  const std::vector<Layout> shapes = space.families(result.refused);
  result.families = shapes.size();

  Workers workers(plan.threads, make_timer);
  std::vector<Plan::Spent> spent(workers.size());
  std::vector<FamilyResult> families(shapes.size());
  workers.run(shapes.size(), [&](std::size_t worker, std::size_t i) {
    FamilyResult& family = families[i];
    family.refused = Refusals(keep_refusals);
    std::vector<Layout> layouts;
    space.variants(shapes[i], layouts, family.refused);
    {
      const Stopwatch watch(spent[worker].memory);
      for (Layout& layout : layouts) {
        MemoryUse use = memory_use(model, layout, options, sequence, capacity, memory);
        const StageMemory& fullest = use.stages[use.fullest];
        if (use.fits) {
          family.fitting.push_back({std::move(layout), fullest.total(), {}, {}});
          continue;
        }
        ++family.too_large;
        ++family.too_large_by[static_cast<std::size_t>(fullest.largest())];
        if (!family.miss || fullest.total() < family.miss->needed) {
          family.miss = {std::move(layout), fullest.total(), std::move(use.reason)};
        }
      }
    }
    if (family.fitting.empty()) return;
    const LayoutTimer& timer = workers.timer(worker);
    const Stopwatch watch(spent[worker].bounds);
    for (Candidate& candidate : family.fitting) candidate.bound = timer.bound(candidate.layout);
  });

  std::vector<Candidate> candidates;
  for (FamilyResult& family : families) {
    std::ranges::move(family.fitting, std::back_inserter(candidates));
    result.refused.add(std::move(family.refused));
    result.too_large += family.too_large;
    for (std::size_t part = 0; part < memory_parts; ++part) {
      result.too_large_by[part] += family.too_large_by[part];
    }
  }
  add_misses(result.misses, families, plan.misses);
  result.considered = result.refused.layouts() + result.too_large + candidates.size();

  std::ranges::stable_sort(candidates, std::ranges::less(), &Candidate::bound);
  // Rounds of one size, after each of which the rest may prove hopeless: how many are estimated
  // must not depend on how fast a thread is.
  constexpr std::size_t round = 512;
  Podium podium(plan.top, plan.every_variant);
  std::size_t done = 0;
  while (done < candidates.size()) {
    if (!plan.estimate_all) {
      const std::vector<std::size_t> top = podium.top(candidates);
      if (top.size() == plan.top && candidates[done].bound > candidates[top.back()].estimate.time) {
        break;
      }
    }
    const std::size_t end = std::min(done + round, candidates.size());
    constexpr std::size_t piece = 16;
    workers.run((end - done + piece - 1) / piece, [&](std::size_t worker, std::size_t i) {
      const LayoutTimer& timer = workers.timer(worker);
      const Stopwatch watch(spent[worker].estimates);
      const std::size_t first = done + i * piece;
      for (std::size_t at = first; at < std::min(first + piece, end); ++at) {
        candidates[at].estimate = timer.estimate(candidates[at].layout);
      }
    });
    for (; done < end; ++done) podium.offer(candidates, done);
  }
  result.estimated = done;
  result.excluded = candidates.size() - done;
  for (const Plan::Spent& each : spent) {
    result.spent.memory += each.memory;
    result.spent.bounds += each.bounds;
    result.spent.estimates += each.estimates;
  }

  for (const std::size_t i : podium.top(candidates)) {
    const Candidate& candidate = candidates[i];
    PlannedLayout best = {candidate.layout, candidate.estimate,
                          memory_use(model, candidate.layout, options, sequence, capacity, memory),
                          ""};
    if (!result.best.empty()) {
      best.why = largest_differences(best.estimate, result.best.front().estimate);
    }
    result.best.push_back(std::move(best));
  }
  if (plan.estimate_all) {
    std::vector<std::size_t> order(candidates.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](auto a, auto b) { return Podium::before(candidates, a, b); });
    result.ranked.reserve(order.size());
    for (const std::size_t i : order) {
      Candidate& candidate = candidates[i];
      result.ranked.push_back({std::move(candidate.layout), candidate.estimate, candidate.memory});
    }
  }
  return result;
}

std::string largest_differences(const StepEstimate& of, const StepEstimate& from) {
  struct Difference {
    double seconds = 0;
    StepPart part{};
  };
  std::vector<Difference> parts;
  for (std::size_t i = 0; i < step_parts; ++i) {
    parts.push_back(
        {to_seconds(of.parts[i]) - to_seconds(from.parts[i]), static_cast<StepPart>(i)});
  }
  std::ranges::stable_sort(parts, std::ranges::greater(),
                           [](const Difference& each) { return std::abs(each.seconds); });
  std::string text;
  constexpr std::size_t most = 3;
  constexpr double worth_telling = 0.1;  // Of the largest.
  const double largest = std::abs(parts.front().seconds);
  for (std::size_t i = 0; i < most; ++i) {
    const Difference& each = parts[i];
    if (largest == 0 || std::abs(each.seconds) < worth_telling * largest) break;
    text +=
        fmt::format("{}{:+.3g} s {}", text.empty() ? "" : ", ", each.seconds, to_string(each.part));
  }
  return text.empty() ? "takes the same time" : text;
}

double days_per_trillion_tokens(const StepEstimate& estimate, std::uint32_t gpus) {
  return trillion / (estimate.tokens_per_second_per_gpu * gpus) / 86400;
}

double dollars_per_million_tokens(const StepEstimate& estimate, double gpu_hour) {
  return gpu_hour / 3600 / estimate.tokens_per_second_per_gpu * 1e6;
}

}  // namespace flyover
