#include "simulate/ledger.hpp"

#include <numeric>
#include <utility>

#include "flyover/base/error.hpp"

namespace flyover {

Ledger::Ledger(std::vector<std::uint32_t> counts, std::uint32_t families)
    : counts_(std::move(counts)),
      families_(families),
      classes_(families + 5),
      running_(counts_.size() * (classes_ - 1), 0),
      current_(counts_.size(), classes_ - 1),
      since_(counts_.size()),
      total_(classes_, 0.0) {}

std::uint32_t Ledger::class_of(Activity activity, std::uint32_t family) const {
  switch (activity) {
    case Activity::Compute:
      return 0;
    case Activity::Moving:
      return 1 + family;
    case Activity::Starting:
      return families_ + 2;
    case Activity::PeerWait:
      return families_ + 3;
  }
  return 0;
}

void Ledger::charge(std::uint32_t rank, Time now) {
  total_[current_[rank]] += to_seconds(now - since_[rank]) * counts_[rank];
  since_[rank] = now;
}

void Ledger::change(std::uint32_t rank, Activity activity, std::uint32_t family, int by, Time now) {
  const std::uint32_t idle = classes_ - 1;
  std::uint32_t* running = &running_[static_cast<std::size_t>(rank) * idle];
  const std::uint32_t c = class_of(activity, family);
  require(by > 0 || running[c] > 0, "Ledger: an activity that has begun");
  running[c] += static_cast<std::uint32_t>(by);

  std::uint32_t next = 0;
  while (next < idle && running[next] == 0) ++next;
  if (next == current_[rank]) return;
  charge(rank, now);
  current_[rank] = next;
}

std::vector<double> Ledger::totals(Time now) const {
  std::vector<double> sums = total_;
  for (std::uint32_t rank = 0; rank < counts_.size(); ++rank) {
    sums[current_[rank]] += to_seconds(now - since_[rank]) * counts_[rank];
  }
  return sums;
}

void Ledger::repeat(const std::vector<double>& before, const std::vector<double>& after,
                    std::uint64_t times, Duration later) {
  for (std::size_t c = 0; c < total_.size(); ++c) {
    total_[c] += static_cast<double>(times) * (after[c] - before[c]);
  }
  for (Time& since : since_) since += later;
}

Breakdown Ledger::close(const std::vector<GroupFamily>& families, Time end) {
  for (std::uint32_t rank = 0; rank < counts_.size(); ++rank) charge(rank, end);
  const std::uint64_t ranks = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  const auto average_us = [&](std::uint32_t c) {
    return total_[c] * 1e6 / static_cast<double>(ranks);
  };
  Breakdown out;
  out.compute_us = average_us(0);
  for (std::uint32_t f = 0; f < families_; ++f) {
    if (average_us(1 + f) > 0) out.exposed_us[families[f].name] = average_us(1 + f);
  }
  if (average_us(1 + families_) > 0) out.exposed_us["p2p"] = average_us(1 + families_);
  out.startup_us = average_us(families_ + 2);
  out.bubble_us = average_us(families_ + 3);
  out.idle_us = average_us(families_ + 4);
  return out;
}

}  // namespace flyover
