#include "flyover/study/sweep_analysis.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "flyover/study/statistics.hpp"

namespace flyover {

namespace {

double as_cost(const SweepObjective& objective, double value) {
  return objective.goal == Goal::Minimise ? value : -value;
}

// Costs of a row, and where it stands.
struct Candidate {
  std::vector<double> costs;
  std::uint64_t number = 0;
  std::size_t row = 0;
};

bool at_most(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, std::less_equal{});
}

// Of candidates in lexicographic order: whoever beats another stands before it.
std::vector<Candidate> front_of_two(std::vector<Candidate> sorted) {
  std::vector<Candidate> front;
  for (Candidate& one : sorted) {
    if (front.empty() || one.costs.back() < front.back().costs.back() ||
        one.costs == front.back().costs) {
      front.push_back(std::move(one));
    }
  }
  return front;
}

std::vector<Candidate> front_of_many(std::vector<Candidate> sorted) {
  std::vector<Candidate> front;
  for (Candidate& one : sorted) {
    const bool beaten = std::ranges::any_of(front, [&](const Candidate& other) {
      return at_most(other.costs, one.costs) && other.costs != one.costs;
    });
    if (!beaten) front.push_back(std::move(one));
  }
  return front;
}

std::optional<double> as_number(const SweepValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

// Rows that have an input, with the objective, by number.
struct Observation {
  SweepValue input;
  double objective = 0;
};

struct Group {
  std::string name;
  std::size_t rows = 0;
  double sum = 0;
  [[nodiscard]] double mean() const { return sum / static_cast<double>(rows); }
};

std::vector<Group> groups_of_words(const std::vector<Observation>& observations) {
  std::map<std::string, Group> by_name;
  for (const Observation& one : observations) {
    Group& group = by_name[to_string(one.input)];
    ++group.rows;
    group.sum += one.objective;
  }
  std::vector<Group> groups;
  for (auto& [name, group] : by_name) {
    group.name = name;
    groups.push_back(group);
  }
  return groups;
}

// Runs of equal numbers while they are few; else neighbours, as equally many as equal numbers let.
std::vector<Group> groups_of_numbers(const std::vector<Observation>& observations) {
  constexpr std::size_t most = 16;
  std::vector<std::size_t> order(observations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto number = [&](std::size_t i) { return as_number(observations[i].input).value(); };
  std::ranges::stable_sort(order, {}, number);
  std::size_t distinct = 1;
  for (std::size_t i = 1; i < order.size(); ++i) {
    distinct += number(order[i]) != number(order[i - 1]) ? 1 : 0;
  }
  std::size_t wanted = distinct;
  if (distinct > most) {
    const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(order.size())));
    wanted = std::clamp<std::size_t>(root, 2, most);
  }

  std::vector<Group> groups;
  for (std::size_t first = 0; first < order.size();) {
    // The rows up to this one belong to the groups up to this one.
    const std::size_t quota = order.size() * (groups.size() + 1) / wanted;
    std::size_t last = first + 1;
    while (last < order.size() &&
           (number(order[last]) == number(order[last - 1]) || (distinct > most && last < quota))) {
      ++last;
    }
    Group group;
    const SweepValue& low = observations[order[first]].input;
    const SweepValue& high = observations[order[last - 1]].input;
    group.name = number(order[first]) == number(order[last - 1])
                     ? to_string(low)
                     : fmt::format("{} to {}", to_string(low), to_string(high));
    group.rows = last - first;
    for (; first < last; ++first) group.sum += observations[order[first]].objective;
    groups.push_back(std::move(group));
  }
  return groups;
}

double mean_of(const std::vector<Observation>& observations) {
  double sum = 0;
  for (const Observation& one : observations) sum += one.objective;
  return sum / static_cast<double>(observations.size());
}

double squares_of(const std::vector<Observation>& observations, double mean) {
  double squares = 0;
  for (const Observation& one : observations) {
    squares += (one.objective - mean) * (one.objective - mean);
  }
  return squares;
}

InputEffect effect_of(const std::string& name, const std::vector<Observation>& observations) {
  InputEffect effect;
  effect.name = name;
  effect.rows = observations.size();
  if (observations.empty()) return effect;
  const bool numeric = std::ranges::all_of(
      observations, [](const Observation& one) { return as_number(one.input).has_value(); });
  const std::vector<Group> groups =
      numeric ? groups_of_numbers(observations) : groups_of_words(observations);
  effect.groups = groups.size();

  const double mean = mean_of(observations);
  const double total = squares_of(observations, mean);
  double between = 0;
  for (const Group& group : groups) {
    between += static_cast<double>(group.rows) * (group.mean() - mean) * (group.mean() - mean);
  }
  if (total > 0) effect.share = std::min(1.0, between / total);
  if (effect.rows > 1) {
    effect.chance = static_cast<double>(effect.groups - 1) / static_cast<double>(effect.rows - 1);
  }
  const auto [lowest, highest] = std::ranges::minmax_element(groups, {}, &Group::mean);
  effect.lowest_mean = lowest->mean();
  effect.highest_mean = highest->mean();
  effect.lowest_at = lowest->name;
  effect.highest_at = highest->name;
  if (numeric && effect.rows >= 2) {
    std::vector<double> inputs;
    std::vector<double> objectives;
    for (const Observation& one : observations) {
      inputs.push_back(as_number(one.input).value());
      objectives.push_back(one.objective);
    }
    effect.rank_correlation = rank_correlation(inputs, objectives);
  }
  return effect;
}

std::vector<std::size_t> by_number(std::span<const PointResult> rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return rows[i].number; });
  return order;
}

