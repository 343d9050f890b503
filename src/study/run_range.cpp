#include "flyover/study/run_range.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace flyover {

namespace {

using ClassKey = std::tuple<std::string, std::string, std::size_t>;  // Links, algorithm, size.

// A kind of calls, as its range depends on it.
struct Kind {
  GroupLinks group;
  Range range;
  double us = 0;      // Of all calls and their members.
  double starts = 0;  // Likewise their number.
};

void widen(GroupLinks& widest, GroupLinks other) {
  if (other.domains > widest.domains) widest = std::move(other);
}

GroupLinks links_of_messages(const Topology& topology, const Workload& workload, Bytes bytes) {
  GroupLinks widest;
  for (const Program& program : workload.programs) {
    for (const Operation& op : program.ops) {
      if (op.kind != OpKind::Send || op.bytes != bytes) continue;
      for (const std::uint32_t rank : program.ranks) {
        const std::array<std::uint32_t, 2> ends{rank, peer_of(op, rank, workload.ranks)};
        widen(widest, group_links(topology, ends));
        if (widest.domains == 2) return widest;
      }
    }
  }
  return widest;
}

GroupLinks links_of_groups(const CollectiveStats& calls, const Topology& topology,
                           const Workload& workload) {
  GroupLinks widest;
  const auto family = std::ranges::find(workload.groups, calls.group, &GroupFamily::name);
  if (family == workload.groups.end()) return widest;
  for (const auto& group : family->groups) {
    if (group.size() == calls.ranks) widen(widest, group_links(topology, group));
  }
  return widest;
}

const std::string& family_of(const CollectiveStats& calls) {
  static const std::string messages = "p2p";
  return calls.group.empty() ? messages : calls.group;
}

// Exposed time by kind: see the header.
std::vector<double> exposed_times(const Result& result, const std::vector<Kind>& kinds) {
  std::map<std::string, double> us_of_family;
  double starts = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    us_of_family[family_of(result.collectives[i])] += kinds[i].us;
    starts += kinds[i].starts;
  }
  const Breakdown& b = result.breakdown;
  const double total = to_microseconds(result.time);
  const double busy = total - b.bubble_us - b.idle_us;
  std::vector<double> out;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string& family = family_of(result.collectives[i]);
    const auto exposed = b.exposed_us.find(family);
    const double of_family = us_of_family.at(family);
    double us = b.startup_us * kinds[i].starts / starts;
    if (exposed != b.exposed_us.end() && of_family > 0) {
      us += exposed->second * kinds[i].us / of_family;
    }
    out.push_back(busy > 0 ? us * total / busy : 0);
  }
  return out;
}

double square(double x) {
  return x * x;
}

}  // namespace

void add_range(Result& result, const Topology& topology, const Workload& workload,
               std::string_view library, const ResidualRanges& ranges) {
  std::vector<Kind> kinds;
  std::set<std::string> validity;
  std::map<std::pair<std::string, std::uint32_t>, GroupLinks> known;  // By family and size.
  for (CollectiveStats& calls : result.collectives) {
    Kind kind{{}, {}, 0, 0};
    if (calls.group.empty()) {
      kind.group = links_of_messages(topology, workload, calls.bytes);
    } else {
      const auto [entry, fresh] = known.try_emplace({calls.group, calls.ranks});
      if (fresh) entry->second = links_of_groups(calls, topology, workload);
      kind.group = entry->second;
    }
    kind.range = ranges.range(kind.group.links, calls.algorithm, calls.bytes);
    kind.starts = static_cast<double>(calls.count) * calls.ranks;
    kind.us = to_microseconds(calls.mean) * kind.starts;
    calls.low = from_seconds(to_seconds(calls.mean) * kind.range.low);
    calls.high = from_seconds(to_seconds(calls.mean) * kind.range.high);
    const std::string_view measured_as =
        calls.group.empty() ? std::string_view("sendrecv") : std::string_view(calls.op);
    for (std::string& text : ranges.outside(
             {kind.group, calls.ranks, measured_as, library, calls.algorithm, calls.bytes})) {
      validity.insert(std::move(text));
    }
    kinds.push_back(std::move(kind));
  }
  result.validity.assign(validity.begin(), validity.end());

  const std::vector<double> exposed = exposed_times(result, kinds);
  std::map<ClassKey, RangePart> parts;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const CollectiveStats& calls = result.collectives[i];
    const std::size_t size = size_class(calls.bytes);
    const std::string algorithm(to_string(calls.algorithm));
    const auto [entry, fresh] = parts.try_emplace({kinds[i].group.links, algorithm, size});
    RangePart& part = entry->second;
    if (fresh) {
      part = {kinds[i].group.links,
              algorithm,
              std::string(size_classes()[size].name),
              0,
              0,
              0,
              ranges.correlation(calls.bytes)};
    }
    part.exposed_us += exposed[i];
    part.low += exposed[i] * kinds[i].range.low;  // Sums, until divided below.
    part.high += exposed[i] * kinds[i].range.high;
  }
  double shorter = 0;
  double longer = 0;
  result.range.clear();
  for (auto& [key, part] : parts) {
    if (part.exposed_us <= 0) continue;
    part.low /= part.exposed_us;
    part.high /= part.exposed_us;
    shorter += square(part.exposed_us * (1 - part.low));
    longer += square(part.exposed_us * (part.high - 1));
    result.range.push_back(std::move(part));
  }
  result.low = result.time - from_seconds(std::sqrt(shorter) * 1e-6);
  result.high = result.time + from_seconds(std::sqrt(longer) * 1e-6);
}

Difference difference(const Result& first, const Result& second) {
  Difference out{second.time - first.time, {}, false};
  const Result& slower = out.time > Duration{} ? second : first;
  const Result& faster = out.time > Duration{} ? first : second;
  struct Both {
    double down = 0;
    double up = 0;
    double correlation = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Both> classes;
  for (const RangePart& part : slower.range) {
    Both& both = classes[{part.links, part.algorithm, part.size}];
    both.down = part.exposed_us * (1 - part.low);
    both.correlation = part.correlation;
  }
  for (const RangePart& part : faster.range) {
    Both& both = classes[{part.links, part.algorithm, part.size}];
    both.up = part.exposed_us * (part.high - 1);
    both.correlation = part.correlation;
  }
  double squares = 0;
  for (const auto& [key, both] : classes) {
    squares += square(both.down) + square(both.up) - 2 * both.correlation * both.down * both.up;
  }
  out.margin = from_seconds(std::sqrt(std::max(0.0, squares)) * 1e-6);
  out.within_error = std::max(out.time, -out.time) <= out.margin;
  return out;
}

}  // namespace flyover
