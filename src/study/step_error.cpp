#include "flyover/study/step_error.hpp"

#include <cmath>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

const StepError& StepErrors::of(const std::string& stack) const {
  const auto found = of_stack.find(stack);
  return found == of_stack.end() ? pooled : found->second;
}

StepDifference step_difference(Duration first, Duration second, bool same_system,
                               const StepError& first_error, const StepError& second_error) {
  require(first > Duration{} && second > Duration{}, "step_difference: times above zero");
  constexpr double ninetieth_percentile = 1.2816;  // Of a normal distribution.
  const auto squares = [](double a, double b) { return a * a + b * b; };
  const double own = squares(first_error.own, second_error.own);
  const double common = same_system ? 0 : squares(first_error.common, second_error.common);
  const double sigma = ninetieth_percentile * std::sqrt(own + common);
  const double ratio = to_seconds(first) / to_seconds(second);
  return {.share = ratio - 1,
          .margin = std::exp(sigma) - 1,
          .within_error = std::abs(std::log(ratio)) <= sigma};
}

std::string verdict(const std::string& first, const std::string& second,
                    const StepDifference& difference) {
  const bool second_wins = difference.share >= 0;
  const std::string& winner = second_wins ? second : first;
  const std::string& loser = second_wins ? first : second;
  // Of the winner's time, whichever it is.
  const double ahead = second_wins ? difference.share : 1 / (1 + difference.share) - 1;
  const std::string margin =
      fmt::format("{:.1f} % (+- {:.1f} %)", 100 * ahead, 100 * difference.margin);
  if (ahead == 0) return fmt::format("{} and {} take the same time", first, second);
  if (difference.within_error) {
    return fmt::format("{} and {} are within error: {} ahead by {}", first, second, winner, margin);
  }
  return fmt::format("{} beats {} by {}", winner, loser, margin);
}

}  // namespace flyover