bool holds_all(const std::vector<Expression>& conditions, const PointResult& row) {
  const SweepValues values = all_values(row);
  return std::ranges::all_of(conditions, [&](const Expression& condition) {
    try {
      return condition.holds(values);
    } catch (const NoValue&) {
      return false;
    }
  });
}

}  // namespace

std::optional<double> objective_value(const SweepObjective& objective, const PointResult& row) {
  if (row.status != PointStatus::Done) return std::nullopt;
  try {
    return objective.expression.number(all_values(row));
  } catch (const NoValue&) {
    return std::nullopt;
  }
}

std::vector<RankedPoint> best_points(std::span<const PointResult> rows,
                                     const SweepObjective& objective, std::size_t count) {
  std::vector<RankedPoint> points;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (const auto value = objective_value(objective, rows[i])) points.push_back({i, *value});
  }
  const auto kept = std::min(count, points.size());
  std::ranges::partial_sort(points, points.begin() + static_cast<std::ptrdiff_t>(kept), {},
                            [&](const RankedPoint& point) {
                              return std::pair(as_cost(objective, point.value),
                                               rows[point.row].number);
                            });
  points.resize(kept);
  return points;
}

std::vector<std::size_t> pareto_front(std::span<const PointResult> rows,
                                      std::span<const SweepObjective> objectives) {
  require(!objectives.empty(), "an objective of a Pareto front");
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Candidate one{{}, rows[i].number, i};
    for (const SweepObjective& objective : objectives) {
      const auto value = objective_value(objective, rows[i]);
      if (!value) break;
      one.costs.push_back(as_cost(objective, *value));
    }
    if (one.costs.size() == objectives.size()) candidates.push_back(std::move(one));
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.costs != b.costs ? a.costs < b.costs : a.number < b.number;
  });
  const std::vector<Candidate> front = objectives.size() <= 2
                                           ? front_of_two(std::move(candidates))
                                           : front_of_many(std::move(candidates));
  std::vector<std::size_t> indices;
  indices.reserve(front.size());
  for (const Candidate& one : front) indices.push_back(one.row);
  return indices;
}

SweepSensitivity sweep_sensitivity(std::span<const PointResult> rows,
                                   const SweepObjective& objective,
                                   std::span<const std::string> inputs) {
  std::map<std::string, std::vector<Observation>> by_input;
  for (const std::string& name : inputs) by_input[name];
  std::vector<Observation> all;
  for (const std::size_t i : by_number(rows)) {
    const auto value = objective_value(objective, rows[i]);
    if (!value) continue;
    all.push_back({{}, *value});
    for (const auto& [name, input] : rows[i].inputs) {
      if (inputs.empty() || by_input.contains(name)) by_input[name].push_back({input, *value});
    }
  }

  SweepSensitivity sensitivity;
  sensitivity.rows = all.size();
  if (!all.empty()) {
    sensitivity.mean = mean_of(all);
    sensitivity.deviation =
        std::sqrt(squares_of(all, sensitivity.mean) / static_cast<double>(all.size()));
  }
  for (const auto& [name, observations] : by_input) {
    sensitivity.effects.push_back(effect_of(name, observations));
  }
  std::ranges::stable_sort(sensitivity.effects, std::greater{}, &InputEffect::share);
  return sensitivity;
}

SweepAnswer answer(std::span<const PointResult> rows, const SweepQuestion& question) {
  SweepAnswer found;
  found.name = question.name;
  const SweepObjective& objective = question.objective;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto value = objective_value(objective, rows[i]);
    if (!value) continue;
    ++found.considered;
    if (!holds_all(question.where, rows[i])) continue;
    ++found.holding;
    const auto rank = [&](const RankedPoint& point) {
      return std::pair(as_cost(objective, point.value), rows[point.row].number);
    };
    if (!found.best || rank({i, *value}) < rank(*found.best)) found.best = RankedPoint{i, *value};
  }
  return found;
}

}  // namespace flyover
