#include "flyover/study/sweep_config.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace flyover {

namespace {

constexpr std::array outputs = {
    SweepOutput{"time_us", Goal::Minimise, "time of the workload"},
    SweepOutput{"step_s", Goal::Minimise, "time of a training step"},
    SweepOutput{"tokens_per_s", Goal::Maximise, "tokens of all GPUs per second"},
    SweepOutput{"tokens_per_s_per_gpu", Goal::Maximise, "tokens per second and GPU"},
    SweepOutput{"mfu", Goal::Maximise, "share of the GPUs' peak that the model's FLOPs take"},
    SweepOutput{"exposed_communication_s", Goal::Minimise, "communication that nothing hides"},
    SweepOutput{"bubble_s", Goal::Minimise, "idle time of the pipeline"},
    SweepOutput{"busbw_GBps", Goal::Maximise, "bus bandwidth, as nccl-tests defines it"},
    SweepOutput{"gpus", std::nullopt, "number of GPUs"},
    SweepOutput{"memory_bytes", Goal::Minimise, "memory of the fullest stage"},
    SweepOutput{"fits_in_memory", std::nullopt, "whether the fullest stage fits, true or false"},
    SweepOutput{"capital_dollars", Goal::Minimise, "price of the cluster"},
    SweepOutput{"power_kW", Goal::Minimise, "power that the cluster draws"},
    SweepOutput{"cost_per_hour", Goal::Minimise, "dollars per hour of the cluster"},
    SweepOutput{"dollars_per_M_tokens", Goal::Minimise, "dollars per 10^6 tokens"},
    SweepOutput{"tokens_per_dollar", Goal::Maximise, "tokens per dollar"},
    SweepOutput{"tokens_per_joule", Goal::Maximise, "tokens per joule"}};

using Entry = SweepValues::value_type;

void insert(SweepValues& values, const std::string& name, SweepValue value) {
  values.emplace(std::ranges::lower_bound(values, name, {}, &Entry::first), name, std::move(value));
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

void finish_point(const SweepConfig& config, PointResult& result) {
  if (result.status != PointStatus::Done) return;
  SweepValues values = all_values(result);
  for (const auto& [name, expression] : config.measures) {
    try {
      SweepValue value = expression.value(values);
      insert(result.outputs, name, value);
      insert(values, name, std::move(value));
    } catch (const NoValue&) {
      continue;  // Whoever needs it says so.
    }
  }
  const std::vector<std::string> inputs = input_names(config.space);
  for (const Expression& condition : config.space.where) {
    if (uses_only(condition, inputs)) continue;
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
