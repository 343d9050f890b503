#pragma once

// What a collective or message becomes on the engine, prepared once and run many times.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/engine/fluid.hpp"
#include "simulate/resources.hpp"

namespace flyover {

struct ClassLoad {
  std::uint32_t resource_class = 0;
  double weight = 0;  // Over all resources of the class.
};

struct LoadSet {
  std::vector<Load> loads;
  std::vector<ClassLoad> classes;  // Links only.
};

struct PreparedCall {
  Choice choice;
  std::shared_ptr<const LoadSet> set;
};

// Borrows all that it is given. Besides the links a call loads the GPUs that run it: its channels
// take as many SMs while bytes flow at full rate, and every byte that a GPU sends is read from its
// HBM and every byte that it receives written there. (Assumption; docs/models/replay.md.)
class PlanCache {
 public:
  PlanCache(const Topology& topology, const CostModel& cost, const FluidSystem& fluid,
            const ClusterResources& resources)
      : topology_(topology),
        cost_(cost),
        fluid_(fluid),
        resources_(resources) {}

  // `group` names the group for the cache: equal ids mean equal ranks.
  const PreparedCall& collective(std::uint64_t group, const CollectiveCall& call);
  const PreparedCall& message(std::uint32_t from, std::uint32_t to, Bytes bytes);

 private:
  using Key = std::tuple<std::uint64_t, CollectiveOp, std::int64_t, std::string, std::uint32_t>;

  std::shared_ptr<const LoadSet> loads(const CollectivePlan& plan,
                                       std::span<const std::uint32_t> ranks);

  const Topology& topology_;
  const CostModel& cost_;
  const FluidSystem& fluid_;
  const ClusterResources& resources_;
  std::map<Key, PreparedCall> calls_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, PreparedCall> messages_;
  // Plans that differ in size only share their loads. The key keeps the pointer alive.
  std::map<std::tuple<std::shared_ptr<const std::vector<Hop>>, std::uint32_t, double>,
           std::shared_ptr<const LoadSet>>
      sets_;
};

}  // namespace flyover
