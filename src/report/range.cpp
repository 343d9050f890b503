#include "flyover/report/range.hpp"

#include <fmt/format.h>

namespace flyover {

std::string range_text(double low, double high) {
  const auto percent = [](double share) {
    // From 9.95 on one decimal would be the third digit.
    return share < 0.0995 ? fmt::format("{:.1f}", 100 * share) : fmt::format("{:.0f}", 100 * share);
  };
  return fmt::format("-{}/+{}%", percent(1 - low), percent(high - 1));
}

}  // namespace flyover
