#pragma once

// How long messages of a layout take on a cluster while nothing else runs, with all groups of their
// kind sending at once, as they do in a step.

#include <cstdint>
#include <memory>

#include "flyover/base/units.hpp"
#include "flyover/cost/cost_model.hpp"
#include "flyover/layout/layout.hpp"
#include "flyover/layout/step_parts.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

// What one rank of every stage sends to the next, all of them at once: the mean over boundaries,
// and the slowest.
struct StageHop {
  Duration mean{};
  Duration slowest{};
};

// Borrows topology and cost model. Rank r runs on GPU r. Answers are remembered by the places of a
// group's ranks; the first question about a shape of groups costs their edges. Not safe to share
// between threads.
class MessageTimes {
 public:
  MessageTimes(const Topology& topology, const CostModel& cost);
  ~MessageTimes();
  MessageTimes(MessageTimes&&) noexcept;

  // Start-up + bytes over the rate that the most loaded link leaves when the groups of every rank
  // of the first node (scale-up domain) send at once; the slowest of these groups. Dispatch and
  // combine by kernels of their own take what ExpertPlanner says.
  [[nodiscard]] Duration time(const Layout& layout, const Message& message) const;
  // Between neighbouring stages.
  [[nodiscard]] StageHop hop(const Layout& layout, Bytes bytes) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover
