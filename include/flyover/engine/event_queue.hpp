#pragma once

// The event queue and the only clock.

#include <array>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "flyover/base/error.hpp"
#include "flyover/base/units.hpp"

namespace flyover {

// What happens first among events of one picosecond. The order is part of the model: a stream that
// ends frees its resources before one that starts asks for them, and rates are solved once, after
// both.
enum class Phase : std::uint8_t { Finish, Start, Solve };

// One event: plain data. What `kind` and the payload mean is between the one who schedules and the
// loop that pops; there is no callback and so no allocation per event.
struct Event {
  Time when;
  std::uint64_t order = 0;  // Phase, then sequence number: see EventQueue.
  std::uint32_t kind = 0;
  std::uint32_t stamp = 0;  // Free for the caller, such as a version that shows an event outdated.
  std::uint64_t payload = 0;
};

// Pops events in the order of (time, phase, order of scheduling), a total order, so that the same
// inputs run the same way on every machine.
//
// Since simulated time never runs backwards this is a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan
// 1990): events wait in buckets by the highest bit in which their time differs from now, and a
// bucket is spread over lower ones when now reaches it. An event moves at most 63 times, in
// practice a few, always through sequential memory: with a million pending it is several times
// faster than a binary heap, whose every level is a cache miss. Steady state allocates nothing.
class EventQueue {
 public:
  // Names a pending event for cancel().
  struct Handle {
    std::uint64_t order = 0;
  };

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] bool empty() const { return size_ == cancelled_.size(); }
  [[nodiscard]] std::size_t size() const { return size_ - cancelled_.size(); }

  // Requires when >= now(). An event for the present runs after those of its phase that already
  // wait.
  Handle schedule(Time when, Phase phase, std::uint32_t kind, std::uint64_t payload,
                  std::uint32_t stamp = 0);

  // Takes a pending event out. Requires that it has not been popped or cancelled. Costs a hash
  // probe now and one per later pop until it would have run; for events that are often outdated a
  // `stamp` that the loop compares is cheaper.
  void cancel(Handle handle);

  // Moves the clock to the next event and hands it out; false when nothing is pending.
  bool pop(Event& event);

 private:
  static constexpr unsigned phase_shift = 56;
  static constexpr std::size_t buckets = 64;

  // The highest bit in which the two times differ. Requires that they do.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t time, std::uint64_t last);
  void refill();
  bool take(Event& event);

  Time now_{};
  std::uint64_t next_sequence_ = 0;
  std::size_t size_ = 0;    // With those cancelled that still sit in buckets.
  std::vector<Event> due_;  // The events of the present, ascending by order.
  std::size_t due_next_ = 0;
  std::vector<Event> late_;  // A std heap by order: scheduled for now_ after due_ was filled.
  std::array<std::vector<Event>, buckets> bucket_;
  std::uint64_t occupied_ = 0;  // Bit b: bucket_[b] holds something.
  std::unordered_set<std::uint64_t> cancelled_;
};

}  // namespace flyover
