#include "flyover/study/calibrate.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "flyover/base/error.hpp"
#include "flyover/io/nccl_tests_log.hpp"
#include "flyover/io/params.hpp"
#include "flyover/report/table.hpp"

namespace flyover::cli {

namespace {

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string value_of(const SiteParameterInfo& info, const SiteParameter& parameter) {
  return info.seconds ? fmt::format("{:+.2f} us", 1e6 * parameter.value)
                      : fmt::format("{:.3f}", parameter.value);
}

std::string uncertainty_of(const SiteParameterInfo& info, const SiteParameter& parameter) {
  return info.seconds ? fmt::format("{:.2f} us", 1e6 * parameter.uncertainty)
                      : percent(parameter.uncertainty);
}

std::string text(const Calibration& calibration, std::size_t width) {
  TextTable table{{{"parameter", true}, {"value"}, {"+-"}, {"determined", true}, {"of", true}}, {}};
  for (const SiteParameterInfo& info : site_parameters()) {
    const SiteParameter& parameter = calibration.site.*info.member;
    table.rows.push_back(
        {std::string(info.name), value_of(info, parameter), uncertainty_of(info, parameter),
         parameter.determined ? "yes" : "no: " + parameter.reason, std::string(info.summary)});
  }
  TextTable errors{
      {{"error of time", true}, {"rows"}, {"median before"}, {"after"}, {"90th before"}, {"after"}},
      {}};
  for (std::size_t i = 0; i < size_classes().size(); ++i) {
    const ErrorSummary& before = calibration.before[i];
    const ErrorSummary& after = calibration.after[i];
    if (before.rows == 0) continue;
    errors.rows.push_back({std::string(size_classes()[i].name), std::to_string(before.rows),
                           percent(before.median), percent(after.median),
                           percent(before.percentile90), percent(after.percentile90)});
  }
  return render(table, width) + '\n' + render(errors, width);
}

class Calibrate final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("logs", logs_, "What nccl-tests or rccl-tests printed; - is stdin")
        ->required()
        ->type_name("LOG");
    add_topology_option(app, topology_);
    app.add_option("-o,--output", output_, "Write the parameters, for --params")->type_name("FILE");
    app.add_option("--collective", collective_, "What the logs measured, where they do not say")
        ->type_name("COLLECTIVE");
    app.add_option("-g,--gpus", gpus_, "GPUs that took part, where the logs do not list them")
        ->type_name("N");
    add_library_option(app, library_);
    add_set_option(app, settings_);
  }

  void run(const Terminal& terminal) override {
    const auto from_stdin = std::ranges::count(logs_, "-") + (topology_ == "-" ? 1 : 0);
    if (from_stdin > 1) throw InputError("only one of LOG and --topology can be standard input");
    OutputFiles files;
    files.claim("--output", output_);
    const Settings settings = sort_settings(settings_);
    refuse_settings(settings.workload, "flyover calibrate reads no workload");

    std::vector<io::NcclTestsTable> tables;
    for (const std::string& log : logs_) {
      std::ranges::move(io::load_nccl_tests_log(log, collective()), std::back_inserter(tables));
    }
    Cluster cluster(topology_, library_, settings);
    io::ParamsFile params;
    params.library = cluster.library.name;
    params.version = cluster.library.version;
    params.topology = cluster.inputs.front().name;
    std::vector<CalibrationTable> placed;
    for (const io::NcclTestsTable& table : tables) {
      for (const std::string& warning : table.warnings) spdlog::warn("{}", warning);
      placed.push_back(io::place_ranks(table, cluster.topology, gpus_));
      const CalibrationTable& rows = placed.back();
      params.logs.push_back({rows.name, std::string(to_string(rows.op)),
                             static_cast<std::uint32_t>(rows.ranks.size()),
                             static_cast<std::uint32_t>(rows.rows.size())});
    }
    params.calibration = calibrate(cluster.cost, placed);

    files.put("--output", [&] { return io::params_json(params); });
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(text(params.calibration, terminal.width));
    }
    files.commit();
  }

 private:
  [[nodiscard]] std::optional<CollectiveOp> collective() const {
    if (collective_.empty()) return std::nullopt;
    if (const auto op = collective_op(collective_)) return op;
    const auto names = collective_op_names();
    throw unknown_name("--collective: no collective", collective_, {names.begin(), names.end()});
  }

  std::vector<std::string> logs_;
  std::string topology_;
  std::string output_;
  std::string collective_;
  std::optional<std::uint32_t> gpus_;
  std::string library_;
  std::vector<std::string> settings_;
};

}  // namespace

std::unique_ptr<Command> make_calibrate() {
  return std::make_unique<Calibrate>();
}

}  // namespace flyover::cli
