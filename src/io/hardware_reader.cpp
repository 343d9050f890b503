#include "hardware_reader.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "flyover/base/quantity.hpp"
#include "flyover/base/text.hpp"

namespace flyover::io {

namespace {

struct Limit {
  Carrier carrier;
  double most;  // Bytes/s.
  std::string_view words;
};

// Beyond anything announced, yet below eight times what is sold: a NIC of "400 GB/s" is 400 Gb/s.
constexpr Limit limits[] = {
    {Carrier::Nic, 400e9, "less than 3.2 Tb/s for one NIC, in one direction"},
    {Carrier::Lane, 200e9, "less than 200 GB/s for one scale-up lane, in one direction"},
    {Carrier::ScaleUpOfGpu, 20e12, "less than 20 TB/s for all scale-up lanes of one GPU"},
    {Carrier::FabricCable, 400e9, "less than 3.2 Tb/s for one cable, in one direction"},
    {Carrier::Bus, 4e12, "less than 4 TB/s for one bus, in one direction"},
    {Carrier::Memory, 100e12, "less than 100 TB/s for the memory of one GPU"},
};

template <class T, class Read>
void read_if(const Field& field, std::string_view key, T& value, Read read) {
  if (field.has(key)) value = read(field[key]);
}

void read_count(const Field& field, std::string_view key, std::uint32_t& value,
                std::uint32_t low = 0) {
  if (field.has(key)) value = field[key].count(low);
}

std::vector<std::uint32_t> read_counts(const Field& list, std::uint32_t low) {
  std::vector<std::uint32_t> counts;
  for (const Field& item : list.elements()) counts.push_back(item.count(low));
  return counts;
}

void read_share(const Field& field, std::string_view key, double& value) {
  if (!field.has(key)) return;
  value = field[key].positive_number();
  if (value > 1) field[key].fail(fmt::format("expected a share of peak, at most 1, got {}", value));
}

void read_text(const Field& field, std::string_view key, std::string& value) {
  if (field.has(key)) value = field[key].text();
}

// The member that a preset entry and a file entry may both have.
std::string preset_of(const Field& field, PresetKind kind, const Presets& presets) {
  if (field.is_string()) {
    return field.parsed([&](const std::string& name) {
      (void)(kind == PresetKind::Gpu ? presets.gpu(name).name : presets.node(name).name);
      return name;
    });
  }
  if (!field.has("preset")) return "";
  return preset_of(field["preset"], kind, presets);
}

void read_scale_up(const Field& field, NodeSpec& node) {
  field.allow_only({"wiring", "lane_bandwidth", "bandwidth", "bandwidth_bidirectional",
                    "links_per_switch", "switches", "lanes", "links", "latency",
                    "in_switch_reduction"});
  constexpr std::pair<std::string_view, ScaleUp> wirings[] = {{"switched", ScaleUp::Switched},
                                                              {"mesh", ScaleUp::Mesh},
                                                              {"pairs", ScaleUp::Pairs},
                                                              {"explicit", ScaleUp::Explicit},
                                                              {"none", ScaleUp::None}};
  if (field.has("wiring")) {
    const std::string word =
        field["wiring"].one_of({"switched", "mesh", "pairs", "explicit", "none"});
    node.scale_up =
        std::ranges::find(wirings, word, [](const auto& entry) { return entry.first; })->second;
  }
  if (field.has("links_per_switch") && field.has("switches")) {
    field["switches"].fail("give either links_per_switch or switches with one link to each");
  }
  if (field.has("links_per_switch")) {
    node.links_per_switch = read_counts(field["links_per_switch"], 0);
  }
  if (field.has("switches")) node.links_per_switch.assign(field["switches"].count(), 1);
  read_count(field, "lanes", node.mesh_lanes, 1);
  if (field.has("links")) {
    node.scale_up_links.clear();
    for (const Field& link : field["links"].elements()) {
      link.allow_only({"a", "b", "lanes"});
      ScaleUpLink item{.a = link["a"].count(0), .b = link["b"].count(0)};
      read_count(link, "lanes", item.lanes, 1);
      node.scale_up_links.push_back(item);
    }
  }
  read_if(field, "latency", node.scale_up_latency, read_link_latency);
  read_if(field, "in_switch_reduction", node.in_switch_reduction,
          [](const Field& f) { return f.boolean(); });
  // Vendors quote the sum of both directions.
  const bool both_ways = field.has("bandwidth_bidirectional");
  if (both_ways && field.has("bandwidth")) {
    field["bandwidth"].fail("give either bandwidth (one direction) or bandwidth_bidirectional");
  }
  const std::string_view total = both_ways ? "bandwidth_bidirectional" : "bandwidth";
  if (field.has("lane_bandwidth")) {
    if (field.has(total)) {
      field[total].fail(
          fmt::format("give either lane_bandwidth or {} (all lanes of one GPU)", total));
    }
    node.lane_bandwidth = read_bandwidth(field["lane_bandwidth"], Carrier::Lane);
  }
  if (!field.has(total)) return;
  const Bandwidth all =
      read_bandwidth(field[total], Carrier::ScaleUpOfGpu) * (both_ways ? 0.5 : 1.0);
  std::uint32_t lanes = 0;
  if (node.scale_up == ScaleUp::Switched) {
    lanes = std::accumulate(node.links_per_switch.begin(), node.links_per_switch.end(), 0U);
  } else if (node.scale_up == ScaleUp::Mesh) {
    lanes = node.mesh_lanes * (node.gpus - 1);
  } else if (node.scale_up == ScaleUp::Pairs) {
    lanes = node.mesh_lanes;
  }
  if (lanes == 0) {
    field[total].fail(
        "cannot be divided over lanes with this wiring: give the lanes, or lane_bandwidth");
  }
  node.lane_bandwidth = all * (1.0 / lanes);
}

void read_pcie(const Field& field, NodeSpec& node) {
  field.allow_only({"switches", "sockets", "sockets_per_board", "cpu_vendor", "bandwidth",
                    "gpu_bandwidth", "socket_bandwidth", "latency"});
  read_count(field, "switches", node.pcie_switches);
  read_count(field, "sockets", node.cpus);
  read_count(field, "sockets_per_board", node.cpus_per_board);
  if (field.has("cpu_vendor")) {
    node.cpu_vendor = field["cpu_vendor"].one_of({"intel", "amd", "arm"});
  }
  const auto bus = [](const Field& f) { return read_bandwidth(f, Carrier::Bus); };
  read_if(field, "bandwidth", node.pcie_bandwidth, bus);
  read_if(field, "gpu_bandwidth", node.gpu_pcie_bandwidth, bus);
  read_if(field, "socket_bandwidth", node.cpu_bandwidth, bus);
  read_if(field, "latency", node.pcie_latency, read_link_latency);
}

void read_nics(const Field& field, NodeSpec& node) {
  field.allow_only({"count", "bandwidth", "model", "pcie_switch", "rail", "rails", "network"});
  const std::uint32_t before = node.nics;
  read_count(field, "count", node.nics);
  if (node.nics != before) {
    // Placement that was stated for another number of NICs no longer says anything.
    node.nic_pcie_switch.clear();
    node.nic_rail.clear();
  }
  if (field.has("bandwidth")) {
    node.nic_bandwidth = read_bandwidth(field["bandwidth"], Carrier::Nic);
    node.network.clear();
  }
  read_text(field, "model", node.nic_model);
  read_text(field, "network", node.network);
  if (field.has("pcie_switch")) node.nic_pcie_switch = read_counts(field["pcie_switch"], 0);
  if (field.has("rail") && field.has("rails")) {
    field["rails"].fail("give either the rail of every NIC or the number of rails");
  }
  if (field.has("rail")) {
    node.nic_rail.clear();
    for (const Field& item : field["rail"].elements()) node.nic_rail.push_back(item.count(0, 4096));
  }
  if (field.has("rails")) {
    const std::uint32_t rails = field["rails"].count();
    node.nic_rail.resize(node.nics);
    for (std::uint32_t i = 0; i < node.nics; ++i) node.nic_rail[i] = i % rails;
  }
}

}  // namespace

Duration read_link_latency(const Field& field) {
  // Paths add latencies up. Light goes around the earth seven times in a second.
  constexpr Duration limit = std::chrono::seconds(1);
  const Duration latency = field.duration();
  if (latency > limit) {
    field.fail(fmt::format("expected at most {} for one link, got \"{}\"", to_string(limit),
                           field.text()));
  }
  return latency;
}

Bandwidth read_bandwidth(const Field& field, Carrier carrier) {
  const Bandwidth value = field.bandwidth();
  const auto limit = std::ranges::find(limits, carrier, &Limit::carrier);
  if (value.per_second() < limit->most) return value;
  const std::string text = field.text();
  std::string meant;
  if (const std::size_t unit = text.find('B'); unit != std::string::npos) {
    meant = text;
    meant[unit] = 'b';
    meant = fmt::format(", did you mean \"{}\"?", meant);
  }
  field.fail(fmt::format("expected {}, got \"{}\"{}", limit->words, text, meant));
}

std::vector<std::string> read_notes(const Field& field) {
  std::vector<std::string> notes;
  if (field.has("announced_only") && field["announced_only"].boolean()) {
    notes.emplace_back("announced figures, not measured ones");
  }
  if (field.has("note")) notes.push_back(field["note"].text());
  return notes;
}

GpuModel read_gpu_members(const Field& field, GpuModel base) {
  read_text(field, "name", base.name);
  read_text(field, "architecture", base.architecture);
  read_text(field, "scale_up", base.scale_up);
  read_text(field, "source", base.source);
  if (field.has("flops")) {
    const Field flops = field["flops"];
    for (const std::string& dtype : flops.keys()) base.flops[dtype] = flops[dtype].flop_rate();
  }
  read_if(field, "memory", base.memory, [](const Field& f) { return f.bytes(); });
  read_if(field, "memory_bandwidth", base.memory_bandwidth,
          [](const Field& f) { return read_bandwidth(f, Carrier::Memory); });
  read_count(field, "sms", base.sms, 1);
  read_share(field, "flop_efficiency", base.flop_efficiency);
  read_share(field, "memory_efficiency", base.memory_efficiency);
  return base;
}

GpuModel read_gpu(const Field& field, const Presets& presets) {
  const std::string preset = preset_of(field, PresetKind::Gpu, presets);
  const GpuModel base = preset.empty() ? GpuModel{} : presets.gpu(preset);
  if (field.is_string()) return base;
  field.allow_only({"preset", "name", "architecture", "flops", "memory", "memory_bandwidth", "sms",
                    "scale_up", "flop_efficiency", "memory_efficiency", "source"});
  return read_gpu_members(field, base);
}

NodeSpec read_node_members(const Field& field, const Presets& presets, NodeSpec base) {
  read_text(field, "name", base.name);
  if (field.has("gpu")) base.gpu = read_gpu(field["gpu"], presets);
  read_count(field, "gpus", base.gpus, 1);
  if (field.has("scale_up")) read_scale_up(field["scale_up"], base);
  if (field.has("pcie")) read_pcie(field["pcie"], base);
  if (field.has("nics")) read_nics(field["nics"], base);
  read_text(field, "source", base.source);
  return base;
}

namespace {

NodeSpec read_node_object(const Field& field, const Presets& presets) {
  const std::string preset = preset_of(field, PresetKind::Node, presets);
  if (preset.empty() && !field.has("gpus")) {
    field.fail("expected a node: {\"preset\": \"dgx-h100\"}, or one written out with \"gpus\"");
  }
  NodeSpec base = preset.empty() ? NodeSpec{} : presets.node(preset);
  if (preset.empty()) base.name = "node";
  return read_node_members(field, presets, std::move(base));
}

}  // namespace

NodeSpec read_node(const Field& field, const Presets& presets) {
  if (field.is_string()) return presets.node(preset_of(field, PresetKind::Node, presets));
  field.allow_only({"preset", "name", "gpu", "gpus", "scale_up", "pcie", "nics", "source"});
  return read_node_object(field, presets);
}

NodeGroup read_node_group(const Field& field, const Presets& presets) {
  if (field.is_string()) return {.spec = read_node(field, presets), .count = 1};
  field.allow_only(
      {"preset", "name", "gpu", "gpus", "scale_up", "pcie", "nics", "source", "count"});
  NodeGroup group{.spec = read_node_object(field, presets), .count = 1};
  read_count(field, "count", group.count, 1);
  return group;
}

FabricSpec read_fabric_members(const Field& field, const Presets& presets, FabricSpec base) {
  field.allow_only({"type",
                    "preset",
                    "link",
                    "radix",
                    "in_network_reduction",
                    "nodes_per_unit",
                    "oversubscription",
                    "core_oversubscription",
                    "tiers",
                    "units_per_pod",
                    "spines",
                    "cores",
                    "planes",
                    "nic_ports",
                    "ports_per_cable",
                    "manager_ports",
                    "routers_per_group",
                    "hosts_per_router",
                    "globals_per_router",
                    "torus",
                    "routing",
                    "seed"});
  if (field.has("preset")) {
    const FabricSpec network =
        field["preset"].parsed([&](const std::string& name) { return presets.network(name); });
    base.preset = network.preset;
    base.link_bandwidth = network.link_bandwidth;
    base.link_latency = network.link_latency;
    base.radix = network.radix;
    base.in_network_reduction = network.in_network_reduction;
  }
  if (field.has("type")) {
    std::vector<std::string> words;
    for (const FabricInfo& info : fabrics()) words.emplace_back(info.name);
    base.kind = *fabric_kind(field["type"].one_of(words));
  }
  if (field.has("link")) {
    const Field link = field["link"];
    link.allow_only({"bandwidth", "latency"});
    read_if(link, "bandwidth", base.link_bandwidth,
            [](const Field& f) { return read_bandwidth(f, Carrier::FabricCable); });
    read_if(link, "latency", base.link_latency, read_link_latency);
  }
  const auto ratio = [](const Field& f) { return f.positive_number(); };
  read_if(field, "oversubscription", base.oversubscription, ratio);
  read_if(field, "core_oversubscription", base.core_oversubscription, ratio);
  read_count(field, "radix", base.radix, 2);
  read_if(field, "in_network_reduction", base.in_network_reduction,
          [](const Field& f) { return f.boolean(); });
  read_count(field, "nodes_per_unit", base.nodes_per_unit);
  read_count(field, "tiers", base.tiers);
  read_count(field, "units_per_pod", base.units_per_pod);
  read_count(field, "spines", base.spines);
  read_count(field, "cores", base.cores);
  read_count(field, "planes", base.planes);
  read_count(field, "nic_ports", base.nic_ports, 1);
  read_count(field, "ports_per_cable", base.ports_per_cable, 1);
  read_count(field, "manager_ports", base.manager_ports);
  read_count(field, "routers_per_group", base.group_routers);
  read_count(field, "hosts_per_router", base.router_hosts);
  read_count(field, "globals_per_router", base.router_globals);
  if (field.has("torus")) base.torus = read_counts(field["torus"], 1);
  if (field.has("routing")) {
    base.routing =
        *routing_policy(field["routing"].one_of({"ecmp", "adaptive", "dimension-order"}));
  }
  if (field.has("seed")) {
    const std::int64_t seed = field["seed"].integer();
    if (seed < 0) field["seed"].fail("expected a seed of zero or more");
    base.seed = static_cast<std::uint64_t>(seed);
  }
  return base;
}

}  // namespace flyover::io
