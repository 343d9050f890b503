#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "flyover/base/error.hpp"
#include "flyover/io/residuals_reader.hpp"
#include "flyover/io/result_writer.hpp"
#include "flyover/io/timeline_writer.hpp"
#include "flyover/report/summary.hpp"
#include "flyover/simulate/replay.hpp"
#include "flyover/study/run_range.hpp"

namespace flyover::cli {

namespace {

// Sums of other lengths round otherwise, which may tip a time to the next picosecond and those that
// wait for it too.
constexpr Duration rounding{100};

class Run final : public Command {
 public:
  void add_options(CLI::App& app) override {
    add_topology_option(app, topology_);
    app.add_option("-w,--workload", workload_, "A workload file; - is stdin")
        ->required()
        ->type_name("WORKLOAD");
    add_library_option(app, library_);
    add_params_option(app, params_);
    add_set_option(app, settings_);
    auto* full = app.add_flag("--full", full_,
                              "Simulate every rank, not one of every class, and every repetition");
    app.add_flag("--verify-reduction", verify_,
                 "Run in full and by classes, and compare when each operation starts and ends")
        ->excludes(full);
    app.add_flag("--sensitivity", sensitivity_,
                 "Also run with each class of resources 10 % faster, to see what matters");
    app.add_option("--timeline", timeline_,
                   "Write a timeline that opens in Perfetto; .json.gz is compressed")
        ->type_name("FILE");
    app.add_option(
        "--timeline-ranks", options_.timeline_ranks,
        "Ranks, or classes of them, that have tracks of their own in it, besides the first "
        "of every program [as many as make 100,000 operations]");
    app.add_option("--json", json_, "Write the result")->type_name("FILE");
    app.add_option("--csv", csv_, "Write a row for every kind of collective")->type_name("FILE");
    app.add_option("--report", report_)->group("");  // A promise of INTERFACES, not yet kept.
  }

  void run(const Terminal& terminal) override {
    if (!report_.empty()) {
      throw InputError("flyover run --report is not part of this version");
    }
    if (topology_ == "-" && workload_ == "-") {
      throw InputError("--topology and --workload cannot both be standard input");
    }
    OutputFiles files;
    files.claim("--timeline", timeline_);
    files.claim("--json", json_);
    files.claim("--csv", csv_);
    Settings settings = sort_settings(settings_);
    settings.params = params_;

    Cluster cluster(topology_, library_, settings,
                    full_ ? io::FabricDetail::Cables : io::FabricDetail::Trunks);
    const LoadedWorkload loaded = load_workload(workload_, settings, cluster);
    const Workload& workload = loaded.workload;
    options_.timeline = files.wants("--timeline");
    options_.reduce = !full_;
    Replay replay =
        verify_
            ? verified(cluster, Cluster(topology_, library_, settings, io::FabricDetail::Cables),
                       workload, terminal.quiet || files.uses_standard_output())
            : flyover::replay(cluster.topology, cluster.cost, workload, options_);
    Result& result = replay.result;
    result.inputs = cluster.inputs;
    result.memory = loaded.memory;
    std::ranges::copy(loaded.warnings, std::back_inserter(result.warnings));
    std::ranges::copy(cluster.library.settings.notes, std::back_inserter(result.warnings));
    add_range(result, cluster.topology, workload, cluster.library.name, io::shipped_ranges());
    if (sensitivity_) {
      result.sensitivity =
          flyover::sensitivity(cluster.topology, cluster.cost, workload, result.time, !full_);
    }

    files.put("--timeline", [&] { return io::timeline_json(replay.trace, result); });
    files.put("--json", [&] { return io::result_json(result); });
    files.put("--csv", [&] { return io::result_csv(result); });
    if (!terminal.quiet && !files.uses_standard_output()) print(summary(result, terminal.width));
    files.commit();
  }

 private:
  Replay verified(const Cluster& cluster, const Cluster& explicit_cluster, const Workload& workload,
                  bool quiet) const {
    ReductionCheck check = verify_reduction({explicit_cluster.topology, explicit_cluster.cost},
                                            {cluster.topology, cluster.cost}, workload, options_);
    if (check.largest > rounding) {
      throw SimulationError(fmt::format(
          "the reduced run differs from the full one in {} of {} starts and ends, by up "
          "to {} ps: {}",
          check.differences, 2 * check.operations, check.largest.count(), check.first));
    }
    if (!quiet) {
      print(fmt::format(
          "verified: {} ranks in {} classes, {} operations start and end as in the full run{}\n",
          check.full.result.ranks, check.reduced.result.classes, check.operations,
          check.differences == 0
              ? ""
              : fmt::format(", but for rounding of up to {} ps", check.largest.count())));
    }
    return std::move(check.reduced);
  }

  std::string topology_;
  std::string workload_;
  std::string library_;
  std::string params_;
  std::vector<std::string> settings_;
  bool full_ = false;
  bool verify_ = false;
  bool sensitivity_ = false;
  std::string timeline_;
  std::string json_;
  std::string csv_;
  std::string report_;
  ReplayOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_run() {
  return std::make_unique<Run>();
}

}  // namespace flyover::cli
