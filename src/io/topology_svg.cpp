#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <span>

#include <fmt/format.h>

#include "flyover/base/quantity.hpp"
#include "flyover/io/topology_writer.hpp"

namespace flyover::io {

namespace {

struct Row {
  VertexKind kind;
  std::string_view title;
  std::string_view fill;
};

// From top to bottom. Kinds that a topology lacks take no room.
constexpr std::array rows{
    Row{VertexKind::Core, "core switches", "#e8dff5"},
    Row{VertexKind::Spine, "spine switches", "#dfe7fd"},
    Row{VertexKind::Switch, "switches", "#dfe7fd"},
    Row{VertexKind::Leaf, "leaf switches", "#dff3fd"},
    Row{VertexKind::Host, "machines without GPUs", "#eeeeee"},
    Row{VertexKind::Nic, "NICs", "#fff3d6"},
    Row{VertexKind::Cpu, "CPU sockets", "#eeeeee"},
    Row{VertexKind::PcieSwitch, "PCIe switches", "#f4f0e6"},
    Row{VertexKind::Gpu, "GPUs", "#dcf5e0"},
    Row{VertexKind::NvSwitch, "NVSwitches", "#d3f0ee"},
};

// Colours that stay apart for colour-blind readers (after Okabe and Ito), dashes for the rest.
struct Style {
  LinkKind kind;
  std::string_view colour;
  std::string_view dash;
};

constexpr std::array styles{
    Style{LinkKind::NvLink, "#009e73", ""},    Style{LinkKind::Xgmi, "#009e73", "6 3"},
    Style{LinkKind::Pcie, "#999999", ""},      Style{LinkKind::CpuLink, "#999999", "6 3"},
    Style{LinkKind::HostLeaf, "#e69f00", ""},  Style{LinkKind::LeafSpine, "#0072b2", ""},
    Style{LinkKind::SpineCore, "#cc79a7", ""}, Style{LinkKind::Local, "#56b4e9", ""},
    Style{LinkKind::Global, "#d55e00", ""},    Style{LinkKind::Torus, "#d55e00", "6 3"},
    Style{LinkKind::Other, "#000000", "2 3"},
};

// A row of more vertices than this is drawn as groups, and so are then all rows of more than
// `most_groups`, so that one long row does not make the picture wide for the short ones.
constexpr std::size_t most_single = 64;
constexpr std::size_t most_groups = 16;
constexpr double box_width = 84, box_height = 34, gap = 14, row_step = 130;
constexpr double margin = 24, title_width = 170, header = 64;

struct Box {
  std::string name;
  std::string below;  // Second line, if any.
  double x = 0, y = 0;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology)
      : topology_(topology),
        box_of_(topology.vertices.size()) {
    for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
      by_kind_[topology.vertices[VertexId{v}].kind].push_back(VertexId{v});
    }
  }

  std::string draw() {
    const bool large = std::ranges::any_of(
        by_kind_, [](const auto& entry) { return entry.second.size() > most_single; });
    single_ = large ? most_groups : most_single;
    double y = header + margin;
    for (const Row& row : rows) {
      if (!by_kind_.contains(row.kind)) continue;
      place_row(row, y);
      y += row_step;
    }
    const double row_width =
        std::max(static_cast<double>(longest_row_) * (box_width + gap), 760 - title_width);
    spread_rows(row_width);
    const double width = title_width + row_width + margin;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n",
        width, y, width, y);
    put("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    put("<text x=\"{:.0f}\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{}</text>\n", margin,
        escaped(topology_.name));
    draw_legend();
    draw_cables();
    draw_boxes();
    put("</svg>\n");
    return fmt::to_string(text_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  // What a vertex is grouped by when its row is too long: its node, or its unit of the fabric.
  [[nodiscard]] std::uint32_t group_of(VertexId v) const {
    const Vertex& vertex = topology_.vertices[v];
    return vertex.node == no_node ? vertex.unit : static_cast<std::uint32_t>(index(vertex.node));
  }

  void place_row(const Row& row, double y) {
    const std::vector<VertexId>& vertices = by_kind_[row.kind];
    titles_.emplace_back(y, &row);
    const std::size_t before = boxes_.size();
    if (vertices.size() <= single_) {
      for (const VertexId v : vertices) add_vertex_box(v, y);
    } else {
      place_groups(row, vertices, y);
    }
    longest_row_ = std::max(longest_row_, boxes_.size() - before);
  }

  // "node3/pcie-switch7" takes two lines.
  void add_vertex_box(VertexId v, double y) {
    const std::string name = vertex_name(topology_, v);
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) {
      add_box(name, "", {&v, 1}, y);
    } else {
      add_box(name.substr(0, slash), name.substr(slash + 1), {&v, 1}, y);
    }
  }

  void place_groups(const Row& row, const std::vector<VertexId>& vertices, double y) {
    std::map<std::uint32_t, std::vector<VertexId>> groups;
    for (const VertexId v : vertices) groups[group_of(v)].push_back(v);
    const bool in_nodes = topology_.vertices[vertices.front()].node != no_node;
    std::string_view word = in_nodes ? "node" : "unit";
    if (row.kind == VertexKind::Spine) word = "pod";
    if (row.kind == VertexKind::Core) word = "group";
    if (groups.size() == 1) {  // Its members by number, then.
      word = to_string(row.kind);
      groups.clear();
      for (const VertexId v : vertices) groups[topology_.vertices[v].index].push_back(v);
    }
    // Neighbouring groups share a box when there are still too many.
    const std::size_t per_box = (groups.size() + most_groups - 1) / most_groups;
    std::vector<VertexId> members;
    std::uint32_t first = 0, last = 0;
    std::size_t taken = 0;
    for (const auto& [group, list] : groups) {
      if (taken == 0) first = group;
      last = group;
      members.insert(members.end(), list.begin(), list.end());
      if (++taken < per_box && group != groups.rbegin()->first) continue;
      add_box(first == last ? fmt::format("{} {}", word, first)
                            : fmt::format("{}s {}-{}", word, first, last),
              fmt::format("\u00d7 {}", members.size()), members, y);
      members.clear();
      taken = 0;
    }
  }

