#pragma once

#include <cstdint>
#include <vector>

#include "flyover/collective/algorithms.hpp"
#include "flyover/collective/schedule.hpp"
#include "flyover/collective/summary.hpp"

namespace flyover {

// `bytes` cut into `parts`; what does not divide evenly goes one by one to the first parts.
[[nodiscard]] std::vector<Bytes> split(Bytes bytes, std::uint64_t parts);

// Writes the transfers of a schedule one after the other.
class ScheduleWriter {
 public:
  // Throws InputError when the schedule would have more transfers or dependencies than an index can
  // count.
  ScheduleWriter(const CollectiveShape& shape, std::uint64_t transfers, std::uint64_t dependencies);

  std::uint32_t add(const Transfer& transfer) {
    schedule_.transfers.push_back(transfer);
    schedule_.dependency_begin.push_back(static_cast<std::uint32_t>(schedule_.dependencies.size()));
    return next() - 1;
  }
  // The transfer added last waits for `transfer`.
  void after(std::uint32_t transfer) { schedule_.dependencies.push_back(transfer); }
  // The index that the next transfer will have.
  [[nodiscard]] std::uint32_t next() const {
    return static_cast<std::uint32_t>(schedule_.transfers.size());
  }

  // Blocks, relays and so on, which the caller fills.
  [[nodiscard]] Schedule& schedule() { return schedule_; }
  [[nodiscard]] Schedule finish();

 private:
  Schedule schedule_;
};

// Gathers the edges of a summary in any order; loads on one edge of one channel add up.
class SummaryWriter {
 public:
  explicit SummaryWriter(const CollectiveShape& shape) { summary_.ranks = shape.group.ranks(); }

  void reserve(std::size_t edges) { summary_.edges.reserve(edges); }
  void add(std::uint32_t channel, std::uint32_t from, std::uint32_t to, std::uint32_t messages) {
    summary_.edges.push_back({from, to, 0, messages, static_cast<std::uint16_t>(channel)});
  }

  [[nodiscard]] Summary& summary() { return summary_; }
  // `blocks`: how many blocks the collective's bytes are cut into, all of one size.
  [[nodiscard]] Summary finish(std::uint64_t blocks);

 private:
  Summary summary_;
};

// A chain of dependent transfers by its hops; chains compare by length, then by hops between
// domains.
struct Chain {
  std::uint32_t hops = 0;
  std::uint32_t inter = 0;

  friend constexpr auto operator<=>(const Chain&, const Chain&) = default;
  friend constexpr Chain operator+(Chain a, Chain b) {
    return {a.hops + b.hops, a.inter + b.inter};
  }
};

inline void set_hops(Summary& summary, Chain longest) {
  summary.intra_hops = longest.hops - longest.inter;
  summary.inter_hops = longest.inter;
}

}  // namespace flyover
