#pragma once

// Sequences of numbers by their digests: two that have one are taken to be equal, which for a
// billion different ones is wrong once in 10^20 times.

#include <cstdint>
#include <map>
#include <utility>

namespace flyover {

// Spreads every bit of x over all bits (the finalizer of MurmurHash3).
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdU;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53U;
  return x ^ x >> 33;
}

struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  void add(std::uint64_t item) {
    low = mix_bits(low ^ item ^ 0x9e3779b97f4a7c15U);
    high = mix_bits(high + (item ^ 0xd1b54a32d192ed03U));
  }
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// Numbers for whatever compares, from 0 in the order in which they are asked for.
template <class Key>
class Numbers {
 public:
  std::uint32_t operator()(const Key& key) { return find(key).first; }
  // Its number, and whether it is new.
  std::pair<std::uint32_t, bool> find(const Key& key) {
    const auto [entry, fresh] = known_.try_emplace(key, static_cast<std::uint32_t>(known_.size()));
    return {entry->second, fresh};
  }

 private:
  std::map<Key, std::uint32_t> known_;
};

}  // namespace flyover
