#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/base/version.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/topology_writer.hpp"
#include "flyover/report/table.hpp"
#include "flyover/topology/analysis.hpp"

namespace flyover::cli {

namespace {

// From the GPUs outwards.
constexpr std::array vertex_kinds = {
    VertexKind::Gpu,    VertexKind::NvSwitch, VertexKind::PcieSwitch, VertexKind::Cpu,
    VertexKind::Nic,    VertexKind::Leaf,     VertexKind::Spine,      VertexKind::Core,
    VertexKind::Switch, VertexKind::Host};

// "50 GB/s", to four digits.
std::string rate(Bandwidth bandwidth) {
  double value = bandwidth.per_second() / 1e9;
  const char* unit = "GB/s";
  for (const char* larger : {"TB/s", "PB/s"}) {
    if (value < 1000) break;
    value /= 1000;
    unit = larger;
  }
  return fmt::format("{:.4g} {}", value, unit);
}

std::string per_cable(const TierInfo& tier) {
  const std::string low = rate(tier.per_cable_low);
  const std::string high = rate(tier.per_cable_high);
  return low == high ? low : low + " to " + high;
}

std::string text(const Topology& topology, const TopologyInfo& info, std::size_t width) {
  std::string out = fmt::format("{}: {} GPUs", topology.name, topology.gpus.size());
  if (topology.fabric != "none") {
    out += fmt::format(", {} fabric{}, {} routing", topology.fabric,
                       topology.fabric_preset.empty() ? "" : " (" + topology.fabric_preset + ")",
                       to_string(topology.routing));
  }
  TextTable kinds{{{"kind", true}, {"count"}}, {}};
  const auto add_kind = [&](std::string_view kind) {
    const auto found = info.vertices.find(std::string(kind));
    if (found != info.vertices.end() && found->second > 0) {
      kinds.rows.push_back({found->first, std::to_string(found->second)});
    }
  };
  add_kind("node");
  for (const VertexKind kind : vertex_kinds) add_kind(to_string(kind));
  out += "\n\n" + render(kinds, width);

  TextTable tiers{{{"links", true}, {"cables"}, {"down"}, {"each, one way"}, {"all, one way"}}, {}};
  for (const TierInfo& tier : info.tiers) {
    tiers.rows.push_back({std::string(to_string(tier.kind)), std::to_string(tier.cables),
                          std::to_string(tier.down), per_cable(tier), rate(tier.total)});
  }
  if (!tiers.rows.empty()) out += '\n' + render(tiers, width);

  out += '\n';
  for (const auto& [tier, ratio] : info.oversubscription) {
    out += fmt::format("oversubscription of a {}: {:.4g} : 1\n", tier, ratio);
  }
  out += fmt::format("diameter: {} links\n", info.diameter);
  if (info.bisection_injection.per_second() > 0) {
    out += fmt::format("bisection: {}, {:.1f} % of what half of the GPUs can send ({})\n",
                       rate(info.bisection),
                       100 * (info.bisection.per_second() / info.bisection_injection.per_second()),
                       rate(info.bisection_injection));
  }
  for (const std::string& note : topology.notes) out += "assumed: " + note + '\n';
  return out;
}

std::string json(const io::TopologyInput& input, const TopologyInfo& info) {
  nlohmann::ordered_json out = {
      {"format", "flyover-topo-1"}, {"flyover", version()},
      {"topology", input.name},     {"digest", input.digest},
      {"counts", info.vertices},    {"links", nlohmann::ordered_json::array()}};
  for (const TierInfo& tier : info.tiers) {
    out["links"].push_back({{"kind", to_string(tier.kind)},
                            {"cables", tier.cables},
                            {"down", tier.down},
                            {"lowest_GBps", tier.per_cable_low.per_second() / 1e9},
                            {"highest_GBps", tier.per_cable_high.per_second() / 1e9},
                            {"total_GBps", tier.total.per_second() / 1e9}});
  }
  out["oversubscription"] = info.oversubscription;
  out["diameter"] = info.diameter;
  out["bisection_GBps"] = info.bisection.per_second() / 1e9;
  out["bisection_injection_GBps"] = info.bisection_injection.per_second() / 1e9;
  return out.dump(2) + '\n';
}

class Topo final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("topology", topology_, "A preset (dgx-h100, dgx-h100:16) or a file; - is stdin")
        ->required()
        ->type_name("TOPOLOGY");
    add_set_option(app, settings_);
    const auto add_file = [&](const char* option, std::string& path, const char* what) {
      app.add_option(option, path, what)->type_name("FILE");
    };
    add_file("--json", json_, "Write the graph as a topology file, every vertex and edge");
    add_file("--analysis", analysis_, "Write the counts and rates as JSON");
    add_file("--dot", dot_, "Write the graph for Graphviz");
    add_file("--graphml", graphml_, "Write the graph as GraphML");
    add_file("--svg", svg_, "Draw a picture");
  }

  void run(const Terminal& terminal) override {
    OutputFiles files;
    files.claim("--json", json_);
    files.claim("--analysis", analysis_);
    files.claim("--dot", dot_);
    files.claim("--graphml", graphml_);
    files.claim("--svg", svg_);
    const Settings settings = sort_settings(settings_);
    refuse_settings(settings.workload, "flyover topo reads no workload");
    refuse_settings(settings.library, "flyover topo reads no library");
    refuse_settings(settings.variables, "flyover topo reads no library");

    const io::TopologyInput input = io::load_topology_input(topology_, settings.topology);
    const TopologyInfo info = analyse(input.topology);
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(text(input.topology, info, terminal.width));
    }
    if (!info.connected) {
      throw SimulationError(fmt::format("{}: no path joins {} and {}", input.name,
                                        info.disconnected_from, info.disconnected_to));
    }
    files.put("--json", [&] { return io::topology_json(input.topology); });
    files.put("--analysis", [&] { return json(input, info); });
    files.put("--dot", [&] { return io::topology_dot(input.topology); });
    files.put("--graphml", [&] { return io::topology_graphml(input.topology); });
    files.put("--svg", [&] { return io::topology_svg(input.topology); });
    files.commit();
  }

 private:
  std::string topology_;
  std::vector<std::string> settings_;
  std::string json_;
  std::string analysis_;
  std::string dot_;
  std::string graphml_;
  std::string svg_;
};

}  // namespace

std::unique_ptr<Command> make_topo() {
  return std::make_unique<Topo>();
}

}  // namespace flyover::cli
