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
#include "simulate/call_planner.hpp"
#include "simulate/cast.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// What a plan loads, each resource of the cluster once: links, and the GPUs that run it. Its
// channels take as many SMs while bytes flow at full rate, unless its kernels hold theirs
// (held_sms.hpp), and every byte that a GPU sends is read from its HBM and every byte that it
// receives written there. (Assumption; docs/models/replay.md.) `local_copies`: further bytes of HBM
// traffic of every GPU per byte of the call.
[[nodiscard]] std::vector<Load> loads_of(const Topology& topology,
                                         const ClusterResources& resources,
                                         const CollectivePlan& plan,
                                         std::span<const std::uint32_t> ranks,
                                         double local_copies = 0);

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
  const ExpertPlan* experts = nullptr;  // None of collectives and messages.
  std::shared_ptr<const LoadSet> set;
};

// Borrows all that it is given.
class PlanCache {
 public:
  PlanCache(const Topology& topology, const CostModel& cost, const CallPlanner& planner,
            const ClusterResources& resources, const Cast& cast)
      : topology_(topology),
        cost_(cost),
        planner_(planner),
        resources_(resources),
        cast_(cast) {}

  // What a collective does on a group of its family that the cast plays.
  const PreparedCall& collective(const Operation& op, std::uint32_t group);
  // What the library would not choose for a collective there, fastest first.
  [[nodiscard]] std::vector<CollectivePlan> alternatives(const Operation& op,
                                                         std::uint32_t group) const;
  // Of an exchange: the same tokens in other modes, as far as the group can run them.
  [[nodiscard]] std::vector<ExpertAlternative> other_modes(const Operation& op,
                                                           std::uint32_t group) const;
  const PreparedCall& message(const MatchedMessage& message);

 private:
  using Key = std::tuple<std::uint64_t, CollectiveOp, std::int64_t, std::string, std::uint32_t,
                         std::uint32_t>;
  // A load of the engine's resource, so many times over.
  struct ManyLoads {
    Load load;
    std::uint64_t times = 1;
  };

  [[nodiscard]] PatternTracer tracer(const PlayedGroup& group) const;
  [[nodiscard]] std::shared_ptr<const LoadSet> group_loads(const PreparedCall& call,
                                                           const PlayedGroup& group) const;
  void unfold(const DomainFold& fold, std::span<const Load> loads, const PlayedGroup& group,
              std::vector<ManyLoads>& all) const;
  [[nodiscard]] std::shared_ptr<const LoadSet> own_loads(const PreparedCall& call,
                                                         std::span<const std::uint32_t> ranks,
                                                         std::uint32_t count) const;
  [[nodiscard]] std::shared_ptr<const LoadSet> merged(std::vector<ManyLoads> loads,
                                                      std::uint32_t count) const;

  const Topology& topology_;
  const CostModel& cost_;
  const CallPlanner& planner_;
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
