#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "flyover/engine/fluid.hpp"

namespace flyover::test {

// A fluid system with its loop, and a record of when each stream ended.
class Machine {
 public:
  static constexpr std::uint32_t end_kind = 0, solve_kind = 1, start_kind = 2;

  EventQueue queue;
  FluidSystem fluid{queue, end_kind, solve_kind};
  std::map<std::uint64_t, Time> ends;  // By payload.
  bool solved = false;                 // The last event was a solve.

  // Starts a stream after `delay`; its payload and key are its number, by default counted from 0.
  void start(std::vector<Load> loads, double work, Duration delay = {},
             double cap = std::numeric_limits<double>::infinity(), double flows = 1) {
    start_numbered(specs_.size(), std::move(loads), work, delay, cap, flows);
  }
  void start_numbered(std::uint64_t number, std::vector<Load> loads, double work, Duration delay,
                      double cap, double flows) {
    specs_[number] = {std::move(loads), work, cap, flows};
    queue.schedule(queue.now() + delay, Phase::Start, start_kind, number);
  }

  void run() {
    while (step()) {
    }
  }
  // One event; false when there is none.
  bool step() {
    Event event;
    if (!queue.pop(event)) return false;
    solved = event.kind == solve_kind;
    if (event.kind == solve_kind) {
      fluid.solve();
    } else if (event.kind == start_kind) {
      const Spec& spec = specs_[event.payload];
      ids_[event.payload] = fluid.start({.loads = spec.loads,
                                         .work = spec.work,
                                         .rate_cap = spec.cap,
                                         .flows = spec.flows,
                                         .key = event.payload,
                                         .payload = event.payload});
    } else if (fluid.ended(event)) {
      const StreamId id{static_cast<std::uint32_t>(event.payload)};
      ends[fluid.payload(id)] = queue.now();
      ids_.erase(fluid.payload(id));
    }
    return true;
  }
  void stop(std::uint64_t number) {
    fluid.stop(ids_.at(number));
    ids_.erase(number);
    ends[number] = queue.now();
  }
  [[nodiscard]] double rate(std::uint64_t number) const { return fluid.rate(ids_.at(number)); }
  [[nodiscard]] const std::map<std::uint64_t, StreamId>& running() const { return ids_; }

 private:
  struct Spec {
    std::vector<Load> loads;
    double work, cap, flows;
  };
  std::map<std::uint64_t, Spec> specs_;  // Streams borrow their loads: a map never moves them.
  std::map<std::uint64_t, StreamId> ids_;
};

}  // namespace flyover::test
