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

// Of a group's ranks those whose links a plan's loads name: without a fold all.
[[nodiscard]] std::vector<std::uint32_t> named_ranks(const Blocks& blocks,
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
  CollectivePlan plan;
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

  // What a collective does on a group of its family that the cast plays.
  const PreparedCall& collective(const Operation& op, std::uint32_t group);
  // What the library would not choose there, fastest first.
  [[nodiscard]] std::vector<CollectivePlan> alternatives(const Operation& op,
                                                         std::uint32_t group) const;
  const PreparedCall& message(const MatchedMessage& message);

 private:
  using Key = std::tuple<std::uint64_t, CollectiveOp, std::int64_t, std::string, std::uint32_t>;
  // A load of the engine's resource, so many times over.
  struct ManyLoads {
    Load load;
    std::uint64_t times = 1;
  };

  [[nodiscard]] CollectiveCall request(const Operation& op, const PlayedGroup& group) const;
  [[nodiscard]] PatternTracer tracer(const PlayedGroup& group) const;
  [[nodiscard]] std::shared_ptr<const LoadSet> group_loads(const CollectivePlan& plan,
                                                           const PlayedGroup& group) const;
  void unfold(const DomainFold& fold, std::span<const Load> loads, const PlayedGroup& group,
              std::vector<ManyLoads>& all) const;
  [[nodiscard]] std::shared_ptr<const LoadSet> own_loads(const CollectivePlan& plan,
                                                         std::span<const std::uint32_t> ranks,
                                                         std::uint32_t count) const;
  [[nodiscard]] std::shared_ptr<const LoadSet> merged(std::vector<ManyLoads> loads,
                                                      std::uint32_t count) const;

  const Topology& topology_;
  const CostModel& cost_;
  const ClusterResources& resources_;
  const Cast& cast_;
  std::map<Key, PreparedCall> calls_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, PreparedCall> messages_;
  // Plans of a group that differ in size only share their loads. The key keeps the pointer alive.
  std::map<
      std::tuple<std::uint64_t, std::shared_ptr<const std::vector<Hop>>, std::uint32_t, double>,
      std::shared_ptr<const LoadSet>>
      sets_;
};

}  // namespace flyover
