#pragma once

// What plan and compare need besides a cluster: the model, the stack, and what times layouts.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/inputs.hpp"
#include "flyover/layout/message_times.hpp"
#include "flyover/layout/step_estimate.hpp"
#include "flyover/layout/step_parts.hpp"

namespace flyover::cli {

// The words of the options that say what is trained, and how.
struct JobOptions {
  std::string model;
  std::string stack;      // "": the default.
  std::string precision;  // "": the stack's.
  std::string lora;       // "": everything is trained. "16": attention, "16,ffn": FFNs too.
  std::uint32_t sequence = 0;
};
void add_job_options(CLI::App& app, JobOptions& options);

struct TrainingInputs {
  TrainingJob job;
  KernelModel kernels;
  std::vector<InputDigest> inputs;  // Model, stack, kernels.
};
// Throws InputError, naming the option, for what is unknown or impossible on these GPUs.
[[nodiscard]] TrainingInputs load_training(const JobOptions& options, const GpuModel& gpu);

// Times layouts on a cluster, with caches of its own: one per thread. Borrows the cluster's
// topology and library.
class ClusterTimer {
 public:
  ClusterTimer(const Cluster& cluster, const TrainingJob& job, const KernelModel& kernels);

  [[nodiscard]] const StepParts& parts() const { return parts_; }
  [[nodiscard]] const CostModel& cost() const { return cost_; }
  [[nodiscard]] const MessageTimes& times() const { return times_; }
  [[nodiscard]] const StepEstimator& estimator() const { return estimator_; }

 private:
  Router router_;
  CostModel cost_;
  StepParts parts_;
  MessageTimes times_;
  StepEstimator estimator_;
};

}  // namespace flyover::cli
