#pragma once

// Measurements of our own making.

#include <string>

#include "flyover/io/measurement_reader.hpp"
#include "flyover/study/validate.hpp"

namespace flyover::study_test {

using namespace flyover::literals;

// One row of all_reduce over all GPUs of `nodes` nodes.
inline Measurement record(const std::string& gpu, std::uint32_t gpus_per_node,
                          std::uint32_t nodes) {
  Measurement made;
  made.id = gpu;
  made.site = "here";
  made.system.gpu = gpu;
  made.system.gpus_per_node = gpus_per_node;
  made.system.nodes = nodes;
  made.gpus = gpus_per_node * nodes;
  made.collective = "all_reduce";
  made.dtype = "float32";
  made.health = Health::Healthy;
  made.rows.push_back({1_GiB, 5000.0, {}, {}});
  return made;
}

inline Measurement over(Measurement measurement, const std::string& fabric,
                        const std::string& nic = "", Bandwidth rate = {}) {
  measurement.system.fabric = fabric;
  measurement.system.nic = nic;
  if (rate > Bandwidth{}) measurement.system.nic_per_gpu = rate;
  return measurement;
}

inline const HardwareCatalogue& catalogue() {
  static const HardwareCatalogue shipped = io::hardware_catalogue();
  return shipped;
}

inline MeasuredCluster built(const Measurement& measurement) {
  return measured_cluster(measurement, catalogue());
}

}  // namespace flyover::study_test
