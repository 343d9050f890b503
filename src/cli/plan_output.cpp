#include "cli/plan_output.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/version.hpp"
#include "flyover/io/step_error_reader.hpp"
#include "flyover/report/table.hpp"
#include "flyover/study/step_error.hpp"

namespace flyover::cli {

namespace {

using nlohmann::ordered_json;

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:.1f}", std::ldexp(static_cast<double>(bytes.count()), -30));
}

std::string seconds(Duration time) {
  const double s = to_seconds(time);
  return s < 0.1 ? fmt::format("{:.2f} ms", 1e3 * s) : fmt::format("{:.3f} s", s);
}

double dollars(const PlanReport& report, const StepEstimate& estimate) {
  return dollars_per_million_tokens(estimate, *report.gpu_hour);
}

const StageMemory& fullest(const PlannedLayout& planned) {
  return planned.memory.stages[planned.memory.fullest];
}

std::string count(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counts_text(const PlanReport& report, const GpuPlan& each) {
  const Plan& plan = each.plan;
  std::string text =
      fmt::format("{} layouts considered: {} impossible, {} do not fit in {} GiB, {} fit",
                  count(plan.considered), count(plan.refused.layouts()), count(plan.too_large),
                  gibibytes(report.capacity), count(plan.fitting()));
  if (plan.excluded > 0) {
    text += fmt::format("; {} of them estimated, {} cannot be among the best {} by a lower bound",
                        count(plan.estimated), count(plan.excluded), plan.best.size());
  }
  return text + '\n';
}

std::string best_table(const PlanReport& report, const GpuPlan& each, std::size_t width) {
  TextTable table{{{"#"},
                   {"step"},
                   {"tokens/s/GPU"},
                   {"MFU"},
                   {"days/1T tokens"},
                   {"memory GiB"},
                   {"limited by", true},
                   {"replayed"},
                   {"closed form"}},
                  {}};
  if (report.gpu_hour) table.columns.insert(table.columns.begin() + 5, {"$/M tokens"});
  for (std::size_t i = 0; i < each.plan.best.size(); ++i) {
    const PlannedLayout& planned = each.plan.best[i];
    const StepEstimate& estimate = planned.estimate;
    std::vector<std::string> row = {
        std::to_string(i + 1), seconds(estimate.time),
        fmt::format("{:.1f}", estimate.tokens_per_second_per_gpu),
        fmt::format("{:.1f} %", 100 * estimate.mfu),
        fmt::format("{:.3g}", days_per_trillion_tokens(estimate, each.gpus))};
    if (report.gpu_hour) row.push_back(fmt::format("{:.3g}", dollars(report, estimate)));
    row.push_back(
        fmt::format("{} (stage {})", gibibytes(fullest(planned).total()), planned.memory.fullest));
    row.emplace_back(estimate.limit());
    if (i < each.replays.size() && each.replays[i].time) {
      const Duration replayed = *each.replays[i].time;
      row.push_back(seconds(replayed));
      row.push_back(
          fmt::format("{:+.1f} %", 100 * (to_seconds(estimate.time) / to_seconds(replayed) - 1)));
    }
    table.rows.push_back(std::move(row));
  }
  const bool replayed = !each.replay_order.empty();
  if (!replayed) table.columns.resize(table.columns.size() - 2);
  return render(table, width);
}

std::string part_table(const GpuPlan& each, std::size_t width) {
  TextTable table{{{"part of the step", true}}, {}};
  for (std::size_t i = 0; i < each.plan.best.size(); ++i) {
    table.columns.push_back({fmt::format("#{}", i + 1)});
  }
  for (std::size_t part = 0; part < step_parts; ++part) {
    std::vector<std::string> row = {std::string(to_string(static_cast<StepPart>(part)))};
    bool any = false;
    for (const PlannedLayout& planned : each.plan.best) {
      any = any || planned.estimate.parts[part] > Duration{};
      row.push_back(seconds(planned.estimate.parts[part]));
    }
    if (any) table.rows.push_back(std::move(row));
  }
  return render(table, width);
}

std::string replay_text(const PlanReport& report, const GpuPlan& each) {
  std::string text;
  for (std::size_t i = 0; i < each.replays.size(); ++i) {
    if (each.replays[i].time) continue;
    text += fmt::format("#{} not replayed: {} operations, together more than the limit of {}\n",
                        i + 1, count(each.replays[i].operations), count(report.replay_limit));
  }
  if (!each.replay_order.empty() && each.replay_order.front() != 0) {
    text += fmt::format("by replay #{} is the fastest\n", each.replay_order.front() + 1);
  }
  return text;
}

std::string invalid_text(const Plan& plan) {
  std::string text;
  for (const Refusals::Kind& kind : plan.refused.kinds()) {
    text += fmt::format("{} impossible: {} (such as {})\n", count(kind.layouts),
                        kind.example_reason, kind.example);
  }
  return text.empty() ? text : text + '\n';
}

std::string misses_text(const PlanReport& report, const Plan& plan) {
  std::string text;
  if (plan.too_large == 0) return text;
  std::vector<std::string> most;
  for (std::size_t part = 0; part < memory_parts; ++part) {
    if (plan.too_large_by[part] == 0) continue;
    most.push_back(fmt::format("{} by {}", count(plan.too_large_by[part]),
                               to_string(static_cast<MemoryPart>(part))));
  }
  text += fmt::format("too large mostly: {}; nearest to {} GiB:\n", fmt::join(most, ", "),
                      gibibytes(report.capacity));
  for (const PlanMiss& miss : plan.misses) {
    text += fmt::format("  {}: {}\n", layout_words(miss.layout), miss.reason);
  }
  return text + '\n';
}

std::string head_text(const PlanReport& report, const GpuPlan& each) {
  const double tokens = static_cast<double>(each.global_batch) * report.job.sequence;
  return fmt::format(
      "{} on {} GPUs ({}) of {}: sequence {}, global batch {} ({:.3g} M tokens{}), {}{}"
      ", stack {}, {}\n",
      report.job.model.name, count(each.gpus), report.gpu, report.topology, report.job.sequence,
      count(each.global_batch), tokens / 1e6,
      each.batch_stated ? "" : "; not stated: see docs/formats/plan.md",
      to_string(report.job.options.compute),
      report.job.options.lora ? fmt::format(", LoRA of rank {}", report.job.options.lora->rank)
                              : "",
      report.job.stack.name, report.library);
}

double score(const PlanReport& report, const GpuPlan& each) {
  if (each.plan.best.empty()) return std::numeric_limits<double>::infinity();
  const StepEstimate& estimate = each.plan.best.front().estimate;
  switch (report.objective) {
    case PlanObjective::Step:
      return to_seconds(estimate.time);
    case PlanObjective::Throughput:
    case PlanObjective::Cost:
      // A GPU-hour costs the same on any number of them.
      return -estimate.tokens_per_second_per_gpu;
  }
  return 0;
}

std::string summary_text(const PlanReport& report, std::size_t width) {
  TextTable table{{{"GPUs"}, {"batch"}, {"step"}, {"tokens/s/GPU"}, {"MFU"}, {"days/1T tokens"}},
                  {}};
  if (report.gpu_hour) table.columns.push_back({"$/M tokens"});
  table.columns.push_back({"best layout", true});
  for (const GpuPlan& each : report.plans) {
    std::vector<std::string> row = {count(each.gpus), count(each.global_batch)};
    if (!each.plan.best.empty()) {
      const PlannedLayout& planned = each.plan.best.front();
      row.push_back(seconds(planned.estimate.time));
      row.push_back(fmt::format("{:.1f}", planned.estimate.tokens_per_second_per_gpu));
      row.push_back(fmt::format("{:.1f} %", 100 * planned.estimate.mfu));
      row.push_back(fmt::format("{:.3g}", days_per_trillion_tokens(planned.estimate, each.gpus)));
      if (report.gpu_hour) row.push_back(fmt::format("{:.3g}", dollars(report, planned.estimate)));
      row.push_back(layout_words(planned.layout));
    } else {
      row.insert(row.end(), report.gpu_hour ? 5 : 4, "-");
      row.emplace_back("none fits");
    }
    table.rows.push_back(std::move(row));
  }
  std::string text = render(table, width);
  if (const auto best = report.winner()) {
    text += fmt::format("best by {}: {} GPUs\n", to_string(report.objective),
                        count(report.plans[*best].gpus));
  }
  return text;
}

ordered_json memory_json(const PlannedLayout& planned) {
  const StageMemory& stage = fullest(planned);
  ordered_json parts = ordered_json::object();
  for (std::size_t part = 0; part < memory_parts; ++part) {
    parts[std::string(to_string(static_cast<MemoryPart>(part)))] = stage.parts[part].count();
  }
  ordered_json stages = ordered_json::array();
  for (const StageMemory& each : planned.memory.stages) stages.push_back(each.total().count());
  return {{"fullest_stage", planned.memory.fullest},
          {"bytes", stage.total().count()},
          {"parts", std::move(parts)},
          {"micro_batches_in_flight", stage.micro_batches_in_flight},
          {"stages_bytes", std::move(stages)}};
}

// Whether a layout may be as fast as the first one for all that is known.
bool within_error(const StepError& error, const Plan& plan, std::size_t i) {
  return step_difference(plan.best[i].estimate.time, plan.best[0].estimate.time, true, error, error)
      .within_error;
}

StepError error_of(const PlanReport& report) {
  return io::shipped_step_errors().of(report.job.stack.name);
}

ordered_json best_json(const PlanReport& report, const GpuPlan& each, std::size_t i) {
  const PlannedLayout& planned = each.plan.best[i];
  const StepEstimate& estimate = planned.estimate;
  ordered_json parts = ordered_json::object();
  for (std::size_t part = 0; part < step_parts; ++part) {
    parts[std::string(to_string(static_cast<StepPart>(part)))] = to_seconds(estimate.parts[part]);
  }
  ordered_json out = {{"words", layout_words(planned.layout)},
                      {"step_s", to_seconds(estimate.time)},
                      {"tokens_per_s_per_gpu", estimate.tokens_per_second_per_gpu},
                      {"mfu", estimate.mfu},
                      {"days_per_1T_tokens", days_per_trillion_tokens(estimate, each.gpus)},
                      {"dollars_per_M_tokens", nullptr},
                      {"breakdown_s", std::move(parts)},
                      {"limited_by", estimate.limit()},
                      {"slowest_stage", estimate.slowest_stage},
                      {"memory", memory_json(planned)},
                      {"why", planned.why},
                      {"within_error", within_error(error_of(report), each.plan, i)},
                      {"replay", nullptr},
                      {"training", training_json(report, planned.layout)}};
  if (report.gpu_hour) out["dollars_per_M_tokens"] = dollars(report, estimate);
  if (i < each.replays.size()) {
    const StepReplay& replay = each.replays[i];
    out["replay"] = {{"operations", replay.operations}, {"step_s", nullptr}};
    if (replay.time) out["replay"]["step_s"] = to_seconds(*replay.time);
  }
  return out;
}

ordered_json invalid_json(const Refusals& refused) {
  ordered_json kinds = ordered_json::array();
  for (const Refusals::Kind& kind : refused.kinds()) {
    kinds.push_back(
        {{"layouts", kind.layouts}, {"example", kind.example}, {"reason", kind.example_reason}});
  }
  ordered_json all = ordered_json::array();
  for (const Refusals::Single& each : refused.all()) {
    all.push_back({{"layout", each.layout}, {"reason", each.reason}, {"layouts", each.layouts}});
  }
  return {{"kinds", std::move(kinds)}, {"all", std::move(all)}};
}

std::string csv_words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, "+"));
}

}  // namespace

