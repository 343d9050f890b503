#include "cli/step_comparison.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/training_inputs.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/version.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/step_error_reader.hpp"
#include "flyover/io/training_reader.hpp"
#include "flyover/io/training_step.hpp"
#include "flyover/layout/memory.hpp"
#include "flyover/report/table.hpp"

namespace flyover::cli {

namespace {

using nlohmann::ordered_json;

std::string library_name(const Library& library) {
  return fmt::format("{} {}", library.name, library.version);
}

void set_estimate(StepSide& side, const StepEstimate& estimate) {
  side.step = estimate.time;
  side.tokens_per_second_per_gpu = estimate.tokens_per_second_per_gpu;
  side.mfu = estimate.mfu;
  for (std::size_t part = 0; part < step_parts; ++part) {
    side.parts.emplace_back(to_string(static_cast<StepPart>(part)), estimate.parts[part]);
  }
}

std::string seconds(Duration time) {
  const double s = to_seconds(time);
  return s < 0.1 ? fmt::format("{:.2f} ms", 1e3 * s) : fmt::format("{:.3f} s", s);
}

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:.1f}", std::ldexp(static_cast<double>(bytes.count()), -30));
}

// What a million tokens take on one GPU.
Duration work_time(const StepSide& side) {
  return from_seconds(1e6 / side.tokens_per_second_per_gpu);
}

