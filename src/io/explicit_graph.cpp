#include "explicit_graph.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "hardware_reader.hpp"

namespace flyover::io {

namespace {

const std::vector<std::string> vertex_words{"gpu",  "nvswitch", "pcie-switch", "cpu",    "nic",
                                            "leaf", "spine",    "core",        "switch", "host"};
const std::vector<std::string> link_words{"nvlink",    "xgmi",       "pcie",       "cpu-link",
                                          "host-leaf", "leaf-spine", "spine-core", "local",
                                          "global",    "torus",      "other"};

bool belongs_to_node(VertexKind kind) {
  return kind == VertexKind::Gpu || kind == VertexKind::NvSwitch ||
         kind == VertexKind::PcieSwitch || kind == VertexKind::Cpu || kind == VertexKind::Nic;
}

bool is_up(const Field& item) {
  return !item.has("state") || item["state"].one_of({"up", "down"}) == "up";
}

// A label may be written as a number: "node": 0.
std::string label_of(const Field& field) {
  return field.is_number() ? std::to_string(field.count(0)) : field.text();
}

// How much of what a GPU was bought with it reaches.
double read_share(const Field& item, std::string_view key) {
  if (!item.has(key)) return 1;
  const double share = item[key].positive_number();
  if (share > 1) item[key].fail(fmt::format("expected a share of at most 1, got {}", share));
  return share;
}

// What a node's own entry says about it.
struct NodeEntry {
  std::string preset = "explicit";
  std::string gpu;
  std::string nic_model;
  std::string cpu_vendor;
  bool in_switch_reduction = false;
};

class GraphReader {
 public:
  GraphReader(const Field& root, const Presets& presets) : root_(root), presets_(presets) {}

  Topology read() {
    root_.allow_only({"name", "vertices", "edges", "nodes", "gpu", "gpu_models", "fabric",
                      "overrides", "notes"});
    if (root_.has("name")) topology_.name = root_["name"].text();
    read_gpu_models();
    read_node_entries();
    read_vertices();
    read_fabric();
    read_edges();
    if (root_.has("notes")) {
      for (const Field& note : root_["notes"].elements()) topology_.notes.push_back(note.text());
    }
    finish_nodes();
    topology_.index_links();
    for (const auto& [rank, speed] : speeds_) topology_.slow_gpu(rank, speed.first, speed.second);
    return std::move(topology_);
  }

 private:
  void read_gpu_models() {
    if (root_.has("gpu")) {
      if (root_.has("gpu_models")) root_["gpu"].fail("give either \"gpu\" or \"gpu_models\"");
      add_model(root_["gpu"]);
    }
    if (!root_.has("gpu_models")) return;
    for (const Field& item : root_["gpu_models"].elements()) add_model(item);
  }

  void add_model(const Field& item) {
    GpuModel model = read_gpu(item, presets_);
    if (model.name.empty()) item.fail("expected a GPU with a \"name\" or \"preset\"");
    if (find_model(model.name)) item.fail(fmt::format("GPU \"{}\" is listed twice", model.name));
    topology_.gpu_models.push_back(std::move(model));
  }

  [[nodiscard]] std::optional<std::uint32_t> find_model(const std::string& name) const {
    const auto found = std::ranges::find(topology_.gpu_models, name, &GpuModel::name);
    if (found == topology_.gpu_models.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - topology_.gpu_models.begin());
  }

  // A model of the file's own list, or else a preset.
  std::uint32_t model_index(const Field& place, const std::string& name) {
    if (const auto found = find_model(name)) return *found;
    GpuModel model = place.parsed([&](const std::string&) { return presets_.gpu(name); });
    if (const auto found = find_model(model.name)) return *found;
    topology_.gpu_models.push_back(std::move(model));
    return static_cast<std::uint32_t>(topology_.gpu_models.size() - 1);
  }

  void read_node_entries() {
    if (!root_.has("nodes")) return;
    for (const Field& item : root_["nodes"].elements()) {
      item.allow_only({"name", "preset", "gpu", "nic_model", "cpu_vendor", "in_switch_reduction"});
      NodeEntry entry;
      if (item.has("preset")) entry.preset = item["preset"].text();
      if (item.has("gpu")) entry.gpu = item["gpu"].text();
      if (item.has("nic_model")) entry.nic_model = item["nic_model"].text();
      if (item.has("cpu_vendor")) {
        entry.cpu_vendor = item["cpu_vendor"].one_of({"intel", "amd", "arm"});
      }
      if (item.has("in_switch_reduction")) {
        entry.in_switch_reduction = item["in_switch_reduction"].boolean();
      }
      const std::string label = label_of(item["name"]);
      if (!entries_.emplace(label, entry).second) {
        item["name"].fail(fmt::format("node \"{}\" is listed twice", label));
      }
    }
  }

