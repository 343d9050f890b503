#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "cli/command.hpp"
#include "cli/expert_bench.hpp"
#include "cli/inputs.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/base/version.hpp"
#include "flyover/io/residuals_reader.hpp"
#include "flyover/report/range.hpp"
#include "flyover/report/table.hpp"
#include "flyover/study/group_links.hpp"
#include "flyover/study/residual_ranges.hpp"

namespace flyover::cli {

namespace {

// As nccl-tests names them (-d), and as workloads do.
struct DataType {
  const char* name;
  const char* short_name;
  std::int64_t bytes;
};
constexpr std::array data_types = {
    DataType{"int8", "i8", 1},       DataType{"uint8", "u8", 1},   DataType{"int32", "i32", 4},
    DataType{"uint32", "u32", 4},    DataType{"int64", "i64", 8},  DataType{"uint64", "u64", 8},
    DataType{"half", "fp16", 2},     DataType{"float", "fp32", 4}, DataType{"double", "fp64", 8},
    DataType{"bfloat16", "bf16", 2}, DataType{"f8e4m3", "fp8", 1}, DataType{"f8e5m2", "fp8", 1},
};

constexpr std::size_t most_rows = 10'000;

struct Row {
  Bytes bytes;
  Choice choice;
  CollectivePlan best;              // The fastest of all that the library could be told to do.
  Range range;                      // Of the chosen plan's time,
  std::vector<Range> alternatives;  // and of the others'.
  double algbw = 0;                 // GB/s
  double busbw = 0;
};

// Below that the model cannot tell two plans apart.
constexpr double clear_gain = 1.1;

double gain(const Row& row) {
  return row.best.alone > Duration{}
             ? to_seconds(row.choice.plan.alone) / to_seconds(row.best.alone)
             : 1;
}

// Four significant digits up to a thousand, as nccl-tests does.
std::string four_digits(double value) {
  if (value >= 1000 || value <= 0) return fmt::format("{:.0f}", value);
  const int digits = 3 - static_cast<int>(std::floor(std::log10(value)));
  return fmt::format("{:.{}f}", value, std::min(digits, 2));
}

bool reduces(CollectiveOp op) {
  return op == CollectiveOp::AllReduce || op == CollectiveOp::ReduceScatter ||
         op == CollectiveOp::Reduce;
}

bool has_root(CollectiveOp op) {
  return op == CollectiveOp::Broadcast || op == CollectiveOp::Reduce ||
         op == CollectiveOp::Scatter || op == CollectiveOp::Gather;
}

// nccl-tests counts the elements of the buffer of one peer where ranks exchange parts.
std::int64_t elements(CollectiveOp op, Bytes bytes, std::int64_t ranks, const DataType& type) {
  switch (op) {
    case CollectiveOp::AllGather:
    case CollectiveOp::ReduceScatter:
    case CollectiveOp::AllToAll:
    case CollectiveOp::Scatter:
    case CollectiveOp::Gather:
      return bytes.count() / ranks / type.bytes;
    default:
      return bytes.count() / type.bytes;
  }
}

CollectiveOp read_collective(const std::string& name) {
  if (const auto op = collective_op(name)) return *op;
  const auto collectives = collective_op_names();
  std::vector<std::string> names(collectives.begin(), collectives.end());
  for (const CollectiveOp op :
       {CollectiveOp::MoeDispatch, CollectiveOp::MoeCombine, CollectiveOp::MoeFused}) {
    names.emplace_back(to_string(op));
  }
  throw unknown_name("flyover bench: no collective", name, names);
}

const DataType& read_data_type(const std::string& name) {
  std::vector<std::string> names;
  for (const DataType& type : data_types) {
    if (name == type.name || name == type.short_name) return type;
    names.emplace_back(type.name);
  }
  throw unknown_name("--dtype: no data type", name, names);
}

Bytes read_size(std::string_view option, const std::string& text) {
  try {
    const Bytes size = parse_message_size(text);
    if (size.count() > 0) return size;
    throw InputError(fmt::format("expected a size above zero, got \"{}\"", text));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", option, error.problem()));
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

nlohmann::ordered_json plan_json(const CollectivePlan& plan, const Range& range) {
  const double us = to_microseconds(plan.alone);
  return {{"algorithm", to_string(plan.algorithm)},
          {"protocol", to_string(plan.protocol)},
          {"channels", plan.channels},
          {"time_us", us},
          {"low_us", us * range.low},
          {"high_us", us * range.high},
          {"bottleneck", plan.bottleneck}};
}

class Bench final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("collective", collective_,
                   "all_reduce, all_gather_perf, alltoall, ..., moe_dispatch, moe_combine, "
                   "moe_fused")
        ->required()
        ->type_name("COLLECTIVE");
    add_topology_option(app, topology_);
    const auto add = [this](CLI::Option* option) {
      own_.push_back(option);
      return option;
    };
    add(app.add_option("-b,--minbytes", first_, "Smallest size"))->capture_default_str();
    add(app.add_option("-e,--maxbytes", last_, "Largest size"))->capture_default_str();
    auto* factor =
        add(app.add_option("-f,--stepfactor", factor_, "Each size is this times the last"))
            ->capture_default_str();
    add(app.add_option("-i,--stepbytes", step_, "Each size is this more than the last"))
        ->excludes(factor);
    add(app.add_option("-g,--gpus", gpus_, "Use the first N GPUs of the topology"))->type_name("N");
    add(app.add_option("-d,--dtype", dtype_, "Type of an element, such as half or bfloat16"))
        ->capture_default_str();
    add(app.add_option("-r,--root", root_, "Root of broadcast, reduce, scatter and gather"))
        ->capture_default_str();
    add_library_option(app, library_);
    add_params_option(app, params_);
    add_set_option(app, settings_);
    app.add_option("--json", json_, "Write the rows and what the alternatives would take")
        ->type_name("FILE");
    experts_.add_options(app);
  }

  void run(const Terminal& terminal) override {
    if (const auto op = expert_op(collective_)) {
      for (const CLI::Option* option : own_) {
        if (option->count() == 0) continue;
        throw InputError(fmt::format("--{} is for other collectives than {}",
                                     option->get_lnames().front(), to_string(*op)));
      }
      experts_.run(*op, {topology_, library_, params_, settings_, json_}, terminal);
      return;
    }
    if (const std::string given = experts_.given(); !given.empty()) {
      throw InputError(fmt::format("{} is for moe_dispatch, moe_combine and moe_fused", given));
    }
    OutputFiles files;
    files.claim("--json", json_);
    Settings settings = sort_settings(settings_);
    settings.params = params_;
    refuse_settings(settings.workload, "flyover bench reads no workload");
    op_ = read_collective(collective_);
    type_ = &read_data_type(dtype_);
    const std::vector<Bytes> sizes = message_sizes();

    const Cluster cluster(topology_, library_, settings);
    call_.op = op_;
    call_.dtype = type_->short_name;
    call_.root = root_;
    call_.ranks.resize(group_size(cluster.topology));
    std::iota(call_.ranks.begin(), call_.ranks.end(), 0U);

    const Library open = best_possible(cluster.library);
    const CostModel best(cluster.topology, cluster.router, open);
    const ResidualRanges ranges = io::shipped_ranges();
    group_ = group_links(cluster.topology, call_.ranks);
    std::vector<Row> rows;
    rows.reserve(sizes.size());
    for (const std::string& note : cluster.library.settings.notes) spdlog::warn("{}", note);
    for (const Bytes size : sizes) rows.push_back(measure(cluster, best, ranges, size));
    files.put("--json", [&] { return json(cluster, rows); });
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(text(terminal.width, cluster, rows));
    }
    files.commit();
  }

