#pragma once

// Clusters as they are bought and jobs as they are run on them, with what goes wrong in practice:
// regular enough for ranks to behave alike, so that there is something to reduce.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/cluster.hpp"

namespace flyover::test {

// What a job was drawn with, for counting: "dragonfly", "ecmp", "nvl72", "nic down", "zero-3", ...
struct RegularJob {
  std::string description;  // Names the seed: regular_job(seed) draws it again.
  std::vector<std::string> traits;
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<Cluster> with_trunks;  // The same; null where trunks must not be.
  Workload workload;
};

// A pure function of the seed; at most 512 GPUs. Throws InputError or SimulationError where the
// drawn parts do not fit together.
[[nodiscard]] RegularJob regular_job(std::uint64_t seed);

}  // namespace flyover::test