  void add_box(std::string name, std::string below, std::span<const VertexId> members, double y) {
    for (const VertexId v : members) box_of_[index(v)] = static_cast<std::uint32_t>(boxes_.size());
    boxes_.push_back({.name = std::move(name), .below = std::move(below), .x = 0, .y = y});
    kinds_.push_back(topology_.vertices[members.front()].kind);
  }

  // Every row over the whole width.
  void spread_rows(double width) {
    for (auto begin = boxes_.begin(); begin != boxes_.end();) {
      const auto end =
          std::find_if(begin, boxes_.end(), [&](const Box& box) { return box.y != begin->y; });
      const double step = width / static_cast<double>(end - begin);
      for (double x = title_width + (step - box_width) / 2; begin != end; ++begin, x += step) {
        begin->x = x;
      }
    }
  }

  void draw_legend() {
    double x = margin;
    for (const Style& style : styles) {
      const bool used = std::ranges::any_of(
          topology_.links, [&](const Link& link) { return link.kind == style.kind; });
      if (!used) continue;
      put("<line x1=\"{:.0f}\" y1=\"44\" x2=\"{:.0f}\" y2=\"44\" stroke=\"{}\" stroke-width=\"3\" "
          "stroke-dasharray=\"{}\"/><text x=\"{:.0f}\" y=\"48\">{}</text>\n",
          x, x + 24, style.colour, style.dash, x + 30, to_string(style.kind));
      x += 120;
    }
  }

  struct Bundle {
    std::uint64_t links = 0, down = 0;
    double rate = 0;
  };

  void draw_cables() {
    std::map<std::tuple<LinkKind, std::uint32_t, std::uint32_t>, Bundle> bundles;
    for (const Link& link : topology_.links) {
      const std::uint32_t a = box_of_[index(link.from)];
      const std::uint32_t b = box_of_[index(link.to)];
      Bundle& bundle = bundles[{link.kind, std::min(a, b), std::max(a, b)}];
      ++bundle.links;
      if (!link.up) ++bundle.down;
      bundle.rate += link.bandwidth.per_second() / 2;
    }
    for (const auto& [key, bundle] : bundles) {
      const auto [kind, a, b] = key;
      if (a == b) continue;
      const Style& style = *std::ranges::find(styles, kind, &Style::kind);
      const Box& from = boxes_[a];
      const Box& to = boxes_[b];
      const double width = std::min(6.0, 1 + 0.5 * std::log2(static_cast<double>(bundle.links)));
      const double x1 = from.x + box_width / 2, x2 = to.x + box_width / 2;
      const double y1 = from.y + box_height / 2, y2 = to.y + box_height / 2;
      // Within a row a line would run through the boxes between its ends: it swings below them.
      const double sag = from.y == to.y ? 30 + std::min(40.0, std::abs(x2 - x1) / 12) : 0;
      put("<path d=\"M{:.1f} {:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" "
          "stroke-width=\"{:.1f}\" stroke-opacity=\"{}\" stroke-dasharray=\"{}\"><title>{} to {}: "
          "{} {} cables, {} each way{}</title></path>\n",
          x1, y1, (x1 + x2) / 2, (y1 + y2) / 2 + 2 * sag, x2, y2, style.colour, width,
          bundle.down == bundle.links ? "0.15" : "0.55", style.dash, escaped(from.name),
          escaped(to.name), (bundle.links + 1) / 2, to_string(kind),
          to_string(Bandwidth{std::round(bundle.rate)}),
          bundle.down > 0 ? fmt::format(", {} down", (bundle.down + 1) / 2) : "");
    }
  }

  void draw_boxes() {
    for (const auto& [y, row] : titles_) {
      put("<text x=\"{:.0f}\" y=\"{:.0f}\" font-weight=\"bold\">{}</text>"
          "<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"#555555\">{} in all</text>\n",
          margin, y + 14, row->title, margin, y + 30, by_kind_[row->kind].size());
    }
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      const Box& box = boxes_[i];
      const Row& row = *std::ranges::find(rows, kinds_[i], &Row::kind);
      put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"4\" "
          "fill=\"{}\" stroke=\"#555555\"/>\n",
          box.x, box.y, box_width, box_height, row.fill);
      draw_line(box, box.name, box.below.empty() ? 21 : 14);
      if (!box.below.empty()) draw_line(box, box.below, 28);
    }
  }

  void draw_line(const Box& box, std::string_view line, double at) {
    // A long name is set smaller rather than cut.
    const double size = std::min(12.0, 1.6 * box_width / static_cast<double>(line.size()));
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        box.x + box_width / 2, box.y + at, size, escaped(line));
  }

  const Topology& topology_;
  std::map<VertexKind, std::vector<VertexId>> by_kind_;
  std::vector<std::uint32_t> box_of_;
  std::vector<Box> boxes_;
  std::vector<VertexKind> kinds_;  // Of the members of each box.
  std::vector<std::pair<double, const Row*>> titles_;
  std::size_t longest_row_ = 0;
  std::size_t single_ = most_single;
  fmt::memory_buffer text_;
};

}  // namespace

std::string topology_svg(const Topology& topology) {
  return Drawing(topology).draw();
}

}  // namespace flyover::io