 private:
  [[nodiscard]] std::vector<Bytes> message_sizes() const {
    if (op_ == CollectiveOp::Barrier) return {Bytes{0}};
    const std::int64_t first = read_size("-b", first_).count();
    const std::int64_t last = read_size("-e", last_).count();
    const std::int64_t step = step_.empty() ? 0 : read_size("-i", step_).count();
    if (first > last) {
      throw InputError(fmt::format("-b {} is more than -e {}", first_, last_));
    }
    if (factor_ < 2) throw InputError(fmt::format("-f: expected 2 or more, got {}", factor_));
    std::vector<Bytes> sizes;
    for (std::int64_t size = first;;) {
      sizes.emplace_back(size);
      if (sizes.size() > most_rows) {
        throw InputError(fmt::format("-i {} makes more than {} sizes", step_, most_rows));
      }
      // Compared before the step, which could overflow.
      const bool more = step > 0 ? size <= last - step : size <= last / factor_;
      if (!more) return sizes;
      size = step > 0 ? size + step : size * factor_;
    }
  }

  [[nodiscard]] std::size_t group_size(const Topology& topology) const {
    const auto all = static_cast<std::int64_t>(topology.gpus.size());
    if (!gpus_) return topology.gpus.size();
    if (*gpus_ < 1 || *gpus_ > all) {
      throw InputError(
          fmt::format("--gpus: expected 1 to {}, which {} has, got {}", all, topology_, *gpus_));
    }
    return static_cast<std::size_t>(*gpus_);
  }

