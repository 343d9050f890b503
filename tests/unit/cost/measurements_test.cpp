// Large-size bus bandwidth of all_reduce against public measurements (shared/measurements). The
// data are not part of the repository: without them the test says so and passes.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "clusters.hpp"

namespace flyover::cost_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double accepted = 0.10;
constexpr std::int64_t large = std::int64_t{1} << 30;

std::optional<fs::path> measurements() {
  const char* shared = std::getenv("FLYOVER_SHARED");
  const fs::path root =
      shared != nullptr ? fs::path(shared) : fs::path(FLYOVER_SOURCE_DIR).parent_path() / "shared";
  const fs::path data = root / "measurements" / "data";
  return fs::is_directory(data) ? std::optional(data) : std::nullopt;
}

struct Point {
  Bytes bytes;
  double busbw = 0;
};

// The best row of those that are large; a bare peak stands for the largest size people run.
std::optional<Point> peak(const json& record) {
  std::optional<Point> best;
  for (const json& row : record["rows"]) {
    const auto busbw = row.find("busbw_GBps");
    if (busbw == row.end() || !busbw->is_number()) continue;
    const std::int64_t bytes = row.contains("bytes") && row["bytes"].is_number()
                                   ? row["bytes"].get<std::int64_t>()
                                   : 16 * large;
    if (bytes < large) continue;
    if (!best || busbw->get<double>() > best->busbw) best = Point{Bytes{bytes}, *busbw};
  }
  return best;
}

struct System {
  NodeSpec node;
  std::uint32_t domains = 1;
};

std::optional<System> system_of(const json& record) {
  const json& stated = record["system"];
  const std::string gpu = stated["gpu"];
  const auto gpus = record["n_gpus"].get<std::uint32_t>();
  const bool rack = record["id"].get<std::string>().find("nvl72") != std::string::npos;
  const auto starts = [&](const char* name) { return gpu.starts_with(name); };

  System system;
  system.domains = rack ? (gpus + 71) / 72 : stated["nodes"].get<std::uint32_t>();
  const Bandwidth nic = stated["nic_gbps_per_gpu"].is_number()
                            ? Bandwidth{stated["nic_gbps_per_gpu"].get<double>() * 1e9 / 8}
                            : 400_Gbps;
  if (starts("GB200") || starts("GB300")) {
    system.node = nvl72(rack ? gpus / system.domains : 4, nic);
  } else if (starts("H100-SXM") || starts("H200")) {
    system.node = dgx_h100();
  } else if (starts("H800")) {
    system.node = hgx_h800();
  } else if (starts("B200")) {
    system.node = dgx_b200();
  } else if (starts("B300")) {
    system.node = dgx_b300();
  } else if (starts("A100")) {
    system.node = dgx_a100();
  } else if (starts("MI300X")) {
    system.node = mi300x();
  } else if (starts("MI355X")) {
    system.node = mi355x();
  } else {
    return std::nullopt;
  }
  system.node.nic_bandwidth = nic;
  return system;
}

std::vector<std::pair<std::string, std::string>> variables_of(const json& record) {
  std::vector<std::pair<std::string, std::string>> variables;
  const json& software = record["software"];
  if (!software.contains("env") || !software["env"].is_string()) return variables;
  const std::string text = software["env"];
  const std::vector<std::string> known = known_variables();
  const std::regex assignment(R"((NCCL_[A-Z_]+)=([^ ,]+))");
  for (std::sregex_iterator match(text.begin(), text.end(), assignment), end; match != end;
       ++match) {
    const std::string name = (*match)[1];
    if (std::ranges::find(known, name) != known.end()) variables.emplace_back(name, (*match)[2]);
  }
  return variables;
}

std::string dtype_of(const json& record) {
  const std::string stated = record["dtype"].is_string() ? record["dtype"].get<std::string>() : "";
  static const std::map<std::string, std::string> names = {
      {"float32", "fp32"}, {"float16", "fp16"}, {"bfloat16", "bf16"}, {"float64", "fp64"},
      {"int8", "i8"},      {"uint8", "u8"},     {"int32", "i32"},     {"int64", "i64"},
      {"fp8_e4m3", "fp8"}, {"fp8_e5m2", "fp8"}};
  const auto found = names.find(stated.substr(0, stated.find(' ')));
  return found == names.end() ? "" : found->second;
}

