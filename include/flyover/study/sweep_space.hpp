#pragma once

// The points of a sweep: what varies, how it is sampled, what rules points out. Deterministic: the
// same space has the same points in the same order on every machine.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace flyover {

// A value of an input or output. Whole numbers stay whole.
using SweepValue = std::variant<bool, std::int64_t, double, std::string>;
[[nodiscard]] std::string to_string(const SweepValue& value);  // As JSON writes it, shortest form.

// By name, ascending.
using SweepValues = std::vector<std::pair<std::string, SweepValue>>;
[[nodiscard]] const SweepValue* find(const SweepValues& values, std::string_view name);

// An expression over names: arithmetic, comparison, and/or/not, min, max, ... (muParserX). Strings
// compare with ==. docs/formats/sweep.md has the language.
class Expression {
 public:
  // Throws InputError (without a place) that says where in the text it is wrong.
  explicit Expression(std::string text);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const std::vector<std::string>& names() const;  // That it uses, ascending.
  // Throws InputError for a name that has no value or a value of the wrong type, or when the result
  // is no finite number.
  [[nodiscard]] SweepValue value(const SweepValues& values) const;
  [[nodiscard]] bool holds(const SweepValues& values) const;  // Of a condition.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One input that varies.
struct SweepAxis {
  std::string path;  // As --set has it, "topology.fabric.oversubscription".
  std::string name;  // In expressions and results: the last part of the path where that is unique.
  std::vector<SweepValue> values;  // A grid's; empty: drawn from [low, high].
  double low = 0;
  double high = 0;
  bool logarithmic = false;
  bool whole = false;
  // Only where this holds, of the axes before; elsewhere the input keeps what its file says.
  std::optional<Expression> when;
};

enum class SweepSampling : std::uint8_t { Grid, Random, LatinHypercube, Sobol };

struct SweepSpace {
  std::vector<SweepAxis> axes;
  std::vector<std::pair<std::string, Expression>> derived;  // In order; may use those before.
  std::vector<Expression> where;                            // On inputs and derived values, or on outputs.
  SweepSampling sampling = SweepSampling::Grid;
  std::uint64_t points = 0;  // To draw; of a grid all.
  std::uint64_t seed = 1;
};

struct SweepPoint {
  std::uint64_t number = 0;  // Its place in the sweep.
  SweepValues inputs;        // Axes by name, those that are off left out, and derived values.
  std::string refused;       // Why it is not to be run: a condition on inputs; "" if it is.
};

// Points by number, without keeping them: a grid of millions costs nothing until asked.
class SweepPoints {
 public:
  explicit SweepPoints(const SweepSpace& space);  // Borrows it.
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] SweepPoint point(std::uint64_t number) const;

 private:
  const SweepSpace& space_;
  std::uint64_t size_ = 0;
};

}  // namespace flyover