  [[nodiscard]] Row measure(const Cluster& cluster, const CostModel& best,
                            const ResidualRanges& ranges, Bytes size) {
    call_.bytes = size;
    Row row{size, cluster.cost.choose(call_), best.choose(call_).plan, {}, {}, 0, 0};
    const AlgorithmId algorithm = row.choice.plan.algorithm;
    row.range = ranges.range(group_.links, algorithm, size);
    for (const CollectivePlan& plan : row.choice.alternatives) {
      row.alternatives.push_back(ranges.range(group_.links, plan.algorithm, size));
    }
    const auto gpus = static_cast<std::uint32_t>(call_.ranks.size());
    for (std::string& text :
         ranges.outside({group_, gpus, to_string(op_), cluster.library.name, algorithm, size})) {
      if (std::ranges::find(validity_, text) == validity_.end()) {
        validity_.push_back(std::move(text));
      }
    }
    const double seconds = to_seconds(row.choice.plan.alone);
    row.algbw = seconds > 0 ? static_cast<double>(size.count()) / seconds / 1e9 : 0;
    row.busbw = row.algbw * bus_factor(op_, static_cast<std::uint32_t>(call_.ranks.size()));
    return row;
  }

  [[nodiscard]] std::string json(const Cluster& cluster, const std::vector<Row>& rows) const {
    nlohmann::ordered_json out = {{"format", "flyover-bench-1"}, {"flyover", version()}};
    out["inputs"] = nlohmann::ordered_json::array();
    for (const InputDigest& input : cluster.inputs) {
      out["inputs"].push_back({{"role", input.role},
                               {"name", input.name},
                               {"digest", input.digest},
                               {"overrides", input.overrides}});
    }
    out["collective"] = to_string(op_);
    out["ranks"] = call_.ranks.size();
    out["dtype"] = type_->name;
    out["rows"] = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      const double us = to_microseconds(row.choice.plan.alone);
      nlohmann::ordered_json item = {{"bytes", row.bytes.count()},
                                     {"time_us", us},
                                     {"low_us", us * row.range.low},
                                     {"high_us", us * row.range.high},
                                     {"algbw_GBps", row.algbw},
                                     {"busbw_GBps", row.busbw},
                                     {"busbw_low_GBps", row.busbw / row.range.high},
                                     {"busbw_high_GBps", row.busbw / row.range.low}};
      item.update(plan_json(row.choice.plan, row.range));
      item["range_rows"] = row.range.rows;
      item["range_sites"] = row.range.sites;
      item["alternatives"] = nlohmann::ordered_json::array();
      for (std::size_t i = 0; i < row.alternatives.size(); ++i) {
        item["alternatives"].push_back(plan_json(row.choice.alternatives[i], row.alternatives[i]));
      }
      item["best"] = {{"algorithm", to_string(row.best.algorithm)},
                      {"protocol", to_string(row.best.protocol)},
                      {"time_us", to_microseconds(row.best.alone)},
                      {"variables", variables(cluster.library, row.best)}};
      out["rows"].push_back(std::move(item));
    }
    out["validity"] = validity_;
    out["warnings"] = cluster.topology.notes;
    for (const auto& note : cluster.library.settings.notes) out["warnings"].push_back(note);
    return out.dump(2) + '\n';
  }

