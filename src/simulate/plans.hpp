#pragma once

// What a collective or message becomes on the engine, prepared once and run many times.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/engine/fluid.hpp"
#include "simulate/cast.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// What a plan loads, each resource of the cluster once: links, and the GPUs that run it. Its
// channels take as many SMs while bytes flow at full rate, and every byte that a GPU sends is read
// from its HBM and every byte that it receives written there. (Assumption; docs/models/replay.md.)
[[nodiscard]] std::vector<Load> loads_of(const Topology& topology,
                                         const ClusterResources& resources,
                                         const CollectivePlan& plan,
                                         std::span<const std::uint32_t> ranks);

struct ClassLoad {
  std::uint32_t resource_class = 0;
  double weight = 0;  // Over all resources of the class.
};

struct LoadSet {
  std::vector<Load> loads;         // On the resources of the engine.
  std::vector<ClassLoad> classes;  // Links only.
};

struct PreparedCall {
  Choice choice;
  std::shared_ptr<const LoadSet> set;
};

// Borrows all that it is given.
class PlanCache {
 public:
  PlanCache(const Topology& topology, const CostModel& cost, const ClusterResources& resources,
            const Cast& cast)
      : topology_(topology),
        cost_(cost),
        resources_(resources),
        cast_(cast) {}

  // `group` names the group for the cache: equal ids mean equal ranks. `count`: of groups that the
  // call stands for.
  const PreparedCall& collective(std::uint64_t group, const CollectiveCall& call,
                                 std::uint32_t count);
  const PreparedCall& message(const MatchedMessage& message);

 private:
  using Key = std::tuple<std::uint64_t, CollectiveOp, std::int64_t, std::string, std::uint32_t>;

  std::shared_ptr<const LoadSet> loads(const CollectivePlan& plan,
                                       std::span<const std::uint32_t> ranks, std::uint32_t count);
  std::vector<Load> on_stand_ins(std::vector<Load> loads, std::uint32_t count) const;

  const Topology& topology_;
  const CostModel& cost_;
  const ClusterResources& resources_;
  const Cast& cast_;
  std::map<Key, PreparedCall> calls_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, PreparedCall> messages_;
  // Plans that differ in size only share their loads. The key keeps the pointer alive.
  std::map<
      std::tuple<std::shared_ptr<const std::vector<Hop>>, std::uint32_t, double, std::uint32_t>,
      std::shared_ptr<const LoadSet>>
      sets_;
};

}  // namespace flyover