  struct Pending {
    Vertex vertex;
    std::string name;
    std::string node;  // Its label; "" outside nodes.
    std::string model;
    double compute_factor = 1;
    double memory_factor = 1;
    Field field;
  };

  void read_vertices() {
    std::vector<Pending> pending;
    for (const Field& item : root_["vertices"].elements()) pending.push_back(read_vertex(item));
    if (pending.empty()) root_["vertices"].fail("expected at least one vertex");

    // The vertices of a node become neighbours; nodes come in order of their first vertex, and the
    // switches of the fabric after all of them.
    for (const Pending& item : pending) {
      if (!item.node.empty() &&
          node_ids_.emplace(item.node, static_cast<std::uint32_t>(node_labels_.size())).second) {
        node_labels_.push_back(item.node);
      }
    }
    const auto node_of = [&](const Pending& item) {
      return item.node.empty() ? index(no_node) : std::size_t{node_ids_.at(item.node)};
    };
    std::ranges::stable_sort(pending, {}, node_of);
    std::map<std::pair<std::size_t, VertexKind>, std::uint32_t> counts;
    for (Pending& item : pending) {
      Vertex& vertex = item.vertex;
      vertex.node = NodeId(node_of(item));
      vertex.index = counts[{node_of(item), vertex.kind}]++;
      if (vertex.kind == VertexKind::Nic && !item.field.has("rail")) vertex.rail = vertex.index;
      if (vertex.node != no_node) add_to_node(item);
      const VertexId id = topology_.vertices.push_back(vertex);
      if (vertex.kind == VertexKind::Gpu) {
        if (item.compute_factor < 1 || item.memory_factor < 1) {
          speeds_.emplace_back(static_cast<std::uint32_t>(topology_.gpus.size()),
                               std::pair{item.compute_factor, item.memory_factor});
        }
        topology_.gpus.push_back(id);
      }
      if (!ids_.emplace(item.name, id).second) {
        item.field["name"].fail(fmt::format("vertex \"{}\" is listed twice", item.name));
      }
      topology_.names.push_back(item.name);
    }
    if (topology_.gpus.empty()) root_["vertices"].fail("expected at least one vertex of kind gpu");
    for (const auto& [label, entry] : entries_) {
      if (!node_ids_.contains(label)) {
        root_["nodes"].fail(fmt::format("node \"{}\" has no vertices", label));
      }
    }
    drop_usual_names();
  }

  Pending read_vertex(const Field& item) {
    item.allow_only({"name", "kind", "node", "gpu", "rail", "unit", "state", "compute_factor",
                     "memory_factor"});
    Pending pending{.vertex = {},
                    .name = item["name"].text(),
                    .node = "",
                    .model = "",
                    .compute_factor = read_share(item, "compute_factor"),
                    .memory_factor = read_share(item, "memory_factor"),
                    .field = item};
    if (pending.name.empty()) item["name"].fail("expected a name");
    pending.vertex.kind = *vertex_kind(item["kind"].one_of(vertex_words));
    pending.vertex.up = is_up(item);
    if (item.has("rail")) pending.vertex.rail = item["rail"].count(0);
    if (item.has("unit")) pending.vertex.unit = item["unit"].count(0);
    const bool inside = belongs_to_node(pending.vertex.kind);
    if (item.has("node")) {
      if (!inside) {
        item["node"].fail(fmt::format("a {} belongs to the fabric, not to a node",
                                      to_string(pending.vertex.kind)));
      }
      pending.node = label_of(item["node"]);
    } else if (pending.vertex.kind == VertexKind::Gpu) {
      pending.node = pending.name;  // A node of its own.
    } else if (inside) {
      item.fail(
          fmt::format("a {} needs a \"node\" that it belongs to", to_string(pending.vertex.kind)));
    }
    if (item.has("gpu")) {
      if (pending.vertex.kind != VertexKind::Gpu) item["gpu"].fail("only a gpu has a model");
      pending.model = item["gpu"].text();
    }
    for (const std::string_view key : {"compute_factor", "memory_factor"}) {
      if (item.has(key) && pending.vertex.kind != VertexKind::Gpu) {
        item[key].fail("only a gpu computes");
      }
    }
    return pending;
  }

