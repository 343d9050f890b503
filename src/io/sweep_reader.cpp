#include "flyover/io/sweep_reader.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "flyover/base/text.hpp"
#include "io/sweep_axis.hpp"

namespace flyover::io {

namespace {

constexpr std::uint32_t max_drawn = 1'000'000'000;

Expression read_expression(const Field& field) {
  return field.parsed([](const std::string& text) { return Expression(text); });
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool is_above(const std::vector<std::string>& above, const std::vector<std::string>& below) {
  return above.size() < below.size() &&
         std::ranges::equal(above, std::span(below).first(above.size()));
}

std::uint64_t read_seed(const Field& field) {
  const std::int64_t seed = field.integer();
  if (seed < 0) field.fail(fmt::format("expected a whole number of at least 0, got {}", seed));
  return static_cast<std::uint64_t>(seed);
}

class SweepReader {
 public:
  SweepReader(const Field& root, std::span<const SweepOutput> outputs)
      : root_(root),
        outputs_(outputs) {}

  SweepConfig read() {
    if (!root_.is_object()) root_.fail("expected a sweep, an object with \"vary\"");
    root_.allow_only({"name", "topology", "workload", "library", "vary", "sampling", "derived",
                      "where", "objective", "pareto", "find", "evaluate", "prices", "top"});
    read_sampling();
    read_axes();
    read_fixed("topology", config_.topology, true);
    read_fixed("workload", config_.workload, true);
    read_fixed("library", config_.library, false);
    if (root_.has("name")) config_.name = root_["name"].text();
    read_derived();
    if (root_.has("where")) config_.space.where = read_conditions(root_["where"]);
    if (root_.has("objective")) config_.objective = read_objective(root_["objective"]);
    read_pareto();
    read_questions();
    read_evaluation();
    if (root_.has("prices")) read_prices(root_["prices"]);
    if (root_.has("top")) config_.top = root_["top"].count(1, 1'000'000);
    check_size();
    return std::move(config_);
  }

 private:
  void read_sampling() {
    if (!root_.has("sampling")) return;
    const Field field = root_["sampling"];
    field.allow_only({"method", "points", "seed"});
    const std::vector<std::string> methods = {"grid", "random", "latin-hypercube", "sobol"};
    const std::string method = field["method"].one_of(methods);
    constexpr std::array kinds = {SweepSampling::Grid, SweepSampling::Random,
                                  SweepSampling::LatinHypercube, SweepSampling::Sobol};
    SweepSpace& space = config_.space;
    space.sampling =
        kinds.at(static_cast<std::size_t>(std::ranges::find(methods, method) - methods.begin()));
    if (space.sampling == SweepSampling::Grid) {
      if (field.has("points")) field["points"].fail("a grid has all of its points: leave it out");
    } else {
      space.points = field["points"].count(1, max_drawn);
    }
    if (!field.has("seed")) return;
    if (space.sampling == SweepSampling::Grid || space.sampling == SweepSampling::Sobol) {
      field["seed"].fail(fmt::format("nothing is random in \"{}\": leave it out", method));
    }
    space.seed = read_seed(field["seed"]);
  }

  // --- Inputs that vary ---

  void read_axes() {
    const Field vary = root_["vary"];
    if (!vary.is_object()) vary.fail("expected an object: paths of inputs with their values");
    std::vector<std::string> paths;
    for (const std::string& key : vary.keys()) {
      if (key != "comment") paths.push_back(key);
    }
    if (paths.empty()) vary.fail("expected at least one input that varies");
    for (const std::string& path : paths) check_path(vary[path], path);
    check_order(vary, paths);
    const std::vector<std::string> names = name_axes(vary, paths);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      SweepAxis axis = read_sweep_axis(vary[paths[i]], config_.space.sampling);
      axis.path = paths[i];
      axis.name = names[i];
      if (vary[paths[i]].is_object() && vary[paths[i]].has("when")) {
        axis.when = read_when(vary[paths[i]]["when"], names);
      }
      remember_first(axis);
      config_.space.axes.push_back(std::move(axis));
    }
  }

  static void check_path(const Field& field, const std::string& path) {
    const std::vector<std::string> roots = {"topology", "workload", "library", "nccl", "prices"};
    const std::vector<std::string> parts = parts_of(path);
    if (std::ranges::find(parts, "") != parts.end() || path.find('/') != std::string::npos) {
      field.fail(fmt::format(
          "expected a path such as \"topology.fabric.oversubscription\", got \"{}\"", path));
    }
    if (std::ranges::find(roots, parts.front()) == roots.end()) {
      std::string hint = did_you_mean(parts.front(), roots);
      if (hint.empty()) hint = ": paths begin with topology, workload, library, nccl or prices";
      field.fail(fmt::format("there is no input \"{}\"{}", parts.front(), hint));
    }
    if (parts.size() == 1 && (path == "nccl" || path == "prices")) {
      field.fail(fmt::format("expected one value of {0}, such as \"{0}.{1}\"", path,
                             path == "nccl" ? "NCCL_ALGO" : "gpu_hour"));
    }
  }

  // Values are set in the order of the axes: what holds others must come first.
  static void check_order(const Field& vary, const std::vector<std::string>& paths) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (std::size_t j = i + 1; j < paths.size(); ++j) {
        if (!is_above(parts_of(paths[j]), parts_of(paths[i]))) continue;
        vary[paths[j]].fail(
            fmt::format("would overwrite \"{}\": it must stand before it", paths[i]));
      }
    }
  }