std::string_view to_string(PlanObjective objective) {
  switch (objective) {
    case PlanObjective::Step:
      return "step";
    case PlanObjective::Throughput:
      return "tokens-per-s-per-gpu";
    case PlanObjective::Cost:
      return "cost";
  }
  return "";
}

std::optional<std::size_t> PlanReport::winner() const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].plan.best.empty()) continue;
    if (!best || score(*this, plans[i]) < score(*this, plans[*best])) best = i;
  }
  return best;
}

nlohmann::ordered_json training_json(const PlanReport& report, const Layout& layout) {
  const TrainingJob& job = report.job;
  ordered_json cut = {{"tp", layout.tensor},
                      {"cp", layout.context},
                      {"pp", layout.pipeline},
                      {"vp", layout.virtual_stages},
                      {"dp", layout.data},
                      {"ep", layout.expert},
                      {"etp", layout.expert_tensor},
                      {"zero", static_cast<int>(layout.sharding)},
                      {"keep_gathered", layout.keep_gathered},
                      {"sequence_parallel", layout.sequence_parallel},
                      {"cp_exchange", to_string(layout.exchange)}};
  if (layout.shard_group != 0) cut["shard_group"] = layout.shard_group;
  if (!layout.chunk_layers.empty()) cut["chunk_layers"] = layout.chunk_layers;
  ordered_json training = {{"model", report.model},
                           {"global_batch", layout.global_batch},
                           {"micro_batch", layout.micro_batch},
                           {"seq", job.sequence},
                           {"precision", to_string(job.options.compute)},
                           {"stack", report.stack},
                           {"layout", std::move(cut)},
                           {"schedule", to_string(layout.schedule)},
                           {"recompute", to_string(layout.recompute)}};
  if (!layout.recompute_modules.empty()) training["recompute"] = layout.recompute_modules;
  if (job.options.transposed_quantised) training["transposed_quantised"] = true;
  if (job.options.compact_experts) training["compact_experts"] = true;
  if (job.options.lora) {
    ordered_json targets = ordered_json::array();
    if (job.options.lora->attention) targets.push_back("attention");
    if (job.options.lora->ffn) targets.push_back("ffn");
    training["lora"] = {{"rank", job.options.lora->rank}, {"targets", std::move(targets)}};
  }
  return training;
}

