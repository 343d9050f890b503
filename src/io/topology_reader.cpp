#include "flyover/io/topology_reader.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "explicit_graph.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/base/text.hpp"
#include "flyover/io/presets.hpp"
#include "hardware_reader.hpp"

namespace flyover::io {

namespace {

constexpr std::uint32_t most_nodes = 1'000'000;

bool is_topology(const Presets& presets, std::string_view name) {
  return presets.has(PresetKind::Node, name) || presets.has(PresetKind::Cluster, name);
}

bool looks_like_path(const std::string& argument) {
  std::error_code ignored;
  return argument == "-" || argument.find('/') != std::string::npos ||
         argument.ends_with(".json") || std::filesystem::exists(argument, ignored);
}

std::uint32_t parse_nodes(const std::string& argument, std::string_view text) {
  std::uint32_t nodes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
  if (error != std::errc{} || end != text.data() + text.size() || nodes == 0 ||
      nodes > most_nodes) {
    throw InputError(Place{argument, 0, 0, ""},
                     fmt::format("expected a number of nodes from 1 to {} after \":\", got \"{}\"",
                                 most_nodes, text));
  }
  return nodes;
}

// The cluster that a file describes by nodes and fabric.
class ClusterReader {
 public:
  ClusterReader(const Field& root, const Presets& presets, bool trunks)
      : root_(root),
        presets_(presets),
        trunks_(trunks) {}

  Topology read() {
    read_preset();
    read_nodes();
    if (root_.has("name")) cluster_.name = root_["name"].text();
    read_fabric();
    // Hashes of flows go by the numbers of vertices, which trunks change.
    const bool trunks = trunks_ && cluster_.fabric.routing == RoutingPolicy::Adaptive &&
                        cluster_.fabric.kind != FabricKind::Torus;
    cluster_.fabric.trunks = trunks;
    for (NodeGroup& group : cluster_.nodes) group.spec.trunks = trunks;
    Topology topology = build();
    topology.notes.insert(topology.notes.end(), notes_.begin(), notes_.end());
    return topology;
  }

 private:
  void read_preset() {
    if (!root_.has("preset")) return;
    const Field preset = root_["preset"];
    const std::string name = preset.text();
    cluster_.name = name;
    if (presets_.has(PresetKind::Cluster, name)) {
      const ClusterPreset found = presets_.cluster(name);
      cluster_.nodes = {{.spec = found.node, .count = found.nodes}};
      cluster_.fabric = found.fabric;
      for (const std::string& note : found.notes) {
        notes_.push_back(fmt::format("{}: {}", name, note));
      }
    } else if (presets_.has(PresetKind::Node, name)) {
      cluster_.nodes = {{.spec = presets_.node(name), .count = 1}};
    } else {
      preset.fail(fmt::format("\"{}\" is not a known preset{}", name,
                              did_you_mean(name, presets_.topology_names())));
    }
  }

  void read_nodes() {
    const bool list = root_.has("nodes") && root_["nodes"].is_array();
    if (root_.has("node")) {
      if (list) root_["nodes"].fail("expected a count beside \"node\"");
      const Field node = root_["node"];
      const bool changes_preset =
          !cluster_.nodes.empty() && node.is_object() && !node.has("preset");
      if (changes_preset) {
        node.allow_only({"name", "gpu", "gpus", "scale_up", "pcie", "nics", "source"});
        NodeSpec& spec = cluster_.nodes.front().spec;
        spec = read_node_members(node, presets_, spec);
      } else {
        const std::uint32_t count = cluster_.nodes.empty() ? 1 : cluster_.nodes.front().count;
        cluster_.nodes = {{.spec = read_node(node, presets_), .count = count}};
      }
    }
    if (list) {
      cluster_.nodes.clear();
      for (const Field& item : root_["nodes"].elements()) {
        cluster_.nodes.push_back(read_node_group(item, presets_));
      }
      if (cluster_.nodes.empty()) root_["nodes"].fail("expected at least one node");
    } else if (root_.has("nodes")) {
      if (cluster_.nodes.empty()) {
        root_["nodes"].fail("a count of nodes needs a \"node\" that says of what");
      }
      cluster_.nodes.front().count = root_["nodes"].count(1, most_nodes);
    }
    if (cluster_.nodes.empty()) {
      root_.fail(
          "expected \"preset\", \"node\", a list of \"nodes\", or \"vertices\" and \"edges\"");
    }
    nodes_ = 0;
    for (const NodeGroup& group : cluster_.nodes) nodes_ += group.count;
    if (nodes_ > most_nodes) root_["nodes"].fail(fmt::format("more than {} nodes", most_nodes));
  }

