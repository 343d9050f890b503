#pragma once

// Physical quantities: the only numbers that cross a module boundary.
//
// Simulated time is a whole number of picoseconds. Sums of integers do not depend on the order of
// addition, so equal causes give equal timestamps on every compiler and a tie is a real tie. The
// range is 106 days; longer stretches (a whole training run) are arithmetic on step times, not
// simulated time.

#include <chrono>
#include <compare>
#include <cstdint>
#include <ratio>

namespace flyover {

using Duration = std::chrono::duration<std::int64_t, std::pico>;

// A clock that only the engine moves.
struct SimClock {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<SimClock>;
  static constexpr bool is_steady = true;
};

// A point in simulated time. Time - Time is a Duration; Time + Time does not compile.
using Time = SimClock::time_point;

// A count of bytes. Message sizes are whole; the fractions of the fluid solver stay inside it.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  [[nodiscard]] constexpr std::int64_t count() const { return count_; }

  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.count_ - b.count_}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes{a.count_ * n}; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  std::int64_t count_ = 0;
};

// A rate in units per second. Tag makes bandwidths and FLOP rates different types.
template <class Tag>
class Rate {
 public:
  constexpr Rate() = default;
  constexpr explicit Rate(double per_second) : per_second_(per_second) {}

  [[nodiscard]] constexpr double per_second() const { return per_second_; }

  friend constexpr Rate operator*(Rate r, double k) { return Rate{r.per_second_ * k}; }
  friend constexpr Rate operator+(Rate a, Rate b) { return Rate{a.per_second_ + b.per_second_}; }
  friend constexpr auto operator<=>(Rate, Rate) = default;

 private:
  double per_second_ = 0;
};

// Bytes per second, in one direction. Links are sold in bits: 400_Gbps divides by eight.
using Bandwidth = Rate<struct BandwidthTag>;
// Floating-point operations per second, dense (without sparsity).
using FlopRate = Rate<struct FlopRateTag>;

// A count of floating-point operations; a multiply-add counts as two.
class Flops {
 public:
  constexpr Flops() = default;
  constexpr explicit Flops(double count) : count_(count) {}
  [[nodiscard]] constexpr double count() const { return count_; }
  friend constexpr auto operator<=>(Flops, Flops) = default;

 private:
  double count_ = 0;
};

// Seconds as a Duration, rounded up to the next picosecond so that nothing ends early.
// Requires seconds >= 0. Throws InputError when the answer does not fit (106 days).
[[nodiscard]] Duration from_seconds(double seconds);
[[nodiscard]] constexpr double to_seconds(Duration d) {
  return static_cast<double>(d.count()) / 1e12;
}
[[nodiscard]] constexpr double to_microseconds(Duration d) {
  return static_cast<double>(d.count()) / 1e6;
}

// `start` + `span`. Throws InputError when the answer does not fit. Requires span >= 0.
[[nodiscard]] Time time_after(Time start, Duration span);

// The time `size` takes at a constant `rate`, rounded up. Requires rate > 0; throws as
// from_seconds.
[[nodiscard]] Duration transfer_time(Bytes size, Bandwidth rate);

namespace literals {
using namespace std::chrono_literals;

constexpr Duration operator""_ps(unsigned long long n) {
  return Duration{static_cast<std::int64_t>(n)};
}
constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n)};
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n) << 30};
}
constexpr Bandwidth operator""_Gbps(unsigned long long n) {
  return Bandwidth{static_cast<double>(n) * 1e9 / 8};
}
constexpr Bandwidth operator""_GBps(unsigned long long n) {
  return Bandwidth{static_cast<double>(n) * 1e9};
}
}  // namespace literals

}  // namespace flyover