std::string plan_text(const PlanReport& report, std::size_t width) {
  const StepError error = error_of(report);
  std::string text;
  for (const GpuPlan& each : report.plans) {
    const Plan& plan = each.plan;
    text += head_text(report, each) + counts_text(report, each) + '\n';
    if (plan.best.empty()) {
      text += "no layout fits\n\n" + misses_text(report, plan);
    } else {
      text += best_table(report, each, width) + '\n';
      for (std::size_t i = 0; i < plan.best.size(); ++i) {
        const PlannedLayout& planned = plan.best[i];
        text += fmt::format("#{}  {}\n", i + 1, layout_words(planned.layout));
        if (i > 0) {
          text += fmt::format("    against #1: {}{}\n", planned.why,
                              within_error(error, plan, i) ? " (within error)" : "");
        }
      }
      text += '\n' + part_table(each, width) + '\n';
      if (const std::string replayed = replay_text(report, each); !replayed.empty()) {
        text += replayed + '\n';
      }
      if (report.show_invalid) text += misses_text(report, plan);
    }
    if (report.show_invalid) text += invalid_text(plan);
  }
  if (report.plans.size() > 1) text += summary_text(report, width);
  text += report.gpu_hour
              ? fmt::format("price: {}\n", report.gpu_hour_from)
              : fmt::format("no cost: {}; --gpu-hour-price states one\n", report.gpu_hour_from);
  return text;
}