  void add_to_node(const Pending& item) {
    const VertexId id{static_cast<std::uint32_t>(topology_.vertices.size())};
    if (index(item.vertex.node) == topology_.nodes.size()) {
      Node node;
      node.first_vertex = id;
      node.first_gpu = static_cast<std::uint32_t>(topology_.gpus.size());
      const auto entry = entries_.find(item.node);
      const NodeEntry facts = entry == entries_.end() ? NodeEntry{} : entry->second;
      node.preset = facts.preset;
      node.nic_model = facts.nic_model;
      node.cpu_vendor = facts.cpu_vendor;
      node.in_switch_reduction = facts.in_switch_reduction;
      topology_.nodes.push_back(node);
    }
    Node& node = topology_.nodes[item.vertex.node];
    ++node.vertices;
    if (item.vertex.kind != VertexKind::Gpu) return;
    std::string model = item.model;
    const auto entry = entries_.find(item.node);
    if (model.empty() && entry != entries_.end()) model = entry->second.gpu;
    if (model.empty() && topology_.gpu_models.size() == 1)
      model = topology_.gpu_models.front().name;
    if (model.empty()) {
      item.field.fail(
          "expected the GPU's model: \"gpu\": \"H100-SXM\" here, on its node, or for the whole "
          "graph");
    }
    const Field place = item.field.has("gpu") ? item.field["gpu"] : item.field["name"];
    const std::uint32_t index_of_model = model_index(place, model);
    if (node.gpus > 0 && node.gpu_model != index_of_model) {
      item.field.fail(fmt::format("node \"{}\" mixes GPUs of two models", item.node));
    }
    node.gpu_model = index_of_model;
    ++node.gpus;
  }

  // A graph that is called as builders would call it needs no names of its own.
  void drop_usual_names() {
    const std::vector<std::string> given = std::move(topology_.names);
    topology_.names.clear();
    for (std::uint32_t v = 0; v < given.size(); ++v) {
      if (vertex_name(topology_, VertexId{v}) != given[v]) {
        topology_.names = given;
        return;
      }
    }
  }

  void read_fabric() {
    topology_.fabric = "explicit";
    if (!root_.has("fabric")) return;
    const Field fabric = root_["fabric"];
    fabric.allow_only(
        {"type", "preset", "in_network_reduction", "routing", "seed", "torus", "ports_per_cable"});
    if (fabric.has("type")) topology_.fabric = fabric["type"].text();
    if (fabric.has("preset")) topology_.fabric_preset = fabric["preset"].text();
    if (fabric.has("in_network_reduction")) {
      topology_.in_network_reduction = fabric["in_network_reduction"].boolean();
    }
    if (fabric.has("routing")) {
      topology_.routing =
          *routing_policy(fabric["routing"].one_of({"ecmp", "adaptive", "dimension-order"}));
    }
    if (fabric.has("seed")) {
      const std::int64_t seed = fabric["seed"].integer();
      if (seed < 0) fabric["seed"].fail("expected a seed of zero or more");
      topology_.routing_seed = static_cast<std::uint64_t>(seed);
    }
    if (fabric.has("ports_per_cable")) {
      topology_.ports_per_cable = fabric["ports_per_cable"].count();
    }
    std::uint64_t places = 1;
    if (fabric.has("torus")) {
      for (const Field& extent : fabric["torus"].elements()) {
        topology_.torus.push_back(extent.count(1, 1'000'000));
        places *= topology_.torus.back();
        if (places > topology_.nodes.size()) break;
      }
      if (places != topology_.nodes.size()) {
        fabric["torus"].fail(fmt::format(
            "expected extents whose product is the number of nodes ({})", topology_.nodes.size()));
      }
    }
    if (topology_.routing == RoutingPolicy::DimensionOrder && topology_.torus.empty()) {
      fabric["routing"].fail("dimension-order needs the extents of a \"torus\"");
    }
  }

  [[nodiscard]] VertexId vertex(const Field& field) const {
    const std::string name = field.text();
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [candidate, id] : ids_) known.push_back(candidate);
    field.fail(fmt::format("there is no vertex \"{}\"{}", name, did_you_mean(name, known)));
  }

  [[nodiscard]] LinkKind usual_kind(VertexId from, VertexId to) const {
    const Vertex& a = topology_.vertices[from];
    const Vertex& b = topology_.vertices[to];
    const auto joins = [&](VertexKind x, VertexKind y) {
      return (a.kind == x && b.kind == y) || (a.kind == y && b.kind == x);
    };
    if (a.node != no_node && a.node == b.node) {
      if (joins(VertexKind::Gpu, VertexKind::Gpu) || joins(VertexKind::Gpu, VertexKind::NvSwitch) ||
          joins(VertexKind::NvSwitch, VertexKind::NvSwitch)) {
        return LinkKind::NvLink;
      }
      return joins(VertexKind::Cpu, VertexKind::Cpu) ? LinkKind::CpuLink : LinkKind::Pcie;
    }
    if (joins(VertexKind::Leaf, VertexKind::Spine)) return LinkKind::LeafSpine;
    if (joins(VertexKind::Spine, VertexKind::Core)) return LinkKind::SpineCore;
    const bool one_outside = (a.node == no_node) != (b.node == no_node);
    return one_outside ? LinkKind::HostLeaf : LinkKind::Other;
  }