  [[nodiscard]] bool is_output(const std::string& name) const {
    return std::ranges::find(outputs_, name, &SweepOutput::name) != outputs_.end();
  }

  std::vector<std::string> name_axes(const Field& vary, const std::vector<std::string>& paths) {
    std::vector<std::string> last_parts;
    last_parts.reserve(paths.size());
    for (const std::string& path : paths) last_parts.push_back(parts_of(path).back());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const Field field = vary[paths[i]];
      if (field.is_object() && field.has("name")) {
        names.push_back(read_name(field["name"], field["name"].text()));
        continue;
      }
      const std::string& last = last_parts[i];
      const bool plain = is_expression_name(last) && std::ranges::count(last_parts, last) == 1 &&
                         !is_output(last) && !inputs_.contains(last);
      const std::string& name = plain ? last : paths[i];
      if (!is_expression_name(name)) {
        field.fail(fmt::format("\"{}\" cannot stand in expressions: give it a \"name\"", name));
      }
      names.push_back(read_name(field, name));
    }
    return names;
  }

  // Takes a name that nothing has yet.
  std::string read_name(const Field& place, const std::string& name) {
    if (!is_expression_name(name)) {
      place.fail(
          fmt::format("expected a name of letters, digits, \"_\" and \".\" that is no word of "
                      "expressions, got \"{}\"",
                      name));
    }
    if (is_output(name)) place.fail(fmt::format("\"{}\" is the name of an output", name));
    if (!inputs_.insert(name).second || measures_.contains(name)) {
      place.fail(fmt::format("there are two of the name \"{}\"", name));
    }
    return name;
  }

  [[nodiscard]] Expression read_when(const Field& field,
                                     const std::vector<std::string>& names) const {
    Expression when = read_expression(field);
    const std::vector<SweepAxis>& before = config_.space.axes;
    for (const std::string& name : when.names()) {
      if (std::ranges::find(before, name, &SweepAxis::name) != before.end()) continue;
      if (std::ranges::find(names, name) != names.end()) {
        field.fail(fmt::format("\"{}\" must stand before what depends on it", name));
      }
      field.fail(fmt::format("\"{}\" is no input that varies{}", name, did_you_mean(name, names)));
    }
    try_out(field, [&] { (void)when.holds(first_); });
    return when;
  }

  // The first point, to try expressions on: one that mixes up kinds is wrong everywhere.
  void remember_first(const SweepAxis& axis) {
    SweepValue value = axis.whole ? SweepValue(static_cast<std::int64_t>(axis.low)) : axis.low;
    if (!axis.values.empty()) {
      value = axis.values.front();
      if (std::ranges::any_of(axis.values,
                              [&](const SweepValue& other) { return !same_kind(other, value); })) {
        return;
      }
    }
    remember(axis.name, std::move(value));
  }
  void remember(const std::string& name, SweepValue value) {
    const auto at = std::ranges::lower_bound(first_, name, {}, &SweepValues::value_type::first);
    first_.emplace(at, name, std::move(value));
  }

  static void try_out(const Field& field, const std::function<void()>& evaluate) {
    try {
      evaluate();
    } catch (const NoValue&) {
      return;  // Here, not everywhere.
    } catch (const InputError& error) {
      field.fail(error.problem());
    }
  }

  // --- What does not vary ---

  void read_fixed(std::string_view key, std::string& value, bool needed) {
    const auto& axes = config_.space.axes;
    const bool varied = std::ranges::find(axes, key, &SweepAxis::path) != axes.end();
    if (root_.has(key)) {
      if (varied) root_[key].fail(fmt::format("\"vary\" has \"{}\" too: leave one out", key));
      value = root_[key].text();
    } else if (needed && !varied) {
      (void)root_[key];
    }
  }

  // --- Expressions ---

  [[nodiscard]] std::vector<std::string> known_names() const {
    std::vector<std::string> known(inputs_.begin(), inputs_.end());
    known.insert(known.end(), measures_.begin(), measures_.end());
    for (const SweepOutput& output : outputs_) known.emplace_back(output.name);
    std::ranges::sort(known);
    return known;
  }

  void check_names(const Field& field, const Expression& expression) const {
    const std::vector<std::string> known = known_names();
    for (const std::string& name : expression.names()) {
      if (std::ranges::binary_search(known, name)) continue;
      field.fail(fmt::format("\"{}\" is no input that varies, derived value or output{}", name,
                             did_you_mean(name, known)));
    }
  }

  [[nodiscard]] bool of_inputs(const Expression& expression) const {
    return std::ranges::all_of(expression.names(),
                               [&](const std::string& name) { return inputs_.contains(name); });
  }

  void read_derived() {
    if (!root_.has("derived")) return;
    const Field derived = root_["derived"];
    if (!derived.is_object()) derived.fail("expected an object: names with their expressions");
    for (const std::string& name : derived.keys()) {
      if (name == "comment") continue;
      const Field field = derived[name];
      Expression expression = read_expression(field);
      const std::vector<std::string> all = derived.keys();
      for (const std::string& used : expression.names()) {
        if (std::ranges::find(all, used) == all.end()) continue;
        if (inputs_.contains(used) || measures_.contains(used)) continue;
        field.fail(used == name
                       ? fmt::format("\"{}\" is derived from itself", name)
                       : fmt::format("\"{}\" must stand before what is derived from it", used));
      }
      check_names(field, expression);
      const bool early = of_inputs(expression);
      (void)read_name(field, name);
      if (early) {
        try_out(field, [&] { remember(name, expression.value(first_)); });
        config_.space.derived.emplace_back(name, std::move(expression));
      } else {
        inputs_.erase(name);
        measures_.insert(name);
        config_.measures.emplace_back(name, std::move(expression));
      }
    }
  }

  std::vector<Expression> read_conditions(const Field& field) {
    std::vector<Expression> conditions;
    const auto read_one = [&](const Field& one) {
      Expression condition = read_expression(one);
      check_names(one, condition);
      try_out(one, [&] { (void)condition.holds(first_); });
      conditions.push_back(std::move(condition));
    };
    if (field.is_string()) {
      read_one(field);
    } else if (field.is_array()) {
      for (const Field& one : field.elements()) read_one(one);
    } else {
      field.fail("expected a condition or a list of them");
    }
    return conditions;
  }

  SweepObjective read_objective(const Field& field) {
    if (field.is_string()) return read_named_objective(field);
    if (!field.is_object()) {
      field.fail("expected the name of an output, {\"maximise\": ...} or {\"minimise\": ...}");
    }
    field.allow_only({"maximise", "minimise", "name"});
    return read_goal(field);
  }

  SweepObjective read_goal(const Field& field) {
    if (field.has("maximise") == field.has("minimise")) {
      field.fail("expected either \"maximise\" or \"minimise\"");
    }
    const Goal goal = field.has("maximise") ? Goal::Maximise : Goal::Minimise;
    const Field text = field[goal == Goal::Maximise ? "maximise" : "minimise"];
    Expression expression = read_expression(text);
    check_names(text, expression);
    try_out(text, [&] { (void)expression.number(first_); });
    std::string name = field.has("name") ? field["name"].text() : expression.text();
    return {std::move(name), goal, std::move(expression)};
  }

  [[nodiscard]] SweepObjective read_named_objective(const Field& field) const {
    const std::string name = field.text();
    const auto output = std::ranges::find(outputs_, name, &SweepOutput::name);
    if (output != outputs_.end() && output->better)
      return {name, *output->better, Expression(name)};
    const std::vector<std::string> known = known_names();
    if (output != outputs_.end() || std::ranges::binary_search(known, name)) {
      field.fail(fmt::format(
          "say which way: {{\"maximise\": \"{0}\"}} or {{\"minimise\": \"{0}\"}}", name));
    }
    std::vector<std::string> with_goal;
    for (const SweepOutput& one : outputs_) {
      if (one.better) with_goal.emplace_back(one.name);
    }
    std::string hint = did_you_mean(name, with_goal);
    if (hint.empty()) hint = fmt::format(", expected one of {}", fmt::join(with_goal, ", "));
    field.fail(fmt::format("\"{}\" is no output{}", name, hint));
  }

  void read_pareto() {
    if (!root_.has("pareto")) return;
    const Field pareto = root_["pareto"];
    for (const Field& item : pareto.elements()) {
      SweepObjective objective = read_objective(item);
      const auto twice = std::ranges::find(config_.pareto, objective.name, &SweepObjective::name);
      if (twice != config_.pareto.end()) {
        item.fail(fmt::format("\"{}\" is there twice", objective.name));
      }
      config_.pareto.push_back(std::move(objective));
    }
    if (config_.pareto.size() < 2) pareto.fail("expected at least two objectives");
  }

  void read_questions() {
    if (!root_.has("find")) return;
    for (const Field& item : root_["find"].elements()) {
      if (!item.is_object()) {
        item.fail("expected an object with \"name\", \"maximise\" or \"minimise\", and \"where\"");
      }
      item.allow_only({"name", "maximise", "minimise", "where"});
      SweepQuestion question{item["name"].text(), read_goal(item), {}};
      const std::string& name = question.name;
      const auto twice = std::ranges::find(config_.find, name, &SweepQuestion::name);
      if (twice != config_.find.end())
        item["name"].fail(fmt::format("\"{}\" is there twice", name));
      question.objective.name = question.objective.expression.text();
      if (item.has("where")) question.where = read_conditions(item["where"]);
      config_.find.push_back(std::move(question));
    }
  }

  void read_evaluation() {
    if (!root_.has("evaluate")) return;
    const Field field = root_["evaluate"];
    const std::string word = field.one_of({"estimate", "replay", "adaptive"});
    if (word == "estimate") config_.evaluate = SweepEvaluation::Estimate;
    if (word != "adaptive") return;
    config_.evaluate = SweepEvaluation::Adaptive;
    if (!config_.objective) {
      field.fail("only an \"objective\" tells what can be among the best: there is none");
    }
  }

  void read_prices(const Field& field) {
    if (field.is_string()) {
      config_.prices_file = field.text();
      return;
    }
    if (!field.is_object()) field.fail("expected an object of prices, or the name of a file");
    flatten_prices(field, "");
  }

  void flatten_prices(const Field& field, const std::string& above) {
    for (const std::string& key : field.keys()) {
      if (key == "comment" || key == "$schema") continue;
      const Field price = field[key];
      const std::string path = above.empty() ? key : fmt::format("{}.{}", above, key);
      if (price.is_object()) {
        flatten_prices(price, path);
      } else {
        config_.prices.emplace_back(path, read_sweep_value(price));
      }
    }
  }

  void check_size() const {
    try {
      (void)SweepPoints(config_.space);
    } catch (const InputError& error) {
      root_["vary"].fail(error.problem());
    }
  }

  const Field root_;
  std::span<const SweepOutput> outputs_;
  SweepConfig config_;
  std::set<std::string> inputs_;    // Names of axes and of what is derived from them.
  std::set<std::string> measures_;  // Names of what is derived from outputs.
  SweepValues first_;
};

}  // namespace

SweepConfig read_sweep_config(const Document& document, std::span<const SweepOutput> outputs) {
  return SweepReader(document.root(), outputs).read();
}

}  // namespace flyover::io
