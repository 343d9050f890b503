#include "flyover/study/sweep_config.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace flyover {

namespace {

constexpr std::array outputs = {
    SweepOutput{"time_us", Goal::Minimise, "time of the workload, as it is replayed"},
    SweepOutput{"step_s", Goal::Minimise, "time of a training step"},
    SweepOutput{"tokens_per_s", Goal::Maximise, "tokens of all GPUs per second"},
    SweepOutput{"tokens_per_s_per_gpu", Goal::Maximise, "tokens per second and GPU"},
    SweepOutput{"mfu", Goal::Maximise, "share of the GPUs' peak that the model's FLOPs take"},
    SweepOutput{"compute_s", Goal::Minimise, "kernels"},
    SweepOutput{"exposed_tp_s", Goal::Minimise, "messages of tensor groups that nothing hides"},
    SweepOutput{"exposed_cp_s", Goal::Minimise, "the same of context groups"},
    SweepOutput{"exposed_ep_s", Goal::Minimise, "the same of expert groups"},
    SweepOutput{"exposed_pp_s", Goal::Minimise, "the same between stages"},
    SweepOutput{"exposed_dp_s", Goal::Minimise, "the same of gradients and parameters"},
    SweepOutput{"exposed_communication_s", Goal::Minimise, "communication that nothing hides"},
    SweepOutput{"bubble_s", Goal::Minimise, "idle time of the pipeline"},
    SweepOutput{"optimizer_s", Goal::Minimise, "the optimizer's kernels, of estimates"},
    SweepOutput{"other_s", Goal::Minimise, "waiting for the host, start-ups and slower ranks"},
    SweepOutput{"busbw_GBps", Goal::Maximise, "bus bandwidth, as nccl-tests defines it"},
    SweepOutput{"bottleneck", std::nullopt, "what limits it, in words"},
    SweepOutput{"gpus", std::nullopt, "number of GPUs", false},
    SweepOutput{"nodes", std::nullopt, "number of nodes", false},
    SweepOutput{"switches", Goal::Minimise, "switches of the fabric", false},
    SweepOutput{"cables", Goal::Minimise, "cables of the fabric", false},
    SweepOutput{"memory_GiB", Goal::Minimise, "memory of the fullest stage", false},
    SweepOutput{"fits_in_memory", std::nullopt, "whether that fits, true or false", false},
    SweepOutput{"capital_dollars", Goal::Minimise, "price of nodes and network", false},
    SweepOutput{"network_dollars", Goal::Minimise, "price of switches and links", false},
    SweepOutput{"power_kW", Goal::Minimise, "power that nodes and switches draw", false},
    SweepOutput{"cost_per_hour", Goal::Minimise, "dollars per hour of all GPUs", false},
    SweepOutput{"not_priced", std::nullopt, "prices and powers that are not known", false},
    SweepOutput{"dollars_per_M_tokens", Goal::Minimise, "dollars per 10^6 tokens"},
    SweepOutput{"tokens_per_dollar", Goal::Maximise, "tokens per dollar"},
    SweepOutput{"tokens_per_joule", Goal::Maximise, "tokens per joule"}};

using Entry = SweepValues::value_type;

void insert(SweepValues& values, const std::string& name, SweepValue value) {
  values.emplace(std::ranges::lower_bound(values, name, {}, &Entry::first), name, std::move(value));
}

// Inputs, outputs that do not depend on time, and measures of these alone; ascending.
std::vector<std::string> timeless_names(const SweepConfig& config) {
  std::vector<std::string> names = input_names(config.space);
  for (const SweepOutput& output : outputs) {
    if (!output.of_time) names.emplace_back(output.name);
  }
  std::ranges::sort(names);
  for (const auto& [name, expression] : config.measures) {
    if (!uses_only(expression, names)) continue;
    names.insert(std::ranges::lower_bound(names, name), name);
  }
  return names;
}

}  // namespace

std::span<const SweepOutput> sweep_outputs() {
  return outputs;
}

SweepValues all_values(const PointResult& result) {
  SweepValues values;
  values.reserve(result.inputs.size() + result.outputs.size());
  std::ranges::merge(result.inputs, result.outputs, std::back_inserter(values), {}, &Entry::first,
                     &Entry::first);
  const auto twice = std::ranges::adjacent_find(values, {}, &Entry::first);
  require(twice == values.end(), "different names of inputs and outputs");
  return values;
}

void finish_point(const SweepConfig& config, PointResult& result, SweepConditions conditions) {
  if (result.status != PointStatus::Done) return;
  SweepValues values = all_values(result);
  for (const auto& [name, expression] : config.measures) {
    try {
      if (find(result.outputs, name) != nullptr) continue;  // From an earlier call.
      SweepValue value = expression.value(values);
      insert(result.outputs, name, value);
      insert(values, name, std::move(value));
    } catch (const NoValue&) {
      continue;  // Whoever needs it says so.
    }
  }
  const std::vector<std::string> inputs = input_names(config.space);
  const std::vector<std::string> known =
      conditions == SweepConditions::All ? std::vector<std::string>() : timeless_names(config);
  for (const Expression& condition : config.space.where) {
    if (uses_only(condition, inputs)) continue;
    if (conditions == SweepConditions::NotOfTime && !uses_only(condition, known)) continue;
    try {
      if (condition.holds(values)) continue;
      result.reason = fmt::format("\"{}\" does not hold", condition.text());
    } catch (const InputError& error) {
      result.reason = error.problem();
    }
    result.status = PointStatus::Refused;
    return;
  }
}

}  // namespace flyover
