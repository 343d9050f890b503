#include "flyover/base/units.hpp"

#include <cmath>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

Duration from_seconds(double seconds) {
  require(seconds >= 0, "from_seconds: a duration that is not negative");
  const double ps = std::ceil(seconds * 1e12);
  // 2^63 is exact in double and one past the largest Duration.
  if (!(ps < 0x1p63)) {
    throw InputError(
        fmt::format("{:.3g} s is longer than simulated time can hold (106 days)", seconds));
  }
  return Duration{static_cast<std::int64_t>(ps)};
}

Time time_after(Time start, Duration span) {
  require(span >= Duration{}, "time_after: a span that is not negative");
  if (span > Time::max() - start) {
    throw InputError("the run is longer than simulated time can hold (106 days)");
  }
  return start + span;
}

Duration transfer_time(Bytes size, Bandwidth rate) {
  require(rate.per_second() > 0, "transfer_time: a rate above zero");
  return from_seconds(static_cast<double>(size.count()) / rate.per_second());
}

}  // namespace flyover
