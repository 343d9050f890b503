#pragma once

// Clusters and workloads drawn at random, with faults and odd parts: what reduced and full runs
// must agree on.

#include <cstdint>
#include <string>

#include "flyover/topology/topology.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover::test {

struct RandomJob {
  std::string description;
  Topology topology;
  Workload workload;
  std::string library;
};

// A pure function of the seed. Its workload cannot lock up.
[[nodiscard]] RandomJob random_job(std::uint64_t seed, std::uint32_t most_gpus);

// The same workload with programs, and groups in their families, listed in another order.
[[nodiscard]] Workload shuffled(Workload workload, std::uint64_t seed);

}  // namespace flyover::test
