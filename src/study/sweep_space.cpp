#include "flyover/study/sweep_space.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include <boost/random/sobol.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace flyover {

namespace {

// Steele, Lea & Flood, "Fast splittable pseudorandom number generators" (2014): the finaliser of
// SplitMix64, a bijection that mixes all bits.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111eb;
  return x ^ (x >> 31U);
}

std::uint64_t hash(std::uint64_t seed, std::uint64_t axis, std::uint64_t number) {
  return mix(mix(mix(seed) ^ axis) ^ number);
}

double unit_interval(std::uint64_t bits) {
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

// A permutation of [0, size) in constant memory: a Feistel network on the next even number of bits,
// walked until it comes back into range (Black & Rogaway, "Ciphers with arbitrary finite domains",
// 2002). At most 4 steps in the mean.
std::uint64_t permuted(std::uint64_t number, std::uint64_t size, std::uint64_t key) {
  constexpr std::uint64_t rounds = 6;
  const unsigned half = std::max(1U, (static_cast<unsigned>(std::bit_width(size - 1)) + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  std::uint64_t x = number;
  do {
    std::uint64_t left = x >> half;
    std::uint64_t right = x & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t next = left ^ (hash(key, round, right) & mask);
      left = right;
      right = next;
    }
    x = (left << half) | right;
  } while (x >= size);
  return x;
}

SweepValue drawn(const SweepAxis& axis, double u) {
  if (!axis.values.empty()) {
    const auto count = axis.values.size();
    const auto index = static_cast<std::size_t>(u * static_cast<double>(count));
    return axis.values[std::min(index, count - 1)];
  }
  // Of whole numbers each takes the part of [low, high + 1) that it begins.
  const double high = axis.whole ? axis.high + 1 : axis.high;
  const double value = axis.logarithmic
                           ? shortened(axis.low * std::exp(u * std::log(high / axis.low)))
                           : shortened(axis.low + u * (high - axis.low));
  if (!axis.whole) return std::clamp(value, axis.low, axis.high);
  return static_cast<std::int64_t>(std::clamp(std::floor(value), axis.low, axis.high));
}

void insert(SweepValues& values, const std::string& name, SweepValue value) {
  const auto at =
      std::ranges::lower_bound(values, name, {}, &std::pair<std::string, SweepValue>::first);
  values.emplace(at, name, std::move(value));
}

bool is_on(const SweepAxis& axis, const SweepValues& before) {
  if (!axis.when) return true;
  for (const std::string& name : axis.when->names()) {
    if (find(before, name) == nullptr) return false;
  }
  try {
    return axis.when->holds(before);
  } catch (const InputError& error) {
    throw InputError(fmt::format("when of {}: {}", axis.name, error.problem()));
  }
}

constexpr std::size_t max_states = 5'000'000;

// How many points a grid has from an axis on, by what its conditions depend on. Without conditions
// there is one state per axis and the numbers are those of a mixed radix.
class GridTree {
 public:
  explicit GridTree(const SweepSpace& space) : axes_(space.axes) {
    // An axis is watched from where it stands to the last condition that uses it.
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      std::size_t last = i;
      for (std::size_t j = i + 1; j < axes_.size(); ++j) {
        if (axes_[j].when && uses(*axes_[j].when, axes_[i].name)) last = j;
      }
      watched_until_.push_back(last);
    }
    counts_.resize(axes_.size() + 1);
    std::vector<std::size_t> choice;
    total_ = count(choice, {});
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }

  [[nodiscard]] SweepValues values(std::uint64_t number) const {
    SweepValues inputs;
    std::vector<std::size_t> choice;
    for (const SweepAxis& axis : axes_) {
      if (!is_on(axis, inputs)) {
        choice.push_back(off);
        continue;
      }
      choice.push_back(0);
      if (!is_watched(choice.size() - 1)) {
        const std::uint64_t below = counted(choice);
        choice.back() = static_cast<std::size_t>(number / below);
        number %= below;
      } else {
        for (std::uint64_t below = counted(choice); number >= below; below = counted(choice)) {
          number -= below;
          ++choice.back();
        }
      }
      insert(inputs, axis.name, axis.values[choice.back()]);
    }
    return inputs;
  }

 private:
  static constexpr std::size_t off = std::numeric_limits<std::size_t>::max();

  static bool uses(const Expression& expression, const std::string& name) {
    return std::ranges::binary_search(expression.names(), name);
  }
  [[nodiscard]] bool is_watched(std::size_t axis) const { return watched_until_[axis] > axis; }

  // What the axes after `choice` depend on.
  [[nodiscard]] std::vector<std::size_t> state(const std::vector<std::size_t>& choice) const {
    std::vector<std::size_t> key;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      if (watched_until_[i] >= choice.size()) key.push_back(choice[i]);
    }
    return key;
  }

  [[nodiscard]] std::uint64_t counted(const std::vector<std::size_t>& choice) const {
    return counts_[choice.size()].at(state(choice));
  }

  // Points below a choice of the first axes, whose values are `before`.
  std::uint64_t count(std::vector<std::size_t>& choice, const SweepValues& before) {
    const std::size_t depth = choice.size();
    if (depth == axes_.size()) {
      counts_[depth][{}] = 1;
      return 1;
    }
    const std::vector<std::size_t> key = state(choice);
    const auto known = counts_[depth].find(key);
    if (known != counts_[depth].end()) return known->second;
    if (++states_ > max_states) {
      throw InputError(fmt::format(
          "conditions \"when\" depend on more than {} combinations of other axes", max_states));
    }
    const std::uint64_t points = count_below(choice, before);
    counts_[depth][key] = points;
    return points;
  }

  std::uint64_t count_below(std::vector<std::size_t>& choice, const SweepValues& before) {
    const SweepAxis& axis = axes_[choice.size()];
    const auto below = [&](std::size_t index) {
      SweepValues values = before;
      if (index != off) insert(values, axis.name, axis.values[index]);
      choice.push_back(index);
      const std::uint64_t points = count(choice, values);
      choice.pop_back();
      return points;
    };
    if (!is_on(axis, before)) return below(off);
    std::uint64_t points = 0;
    const bool watched = is_watched(choice.size());
    const std::uint64_t times = watched ? 1 : axis.values.size();
    for (std::size_t i = 0; i < (watched ? axis.values.size() : 1); ++i) {
      const std::uint64_t more = below(i);
      constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
      if (more > (most - points) / times) {
        throw InputError("the grid has more than 9e18 points: shorten lists or draw a sample");
      }
      points += more * times;
    }
    return points;
  }

  const std::vector<SweepAxis>& axes_;
  std::vector<std::size_t> watched_until_;
  std::vector<std::map<std::vector<std::size_t>, std::uint64_t>> counts_;  // By depth.
  std::size_t states_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace

std::string to_string(const SweepValue& value) {
  return std::visit(
      [](const auto& one) {
        return nlohmann::json(one).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      },
      value);
}

const SweepValue* find(const SweepValues& values, std::string_view name) {
  const auto at =
      std::ranges::lower_bound(values, name, {}, &std::pair<std::string, SweepValue>::first);
  return at == values.end() || at->first != name ? nullptr : &at->second;
}

double shortened(double value) {
  const std::string text = fmt::format("{:.11e}", value);
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string setting_of(const SweepAxis& axis, const SweepValue& value) {
  return axis.unit.empty() ? to_string(value) : to_string(value) + ' ' + axis.unit;
}

std::vector<std::string> input_names(const SweepSpace& space) {
  std::vector<std::string> names;
  for (const SweepAxis& axis : space.axes) names.push_back(axis.name);
  for (const auto& [name, expression] : space.derived) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

bool uses_only(const Expression& expression, std::span<const std::string> names) {
  return std::ranges::includes(names, expression.names());
}

struct SweepPoints::Impl {
  const SweepSpace& space;
  std::optional<GridTree> grid;
  std::optional<boost::random::sobol> sobol;  // At its first point.
  std::vector<const Expression*> conditions;  // Those on inputs alone.
  std::uint64_t size = 0;

  [[nodiscard]] double draw(std::uint64_t axis, std::uint64_t number) const {
    const std::uint64_t bits = hash(space.seed, axis, number);
    if (space.sampling == SweepSampling::Random) return unit_interval(bits);
    // 20 bits inside of a part, so that no rounding can reach the next one.
    const double inside = static_cast<double>(bits >> 44U) * 0x1p-20;
    const std::uint64_t part = permuted(number, size, hash(space.seed, axis, size));
    return (static_cast<double>(part) + inside) / static_cast<double>(size);
  }

  [[nodiscard]] std::vector<double> draws(std::uint64_t number) const {
    std::vector<double> all(space.axes.size());
    if (sobol) {
      boost::random::sobol engine = *sobol;
      engine.seed(number);
      for (double& u : all) u = unit_interval(engine());
    } else {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = draw(i, number);
    }
    return all;
  }

  // "" or why the point is refused.
  [[nodiscard]] std::string sampled(std::uint64_t number, SweepValues& inputs) const {
    const std::vector<double> all = draws(number);
    std::string reason;
    for (std::size_t i = 0; i < space.axes.size(); ++i) {
      const SweepAxis& axis = space.axes[i];
      try {
        if (is_on(axis, inputs)) insert(inputs, axis.name, drawn(axis, all[i]));
      } catch (const InputError& error) {
        if (reason.empty()) reason = error.problem();
      }
    }
    return reason;
  }

  [[nodiscard]] std::string derive(SweepValues& inputs) const {
    std::string reason;
    for (const auto& [name, expression] : space.derived) {
      // Not a value at this point where it needs an axis that is off; a reason where it is no
      // number.
      try {
        insert(inputs, name, expression.value(inputs));
      } catch (const InputError& error) {
        const bool absent = std::ranges::any_of(expression.names(), [&](const std::string& used) {
          return find(inputs, used) == nullptr;
        });
        if (!absent && reason.empty()) reason = fmt::format("{}: {}", name, error.problem());
      }
    }
    return reason;
  }

  [[nodiscard]] std::string check(const SweepValues& inputs) const {
    for (const Expression* condition : conditions) {
      try {
        if (!condition->holds(inputs))
          return fmt::format("\"{}\" does not hold", condition->text());
      } catch (const InputError& error) {
        return error.problem();
      }
    }
    return {};
  }
};

SweepPoints::SweepPoints(const SweepSpace& space)
    : impl_(new Impl{space, std::nullopt, std::nullopt, {}, space.points}) {
  const std::vector<std::string> names = input_names(space);
  for (const Expression& condition : space.where) {
    if (uses_only(condition, names)) impl_->conditions.push_back(&condition);
  }
  if (space.sampling == SweepSampling::Grid) {
    for (const SweepAxis& axis : space.axes)
      require(!axis.values.empty(), "values of a grid's axis");
    impl_->grid.emplace(space);
    impl_->size = impl_->grid->total();
    return;
  }
  constexpr std::uint64_t most = 1'000'000'000;
  require(space.points >= 1 && space.points <= most, "1 to 1e9 points of a sample");
  if (space.sampling == SweepSampling::Sobol && !space.axes.empty()) {
    impl_->sobol.emplace(space.axes.size());
  }
}

SweepPoints::~SweepPoints() = default;
SweepPoints::SweepPoints(SweepPoints&&) noexcept = default;

std::uint64_t SweepPoints::size() const {
  return impl_->size;
}

SweepPoint SweepPoints::point(std::uint64_t number) const {
  require(number < impl_->size, "the number of a point of the sweep");
  SweepPoint point;
  point.number = number;
  if (impl_->grid) {
    point.inputs = impl_->grid->values(number);
  } else {
    point.refused = impl_->sampled(number, point.inputs);
  }
  const std::string underived = impl_->derive(point.inputs);
  if (point.refused.empty()) point.refused = underived;
  if (point.refused.empty()) point.refused = impl_->check(point.inputs);
  return point;
}

}  // namespace flyover
