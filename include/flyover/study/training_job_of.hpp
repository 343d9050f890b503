#pragma once

// From the words in which a source describes a training run to a job, a layout and a cluster that
// can be estimated. Whatever is assumed is said.

#include <map>
#include <string>
#include <vector>

#include "flyover/layout/layout.hpp"
#include "flyover/layout/stack.hpp"
#include "flyover/layout/step_parts.hpp"
#include "flyover/study/measured_cluster.hpp"
#include "flyover/study/training_record.hpp"

namespace flyover {

// What there is to predict with, by name.
struct TrainingCatalogue {
  HardwareCatalogue hardware;
  std::map<std::string, SoftwareStack> stacks;
  std::map<std::string, KernelModel> kernels;
  std::string default_stack;  // For frameworks that none of them speaks for.
};

struct RecordedJob {
  TrainingJob job;
  Layout layout;  // Without problems; rank r runs on GPU r of the cluster.
  ClusterSpec cluster;
  std::string library;  // Name in the catalogue.
  std::vector<std::string> assumptions;
};

// The stack that speaks for the record's framework and version. Where none does, of those that
// speak for another version the newest that is not newer, else the default; `assumptions` then says
// so.
[[nodiscard]] const SoftwareStack& stack_of(const TrainingRecord& record,
                                            const TrainingCatalogue& catalogue,
                                            std::vector<std::string>& assumptions);

// Throws InputError with the reason why the record cannot be predicted: something is not stated, is
// unknown to us or contradicts itself. A layout that problems() refuses is such a reason, which
// then begins with "impossible layout: ".
[[nodiscard]] RecordedJob training_job_of(const TrainingRecord& record,
                                          const TrainingCatalogue& catalogue);

}  // namespace flyover
