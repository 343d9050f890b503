#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace flyover {

// A place in an input, printed as `file:line:column: /json/pointer`. Parts that are unknown are
// left out.
struct Place {
  std::string file;     // A path, "<stdin>", or a command-line flag such as "--set".
  int line = 0;         // 1-based; 0 when unknown.
  int column = 0;       // 1-based; 0 when unknown.
  std::string pointer;  // RFC 6901, for example "/links/3/bandwidth".
};

// The input is at fault (exit status 2). what() is a complete message: place, problem, expectation.
class InputError : public std::runtime_error {
 public:
  InputError(Place place, std::string_view problem);
  // For a value whose reader knows its place and will add it: see io::Field::at_place.
  explicit InputError(std::string_view problem);

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  Place place_;
  std::string problem_;
};

// The simulation cannot finish (exit status 1): an unreachable peer, a deadlock. what() is the
// report.
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The simulator is at fault (exit status 70): a promise between two of its parts was broken.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// States a promise, e.g. require(rate > 0, "a rate above zero"). Kept in release builds: a wrong
// answer costs more than a branch. (The builtins stand in for std::source_location, which
// clang-tidy 14 cannot read.)
inline void require(bool holds, const char* promise, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (!holds) [[unlikely]] {
    throw InternalError(std::string(file) + ':' + std::to_string(line) +
                        ": broken promise: " + promise);
  }
}

}  // namespace flyover
