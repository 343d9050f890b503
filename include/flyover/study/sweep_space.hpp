#pragma once

// The points of a sweep: what varies, how it is sampled, what rules points out. Deterministic: the
// same space has the same points in the same order on every machine.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "flyover/base/error.hpp"

namespace flyover {

// A value of an input or output. Whole numbers stay whole.
using SweepValue = std::variant<bool, std::int64_t, double, std::string>;
[[nodiscard]] std::string to_string(const SweepValue& value);  // As JSON writes it, shortest form.

// By name, ascending.
using SweepValues = std::vector<std::pair<std::string, SweepValue>>;
[[nodiscard]] const SweepValue* find(const SweepValues& values, std::string_view name);

// An expression whose value is no finite number, or that needs a name which has no value, at this
// point: of the point, where any other error is of the expression.
class NoValue : public InputError {
 public:
  using InputError::InputError;
};

// An expression over names: arithmetic, comparison, and/or/not, min, max, ... (muParserX). Strings
// compare with ==. docs/formats/sweep.md has the language. May be shared between threads.
class Expression {
 public:
  // Throws InputError (without a place) that says where in the text it is wrong.
  explicit Expression(std::string text);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const std::vector<std::string>& names() const;  // That it uses, ascending.
  // Throws NoValue for a name that has no value, unless `and`, `or` and `?:` do not come to it, and
  // when the result is no finite number; InputError for a value of the wrong type.
  [[nodiscard]] SweepValue value(const SweepValues& values) const;
  [[nodiscard]] bool holds(const SweepValues& values) const;     // Of a condition.
  [[nodiscard]] double number(const SweepValues& values) const;  // Of an objective.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Words of the language, which name no input: "and", "min", ... ascending.
[[nodiscard]] std::span<const std::string> expression_words();
// Whether `name` can stand in an expression: letters, digits, "_" and ".", not led by a digit.
[[nodiscard]] bool is_expression_name(std::string_view name);

// One input that varies.
struct SweepAxis {
  std::string path;  // As --set has it, "topology.fabric.oversubscription".
  std::string name;  // In expressions and results: the last part of the path where that is unique.
  std::string unit;  // What follows the number where the input is set: "Gb/s"; or "".
  std::vector<SweepValue> values;  // A grid's; empty: drawn from [low, high].
  double low = 0;
  double high = 0;
  bool logarithmic = false;
  bool whole = false;
  // Only where this holds, of the axes before; elsewhere the input keeps what its file says. Off
  // too where it needs an axis that is off.
  std::optional<Expression> when;
};
// As --set has it: 400 of an axis in "Gb/s" is "400 Gb/s".
[[nodiscard]] std::string setting_of(const SweepAxis& axis, const SweepValue& value);

// To 12 digits, as drawn values are: libraries differ in the last bits of exp and log, and people
// read these numbers.
[[nodiscard]] double shortened(double value);

// A grid in row-major order: the last axis varies fastest. The others are drawn per axis from one
// number in [0, 1) each; a Latin hypercube has one point in each of `points` equal parts of it.
enum class SweepSampling : std::uint8_t { Grid, Random, LatinHypercube, Sobol };

struct SweepSpace {
  std::vector<SweepAxis> axes;
  std::vector<std::pair<std::string, Expression>> derived;  // In order; may use those before.
  // On inputs and derived values; those that also use other names (outputs: fits_in_memory) are
  // left to who has them. uses_only tells which.
  std::vector<Expression> where;
  SweepSampling sampling = SweepSampling::Grid;
  std::uint64_t points = 0;  // To draw; of a grid all.
  std::uint64_t seed = 1;    // Of Random and LatinHypercube.
};
// Names of axes and of derived values, ascending.
[[nodiscard]] std::vector<std::string> input_names(const SweepSpace& space);
// Whether all names of the expression are among `names`, which ascend.
[[nodiscard]] bool uses_only(const Expression& expression, std::span<const std::string> names);

struct SweepPoint {
  std::uint64_t number = 0;  // Its place in the sweep.
  // Axes by name and derived values; without those that are off or need one that is.
  SweepValues inputs;
  std::string refused;  // Why it is not to be run: a condition on inputs; "" if it is.
};

// Points by number, without keeping them: a grid of millions costs nothing until asked. May be
// shared between threads.
class SweepPoints {
 public:
  // Borrows the space. Throws InputError when a condition `when` of a grid cannot be worked out,
  // and when the points are too many to number.
  explicit SweepPoints(const SweepSpace& space);
  ~SweepPoints();
  SweepPoints(SweepPoints&&) noexcept;

  [[nodiscard]] std::uint64_t size() const;
  // A condition or derived value that cannot be worked out is a reason to refuse the point.
  [[nodiscard]] SweepPoint point(std::uint64_t number) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover
