#include "cli/inputs.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/params.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/training_reader.hpp"
#include "flyover/io/training_step.hpp"
#include "flyover/io/workload_reader.hpp"

namespace flyover::cli {

namespace {

// Top-level keys that only workload files have.
constexpr std::array<std::string_view, 6> workload_keys = {"collectives", "exchanges", "groups",
                                                           "programs",    "ranks",     "training"};

InputDigest digest_of(std::string_view role, std::string name, std::string digest,
                      const std::vector<io::Setting>& settings) {
  InputDigest out{std::string(role), std::move(name), std::move(digest), {}};
  for (const io::Setting& setting : settings) {
    out.overrides.push_back(fmt::format("{}={}", setting.path, setting.value));
  }
  return out;
}

Topology load_topology(const std::string& name, const Settings& settings, io::FabricDetail detail,
                       std::vector<InputDigest>& inputs) {
  io::TopologyInput input = io::load_topology_input(name, settings.topology, detail);
  spdlog::info("{}: {} GPUs, {} links", input.name, input.topology.gpus.size(),
               input.topology.links.size());
  inputs.push_back(digest_of("topology", input.name, input.digest, settings.topology));
  return std::move(input.topology);
}

Library load_library(std::string name, const Topology& topology, const Settings& settings,
                     std::vector<InputDigest>& inputs) {
  if (name.empty()) name = default_library(topology);
  io::LibraryInput input = io::load_library_input(name, settings.library, settings.variables);
  Library library = std::move(input.library);
  inputs.push_back(digest_of("library", fmt::format("{}-{}", library.name, library.version),
                             std::move(input.digest), settings.library));
  for (const io::Setting& variable : settings.variables) {
    inputs.back().overrides.push_back(fmt::format("nccl.{}={}", variable.path, variable.value));
  }
  if (!settings.params.empty()) {
    const io::Document params = io::Document::load(settings.params);
    io::apply_params(library, io::read_params(params), params.name());
    inputs.push_back(digest_of("params", params.name(), params.digest(), {}));
  }
  return library;
}

}  // namespace

Settings sort_settings(const std::vector<std::string>& texts) {
  Settings settings;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError(fmt::format("--set: expected PATH=VALUE, got \"{}\"", text));
    }
    std::string path = text.substr(0, equals);
    std::string value = text.substr(equals + 1);
    const std::size_t dot = path.find('.');
    const std::string first = path.substr(0, dot);
    std::string rest = dot == std::string::npos ? std::string() : path.substr(dot + 1);

    std::vector<io::Setting>* target = nullptr;
    if (first == "topology") target = &settings.topology;
    if (first == "workload") target = &settings.workload;
    if (first == "library") target = &settings.library;
    if (first == "nccl") target = &settings.variables;
    if (target != nullptr) {
      if (rest.empty()) {
        throw InputError(fmt::format("--set {}: expected {}.SOMETHING=VALUE", path, first));
      }
      target->push_back({std::move(rest), std::move(value)});
      continue;
    }
    const bool of_workload = std::ranges::find(workload_keys, first) != workload_keys.end();
    (of_workload ? settings.workload : settings.topology)
        .push_back({std::move(path), std::move(value)});
  }
  return settings;
}

std::vector<io::Setting> take_price_settings(std::vector<std::string>& texts) {
  constexpr std::string_view prefix = "prices.";
  std::vector<io::Setting> prices;
  std::erase_if(texts, [&](const std::string& text) {
    if (!text.starts_with(prefix)) return false;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == prefix.size()) {
      throw InputError(fmt::format("--set: expected PATH=VALUE, got \"{}\"", text));
    }
    prices.push_back({text.substr(prefix.size(), equals - prefix.size()), text.substr(equals + 1)});
    return true;
  });
  return prices;
}

void refuse_settings(const std::vector<io::Setting>& settings, std::string_view reason) {
  if (!settings.empty()) {
    throw InputError(fmt::format("--set {}: {}", settings.front().path, reason));
  }
}

Cluster::Cluster(const std::string& topology_name, const std::string& library_name,
                 const Settings& settings, io::FabricDetail detail)
    : topology(load_topology(topology_name, settings, detail, inputs)),
      library(load_library(library_name, topology, settings, inputs)),
      router(topology, {.pxn = library.settings.pxn}),
      cost(topology, router, library) {}

LoadedWorkload load_workload(const std::string& name, const Settings& settings, Cluster& cluster) {
  io::Document document = io::Document::load(name);
  for (const io::Setting& setting : settings.workload) document.apply(setting);
  const auto gpus = static_cast<std::uint32_t>(cluster.topology.gpus.size());
  LoadedWorkload loaded;
  if (io::is_training(document)) {
    io::TrainingStep step = io::training_step(
        io::read_training(document, gpus, cluster.topology.gpu_model(0).architecture),
        cluster.topology, cluster.cost);
    loaded = {std::move(step.workload), std::move(step.memory), std::move(step.warnings)};
  } else {
    loaded.workload = io::read_workload(document, gpus);
  }
  cluster.inputs.push_back(
      digest_of("workload", document.name(), document.digest(), settings.workload));
  return loaded;
}

void add_topology_option(CLI::App& app, std::string& name) {
  app.add_option("-t,--topology", name, "A preset (dgx-h100, dgx-h100:16) or a file; - is stdin")
      ->required()
      ->type_name("TOPOLOGY");
}

void add_library_option(CLI::App& app, std::string& name) {
  app.add_option(
         "-l,--library", name,
         "nccl, rccl, ideal, one version (nccl-2.27) or a file; default: what fits the GPUs")
      ->type_name("LIBRARY");
}

void add_params_option(CLI::App& app, std::string& name) {
  app.add_option("--params", name, "What the site differs in, as flyover calibrate writes it")
      ->type_name("FILE");
}

void add_set_option(CLI::App& app, std::vector<std::string>& settings) {
  app.add_option("--set", settings,
                 "Override a value of an input: fabric.oversubscription=2, nccl.NCCL_ALGO=Ring")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
}

InputError unknown_name(std::string_view problem, std::string_view name,
                        const std::vector<std::string>& names) {
  const std::string hint = did_you_mean(name, names);
  return InputError(fmt::format("{} \"{}\"{} There are {}", problem, name,
                                hint.empty() ? "." : hint, fmt::join(names, ", ")));
}

}  // namespace flyover::cli
