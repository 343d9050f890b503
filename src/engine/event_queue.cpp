#include "flyover/engine/event_queue.hpp"

#include <algorithm>
#include <bit>

namespace flyover {

namespace {

bool later(const Event& a, const Event& b) {
  return a.order > b.order;
}

std::uint64_t ticks(Time time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

}  // namespace

std::size_t EventQueue::bucket_of(std::uint64_t time, std::uint64_t last) {
  return 63U - static_cast<std::size_t>(std::countl_zero(time ^ last));
}

EventQueue::Handle EventQueue::schedule(Time when, Phase phase, std::uint32_t kind,
                                        std::uint64_t payload, std::uint32_t stamp) {
  require(when >= now_, "EventQueue::schedule: a time that has not passed");
  const std::uint64_t order = (static_cast<std::uint64_t>(phase) << phase_shift) | next_sequence_++;
  const Event event{when, order, kind, stamp, payload};
  ++size_;
  if (when == now_) {
    late_.push_back(event);
    std::push_heap(late_.begin(), late_.end(), later);
  } else {
    const std::size_t b = bucket_of(ticks(when), ticks(now_));
    bucket_[b].push_back(event);
    occupied_ |= std::uint64_t{1} << b;
  }
  return {order};
}

void EventQueue::cancel(Handle handle) {
  require(cancelled_.insert(handle.order).second, "EventQueue::cancel: an event that is pending");
}

bool EventQueue::pop(Event& event) {
  while (take(event)) {
    --size_;
    if (cancelled_.empty() || cancelled_.erase(event.order) == 0) return true;
  }
  return false;
}

bool EventQueue::take(Event& event) {
  const bool has_due = due_next_ < due_.size();
  if (!late_.empty() && (!has_due || late_.front().order < due_[due_next_].order)) {
    std::pop_heap(late_.begin(), late_.end(), later);
    event = late_.back();
    late_.pop_back();
    return true;
  }
  if (!has_due) {
    if (occupied_ == 0) return false;
    refill();
  }
  event = due_[due_next_++];
  return true;
}

// Moves the clock to the earliest pending time and its events to due_.
void EventQueue::refill() {
  due_.clear();
  due_next_ = 0;
  const auto lowest = static_cast<std::size_t>(std::countr_zero(occupied_));
  std::vector<Event>& source = bucket_[lowest];
  const Time next =
      std::ranges::min_element(source, {}, [](const Event& e) { return e.when; })->when;
  now_ = next;
  const std::uint64_t last = ticks(next);
  for (const Event& event : source) {
    if (event.when == next) {
      due_.push_back(event);
    } else {
      // Shares the source's leading bits with `next`, so it falls into a lower bucket.
      const std::size_t b = bucket_of(ticks(event.when), last);
      bucket_[b].push_back(event);
      occupied_ |= std::uint64_t{1} << b;
    }
  }
  source.clear();
  occupied_ &= ~(std::uint64_t{1} << lowest);
  std::ranges::sort(due_, {}, [](const Event& e) { return e.order; });
}

}  // namespace flyover
