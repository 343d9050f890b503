#pragma once

#include <string>

#include "flyover/cost/cost_model.hpp"
#include "flyover/io/document.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/workload_reader.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/simulate/replay.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::test {

// A library of configs/libraries, steered by NCCL's variables.
inline Library library(const std::string& name,
                       const std::vector<std::pair<std::string, std::string>>& variables = {}) {
  Library out = io::read_library(io::library_document(name));
  for (const auto& [variable, value] : variables) set_variable(out.settings, variable, value);
  return out;
}

// A topology with all that a replay on it borrows.
struct Cluster {
  explicit Cluster(Topology t, Library l = library("ideal"))
      : topology(std::move(t)),
        communication(std::move(l)),
        router(topology, {.pxn = communication.settings.pxn}),
        cost(topology, router, communication) {}
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  Topology topology;
  Library communication;
  Router router;
  CostModel cost;

  [[nodiscard]] Workload read(const std::string& json) const {
    return io::read_workload(io::Document::parse("test.json", json),
                             static_cast<std::uint32_t>(topology.gpus.size()));
  }
  [[nodiscard]] Replay run(const std::string& json, const ReplayOptions& options = {}) const {
    return replay(topology, cost, read(json), options);
  }
  [[nodiscard]] Duration time(const std::string& json) const { return run(json).result.time; }
};

}  // namespace flyover::test
