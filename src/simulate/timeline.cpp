#include "simulate/timeline.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/quantity.hpp"

namespace flyover {

namespace {

// 20 ranks of a large training step: a file of some 15 MB, which Perfetto opens at once.
constexpr std::uint64_t usual_operations = 100'000;

// More than a screen has points, and no more than the slices take.
constexpr std::size_t most_changes = 10'000;

// Means over equal times instead of a curve of too many steps.
std::vector<LoadChange> coarsened(const std::vector<LoadChange>& changes, Duration bin) {
  std::vector<LoadChange> out;
  const std::uint32_t track = changes.front().track;
  const Time last = changes.back().at;
  std::size_t next = 0;
  double share = 0;
  for (Time begin{}; begin < last; begin += bin) {
    const Time end = std::min(begin + bin, last);
    double sum = 0;
    for (Time at = begin; at < end;) {
      while (next < changes.size() && changes[next].at == at) share = changes[next++].share;
      const Time until = next < changes.size() ? std::min(changes[next].at, end) : end;
      sum += share * static_cast<double>((until - at).count());
      at = until;
    }
    const double mean = sum / static_cast<double>((end - begin).count());
    if (mean != (out.empty() ? 0 : out.back().share)) out.push_back({track, begin, mean});
  }
  if (!out.empty() && out.back().share > 0) out.push_back({track, last, 0});
  return out;
}

std::uint64_t operations(const Ranks& ranks, std::uint32_t rank) {
  return ranks.first(rank + 1) - ranks.first(rank);
}

// "0-7, 64-71", "0-1016 by 8": the first ranges tell which ones, the rest how many more.
class RankList {
 public:
  void add(std::uint32_t rank) {
    ++count_;
    if (!ranges_.empty() && ranges_.size() < most && ranges_.back().ends_before(rank)) {
      // 0, 2, 3 begins with 0: the 2 belongs to what follows.
      Range& two = ranges_.back();
      const std::uint32_t second = two.last;
      two = {two.first, two.first, 0};
      ranges_.push_back({second, rank, 1});
    } else if (!ranges_.empty() && ranges_.back().takes(rank)) {
      ranges_.back().add(rank);
    } else if (ranges_.size() < most) {
      ranges_.push_back({rank, rank, 0});
    } else {
      ++left_out_;
    }
  }

  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const Range& range : ranges_) {
      if (!out.empty()) out += ", ";
      out += range.text();
    }
    if (left_out_ > 0) out += fmt::format(" and {} more", left_out_);
    return out;
  }

 private:
  static constexpr std::size_t most = 6;

  struct Range {
    std::uint32_t first, last, step;

    [[nodiscard]] bool takes(std::uint32_t rank) const { return step == 0 || rank == last + step; }
    // Two that lie apart, of which the second is the rank's neighbour.
    [[nodiscard]] bool ends_before(std::uint32_t rank) const {
      return step > 1 && last == first + step && rank == last + 1;
    }
    void add(std::uint32_t rank) {
      step = rank - last;
      last = rank;
    }
    [[nodiscard]] std::string text() const {
      if (step == 0) return fmt::format("{}", first);
      if (step == 1) return fmt::format("{}-{}", first, last);
      if (last == first + step) return fmt::format("{}, {}", first, last);
      return fmt::format("{}-{} by {}", first, last, step);
    }
  };
  std::vector<Range> ranges_;
  std::uint32_t count_ = 0;
  std::uint32_t left_out_ = 0;
};

// Over a time up to the last change or later.
double mean_share(const std::vector<LoadChange>& changes, Time from, Time to) {
  if (from >= to) return 0;
  double sum = 0;
  Time until = to;
  for (auto change = changes.rbegin(); change != changes.rend() && until > from; ++change) {
    const Time since = std::max(change->at, from);
    if (since < until) sum += change->share * to_seconds(until - since);
    until = std::min(until, change->at);
  }
  return sum / to_seconds(to - from);
}

}  // namespace

Timeline::Timeline(const Topology& topology, const Cast& cast, const Ranks& ranks,
                   std::optional<std::uint32_t> wanted, const ClusterResources& resources) {
  const std::vector<bool> recorded = choose(cast, ranks, wanted);
  add_tracks(topology, cast, ranks, recorded);
  const auto tracked = std::ranges::count(recorded, true);
  if (tracked < std::ssize(recorded)) {
    trace_.notes.push_back(fmt::format(
        "{} of {} {} are recorded: the first of every program and {}", tracked, recorded.size(),
        cast.players.size() == cast.player_of.size() ? "ranks" : "classes of ranks",
        wanted ? fmt::format("the first {}", *wanted)
               : fmt::format("as many more as make {} operations", usual_operations)));
  }
  const auto capacities = resources.class_capacities();
  for (std::size_t c = 0; c < link_classes; ++c) {
    classes_[c].capacity = capacities[c];
    if (classes_[c].capacity == 0) continue;
    classes_[c].track = static_cast<std::uint32_t>(trace_.tracks.size());
    trace_.tracks.push_back({"links", class_name(c), absent});
  }
}