  // What joins the nodes when the file does not say, or says only in part.
  void read_fabric() {
    FabricSpec& fabric = cluster_.fabric;
    const bool from_preset = fabric.kind != FabricKind::None;
    const bool stated = root_.has("fabric");
    const bool link_stated = stated && root_["fabric"].has("link");
    if (stated) {
      // A network generation that the file names must not be overruled by the preset's own link.
      fabric = read_fabric_members(root_["fabric"], presets_, fabric);
    }
    const bool type_stated = from_preset || (stated && root_["fabric"].has("type"));
    if (!type_stated && (nodes_ > 1 || stated)) {
      fabric.kind = FabricKind::RailOptimized;
      notes_.push_back("no type of fabric is given: rail-optimized is assumed");
    }
    if (fabric.kind == FabricKind::None || !fabric.preset.empty()) return;
    Bandwidth nic;
    std::string network;
    for (const NodeGroup& group : cluster_.nodes) {
      if (group.spec.nic_bandwidth <= nic) continue;
      nic = group.spec.nic_bandwidth;
      network = group.spec.network;
    }
    if (nic == Bandwidth{}) return;  // A torus of GPUs, or nodes that nothing can join.
    if (network.empty()) network = presets_.network_for(nic);
    if (network.empty()) {
      if (!link_stated) {
        notes_.push_back(
            fmt::format("no network generation is known for NICs of {}: cables of that "
                        "rate without latency, switches of {} ports",
                        to_string(nic), fabric.radix));
      }
      return;
    }
    const FabricSpec generation = presets_.network(network);
    fabric.preset = generation.preset;
    if (fabric.link_bandwidth == Bandwidth{}) fabric.link_bandwidth = generation.link_bandwidth;
    if (fabric.link_latency == Duration{} &&
        !(link_stated && root_["fabric"]["link"].has("latency"))) {
      fabric.link_latency = generation.link_latency;
    }
    if (!(stated && root_["fabric"].has("radix"))) fabric.radix = generation.radix;
    if (!(stated && root_["fabric"].has("in_network_reduction"))) {
      fabric.in_network_reduction = generation.in_network_reduction;
    }
    notes_.push_back(
        fmt::format("no network generation is given: {} is assumed, after the NICs "
                    "of {}",
                    network, to_string(nic)));
  }

  Topology build() {
    try {
      return build_topology(cluster_);
    } catch (const InputError& error) {
      if (!error.place().file.empty()) throw;
      const bool fabric = error.problem().starts_with("fabric") && root_.has("fabric");
      (fabric ? root_["fabric"] : root_).fail(error.problem());
    }
  }

  const Field root_;
  const Presets& presets_;
  const bool trunks_;
  ClusterSpec cluster_;
  std::vector<std::string> notes_;
  std::uint64_t nodes_ = 0;
};

bool fit_trunks(const Field& list) {
  return std::ranges::all_of(list.elements(), [](const Field& item) {
    Override change;
    change.selector = item["select"].text();
    if (item.has("bandwidth")) change.bandwidth = read_bandwidth(item["bandwidth"], Carrier::Bus);
    try {
      return fits_trunks(change);
    } catch (const InputError& error) {
      item["select"].fail(error.problem());
    }
  });
}

void read_overrides(const Field& list, Topology& topology) {
  for (const Field& item : list.elements()) {
    item.allow_only(
        {"select", "state", "bandwidth", "factor", "latency", "compute_factor", "memory_factor"});
    Override change;
    change.selector = item["select"].text();
    if (item.has("state")) change.up = item["state"].one_of({"up", "down"}) == "up";
    if (item.has("bandwidth")) {
      change.bandwidth = read_bandwidth(item["bandwidth"], Carrier::Bus);
    }
    if (item.has("factor")) change.factor = item["factor"].positive_number();
    if (item.has("latency")) change.latency = read_link_latency(item["latency"]);
    if (item.has("compute_factor")) {
      change.compute_factor = item["compute_factor"].positive_number();
    }
    if (item.has("memory_factor")) change.memory_factor = item["memory_factor"].positive_number();
    try {
      apply_override(topology, change);
    } catch (const InputError& error) {
      item["select"].fail(error.problem());
    }
    topology.notes.push_back("changed by an override: " + change.selector);
  }
}

}  // namespace

Document topology_document(const std::string& argument) {
  const Presets presets;
  const std::size_t colon = argument.rfind(':');
  const std::string name = argument.substr(0, colon);
  if (is_topology(presets, name)) {
    std::string text = fmt::format("{{\"preset\": \"{}\"", name);
    if (colon != std::string::npos) {
      text += fmt::format(", \"nodes\": {}",
                          parse_nodes(argument, std::string_view(argument).substr(colon + 1)));
    }
    return Document::parse(argument, text + "}");
  }
  if (looks_like_path(argument)) return Document::load(argument);
  const std::string meant = did_you_mean(name, presets.topology_names());
  throw InputError(
      Place{argument, 0, 0, ""},
      fmt::format("is neither a preset nor a file{}",
                  meant.empty() ? " (flyover list presets shows the presets)" : meant));
}

Topology read_topology(const Document& document, FabricDetail detail) {
  const Presets presets;
  const Field root = document.root();
  root.allow_only({"name", "preset", "node", "nodes", "fabric", "overrides", "vertices", "edges",
                   "gpu", "gpu_models", "notes"});
  const bool explicit_graph = root.has("vertices") || root.has("edges");
  const bool trunks =
      detail == FabricDetail::Trunks && (!root.has("overrides") || fit_trunks(root["overrides"]));
  Topology topology = explicit_graph ? read_explicit_graph(root, presets)
                                     : ClusterReader(root, presets, trunks).read();
  if (!explicit_graph) {
    for (const std::string_view key : {"gpu", "gpu_models", "notes"}) {
      if (root.has(key)) root[key].fail("belongs to a graph with \"vertices\" and \"edges\"");
    }
  }
  if (topology.name.empty()) topology.name = document.name();
  if (root.has("overrides")) read_overrides(root["overrides"], topology);
  return topology;
}

TopologyInput load_topology_input(const std::string& argument, std::span<const Setting> settings,
                                  FabricDetail detail) {
  Document document = topology_document(argument);
  for (const Setting& setting : settings) document.apply(setting);
  try {
    return {.topology = read_topology(document, detail),
            .name = document.name(),
            .digest = document.digest()};
  } catch (const InputError& error) {
    if (looks_like_path(argument) || error.place().file != argument) throw;
    // Nobody wrote the lines that stand for a preset.
    throw InputError(Place{argument, 0, 0, error.place().pointer}, error.problem());
  }
}

Topology load_topology(const std::string& argument, std::span<const Setting> settings,
                       FabricDetail detail) {
  return load_topology_input(argument, settings, detail).topology;
}

}  // namespace flyover::io
