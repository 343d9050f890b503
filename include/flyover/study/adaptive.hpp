#pragma once

// The best points of a sweep without a replay of every point: bounds first, estimates where the
// bound may win, replays where the estimate may.
//
// Said for the smallest value (the largest likewise). Let r(p) be the value of a point's replay,
// b(p) that of its bound, e(p) that of its estimate, and m the margin. It is promised that
//
//   b(p) <= r(p)                              a bound is optimistic
//   |r(p) - e(p)| <= m |e(p)|                 an estimate is that good
//
// and that what a bound or an estimate calls refused, invalid or failed has no value when replayed.
// So r(p) lies between low(p) = b(p), or max(b(p), e(p) - m |e(p)|) once it is estimated, and
// high(p) = e(p) + m |e(p)|; both are r(p) once it is replayed. Let T be the K-th smallest of the
// highs that are known, infinite when there are fewer. A round evaluates the points of smallest low
// that are not yet replayed and have low <= T; the search is over when there are none.
//
// It finds the K best of the exhaustive sweep, ties included. When it is over, let p be a point
// that was not replayed, so that low(p) > T. At least K points have high <= T, thus r <= T < low(p)
// <= r(p): K points are better than p, and p is none of the K best. All points with r <= T are
// replayed, and the K best are among them. A point that turns out to have no value (its replay
// fails) is forgotten together with its high; T rises, and the search goes on with what that lets
// in. Each round evaluates at least one point once more, and none more than three times, so that it
// ends.
//
// Which points a round takes depends on values and numbers alone, and its results are looked at
// when all of them are there. So the outcome does not depend on the number of threads or processes,
// nor on how often the sweep was interrupted.

#include <cstdint>
#include <functional>
#include <optional>

#include "flyover/study/point_runner.hpp"
#include "flyover/study/sweep.hpp"

namespace flyover {

struct AdaptiveObjective {
  // Of a point's outputs; none: it does not compete.
  std::function<std::optional<double>(const SweepValues& outputs)> value;
  bool largest = false;   // Is the largest value best, or the smallest?
  std::uint32_t top = 1;  // K.
  // How far a replay may be from its estimate, relative to the estimate; none: estimates are not
  // asked for, and what the bound lets through is replayed at once.
  std::optional<double> margin;
};

struct AdaptiveOptions {
  // What counts as the value of a point. Estimate: nothing is replayed, and the margin is not used.
  Fidelity fidelity = Fidelity::Replay;
  // Points of a first round; every further round of its kind may have twice as many, up to 64
  // times. The larger, the more work there is to share out and the more is evaluated in vain.
  std::uint32_t round = 32;
  // The row that an earlier run of the same sweep has for a point, if it has one. Never called
  // while the sink is.
  std::function<std::optional<PointResult>(std::uint64_t)> recall;
  std::function<void(const SweepProgress&)> on_progress;  // As of run_sweep.
};

// What was saved: an exhaustive sweep replays every point that is possible. The same for a sweep
// that was interrupted, so that what an earlier run replayed counts.
struct AdaptiveCounts {
  std::uint64_t points = 0;
  std::uint64_t possible = 0;  // Have a bound.
  std::uint64_t estimates = 0;
  std::uint64_t replays = 0;  // Of `fidelity`.
  std::uint64_t excluded_by_bound = 0;
  std::uint64_t excluded_by_estimate = 0;
};

// Every point ends as one row: Done with the outputs of `fidelity`, Excluded with the outputs of
// its bound and a reason, or whatever else its evaluation came to. The sink gets each row that
// recall does not have, as soon as it is final; of excluded points that is at the end.
//
// Costs one bound per point, two of those that are excluded, and some 100 bytes of memory each.
AdaptiveCounts run_adaptive(const SweepPoints& points, PointRunner& runner, const ResultSink& sink,
                            const AdaptiveObjective& objective, const AdaptiveOptions& options);

}  // namespace flyover
