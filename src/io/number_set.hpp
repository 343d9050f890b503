#pragma once

// A set of numbers that come nearly in order: runs of neighbours take the memory of one.

#include <cstdint>
#include <iterator>
#include <map>

namespace flyover::io {

class NumberSet {
 public:
  [[nodiscard]] bool contains(std::uint64_t number) const {
    const auto after = runs_.upper_bound(number);
    return after != runs_.begin() && number < std::prev(after)->second;
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  void insert(std::uint64_t number) {  // That is not in it.
    ++size_;
    auto after = runs_.upper_bound(number);
    if (after != runs_.begin() && std::prev(after)->second == number) {
      --after;
      after->second = number + 1;
    } else {
      after = runs_.emplace_hint(after, number, number + 1);
    }
    const auto next = std::next(after);
    if (next != runs_.end() && next->first == after->second) {
      after->second = next->second;
      runs_.erase(next);
    }
  }

 private:
  std::map<std::uint64_t, std::uint64_t> runs_;  // First, and one past the last.
  std::uint64_t size_ = 0;
};

}  // namespace flyover::io
