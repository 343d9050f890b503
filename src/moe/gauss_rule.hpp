#pragma once

#include <cstdint>
#include <vector>

namespace flyover::moe {

// Gauss and Legendre's rule: exact for polynomials below degree 2 points.
class GaussRule {
 public:
  explicit GaussRule(std::uint32_t points);

  // Calls f(x, weight) for every point between `from` and `to`.
  template <class F>
  void over(double from, double to, F f) const {
    const double half = (to - from) / 2;
    for (const Point& point : points_) f(from + half * (1 + point.at), half * point.weight);
  }

 private:
  struct Point {
    double at = 0;  // -1 to 1.
    double weight = 0;
  };
  std::vector<Point> points_;
};

}  // namespace flyover::moe
