#pragma once

// How far a sweep is, how fast it goes, and when it will be done.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "flyover/study/sweep.hpp"

namespace flyover {

class ProgressMeter {
 public:
  // An empty report is never called.
  ProgressMeter(std::uint64_t total, std::function<void(const SweepProgress&)> report);

  void skipped();   // A point of an earlier run.
  void finished();  // A point of this run. Reports when the last report is long enough ago.
  void end();       // Reports.

 private:
  using Clock = std::chrono::steady_clock;

  void report(Clock::time_point now);

  std::uint64_t total_;
  std::function<void(const SweepProgress&)> report_;
  std::uint64_t run_ = 0;
  std::uint64_t skipped_ = 0;
  std::deque<std::pair<Clock::time_point, std::uint64_t>> lately_;  // When how many had been run.
};

}  // namespace flyover
