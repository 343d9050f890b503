#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/topology/builders.hpp"

namespace flyover {

namespace {

struct Condition {
  std::string key;
  std::vector<std::string> words;      // kind, from, to.
  std::vector<std::uint32_t> numbers;  // The other keys; ascending.

  [[nodiscard]] bool has(std::uint32_t number) const {
    return std::ranges::binary_search(numbers, number);
  }
};

struct Selector {
  std::string kind;  // "link", "node", or a kind of vertex.
  std::vector<Condition> conditions;

  [[nodiscard]] const Condition* find(std::string_view key) const {
    const auto found = std::ranges::find(conditions, key, &Condition::key);
    return found == conditions.end() ? nullptr : &*found;
  }
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

const std::vector<std::string> vertex_keys{"node", "index", "rail", "unit"};
const std::vector<std::string> link_keys{"kind", "node", "rail", "unit", "from", "to", "index"};
const std::vector<std::string> node_keys{"index", "node"};

const std::vector<std::string>& keys_of(std::string_view kind) {
  if (kind == "link") return link_keys;
  return kind == "node" ? node_keys : vertex_keys;
}

[[noreturn]] void refuse(std::string_view selector, std::string_view problem) {
  throw InputError(fmt::format("selector \"{}\": {}", selector, problem));
}

std::vector<std::uint32_t> numbers_of(std::string_view selector, std::string values) {
  std::ranges::replace(values, '|', ',');
  try {
    std::vector<std::uint32_t> numbers =
        parse_index_list(values, std::numeric_limits<std::uint32_t>::max());
    std::ranges::sort(numbers);
    return numbers;
  } catch (const InputError& error) {
    refuse(selector, error.problem());
  }
}

Selector parse_selector(std::string_view text) {
  Selector selector;
  const std::size_t open = text.find('[');
  selector.kind = text.substr(0, open);
  if (selector.kind != "link" && selector.kind != "node" && !vertex_kind(selector.kind)) {
    const std::vector<std::string> kinds{"link",        "node", "gpu",    "nvswitch",
                                         "pcie-switch", "cpu",  "nic",    "leaf",
                                         "spine",       "core", "switch", "host"};
    refuse(text, fmt::format("\"{}\" is not a kind of vertex, \"node\" or \"link\"{}",
                             selector.kind, did_you_mean(selector.kind, kinds)));
  }
  if (open == std::string_view::npos) return selector;
  if (text.back() != ']') refuse(text, "expected \"]\" at its end");
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const std::vector<std::string>& keys = keys_of(selector.kind);
  for (const std::string& part : split(inside, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals + 1 == part.size()) {
      refuse(text, fmt::format("expected key=value, got \"{}\"", part));
    }
    Condition condition;
    condition.key = part.substr(0, equals);
    if (std::ranges::find(keys, condition.key) == keys.end()) {
      const std::string meant = did_you_mean(condition.key, keys);
      refuse(text,
             fmt::format("\"{}\" is not a key of {}{}", condition.key, selector.kind,
                         meant.empty() ? fmt::format(" ({})", fmt::join(keys, ", ")) : meant));
    }
    if (selector.find(condition.key) != nullptr) {
      refuse(text, fmt::format("\"{}\" is given twice", condition.key));
    }
    const std::string values = part.substr(equals + 1);
    if (condition.key == "kind" || condition.key == "from" || condition.key == "to") {
      condition.words = split(values, '|');
    } else {
      condition.numbers = numbers_of(text, values);
    }
    selector.conditions.push_back(std::move(condition));
  }
  return selector;
}

bool matches(const Topology& topology, const Selector& selector, VertexId v) {
  const Vertex& vertex = topology.vertices[v];
  return std::ranges::all_of(selector.conditions, [&](const Condition& condition) {
    if (condition.key == "node") {
      return vertex.node != no_node &&
             condition.has(static_cast<std::uint32_t>(index(vertex.node)));
    }
    if (condition.key == "index") return condition.has(vertex.index);
    return condition.has(condition.key == "rail" ? vertex.rail : vertex.unit);
  });
}

std::vector<VertexId> matching_vertices(const Topology& topology, const Selector& selector) {
  const VertexKind kind = *vertex_kind(selector.kind);
  std::vector<VertexId> found;
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    if (topology.vertices[VertexId{v}].kind == kind && matches(topology, selector, VertexId{v})) {
      found.push_back(VertexId{v});
    }
  }
  return found;
}

// Each name resolved once: naming both ends of a quarter of a million links would take longer than
// building them.
std::vector<VertexId> named_vertices(const Topology& topology, std::string_view text,
                                     const std::vector<std::string>& names) {
  std::vector<VertexId> found;
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    if (std::ranges::find(names, vertex_name(topology, VertexId{v})) != names.end()) {
      found.push_back(VertexId{v});
    }
  }
  if (found.size() < names.size()) {
    refuse(text, fmt::format("there is no vertex \"{}\"", fmt::join(names, "|")));
  }
  return found;
}

// The other direction of the same cable: builders and readers put the two next to each other.
std::optional<LinkId> opposite(const Topology& topology, LinkId id) {
  const Link& link = topology.links[id];
  const auto reverses = [&](std::size_t other) {
    if (other >= topology.links.size()) return false;
    const Link& candidate = topology.links[LinkId(other)];
    return candidate.from == link.to && candidate.to == link.from && candidate.kind == link.kind;
  };
  // Parallel cables alternate directions, so a partner behind must not be taken for one ahead.
  const std::size_t first = index(id) & ~std::size_t{1};
  const std::size_t partner = index(id) == first ? first + 1 : first;
  if (reverses(partner)) return LinkId(partner);
  for (const LinkId back : topology.out(link.to)) {
    if (reverses(index(back))) return back;
  }
  return std::nullopt;
}

std::vector<LinkId> matching_links(const Topology& topology, std::string_view text,
                                   const Selector& selector) {
  std::vector<VertexId> from, to;
  std::vector<LinkKind> kinds;
  if (const Condition* condition = selector.find("kind")) {
    for (const std::string& word : condition->words) {
      const auto kind = link_kind(word);
      if (!kind) {
        const std::vector<std::string> known{"nvlink",    "xgmi",       "pcie",       "cpu-link",
                                             "host-leaf", "leaf-spine", "spine-core", "local",
                                             "global",    "torus",      "other"};
        const std::string meant = did_you_mean(word, known);
        refuse(text,
               fmt::format("\"{}\" is not a kind of link{}", word,
                           meant.empty() ? fmt::format(" ({})", fmt::join(known, ", ")) : meant));
      }
      kinds.push_back(*kind);
    }
  }
  const Condition* from_names = selector.find("from");
  const Condition* to_names = selector.find("to");
  if (from_names) from = named_vertices(topology, text, from_names->words);
  if (to_names) to = named_vertices(topology, text, to_names->words);

  const auto either_end = [&](const Condition& condition, const Link& link) {
    for (const VertexId end : {link.from, link.to}) {
      const Vertex& vertex = topology.vertices[end];
      if (condition.key == "node") {
        if (vertex.node != no_node &&
            condition.has(static_cast<std::uint32_t>(index(vertex.node)))) {
          return true;
        }
      } else if (condition.has(condition.key == "rail" ? vertex.rail : vertex.unit)) {
        return true;
      }
    }
    return false;
  };
  std::vector<LinkId> found;
  for (std::uint32_t l = 0; l < topology.links.size(); ++l) {
    const Link& link = topology.links[LinkId{l}];
    if (!kinds.empty() && std::ranges::find(kinds, link.kind) == kinds.end()) continue;
    if (from_names && !std::ranges::binary_search(from, link.from)) continue;
    if (to_names && !std::ranges::binary_search(to, link.to)) continue;
    const bool all = std::ranges::all_of(selector.conditions, [&](const Condition& condition) {
      return !condition.words.empty() || condition.key == "index" || either_end(condition, link);
    });
    if (all) found.push_back(LinkId{l});
  }
  const Condition* position = selector.find("index");
  if (position == nullptr) return found;
  std::vector<LinkId> picked;
  std::vector<LinkId> earlier;  // First directions of the cables met so far, ascending.
  std::vector<bool> earlier_picked;
  for (const LinkId id : found) {
    const auto partner = opposite(topology, id);
    const auto met = partner ? std::ranges::lower_bound(earlier, *partner) : earlier.end();
    if (met != earlier.end() && *met == *partner) {
      if (earlier_picked[static_cast<std::size_t>(met - earlier.begin())]) picked.push_back(id);
      continue;
    }
    const bool pick = position->has(static_cast<std::uint32_t>(earlier.size()));
    if (pick) picked.push_back(id);
    earlier.push_back(id);
    earlier_picked.push_back(pick);
  }
  return picked;
}

void set_cable_state(Topology& topology, LinkId id, bool up) {
  topology.links[id].up = up;
  if (const auto back = opposite(topology, id)) topology.links[*back].up = up;
}

void change_rate(Link& link, const Override& change) {
  if (change.bandwidth) link.bandwidth = link.nominal = *change.bandwidth;
  if (change.factor) link.bandwidth = link.nominal * *change.factor;
  if (change.latency) link.latency = *change.latency;
}

// Links at a vertex that end in service at both sides come back with it; the others stay down.
void set_vertex_state(Topology& topology, VertexId v, bool up) {
  topology.vertices[v].up = up;
  const auto set = [&](LinkId id) {
    Link& link = topology.links[id];
    link.up = topology.vertices[link.from].up && topology.vertices[link.to].up;
  };
  for (const LinkId id : topology.out(v)) set(id);
  for (const LinkId id : topology.in(v)) set(id);
}

void change_links_at(Topology& topology, VertexId v, const Override& change, bool network_only) {
  const auto apply = [&](LinkId id) {
    Link& link = topology.links[id];
    const bool network = topology.vertices[link.from].node != topology.vertices[link.to].node;
    if (!network_only || network) change_rate(link, change);
  };
  for (const LinkId id : topology.out(v)) apply(id);
  for (const LinkId id : topology.in(v)) apply(id);
}

bool changes_speed(const Override& change) {
  return change.compute_factor || change.memory_factor;
}

void change_speed(Topology& topology, VertexId v, const Override& change) {
  const Vertex& vertex = topology.vertices[v];
  if (!changes_speed(change) || vertex.kind != VertexKind::Gpu) return;
  const std::uint32_t rank = topology.nodes[vertex.node].first_gpu + vertex.index;
  const GpuModel& now = topology.gpu_model(rank);
  topology.slow_gpu(rank, change.compute_factor.value_or(now.compute_factor),
                    change.memory_factor.value_or(now.memory_factor));
}

void change_vertex(Topology& topology, VertexId v, const Override& change, bool network_only) {
  if (change.up) set_vertex_state(topology, v, *change.up);
  change_links_at(topology, v, change, network_only);
  change_speed(topology, v, change);
}

void check_values(const Override& change) {
  const std::string_view text = change.selector;
  const auto check_share = [&](std::string_view key, const std::optional<double>& share) {
    if (share && !(*share > 0 && *share <= 1)) {
      refuse(text, fmt::format("expected a {} above 0 and at most 1, got {}", key, *share));
    }
  };
  check_share("factor", change.factor);
  check_share("compute_factor", change.compute_factor);
  check_share("memory_factor", change.memory_factor);
  if (!change.up && !change.bandwidth && !change.factor && !change.latency &&
      !changes_speed(change)) {
    refuse(text,
           "changes nothing: expected a state, bandwidth, factor, latency, compute_factor or "
           "memory_factor");
  }
}

void check_speed(const Override& change, const Selector& selector) {
  if (!changes_speed(change)) return;
  if (selector.kind == "gpu" || selector.kind == "node") return;
  refuse(change.selector,
         fmt::format("a {} is of gpus and nodes, not of a {}",
                     change.compute_factor ? "compute_factor" : "memory_factor", selector.kind));
}

std::size_t count_cables(const Topology& topology) {
  std::size_t directions = 0;
  for (const Link& link : topology.links) directions += link.cables;
  return directions / 2;
}

}  // namespace

