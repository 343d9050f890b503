#pragma once

#include <cstdint>
#include <vector>

#include "flyover/collective/summary.hpp"

namespace flyover {

// Gathers loads between members of a domain, in any order; those of one edge add up.
class FoldWriter {
 public:
  // One more than `members`: the switch.
  explicit FoldWriter(std::uint32_t members)
      : size_(members + 1),
        loads_(std::size_t{size_} * size_) {}

  void add(std::uint32_t from, std::uint32_t to, double fraction, std::uint32_t channels) {
    MemberLoad& load = loads_[std::size_t{from} * size_ + to];
    load.from = from;
    load.to = to;
    load.fraction += fraction;
    load.channels += channels;
  }

  // In order of from and to.
  [[nodiscard]] std::vector<MemberLoad> take() {
    std::erase_if(loads_, [](const MemberLoad& load) { return load.channels == 0; });
    return std::move(loads_);
  }

 private:
  std::uint32_t size_ = 0;
  std::vector<MemberLoad> loads_;
};

}  // namespace flyover
