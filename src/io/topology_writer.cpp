#include "flyover/io/topology_writer.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphml.hpp>
#include <boost/graph/graphviz.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "flyover/base/quantity.hpp"

namespace flyover::io {

namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

// --- JSON ----------------------------------------------------------------------------------------

// One vertex or edge per line, written as it is met: a document tree of a large cluster would take
// many times the memory of the cluster.
class JsonWriter {
 public:
  explicit JsonWriter(const Topology& topology) : topology_(topology) {}

  std::string write() {
    put("{{\n  \"name\": {},\n", quoted(topology_.name));
    put("  \"fabric\": {{ \"type\": {}, \"preset\": {}, \"routing\": \"{}\", \"seed\": {}, "
        "\"ports_per_cable\": {}",
        quoted(topology_.fabric), quoted(topology_.fabric_preset), to_string(topology_.routing),
        topology_.routing_seed, topology_.ports_per_cable);
    if (topology_.in_network_reduction) put(", \"in_network_reduction\": true");
    if (!topology_.torus.empty()) put(", \"torus\": [{}]", fmt::join(topology_.torus, ", "));
    put(" }},\n");
    write_notes();
    list("gpu_models", bought_models(), [&](std::size_t i) { write_model(i); });
    list("nodes", topology_.nodes.size(), [&](std::size_t i) { write_node(i); });
    list("vertices", topology_.vertices.size(), [&](std::size_t i) { write_vertex(i); });
    write_edges();
    put("}}\n");
    return fmt::to_string(text_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  template <class Write>
  void list(std::string_view key, std::size_t size, Write write) {
    put("  \"{}\": [", key);
    for (std::size_t i = 0; i < size; ++i) {
      put("{}\n    {{ ", i > 0 ? "," : "");
      write(i);
      put(" }}");
    }
    put("\n  ],\n");
  }

  void write_notes() {
    put("  \"notes\": [");
    for (std::size_t i = 0; i < topology_.notes.size(); ++i) {
      put("{}\n    {}", i > 0 ? "," : "", quoted(topology_.notes[i]));
    }
    put("\n  ],\n");
  }

  // Slow GPUs say so themselves.
  [[nodiscard]] std::size_t bought_models() const {
    const auto slow = std::ranges::find_if(topology_.gpu_models, [](const GpuModel& model) {
      return model.compute_factor < 1 || model.memory_factor < 1;
    });
    return static_cast<std::size_t>(slow - topology_.gpu_models.begin());
  }

  void write_model(std::size_t i) {
    const GpuModel& model = topology_.gpu_models[i];
    put("\"name\": {}", quoted(model.name));
    const auto text = [&](const char* key, const std::string& value) {
      if (!value.empty()) put(", \"{}\": {}", key, quoted(value));
    };
    text("architecture", model.architecture);
    text("scale_up", model.scale_up);
    text("source", model.source);
    if (model.sms > 0) put(", \"sms\": {}", model.sms);
    if (model.memory > Bytes{}) put(", \"memory\": \"{}\"", to_string(model.memory));
    if (model.memory_bandwidth > Bandwidth{}) {
      put(", \"memory_bandwidth\": \"{}\"", to_string(model.memory_bandwidth));
    }
    put(", \"flop_efficiency\": {}, \"memory_efficiency\": {}", model.flop_efficiency,
        model.memory_efficiency);
    put(", \"flops\": {{");
    bool first = true;
    for (const auto& [dtype, rate] : model.flops) {
      put("{}{}: \"{}\"", first ? " " : ", ", quoted(dtype), to_string(rate));
      first = false;
    }
    put(" }}");
  }

  void write_node(std::size_t i) {
    const Node& node = topology_.nodes[NodeId(i)];
    put("\"name\": {}, \"preset\": {}", i, quoted(node.preset));
    if (node.gpus > 0) put(", \"gpu\": {}", quoted(topology_.gpu_models[node.gpu_model].name));
    if (!node.nic_model.empty()) put(", \"nic_model\": {}", quoted(node.nic_model));
    if (!node.cpu_vendor.empty()) put(", \"cpu_vendor\": {}", quoted(node.cpu_vendor));
    if (node.in_switch_reduction) put(", \"in_switch_reduction\": true");
  }

  void write_vertex(std::size_t i) {
    const Vertex& vertex = topology_.vertices[VertexId(i)];
    put("\"name\": {}, \"kind\": \"{}\"", quoted(vertex_name(topology_, VertexId(i))),
        to_string(vertex.kind));
    if (vertex.node != no_node) put(", \"node\": {}", index(vertex.node));
    if (vertex.rail > 0 || vertex.kind == VertexKind::Nic) put(", \"rail\": {}", vertex.rail);
    if (vertex.unit > 0) put(", \"unit\": {}", vertex.unit);
    if (vertex.kind == VertexKind::Gpu && !topology_.model_of_gpu.empty()) write_speed(vertex);
    if (!vertex.up) put(", \"state\": \"down\"");
  }

  void write_speed(const Vertex& gpu) {
    const GpuModel& model = topology_.gpu_model(topology_.nodes[gpu.node].first_gpu + gpu.index);
    if (model.compute_factor < 1) put(", \"compute_factor\": {}", model.compute_factor);
    if (model.memory_factor < 1) put(", \"memory_factor\": {}", model.memory_factor);
  }

  // Whether the next link is this one's other direction and has the same properties.
  [[nodiscard]] bool is_cable(std::size_t i) const {
    if (i + 1 >= topology_.links.size()) return false;
    const Link& there = topology_.links[LinkId(i)];
    const Link& back = topology_.links[LinkId(i + 1)];
    return there.from == back.to && there.to == back.from && there.kind == back.kind &&
           there.bandwidth == back.bandwidth && there.nominal == back.nominal &&
           there.latency == back.latency && there.lanes == back.lanes && there.up == back.up;
  }

  void write_edges() {
    put("  \"edges\": [");
    for (std::size_t i = 0; i < topology_.links.size(); ++i) {
      const Link& link = topology_.links[LinkId(i)];
      const bool cable = is_cable(i);
      put("{}\n    {{ \"from\": {}, \"to\": {}, \"kind\": \"{}\", \"bandwidth\": \"{}\", "
          "\"latency\": \"{}\"",
          i > 0 ? "," : "", quoted(vertex_name(topology_, link.from)),
          quoted(vertex_name(topology_, link.to)), to_string(link.kind), to_string(link.bandwidth),
          to_string(link.latency));
      if (link.nominal != link.bandwidth) put(", \"nominal\": \"{}\"", to_string(link.nominal));
      if (link.lanes > 1) put(", \"lanes\": {}", link.lanes);
      if (!link.up) put(", \"state\": \"down\"");
      if (!cable) put(", \"directed\": true");
      put(" }}");
      if (cable) ++i;
    }
    put("\n  ]\n");
  }

  const Topology& topology_;
  fmt::memory_buffer text_;
};

// --- Graphviz and GraphML ------------------------------------------------------------------------

struct VertexFacts {
  std::string name, kind, state, node;
};

struct EdgeFacts {
  std::string kind, bandwidth, latency, state;
  std::uint32_t lanes = 1;
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, VertexFacts, EdgeFacts>;

std::string state_word(bool up) {
  return up ? "up" : "down";
}

Graph make_graph(const Topology& topology) {
  Graph graph(topology.vertices.size());
  for (std::size_t i = 0; i < topology.vertices.size(); ++i) {
    const Vertex& vertex = topology.vertices[VertexId(i)];
    graph[i] = {.name = vertex_name(topology, VertexId(i)),
                .kind = std::string(to_string(vertex.kind)),
                .state = state_word(vertex.up),
                .node = vertex.node == no_node ? "" : std::to_string(index(vertex.node))};
  }
  for (const Link& link : topology.links) {
    boost::add_edge(index(link.from), index(link.to),
                    EdgeFacts{.kind = std::string(to_string(link.kind)),
                              .bandwidth = to_string(link.bandwidth),
                              .latency = to_string(link.latency),
                              .state = state_word(link.up),
                              .lanes = link.lanes},
                    graph);
  }
  return graph;
}

boost::dynamic_properties properties_of(Graph& graph) {
  boost::dynamic_properties properties;
  properties.property("kind", boost::get(&VertexFacts::kind, graph));
  properties.property("node", boost::get(&VertexFacts::node, graph));
  properties.property("state", boost::get(&VertexFacts::state, graph));
  properties.property("kind", boost::get(&EdgeFacts::kind, graph));
  properties.property("bandwidth", boost::get(&EdgeFacts::bandwidth, graph));
  properties.property("latency", boost::get(&EdgeFacts::latency, graph));
  properties.property("lanes", boost::get(&EdgeFacts::lanes, graph));
  properties.property("state", boost::get(&EdgeFacts::state, graph));
  return properties;
}

}  // namespace

std::string topology_json(const Topology& topology) {
  return JsonWriter(topology).write();
}

std::string topology_dot(const Topology& topology) {
  Graph graph = make_graph(topology);
  boost::dynamic_properties properties = properties_of(graph);
  properties.property("node_id", boost::get(&VertexFacts::name, graph));
  std::ostringstream out;
  boost::write_graphviz_dp(out, graph, properties, "node_id");
  return out.str();
}

std::string topology_graphml(const Topology& topology) {
  Graph graph = make_graph(topology);
  boost::dynamic_properties properties = properties_of(graph);
  properties.property("name", boost::get(&VertexFacts::name, graph));
  std::ostringstream out;
  boost::write_graphml(out, graph, properties, true);
  return out.str();
}

}  // namespace flyover::io