bool fits_trunks(const Override& change) {
  constexpr std::array alone{VertexKind::Gpu, VertexKind::PcieSwitch, VertexKind::Cpu,
                             VertexKind::Nic};
  constexpr std::array<std::string_view, 4> cables{"xgmi", "pcie", "cpu-link", "host-leaf"};
  const Selector selector = parse_selector(change.selector);
  if (selector.kind == "node") return true;
  if (selector.kind != "link") {
    const VertexKind kind = *vertex_kind(selector.kind);
    // A rate of a GPU is one of each of its links.
    return std::ranges::find(alone, kind) != alone.end() &&
           !(kind == VertexKind::Gpu && change.bandwidth);
  }
  const Condition* kind = selector.find("kind");
  return kind != nullptr && std::ranges::all_of(kind->words, [&](const std::string& word) {
           return std::ranges::find(cables, word) != cables.end();
         });
}

void apply_override(Topology& topology, const Override& change) {
  const std::string_view text = change.selector;
  check_values(change);
  const Selector selector = parse_selector(text);
  check_speed(change, selector);
  std::size_t matched = 0;
  if (selector.kind == "link") {
    const std::vector<LinkId> links = matching_links(topology, text, selector);
    matched = links.size();
    for (const LinkId id : links) {
      if (change.up) set_cable_state(topology, id, *change.up);
      change_rate(topology.links[id], change);
    }
  } else if (selector.kind == "node") {
    for (std::uint32_t n = 0; n < topology.nodes.size(); ++n) {
      const bool all = std::ranges::all_of(
          selector.conditions, [&](const Condition& condition) { return condition.has(n); });
      if (!all) continue;
      ++matched;
      const Node& node = topology.nodes[NodeId{n}];
      if (changes_speed(change) && node.gpus == 0) {
        refuse(text, fmt::format("node {} has no GPU", n));
      }
      for (std::uint32_t i = 0; i < node.vertices; ++i) {
        const VertexId v{static_cast<std::uint32_t>(node.first_vertex) + i};
        change_vertex(topology, v, change, true);
      }
    }
  } else {
    const std::vector<VertexId> vertices = matching_vertices(topology, selector);
    matched = vertices.size();
    for (const VertexId v : vertices) {
      change_vertex(topology, v, change, selector.kind == "nic");
    }
  }
  if (matched > 0) return;
  const std::size_t there =
      selector.kind == "link" ? count_cables(topology)
      : selector.kind == "node"
          ? topology.nodes.size()
          : static_cast<std::size_t>(
                std::ranges::count(topology.vertices, *vertex_kind(selector.kind), &Vertex::kind));
  refuse(text, fmt::format("matches nothing (the topology has {} {}{} and {} node{})", there,
                           selector.kind, there == 1 ? "" : "s", topology.nodes.size(),
                           topology.nodes.size() == 1 ? "" : "s"));
}

}  // namespace flyover
