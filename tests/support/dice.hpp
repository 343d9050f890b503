#pragma once

// What tests draw with: the same on every machine, which std::uniform_int_distribution is not.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace flyover::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& options) {
    return options[below(static_cast<std::uint32_t>(options.size()))];
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[below(static_cast<std::uint32_t>(i))]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace flyover::test