std::string plan_json(const PlanReport& report) {
  ordered_json out = {{"format", "flyover-plan-1"}, {"flyover", version()}};
  out["inputs"] = ordered_json::array();
  for (const InputDigest& input : report.inputs) {
    out["inputs"].push_back({{"role", input.role},
                             {"name", input.name},
                             {"digest", input.digest},
                             {"overrides", input.overrides}});
  }
  out["model"] = report.job.model.name;
  out["topology"] = report.topology;
  out["gpu"] = report.gpu;
  out["library"] = report.library;
  out["stack"] = report.job.stack.name;
  out["precision"] = to_string(report.job.options.compute);
  out["sequence"] = report.job.sequence;
  out["objective"] = to_string(report.objective);
  out["gpu_hour_dollars"] = nullptr;
  if (report.gpu_hour) out["gpu_hour_dollars"] = *report.gpu_hour;
  out["gpu_hour_from"] = report.gpu_hour_from;
  out["memory_capacity_bytes"] = report.capacity.count();
  out["replay_limit_operations"] = report.replay_limit;
  out["plans"] = ordered_json::array();
  for (const GpuPlan& each : report.plans) {
    const Plan& plan = each.plan;
    ordered_json item = {{"gpus", each.gpus},
                         {"global_batch", each.global_batch},
                         {"global_batch_stated", each.batch_stated},
                         {"layouts",
                          {{"considered", plan.considered},
                           {"impossible", plan.refused.layouts()},
                           {"too_large", plan.too_large},
                           {"excluded_by_bound", plan.excluded},
                           {"estimated", plan.estimated}}}};
    item["best"] = ordered_json::array();
    for (std::size_t i = 0; i < plan.best.size(); ++i) {
      item["best"].push_back(best_json(report, each, i));
    }
    item["misses"] = ordered_json::array();
    for (const PlanMiss& miss : plan.misses) {
      item["misses"].push_back({{"layout", layout_words(miss.layout)},
                                {"bytes", miss.needed.count()},
                                {"reason", miss.reason}});
    }
    item["invalid"] = nullptr;
    if (report.show_invalid) item["invalid"] = invalid_json(plan.refused);
    out["plans"].push_back(std::move(item));
  }
  out["best_gpus"] = nullptr;
  if (const auto best = report.winner()) out["best_gpus"] = report.plans[*best].gpus;
  out["warnings"] = report.warnings;
  return out.dump(2) + '\n';
}

