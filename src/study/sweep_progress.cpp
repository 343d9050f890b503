#include "study/sweep_progress.hpp"

namespace flyover {

namespace {

constexpr auto between_reports = std::chrono::milliseconds(200);
// Long enough that points of unequal cost even out, short enough to notice that the easy ones are
// over.
constexpr auto window = std::chrono::seconds(20);

}  // namespace

ProgressMeter::ProgressMeter(std::uint64_t total, std::function<void(const SweepProgress&)> report)
    : total_(total),
      report_(std::move(report)),
      lately_{{Clock::now(), 0}} {}

void ProgressMeter::skipped() {
  ++skipped_;
}

void ProgressMeter::finished() {
  ++run_;
  if (!report_) return;
  const Clock::time_point now = Clock::now();
  if (now - lately_.back().first >= between_reports) report(now);
}

void ProgressMeter::end() {
  if (report_) report(Clock::now());
}

void ProgressMeter::report(Clock::time_point now) {
  while (lately_.size() > 1 && now - lately_.front().first > window) lately_.pop_front();
  const double seconds = std::chrono::duration<double>(now - lately_.front().first).count();
  SweepProgress progress{.done = run_ + skipped_, .total = total_};
  if (seconds > 0) {
    progress.per_second = static_cast<double>(run_ - lately_.front().second) / seconds;
  }
  if (progress.per_second > 0) {
    progress.left_seconds = static_cast<double>(total_ - progress.done) / progress.per_second;
  }
  lately_.emplace_back(now, run_);
  report_(progress);
}

}  // namespace flyover