// Parts of any side, in the order of the first that has them.
std::vector<std::string> part_names(const std::vector<StepSide>& sides) {
  std::vector<std::string> names;
  for (const StepSide& side : sides) {
    for (const auto& [name, time] : side.parts) {
      if (time > Duration{} && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

Duration part_of(const StepSide& side, const std::string& name) {
  const auto found =
      std::ranges::find_if(side.parts, [&](const auto& part) { return part.first == name; });
  return found == side.parts.end() ? Duration{} : found->second;
}

}  // namespace

bool is_plan(const io::Document& document) {
  const io::Field root = document.root();
  return root.is_object() && root.has("format") && root["format"].is_string() &&
         root["format"].text() == "flyover-plan-1";
}

StepSide read_plan_side(const io::Document& document, std::string name) {
  const io::Field root = document.root();
  if (!root["best_gpus"].is_number()) root["best_gpus"].fail("this plan has no layout that fits");
  StepSide side;
  side.name = std::move(name);
  side.gpus = root["best_gpus"].count();
  side.gpu = root["gpu"].text();
  side.stack = root["stack"].text();
  side.error = io::shipped_step_errors().of(side.stack);
  side.library = root["library"].text();
  side.capacity = Bytes{root["memory_capacity_bytes"].integer()};
  for (const io::Field& plan : root["plans"].elements()) {
    if (plan["gpus"].count() != side.gpus) continue;
    const io::Field best = plan["best"][0];
    side.layout = best["words"].text();
    side.step = from_seconds(best["step_s"].positive_number());
    side.tokens_per_second_per_gpu = best["tokens_per_s_per_gpu"].positive_number();
    side.mfu = best["mfu"].positive_number();
    side.memory = Bytes{best["memory"]["bytes"].integer()};
    const io::Field parts = best["breakdown_s"];
    for (const std::string& part : parts.keys()) {
      side.parts.emplace_back(part, from_seconds(std::max(0.0, parts[part].number())));
    }
    const io::Field dollars = best["dollars_per_M_tokens"];
    if (dollars.is_number()) side.dollars_per_million_tokens = dollars.number();
    return side;
  }
  root["plans"].fail(fmt::format("expected one for the {} GPUs of \"best_gpus\"", side.gpus));
}

StepSide side_of(const PlanReport& report, std::string name) {
  const auto best = report.winner();
  if (!best) {
    throw InputError(fmt::format("{}: no layout of {} fits", name, report.job.model.name));
  }
  const GpuPlan& plan = report.plans[*best];
  const PlannedLayout& planned = plan.plan.best.front();
  StepSide side;
  side.name = std::move(name);
  side.layout = layout_words(planned.layout);
  side.gpus = plan.gpus;
  side.gpu = report.gpu;
  side.stack = report.job.stack.name;
  side.error = io::shipped_step_errors().of(side.stack);
  side.library = report.library;
  set_estimate(side, planned.estimate);
  side.memory = planned.memory.stages[planned.memory.fullest].total();
  side.capacity = report.capacity;
  if (report.gpu_hour) {
    side.dollars_per_million_tokens =
        dollars_per_million_tokens(planned.estimate, *report.gpu_hour);
  }
  return side;
}

StepSide side_of(const io::Document& training, const Cluster& cluster, std::string name,
                 std::optional<double> gpu_hour) {
  const auto gpus = static_cast<std::uint32_t>(cluster.topology.gpus.size());
  const GpuModel& gpu = io::only_gpu_model(cluster.topology);
  io::TrainingWorkload workload = io::read_training(training, gpus, gpu.architecture);
  TrainingJob& job = workload.job;
  io::suit_gpu(job.options, gpu);
  const ClusterTimer timer(cluster, job, io::read_kernels(io::kernel_document(job.stack.kernels)));
  const StepEstimate estimate = timer.estimator().estimate(workload.layout);
  const MemoryUse memory =
      memory_use(job.model, workload.layout, job.options, job.sequence, gpu.memory);
  StepSide side;
  side.name = std::move(name);
  side.layout = layout_words(workload.layout);
  side.gpus = ranks(workload.layout);
  side.gpu = gpu.name;
  side.stack = job.stack.name;
  side.error = io::shipped_step_errors().of(side.stack);
  side.library = library_name(cluster.library);
  set_estimate(side, estimate);
  side.memory = memory.stages[memory.fullest].total();
  side.capacity = memory.capacity;
  if (gpu_hour) side.dollars_per_million_tokens = dollars_per_million_tokens(estimate, *gpu_hour);
  return side;
}

StepPair compare_sides(const std::vector<StepSide>& sides, std::size_t first, std::size_t second) {
  const StepSide& a = sides[first];
  const StepSide& b = sides[second];
  const bool same = a.gpu == b.gpu && a.stack == b.stack && a.library == b.library;
  return {first, second, same, step_difference(work_time(a), work_time(b), same, a.error, b.error)};
}

std::string sides_text(const std::vector<StepSide>& sides, std::size_t width) {
  TextTable table{{{"", true}}, {}};
  for (const StepSide& side : sides) table.columns.push_back({side.name});
  const auto row = [&](const std::string& name, const auto& cell) {
    std::vector<std::string> cells = {name};
    for (const StepSide& side : sides) cells.push_back(cell(side));
    table.rows.push_back(std::move(cells));
  };
  row("GPUs", [](const StepSide& side) { return fmt::format("{} {}", side.gpus, side.gpu); });
  row("step", [](const StepSide& side) { return seconds(side.step); });
  row("tokens/s/GPU",
      [](const StepSide& side) { return fmt::format("{:.1f}", side.tokens_per_second_per_gpu); });
  row("MFU", [](const StepSide& side) { return fmt::format("{:.1f} %", 100 * side.mfu); });
  for (const std::string& name : part_names(sides)) {
    row("  " + name, [&](const StepSide& side) { return seconds(part_of(side, name)); });
  }
  row("memory GiB", [](const StepSide& side) {
    return fmt::format("{} of {}{}", gibibytes(side.memory), gibibytes(side.capacity),
                       side.memory > side.capacity ? " (too large)" : "");
  });
  const bool priced = std::ranges::any_of(
      sides, [](const StepSide& side) { return side.dollars_per_million_tokens.has_value(); });
  if (priced) {
    row("$/M tokens", [](const StepSide& side) {
      return side.dollars_per_million_tokens
                 ? fmt::format("{:.3g}", *side.dollars_per_million_tokens)
                 : std::string("-");
    });
  }
  std::string text = render(table, width) + '\n';
  for (const StepSide& side : sides) text += fmt::format("{}: {}\n", side.name, side.layout);
  text += '\n';

  // The best against every other one.
  const auto best =
      std::ranges::max_element(sides, std::ranges::less(), &StepSide::tokens_per_second_per_gpu);
  const auto first = static_cast<std::size_t>(best - sides.begin());
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (i == first) continue;
    const StepPair pair = compare_sides(sides, first, i);
    text += fmt::format("{}, in tokens/s/GPU\n",
                        verdict(sides[first].name, sides[i].name, pair.difference));
  }
  return text;
}

std::string sides_json(const std::vector<StepSide>& sides) {
  ordered_json out = {{"format", "flyover-step-comparison-1"}, {"flyover", version()}};
  out["sides"] = ordered_json::array();
  for (const StepSide& side : sides) {
    ordered_json parts = ordered_json::object();
    for (const auto& [name, time] : side.parts) parts[name] = to_seconds(time);
    ordered_json item = {{"name", side.name},
                         {"layout", side.layout},
                         {"gpus", side.gpus},
                         {"gpu", side.gpu},
                         {"stack", side.stack},
                         {"error", {{"common", side.error.common}, {"own", side.error.own}}},
                         {"library", side.library},
                         {"step_s", to_seconds(side.step)},
                         {"tokens_per_s_per_gpu", side.tokens_per_second_per_gpu},
                         {"mfu", side.mfu},
                         {"breakdown_s", std::move(parts)},
                         {"memory_bytes", side.memory.count()},
                         {"memory_capacity_bytes", side.capacity.count()},
                         {"dollars_per_M_tokens", nullptr}};
    if (side.dollars_per_million_tokens) {
      item["dollars_per_M_tokens"] = *side.dollars_per_million_tokens;
    }
    out["sides"].push_back(std::move(item));
  }
  out["pairs"] = ordered_json::array();
  for (std::size_t i = 0; i < sides.size(); ++i) {
    for (std::size_t j = i + 1; j < sides.size(); ++j) {
      const StepPair pair = compare_sides(sides, i, j);
      out["pairs"].push_back({{"first", i},
                              {"second", j},
                              {"same_system", pair.same_system},
                              {"second_faster_by", pair.difference.share},
                              {"margin", pair.difference.margin},
                              {"within_error", pair.difference.within_error},
                              {"verdict", verdict(sides[i].name, sides[j].name, pair.difference)}});
    }
  }
  return out.dump(2) + '\n';
}

}  // namespace flyover::cli
