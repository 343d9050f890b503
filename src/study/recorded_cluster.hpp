#pragma once

#include "flyover/study/measured_cluster.hpp"
#include "flyover/study/training_record.hpp"

namespace flyover {

// The cluster of a training run, all of whose GPUs take part: rank r is GPU r. NICs that are not
// stated, or only in words without a rate, are those of the vendor's reference. `date` ("2025-03")
// picks the library. Requires a number of GPUs; throws InputError as measured_cluster.
[[nodiscard]] MeasuredCluster recorded_cluster(const TrainingRecord& record,
                                               const std::string& date,
                                               const HardwareCatalogue& catalogue);

}  // namespace flyover