// Absolute relative errors of time, by the size classes that the validation reports.
class TimeErrors {
 public:
  void add(Bytes bytes, double error) {
    for (SizeClass& group : classes_) {
      if (bytes <= group.up_to) {
        group.errors.push_back(std::abs(error));
        return;
      }
    }
  }
  void print() {
    for (SizeClass& group : classes_) {
      if (group.errors.empty()) continue;
      std::ranges::sort(group.errors);
      const std::size_t n = group.errors.size();
      fmt::print("time, {:<16}{:>5} rows   median {:>5.1f} %   90th percentile {:>5.1f} %\n",
                 group.name, n, 100 * group.errors[n / 2], 100 * group.errors[n * 9 / 10]);
    }
  }

 private:
  struct SizeClass {
    const char* name;
    Bytes up_to;
    std::vector<double> errors;
  };
  std::vector<SizeClass> classes_ = {{"up to 32 KiB", 32_KiB, {}},
                                     {"up to 1 MiB", 1_MiB, {}},
                                     {"up to 32 MiB", 32_MiB, {}},
                                     {"larger", Bytes{std::int64_t{1} << 62}, {}}};
};

// Why a record is shown but not held against the model, or "".
std::string excuse(const json& record) {
  static const std::map<std::string, std::string> excuses = {
      {"h100-efa-allreduce-64gpu-nvlstree219", "NCCL 2.19 took NVLSTree, 2.27 takes the ring"},
      {"h200-roce-allreduce-64gpu-mlp-ggl", "ten runs from 236 to 329 GB/s"},
      {"h100-tcpxo-allreduce-16gpu-a3mega-ar", "TCP offload, not RDMA"},
      {"h100-ss11-allreduce-64gpu-nrel", "Slingshot with an early plug-in"}};
  const auto found = excuses.find(record["id"]);
  return found == excuses.end() ? "" : found->second;
}

bool promised(const json& record) {
  const std::string gpu = record["system"]["gpu"];
  return gpu.starts_with("H") || gpu.starts_with("B") || gpu.starts_with("GB");
}

}  // namespace

TEST_CASE("large all-reduces come within 10 % of healthy measurements", "[cost][measurements]") {
  const auto data = measurements();
  if (!data) {
    WARN("SKIPPED: no measurements beside the sources (set FLYOVER_SHARED to their folder)");
    return;
  }
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(*data)) files.push_back(entry);
  std::ranges::sort(files);

  fmt::print("{:<44}{:>9}{:>10}{:>10}{:>8}  {}\n", "measurement", "bytes", "measured", "predicted",
             "error", "plan, or why it is not held against the model");
  int compared = 0;
  TimeErrors times;
  for (const fs::path& file : files) {
    const json record = json::parse(std::ifstream(file));
    if (record["collective"] != "all_reduce" || record["health"] != "healthy") continue;
    if (record["software"].contains("lib")) continue;  // Another library's kernels.
    const auto measured = peak(record);
    const auto system = system_of(record);
    if (!measured || !system) continue;

    const bool amd = system->node.gpu.architecture.starts_with("cdna");
    const Bench bench(system->node, system->domains, amd ? "rccl" : "nccl", variables_of(record));
    CollectiveCall call = bench.call(CollectiveOp::AllReduce, measured->bytes, record["n_gpus"]);
    call.dtype = dtype_of(record);
    const CollectivePlan plan = bench.model->choose(call).plan;
    const double predicted = static_cast<double>(measured->bytes.count()) / to_seconds(plan.alone) /
                             1e9 * bus_factor(call.op, record["n_gpus"]);
    const double error = predicted / measured->busbw - 1;
    const std::string id = record["id"];
    const std::string why_not = excuse(record);
    fmt::print("{:<44}{:>8.0f}M{:>10.1f}{:>10.1f}{:>7.1f}%  {} {} {}\n", id,
               static_cast<double>(measured->bytes.count()) / (1 << 20), measured->busbw, predicted,
               100 * error, to_string(plan.algorithm), to_string(plan.protocol),
               why_not.empty() ? "" : "(" + why_not + ")");
    if (!promised(record) || !why_not.empty()) continue;
    for (const json& row : record["rows"]) {
      if (!row.contains("bytes") || !row.contains("time_us") || !row["time_us"].is_number())
        continue;
      call.bytes = Bytes{row["bytes"].get<std::int64_t>()};
      const double time = to_microseconds(bench.model->choose(call).plan.alone);
      times.add(call.bytes, time / row["time_us"].get<double>() - 1);
    }
    ++compared;
    CAPTURE(id, measured->busbw, predicted);
    CHECK(std::abs(error) <= accepted);
  }
  times.print();
  CHECK(compared >= 40);
}

}  // namespace flyover::cost_test
