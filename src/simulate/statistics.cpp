#include "simulate/statistics.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace flyover {

CallStatistics::Sums& CallStatistics::sums(const std::string& family, const std::string& op,
                                           const std::string& exchange, std::uint32_t ranks,
                                           Bytes bytes, const CollectivePlan& plan,
                                           std::uint32_t count) {
  Sums& s = by_kind_[{family, op, exchange, bytes.count(), ranks, plan.algorithm, plan.protocol,
                      plan.channels}];
  if (s.stats.count == 0) {
    s.stats.op = op;
    s.stats.group = family;
    s.stats.ranks = ranks;
    s.stats.bytes = bytes;
    s.stats.alone = plan.alone;
    s.stats.algorithm = plan.algorithm;
    s.stats.protocol = plan.protocol;
    s.stats.channels = plan.channels;
    s.stats.bottleneck = plan.bottleneck;
    kinds_.push_back(&s);
  }
  s.stats.count += count;
  return s;
}

CollectiveStats* CallStatistics::add_call(const Operation& op, const std::string& family,
                                          const std::string& exchange, std::uint32_t ranks,
                                          const CollectivePlan& plan, Duration taken,
                                          Duration waited, std::uint32_t count) {
  Sums& s =
      sums(family, std::string(to_string(op.collective)), exchange, ranks, op.bytes, plan, count);
  s.factor = bus_factor(op.collective, ranks);
  s.taken += to_seconds(taken) * count;
  s.waited += to_seconds(waited) * count;
  s.stats.longest = std::max(s.stats.longest, taken);
  return s.stats.count == count ? &s.stats : nullptr;
}

void CallStatistics::add_message(Bytes bytes, const CollectivePlan& plan, Duration taken,
                                 std::uint32_t count) {
  Sums& s = sums("", "send", "", 2, bytes, plan, count);
  s.taken += to_seconds(taken) * count;
  s.stats.longest = std::max(s.stats.longest, taken);
}

std::vector<CallStatistics::Totals> CallStatistics::totals() const {
  std::vector<Totals> out;
  out.reserve(kinds_.size());
  for (const Sums* s : kinds_) out.push_back({s->stats.count, s->taken, s->waited});
  return out;
}

void CallStatistics::repeat(const std::vector<Totals>& before, std::uint64_t times) {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    Sums& s = *kinds_[i];
    const Totals then = i < before.size() ? before[i] : Totals{};
    s.stats.count += times * (s.stats.count - then.count);
    s.taken += static_cast<double>(times) * (s.taken - then.taken);
    s.waited += static_cast<double>(times) * (s.waited - then.waited);
  }
}

std::vector<CollectiveStats> CallStatistics::take() {
  std::vector<CollectiveStats> out;
  for (auto& [key, s] : by_kind_) {
    const double calls = static_cast<double>(s.stats.count);
    s.stats.mean = from_seconds(s.taken / calls);
    s.stats.mean_wait = from_seconds(s.waited / calls);
    if (s.taken > 0) {
      s.stats.algbw_GBps = static_cast<double>(s.stats.bytes.count()) / (s.taken / calls) * 1e-9;
      s.stats.busbw_GBps = s.stats.algbw_GBps * s.factor;
    }
    out.push_back(std::move(s.stats));
  }
  kinds_.clear();
  by_kind_.clear();
  return out;
}

std::string describe_bottleneck(const Result& result) {
  const double total = to_microseconds(result.time);
  if (total == 0) return "nothing took time";
  const auto percent = [&](double us) { return 100 * us / total; };

  const Breakdown& b = result.breakdown;
  std::string family;
  double exposed = 0;
  for (const auto& [name, us] : b.exposed_us) {
    if (us > exposed) {
      family = name;
      exposed = us;
    }
  }
  const double most = std::max({b.compute_us, exposed, b.startup_us, b.bubble_us, b.idle_us});
  if (most == b.compute_us) {
    return fmt::format("compute takes {:.1f} % of the run", percent(b.compute_us));
  }
  if (most == exposed) {
    // Of the family's collectives the one that took longest in all.
    const CollectiveStats* longest = nullptr;
    const auto in_all = [](const CollectiveStats& c) {
      return to_seconds(c.mean) * static_cast<double>(c.count);
    };
    for (const CollectiveStats& c : result.collectives) {
      const bool ours = c.group == family || (family == "p2p" && c.group.empty());
      if (ours && (longest == nullptr || in_all(c) > in_all(*longest))) longest = &c;
    }
    std::string text = fmt::format("exposed communication of \"{}\" takes {:.1f} % of the run",
                                   family, percent(exposed));
    if (longest != nullptr) {
      text += fmt::format("; its {} ({}, {}) is limited by {}", longest->op,
                          to_string(longest->algorithm), to_string(longest->protocol),
                          longest->bottleneck);
    }
    return text;
  }
  if (most == b.startup_us) {
    return fmt::format("start-up latency of communication takes {:.1f} % of the run",
                       percent(b.startup_us));
  }
  if (most == b.bubble_us) {
    return fmt::format("waiting for the peers of sends and receives takes {:.1f} % of the run",
                       percent(b.bubble_us));
  }
  return fmt::format("ranks are idle for {:.1f} % of the run, waiting for others",
                     percent(b.idle_us));
}

}  // namespace flyover
