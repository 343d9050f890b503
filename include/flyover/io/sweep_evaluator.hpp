#pragma once

// From a point of a sweep to its outputs (docs/formats/sweep.md has their meaning): the values of
// the axes are set in the documents that the sweep names, which are then read and timed like those
// of `flyover run` and `flyover plan`.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/study/sweep.hpp"
#include "flyover/study/sweep_config.hpp"

namespace flyover::io {

// Settings that hold at every point, below those of the axes: --set of the command line.
struct SweepSettings {
  std::vector<Setting> topology;
  std::vector<Setting> workload;
  std::vector<Setting> library;
  std::vector<Setting> variables;
  std::vector<Setting> prices;
  std::string params;  // A file of site parameters, or "".
};

// A sweep with all that it reads. May be shared between threads.
class SweepStudy {
 public:
  // `document` is the sweep file, which `config` was read from and which must outlive this. Files
  // that it names count from its folder and, where they are not there, from the current one. Reads
  // all of them, so that a file that is missing or is not JSON, and a price that does not exist, is
  // an InputError now.
  SweepStudy(const Document& document, const SweepConfig& config, SweepSettings settings);
  ~SweepStudy();
  SweepStudy(const SweepStudy&) = delete;
  SweepStudy& operator=(const SweepStudy&) = delete;

  // Of the sweep file, all that it reads and every setting.
  [[nodiscard]] const std::string& digest() const;

  // Outputs by fidelity, of training workloads:
  //
  //   Bound     the step takes at least as long: kernels alone (StepEstimator::bound);
  //   Estimate  the closed form (StepEstimator::estimate), as `flyover plan` ranks layouts;
  //   Replay    the operation graph is simulated, as `flyover plan --replay` does.
  //
  // Other workloads are replayed for an Estimate too, and their Bound has no time. Conditions on
  // outputs that do not depend on time (memory, prices) are checked before time is worked out;
  // conditions that do, only at the fidelity that the sweep ends with (SweepConfig::evaluate).
  //
  // The study must outlive the evaluator. Each remembers the 16 topologies, with 4 libraries each,
  // the 8 jobs and the 16 lists of prices that it met last.
  [[nodiscard]] std::unique_ptr<PointEvaluator> make_evaluator() const;

  // The settings that a point makes, for people and tests: "topology.fabric.oversubscription=2".
  [[nodiscard]] std::vector<std::string> settings_of(const SweepPoint& point) const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover::io