std::string plan_csv(const PlanReport& report) {
  std::string out =
      "gpus,global_batch,tp,cp,pp,vp,ep,etp,dp,zero,shard_group,keep_gathered,cp_exchange,schedule,"
      "micro_batch,recompute,step_s,tokens_per_s_per_gpu,mfu,memory_bytes";
  for (std::size_t part = 0; part < step_parts; ++part) {
    std::string name(to_string(static_cast<StepPart>(part)));
    std::ranges::replace(name, ' ', '_');
    out += fmt::format(",{}_s", name);
  }
  out += '\n';
  for (const GpuPlan& each : report.plans) {
    for (const RankedLayout& ranked : each.plan.ranked) {
      const Layout& layout = ranked.layout;
      const StepEstimate& estimate = ranked.estimate;
      out +=
          fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", each.gpus,
                      each.global_batch, layout.tensor, layout.context, layout.pipeline,
                      layout.virtual_stages, layout.expert, layout.expert_tensor, layout.data,
                      static_cast<int>(layout.sharding), layout.shard_group, layout.keep_gathered,
                      to_string(layout.exchange), to_string(layout.schedule), layout.micro_batch,
                      layout.recompute_modules.empty() ? std::string(to_string(layout.recompute))
                                                       : csv_words(layout.recompute_modules),
                      to_seconds(estimate.time), estimate.tokens_per_second_per_gpu, estimate.mfu,
                      ranked.memory.count());
      for (const Duration part : estimate.parts) out += fmt::format(",{}", to_seconds(part));
      out += '\n';
    }
  }
  return out;
}

}  // namespace flyover::cli
