#include "simulate/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace flyover {

Timeline::Timeline(const Topology& topology, const Cast& cast, const Ranks& ranks,
                   std::uint32_t limit, const ClusterResources& resources) {
  std::set<std::uint32_t> recorded;
  for (std::uint32_t rank = 0; rank < std::min(limit, ranks.size()); ++rank) recorded.insert(rank);
  for (const Program& program : cast.workload.programs) {
    if (!program.ranks.empty()) recorded.insert(program.ranks.front());
  }
  first_track_.assign(ranks.size(), absent);
  for (const std::uint32_t rank : recorded) {
    if (ranks.program(rank) == absent) continue;
    first_track_[rank] = static_cast<std::uint32_t>(trace_.tracks.size());
    const auto& [number, count] = cast.players[rank];
    const std::string process =
        fmt::format("rank {} ({}{})", number, vertex_name(topology, topology.gpus[number]),
                    count == 1 ? "" : fmt::format("; stands for {} ranks", count));
    for (const std::string& stream : cast.programs[ranks.program(rank)].streams) {
      trace_.tracks.push_back({process, stream, number});
    }
  }
  if (recorded.size() < ranks.size()) {
    trace_.notes.push_back(fmt::format(
        "{} of {} {} are recorded: the first {} and the first of every program", recorded.size(),
        ranks.size(), ranks.size() == cast.player_of.size() ? "ranks" : "classes of ranks",
        std::min(limit, ranks.size())));
  }
  for (std::size_t c = 0; c < link_classes; ++c) {
    classes_[c].capacity = resources.class_capacity(c);
    if (classes_[c].capacity == 0) continue;
    classes_[c].track = static_cast<std::uint32_t>(trace_.tracks.size());
    trace_.tracks.push_back({"links", class_name(c), absent});
  }
}

void Timeline::slice(std::uint32_t rank, std::uint32_t stream, Time begin, Time end,
                     std::string name, std::string category, std::string detail) {
  if (begin == end) return;
  trace_.slices.push_back({first_track_[rank] + stream, begin, end, std::move(name),
                           std::move(category), std::move(detail), 0});
}

void Timeline::load(const std::vector<ClassLoad>& classes, double by, Time now) {
  for (const ClassLoad& c : classes) {
    ClassState& state = classes_[c.resource_class];
    if (now > state.since) close(state, now);
    state.used += c.weight * by;
    // What rounding leaves of streams that have ended is not load.
    if (state.used < state.capacity * 1e-9) state.used = 0;
  }
}

void Timeline::close(ClassState& state, Time now) {
  if (state.used > 0) {
    const double share = state.used / state.capacity;
    trace_.slices.push_back({state.track,
                             state.since,
                             now,
                             fmt::format("{} %", std::round(share * 1000) / 10),
                             "load",
                             {},
                             share});
  }
  state.since = now;
}

void Timeline::skip(Time now, Duration later, const std::string& name) {
  for (ClassState& state : classes_) {
    if (state.track == absent) continue;
    close(state, now);
    state.since = now + later;
    trace_.slices.push_back({state.track, now, state.since, name, "elided", {}, 0});
  }
}

Trace Timeline::finish(Time end) {
  for (ClassState& state : classes_) close(state, end);
  std::ranges::stable_sort(trace_.slices, [](const Slice& a, const Slice& b) {
    return std::tie(a.track, a.begin) < std::tie(b.track, b.begin);
  });
  return std::move(trace_);
}

}  // namespace flyover
