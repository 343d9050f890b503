#pragma once

// What commands read: the cluster, the workload, the library, and the --set options that change
// them.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/io/document.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/layout/memory.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace flyover::cli {

// `--set` options by the input they change. The first part of a path names it ("topology",
// "workload", "library"; "nccl" for a variable of the communication library); without one, the
// parts that only workload files have ("programs", "collectives", ...) go to the workload, all
// others to the topology.
struct Settings {
  std::vector<io::Setting> topology;
  std::vector<io::Setting> workload;
  std::vector<io::Setting> library;
  std::vector<io::Setting> variables;  // Path without "nccl.".
  std::string params;                  // --params: a file of site parameters, or "".
};
// Throws InputError for what is not PATH=VALUE.
[[nodiscard]] Settings sort_settings(const std::vector<std::string>& texts);

// Takes those out that begin with "prices.", without that. Throws InputError as sort_settings.
[[nodiscard]] std::vector<io::Setting> take_price_settings(std::vector<std::string>& texts);

// Throws InputError, saying why, when there are settings that the command has no use for.
void refuse_settings(const std::vector<io::Setting>& settings, std::string_view reason);

// A topology and what it takes to time collectives on it. The parts refer to each other.
struct Cluster {
  Cluster(const std::string& topology_name, const std::string& library_name,
          const Settings& settings, io::FabricDetail detail = io::FabricDetail::Trunks);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  std::vector<InputDigest> inputs;
  Topology topology;
  Library library;
  Router router;
  CostModel cost;
};

struct LoadedWorkload {
  Workload workload;
  // Of training workloads only:
  std::optional<MemoryUse> memory;
  std::vector<std::string> warnings;  // what the file left out.
};

// Reads `name` ("-": standard input) for a cluster, expands training layouts, and appends it to the
// cluster's inputs.
[[nodiscard]] LoadedWorkload load_workload(const std::string& name, const Settings& settings,
                                           Cluster& cluster);

// Options that several commands have.
void add_topology_option(CLI::App& app, std::string& name);
void add_library_option(CLI::App& app, std::string& name);
void add_params_option(CLI::App& app, std::string& name);
void add_set_option(CLI::App& app, std::vector<std::string>& settings);

// `problem "name", did you mean "x"? There are a, b`
[[nodiscard]] InputError unknown_name(std::string_view problem, std::string_view name,
                                      const std::vector<std::string>& names);

}  // namespace flyover::cli
