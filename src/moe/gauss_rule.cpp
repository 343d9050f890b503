#include "moe/gauss_rule.hpp"

#include "moe/portable.hpp"

namespace flyover::moe {

// Newton's iteration for the roots of the Legendre polynomial, from Tricomi's first guess.
GaussRule::GaussRule(std::uint32_t points) : points_(points) {
  const double n = points;
  for (std::uint32_t i = 0; i < (points + 1) / 2; ++i) {
    double x = portable_cos(3.141592653589793 * (i + 0.75) / (n + 0.5));
    double slope = 1;
    for (int step = 0; step < 8; ++step) {
      double before = 1;
      double value = x;
      for (std::uint32_t degree = 2; degree <= points; ++degree) {
        const double next = ((2.0 * degree - 1) * x * value - (degree - 1.0) * before) / degree;
        before = value;
        value = next;
      }
      slope = n * (x * value - before) / (x * x - 1);
      x -= value / slope;
    }
    const double weight = 2 / ((1 - x * x) * slope * slope);
    points_[i] = {-x, weight};
    points_[points - 1 - i] = {x, weight};
  }
}

}  // namespace flyover::moe
