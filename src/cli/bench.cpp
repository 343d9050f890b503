#include <cmath>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "cli/table.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/base/text.hpp"
#include "flyover/cost/cost_model.hpp"

namespace flyover::cli {

namespace {

// As nccl-tests names them (-d), and as workloads do.
struct DataType {
  const char* name;
  const char* short_name;
  std::int64_t bytes;
};
constexpr std::array data_types = {
    DataType{"int8", "i8", 1},        DataType{"uint8", "u8", 1},    DataType{"int32", "i32", 4},
    DataType{"uint32", "u32", 4},     DataType{"int64", "i64", 8},   DataType{"uint64", "u64", 8},
    DataType{"half", "fp16", 2},      DataType{"float", "fp32", 4},  DataType{"double", "fp64", 8},
    DataType{"bfloat16", "bf16", 2},  DataType{"f8e4m3", "fp8", 1},  DataType{"f8e5m2", "fp8", 1},
};

constexpr std::size_t most_rows = 10'000;

struct Row {
  Bytes bytes;
  Choice choice;
  double algbw = 0;  // GB/s
  double busbw = 0;
};

double microseconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

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
    case CollectiveOp::Gather: return bytes.count() / ranks / type.bytes;
    default: return bytes.count() / type.bytes;
  }
}

CollectiveOp read_collective(const std::string& name) {
  if (const auto op = collective_op(name)) return *op;
  const auto names = collective_op_names();
  const std::string hint = did_you_mean(name, names);
  throw InputError(fmt::format("flyover bench: no collective \"{}\"{} There are {}", name,
                               hint.empty() ? "." : hint, fmt::join(names, ", ")));
}

const DataType& read_data_type(const std::string& name) {
  std::vector<std::string> names;
  for (const DataType& type : data_types) {
    if (name == type.name || name == type.short_name) return type;
    names.emplace_back(type.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw InputError(fmt::format("--dtype: no data type \"{}\"{} There are {}", name,
                               hint.empty() ? "." : hint, fmt::join(names, ", ")));
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

class Bench final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("collective", collective_, "all_reduce, all_gather, alltoall_perf, ...")
        ->required()
        ->type_name("COLLECTIVE");
    inputs_.add_topology(app);
    inputs_.add_library(app);
    inputs_.add_settings(app);
    app.add_option("-b,--begin,--minbytes", first_, "Smallest size")->capture_default_str();
    app.add_option("-e,--end,--maxbytes", last_, "Largest size")->capture_default_str();
    auto* factor = app.add_option("-f,--factor,--stepfactor", factor_, "From size to size times this")
                       ->capture_default_str();
    app.add_option("-i,--increment,--stepbytes", step_, "From size to size plus this")
        ->excludes(factor);
    app.add_option("-g,--gpus", gpus_, "Use the first N GPUs of the topology")->type_name("N");
    app.add_option("-d,--dtype", dtype_, "Type of an element")->capture_default_str();
    app.add_option("-r,--root", root_, "Root of broadcast, reduce, scatter and gather")
        ->capture_default_str();
    app.add_option("--json", json_, "Write the rows, and what the alternatives would take, as JSON")
        ->type_name("FILE");
  }

  void run(const Terminal& terminal) override {
    OutputFiles files;
    files.claim("--json", json_);
    const CollectiveOp op = read_collective(collective_);
    const DataType& type = read_data_type(dtype_);
    const std::vector<Bytes> sizes = message_sizes();
    const Cluster cluster = inputs_.load_cluster();
    CollectiveCall call;
    call.op = op;
    call.dtype = type.short_name;
    call.root = root_;
    call.ranks = ranks(cluster.topology);

    std::vector<Row> rows;
    for (const Bytes size : sizes) {
      call.bytes = size;
      Row row{size, cluster.cost.choose(call), 0, 0};
      const double seconds = microseconds(row.choice.plan.alone) / 1e6;
      row.algbw = static_cast<double>(size.count()) / seconds / 1e9;
      row.busbw = row.algbw * bus_factor(op, static_cast<std::uint32_t>(call.ranks.size()));
      rows.push_back(std::move(row));
    }

    files.put("--json", [&](std::ostream& out) { write_json(out, cluster, call, rows); });
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(text(terminal, cluster, call, type, rows));
    }
    files.commit();
  }

 private:
  Inputs inputs_{"flyover bench"};
  std::string collective_;
  std::string first_ = "8";
  std::string last_ = "16G";
  std::int64_t factor_ = 2;
  std::string step_;
  std::optional<std::uint32_t> gpus_;
  std::string dtype_ = "float";
  std::uint32_t root_ = 0;
  std::string json_;
};
}  // namespace

}  // namespace flyover::cli