  // The head is a comment, as in nccl-tests, so that what reads its logs reads this too.
  [[nodiscard]] std::string text(std::size_t width, const Cluster& cluster,
                                 const std::vector<Row>& rows) const {
    const std::string redop = reduces(op_) ? "sum" : "none";
    const std::string root = has_root(op_) ? std::to_string(root_) : "-1";
    const auto ranks = static_cast<std::int64_t>(call_.ranks.size());
    TextTable table{{{"size(B)"},
                     {"count"},
                     {"type"},
                     {"redop"},
                     {"root"},
                     {"time(us)"},
                     {"algbw(GB/s)"},
                     {"busbw(GB/s)"},
                     {"range(80%)"},
                     {"algorithm", true},
                     {"protocol", true},
                     {"channels"},
                     {"limited by", true}},
                    {}};
    double busbw_sum = 0;
    for (const Row& row : rows) {
      const CollectivePlan& plan = row.choice.plan;
      busbw_sum += row.busbw;
      table.rows.push_back(
          {std::to_string(row.bytes.count()),
           std::to_string(elements(op_, row.bytes, ranks, *type_)), type_->name, redop, root,
           four_digits(to_microseconds(plan.alone)), fmt::format("{:.2f}", row.algbw),
           fmt::format("{:.2f}", row.busbw), range_text(row.range.low, row.range.high),
           std::string(to_string(plan.algorithm)), std::string(to_string(plan.protocol)),
           std::to_string(plan.channels), plan.bottleneck});
    }
    std::string out =
        fmt::format("# flyover {}: {} over {} GPUs of {}, {} {}\n", version(), to_string(op_),
                    ranks, topology_, cluster.library.name, cluster.library.version);
    bool head = true;
    for (const std::string& line : lines_of(render(table, width > 0 ? width - 2 : 0))) {
      const bool comment = head || line.starts_with('(');  // What was left out.
      out += (comment ? "# " : "  ") + line + '\n';
      head = false;
    }
    out += fmt::format("# Avg bus bandwidth    : {:.4g}\n",
                       busbw_sum / static_cast<double>(rows.size()));
    out += better_defaults(cluster.library, rows);
    for (const std::string& text : validity_) {
      out += fmt::format("# Outside of what was measured: {}\n", text);
    }
    return out;
  }

  // "NCCL_ALGO=Ring NCCL_PROTO=Simple"
  [[nodiscard]] std::string variables(const Library& library, const CollectivePlan& plan) const {
    std::string text;
    for (const auto& [name, value] : variables_for(library, op_, plan)) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    }
    return text;
  }

  // A line for each run of sizes at which another plan is predicted to be clearly faster.
  [[nodiscard]] std::string better_defaults(const Library& library,
                                            const std::vector<Row>& rows) const {
    std::string out;
    const auto same = [](const Row& a, const Row& b) {
      return a.best.algorithm == b.best.algorithm && a.best.protocol == b.best.protocol;
    };
    for (auto first = rows.begin(); first != rows.end();) {
      auto last = first;
      double most = 0;
      while (last != rows.end() && gain(*last) >= clear_gain && same(*first, *last)) {
        most = std::max(most, gain(*last));
        ++last;
      }
      if (last == first) {
        ++first;
        continue;
      }
      const std::string from = to_string(first->bytes);
      const std::string to = to_string((last - 1)->bytes);
      out += fmt::format("# Predicted faster, up to {:.2f} x, at {}: {} {} ({})\n", most,
                         from == to ? from : from + " to " + to, to_string(first->best.algorithm),
                         to_string(first->best.protocol), variables(library, first->best));
      first = last;
    }
    return out;
  }

  std::string topology_;
  std::string library_;
  std::string params_;
  std::vector<std::string> settings_;
  std::string collective_;
  std::string first_ = "8";
  std::string last_ = "16G";
  std::int64_t factor_ = 2;
  std::string step_;
  std::optional<std::int64_t> gpus_;
  std::string dtype_ = "float";
  std::uint32_t root_ = 0;
  std::string json_;
  std::vector<CLI::Option*> own_;  // That exchanges of experts have no use for.
  ExpertBench experts_;

  CollectiveOp op_{};
  const DataType* type_ = nullptr;
  CollectiveCall call_;
  GroupLinks group_;
  std::vector<std::string> validity_;
};

}  // namespace

std::unique_ptr<Command> make_bench() {
  return std::make_unique<Bench>();
}

}  // namespace flyover::cli