std::vector<bool> Timeline::choose(const Cast& cast, const Ranks& ranks,
                                   std::optional<std::uint32_t> wanted) {
  std::vector<bool> recorded(ranks.size(), false);
  std::uint64_t sum = 0;
  for (const Program& program : cast.workload.programs) {
    if (program.ranks.empty()) continue;
    recorded[program.ranks.front()] = true;
    sum += program.ops.size();
  }
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (recorded[rank]) continue;
    sum += operations(ranks, rank);
    if (wanted ? rank >= *wanted : sum > usual_operations) break;
    recorded[rank] = true;
  }
  return recorded;
}

void Timeline::add_tracks(const Topology& topology, const Cast& cast, const Ranks& ranks,
                          const std::vector<bool>& recorded) {
  std::vector<RankList> stands_for(ranks.size());
  for (std::uint32_t rank = 0; rank < cast.player_of.size(); ++rank) {
    const std::uint32_t player = cast.player_of[rank];
    if (recorded[player]) stands_for[player].add(rank);
  }
  first_track_.assign(ranks.size(), absent);
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (!recorded[rank] || ranks.program(rank) == absent) continue;
    first_track_[rank] = static_cast<std::uint32_t>(trace_.tracks.size());
    const std::uint32_t number = cast.players[rank].rank;
    std::string process =
        fmt::format("rank {} ({})", number, vertex_name(topology, topology.gpus[number]));
    if (const RankList& all = stands_for[rank]; all.count() > 1) {
      process += fmt::format(", stands for {} ranks: {}", all.count(), all.text());
    }
    for (const std::string& stream : cast.programs[ranks.program(rank)].streams) {
      trace_.tracks.push_back({process, stream, number});
    }
  }
}

void Timeline::slice(std::uint32_t rank, std::uint32_t stream, Time begin, Time end,
                     std::string name, std::string category, std::string detail) {
  if (begin == end) return;
  trace_.slices.push_back({first_track_[rank] + stream, begin, end, std::move(name),
                           std::move(category), std::move(detail)});
}

void Timeline::load(const std::vector<ClassLoad>& classes, double by, Time now) {
  for (const ClassLoad& c : classes) {
    ClassState& state = classes_[c.resource_class];
    state.used += c.weight * by;
    // What rounding leaves of streams that have ended is not load.
    if (state.used < state.capacity * 1e-9) state.used = 0;
    const double share = state.used / state.capacity;
    std::vector<LoadChange>& changes = state.changes;
    // What holds for no time at all is not a load, and a load that came back never changed.
    if (!changes.empty() && changes.back().at == now) changes.pop_back();
    if (share != (changes.empty() ? 0 : changes.back().share)) {
      changes.push_back({state.track, now, share});
    }
  }
}

void Timeline::skip(Time now, Duration period, Duration later) {
  if (later <= Duration{}) return;
  for (ClassState& state : classes_) {
    if (state.track == absent) continue;
    std::vector<LoadChange>& changes = state.changes;
    const double share = changes.empty() ? 0 : changes.back().share;
    const double mean = mean_share(changes, now - period, now);
    if (!changes.empty() && changes.back().at == now) changes.pop_back();
    changes.push_back({state.track, now, mean});
    changes.push_back({state.track, now + later, share});
  }
}

// Slices of a track come one after the other: they need to be dealt out, not sorted.
Trace Timeline::finish(Time end) {
  std::vector<std::size_t> next(trace_.tracks.size() + 1, 0);
  for (const Slice& slice : trace_.slices) ++next[slice.track + 1];
  for (std::size_t t = 1; t < next.size(); ++t) next[t] += next[t - 1];
  std::vector<Slice> dealt(trace_.slices.size());
  for (Slice& slice : trace_.slices) dealt[next[slice.track]++] = std::move(slice);
  trace_.slices = std::move(dealt);
  for (ClassState& state : classes_) {
    std::vector<LoadChange>& changes = state.changes;
    if (!changes.empty() && changes.back().share > 0) changes.push_back({state.track, end, 0});
    if (changes.size() > most_changes) {
      const Duration bin = end.time_since_epoch() / most_changes + Duration{1};
      changes = coarsened(changes, bin);
      trace_.notes.push_back(
          fmt::format("the load of {} changes too often to be shown: means of {}",
                      trace_.tracks[state.track].name, to_string(bin)));
    }
    trace_.loads.insert(trace_.loads.end(), changes.begin(), changes.end());
  }
  return std::move(trace_);
}

}  // namespace flyover
