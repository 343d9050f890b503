#include <algorithm>

#include "flyover/simulate/replay.hpp"
#include "simulate/resources.hpp"

namespace flyover {

std::vector<Sensitivity> sensitivity(const Topology& topology, const CostModel& cost,
                                     const Workload& workload, Duration baseline, bool reduce) {
  std::vector<Sensitivity> out;
  if (baseline == Duration{}) return out;
  const auto probe = [&](const std::string& name) {
    Sensitivity s{.name = name};
    ReplayOptions options{.reduce = reduce};
    options.scale[name] = 1 + s.faster;
    const Duration time = replay(topology, cost, workload, options).result.time;
    s.gain = 1 - to_seconds(time) / to_seconds(baseline);
    out.push_back(s);
  };
  std::vector<bool> present(resource_classes, false);
  present[sm_class] = present[hbm_class] = true;
  for (const Link& link : topology.links) present[static_cast<std::size_t>(link.kind)] = true;
  for (std::size_t c = 0; c < resource_classes; ++c) {
    if (present[c]) probe(class_name(c));
  }
  probe("latency");
  std::ranges::stable_sort(out, std::ranges::greater{}, &Sensitivity::gain);
  return out;
}

}  // namespace flyover
