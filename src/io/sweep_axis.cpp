#include "io/sweep_axis.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace flyover::io {

namespace {

constexpr std::uint32_t max_values = 1'000'000;

SweepValue whole_if_whole(double number) {
  constexpr double largest = 9007199254740992;  // Every whole number up to here is a double.
  if (number == std::trunc(number) && std::fabs(number) <= largest) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

bool is_number(const SweepValue& value) {
  return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
}

std::vector<SweepValue> read_values(const Field& field) {
  std::vector<SweepValue> values;
  for (const Field& item : field.elements()) {
    SweepValue value = read_sweep_value(item);
    if (std::ranges::find(values, value) != values.end()) {
      item.fail(fmt::format("{} is there twice", to_string(value)));
    }
    values.push_back(std::move(value));
  }
  if (values.empty()) field.fail("expected at least one value");
  return values;
}

void check_unit(const Field& values, const SweepAxis& axis) {
  if (axis.unit.empty()) return;
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    if (is_number(axis.values[i])) continue;
    values[i].fail(fmt::format("expected a number of {}", axis.unit));
  }
}

// For sums and products that should end at `to`.
constexpr double slack = 1 + 1e-9;

void check_count(const Field& field, double count) {
  if (count > max_values) field.fail(fmt::format("gives more than {} values", max_values));
}

std::vector<double> by_step(const Field& field, const SweepAxis& axis) {
  const double step = field.positive_number();
  const double steps = std::floor((axis.high - axis.low) / step * slack);
  check_count(field, steps);
  std::vector<double> numbers(static_cast<std::size_t>(steps) + 1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = axis.low + static_cast<double>(i) * step;
  }
  return numbers;
}

std::vector<double> by_factor(const Field& field, const SweepAxis& axis) {
  const double factor = field.number();
  if (factor <= 1) field.fail(fmt::format("expected more than 1, got {}", factor));
  check_count(field, std::log(axis.high / axis.low) / std::log(factor));
  std::vector<double> numbers = {axis.low};
  while (numbers.back() * factor <= axis.high * slack) numbers.push_back(numbers.back() * factor);
  return numbers;
}

std::vector<double> by_count(const Field& field, const SweepAxis& axis) {
  std::vector<double> numbers(field.count(2, max_values));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double u = static_cast<double>(i) / static_cast<double>(numbers.size() - 1);
    numbers[i] = axis.logarithmic ? axis.low * std::pow(axis.high / axis.low, u)
                                  : axis.low + u * (axis.high - axis.low);
  }
  return numbers;
}

std::vector<SweepValue> listed(const SweepAxis& axis, const std::vector<double>& numbers) {
  std::vector<SweepValue> values;
  for (const double number : numbers) {
    SweepValue value = whole_if_whole(axis.whole ? std::round(number) : shortened(number));
    // Neighbours may round to the same number.
    if (values.empty() || values.back() != value) values.push_back(std::move(value));
  }
  return values;
}

void read_ends(const Field& field, SweepAxis& axis) {
  axis.low = field["from"].number();
  axis.high = field["to"].number();
  if (axis.high <= axis.low) field["to"].fail(fmt::format("expected more than {}", axis.low));
  if (!std::isfinite(axis.high - axis.low)) field.fail("the range is too wide");
  if (field.has("whole")) axis.whole = field["whole"].boolean();
  constexpr double largest = 9007199254740992;
  for (const std::string_view end : {"from", "to"}) {
    const double number = field[end].number();
    if (axis.whole && (number != std::trunc(number) || std::fabs(number) > largest)) {
      field[end].fail("expected a whole number, as \"whole\" says");
    }
  }
}

void read_range(const Field& field, SweepSampling sampling, SweepAxis& axis) {
  read_ends(field, axis);
  std::string way;
  for (const std::string_view other : {"step", "factor", "count"}) {
    if (!field.has(other)) continue;
    if (!way.empty()) field[other].fail(fmt::format("\"{}\" says it already: leave one out", way));
    way = other;
  }
  if (field.has("scale")) {
    axis.logarithmic = field["scale"].one_of({"linear", "log"}) == "log";
    if (!way.empty() && way != "count") {
      field["scale"].fail(fmt::format("\"{}\" says it already: leave it out", way));
    }
  }
  if ((axis.logarithmic || way == "factor") && axis.low <= 0) {
    field["from"].fail("expected a number above zero");
  }
  if (way == "step") {
    axis.values = listed(axis, by_step(field[way], axis));
  } else if (way == "factor") {
    axis.values = listed(axis, by_factor(field[way], axis));
  } else if (way == "count") {
    axis.values = listed(axis, by_count(field[way], axis));
  } else if (sampling == SweepSampling::Grid) {
    field.fail("a grid needs values: give \"step\", \"factor\" or \"count\", or draw a sample");
  }
}

}  // namespace

SweepValue read_sweep_value(const Field& field) {
  if (field.is_bool()) return field.boolean();
  if (field.is_number()) return whole_if_whole(field.number());
  if (field.is_string()) return field.text();
  field.fail("expected a number, a string, true or false");
}

bool same_kind(const SweepValue& a, const SweepValue& b) {
  return a.index() == b.index() || (is_number(a) && is_number(b));
}

SweepAxis read_sweep_axis(const Field& field, SweepSampling sampling) {
  SweepAxis axis;
  if (field.is_array()) {
    axis.values = read_values(field);
    return axis;
  }
  if (!field.is_object()) {
    field.fail("expected a list of values, or an object with \"values\", or \"from\" and \"to\"");
  }
  if (field.has("unit")) axis.unit = field["unit"].text();
  if (field.has("values")) {
    field.allow_only({"values", "when", "unit", "name"});
    axis.values = read_values(field["values"]);
    check_unit(field["values"], axis);
    return axis;
  }
  field.allow_only({"values", "from", "to", "step", "factor", "count", "scale", "whole", "when",
                    "unit", "name"});
  read_range(field, sampling, axis);
  return axis;
}

}  // namespace flyover::io