  static Carrier carrier_of(LinkKind kind) {
    switch (kind) {
      case LinkKind::HostLeaf:
        return Carrier::Nic;
      case LinkKind::LeafSpine:
      case LinkKind::SpineCore:
      case LinkKind::Global:
      case LinkKind::Local:
        return Carrier::FabricCable;
      case LinkKind::NvLink:
      case LinkKind::Xgmi:
        return Carrier::ScaleUpOfGpu;
      case LinkKind::Pcie:
      case LinkKind::CpuLink:
      case LinkKind::Torus:
      case LinkKind::Other:
        return Carrier::Bus;
    }
    return Carrier::Bus;
  }

  void read_edges() {
    std::size_t without_latency = 0;
    for (const Field& item : root_["edges"].elements()) {
      item.allow_only(
          {"from", "to", "bandwidth", "nominal", "latency", "kind", "lanes", "state", "directed"});
      Link link;
      link.from = vertex(item["from"]);
      link.to = vertex(item["to"]);
      if (link.from == link.to) item["to"].fail("an edge needs two different ends");
      link.kind = item.has("kind") ? *link_kind(item["kind"].one_of(link_words))
                                   : usual_kind(link.from, link.to);
      const Carrier carrier = carrier_of(link.kind);
      // A NIC's cable may end at a GPU that stands for a whole machine; only NICs are held to
      // theirs.
      const bool nic = topology_.vertices[link.from].kind == VertexKind::Nic ||
                       topology_.vertices[link.to].kind == VertexKind::Nic;
      const Carrier limit = carrier == Carrier::Nic && !nic ? Carrier::Bus : carrier;
      link.bandwidth = link.nominal = read_bandwidth(item["bandwidth"], limit);
      if (item.has("nominal")) link.nominal = read_bandwidth(item["nominal"], limit);
      if (link.bandwidth > link.nominal) {
        item["bandwidth"].fail("expected no more than \"nominal\"");
      }
      if (item.has("latency")) {
        link.latency = read_link_latency(item["latency"]);
      } else {
        ++without_latency;
      }
      if (item.has("lanes")) link.lanes = item["lanes"].count();
      link.up = is_up(item);
      topology_.links.push_back(link);
      if (item.has("directed") && item["directed"].boolean()) continue;
      std::swap(link.from, link.to);
      topology_.links.push_back(link);
    }
    if (without_latency > 0) {
      topology_.notes.push_back(
          fmt::format("{} edges state no latency: they have none", without_latency));
    }
  }

  // Nodes are of one type when nobody can tell their insides apart, changes after purchase aside.
  void finish_nodes() {
    std::vector<std::string> insides(topology_.nodes.size());
    for (std::uint32_t n = 0; n < topology_.nodes.size(); ++n) {
      const Node& node = topology_.nodes[NodeId{n}];
      insides[n] = fmt::format("{} {} {} {} {}", node.preset, node.gpu_model, node.nic_model,
                               node.cpu_vendor, node.in_switch_reduction);
      for (std::uint32_t i = 0; i < node.vertices; ++i) {
        const Vertex& v =
            topology_.vertices[VertexId{static_cast<std::uint32_t>(node.first_vertex) + i}];
        insides[n] += fmt::format(" {}:{}", to_string(v.kind), v.rail);
      }
    }
    for (const Link& link : topology_.links) {
      const NodeId node = topology_.vertices[link.from].node;
      if (node == no_node || node != topology_.vertices[link.to].node) continue;
      const std::size_t first = index(topology_.nodes[node].first_vertex);
      insides[index(node)] += fmt::format("; {}-{} {} {} {} {}", index(link.from) - first,
                                          index(link.to) - first, to_string(link.kind), link.lanes,
                                          link.nominal.per_second(), link.latency.count());
    }
    std::map<std::string, std::uint32_t> types;
    for (std::uint32_t n = 0; n < topology_.nodes.size(); ++n) {
      const auto next = static_cast<std::uint32_t>(types.size());
      topology_.nodes[NodeId{n}].type = types.emplace(std::move(insides[n]), next).first->second;
    }
  }

  const Field root_;
  const Presets& presets_;
  Topology topology_;
  std::map<std::string, NodeEntry> entries_;
  std::map<std::string, std::uint32_t> node_ids_;
  std::vector<std::string> node_labels_;
  std::map<std::string, VertexId> ids_;
  // Ranks of slow GPUs, with their compute and memory factors: once all models are known.
  std::vector<std::pair<std::uint32_t, std::pair<double, double>>> speeds_;
};

}  // namespace

Topology read_explicit_graph(const Field& root, const Presets& presets) {
  return GraphReader(root, presets).read();
}

}  // namespace flyover::io
