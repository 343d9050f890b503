#include "flyover/study/measured_cluster.hpp"

#include <algorithm>
#include <cmath>
#include <regex>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "node_of.hpp"
#include "words.hpp"

namespace flyover {

namespace {

struct Layout {
  std::uint32_t nodes = 1;    // As measured: servers, trays.
  std::uint32_t domains = 1;  // As built.
  bool isolated = false;      // GPUs of a node talk through NICs only.
};

double gigabits(Bandwidth rate) {
  return rate.per_second() * 8e-9;
}

std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) {
  return (a + b - 1) / b;
}

std::uint32_t node_count(const Measurement& measurement, std::vector<std::string>& assumptions) {
  const MeasuredSystem& system = measurement.system;
  if (system.nodes) return *system.nodes;
  const std::uint32_t per_node = system.gpus_per_node.value_or(8);
  const std::uint32_t nodes = divide_up(measurement.gpus, per_node);
  if (measurement.gpus > per_node || !system.gpus_per_node) {
    assumptions.push_back(fmt::format("{} nodes of {} GPUs", nodes, per_node));
  }
  return nodes;
}

bool peers_disabled(const Measurement& measurement, std::string_view fabric) {
  return mentions(fabric, {"p2p off", "ib_only"}) ||
         mentions(lower_case(measurement.environment), {"nccl_p2p_disable=1", "ib_only"});
}

Layout layout_of(const Measurement& measurement, const FoundNode& node,
                 std::vector<std::string>& assumptions) {
  const std::string fabric = lower_case(measurement.system.fabric);
  Layout layout;
  layout.nodes = node_count(measurement, assumptions);
  layout.domains = layout.nodes;
  if (peers_disabled(measurement, fabric) && measurement.system.nic_per_gpu) {
    layout.isolated = true;
    layout.domains = measurement.gpus;
    assumptions.emplace_back("peer access is off: every GPU is a domain of its own");
  } else if (node.tray) {
    const std::uint32_t racks = divide_up(measurement.gpus, node.spec.gpus);
    // A rack is what such trays are sold in; a network alone says that the run left it out.
    const bool through_network = mentions(fabric, {"infiniband", "roce", "efa", "ethernet"});
    const bool joined = mentions(fabric, {"nvl72", "mnnvl", "nvlink", "imex", "rack"});
    if (const auto counted = domain_count(fabric)) {
      layout.domains = *counted;
    } else if (mentions(fabric, {"mnnvl off"}) || (through_network && !joined)) {
      if (layout.nodes > 1) {
        assumptions.emplace_back("NVLink ends at the tray, as no rack is spoken of");
      }
    } else {
      layout.domains = racks;
      if (layout.nodes > 1) {
        assumptions.push_back(fmt::format("{} trays in {} NVLink domain{}", layout.nodes, racks,
                                          racks == 1 ? "" : "s"));
      }
    }
  }
  return layout;
}

// More GPUs than the preset has: a larger board of the same kind.
void enlarge(NodeSpec& spec, std::uint32_t gpus, std::vector<std::string>& assumptions) {
  if (gpus <= spec.gpus) return;
  if (spec.scale_up != ScaleUp::Switched && spec.scale_up != ScaleUp::None) {
    throw InputError(
        fmt::format("{} GPUs do not fit into one {} of {}", gpus, spec.name, spec.gpus));
  }
  assumptions.push_back(fmt::format("{} with {} GPUs instead of {}", spec.name, gpus, spec.gpus));
  const auto grown = [&](std::uint32_t count) { return divide_up(count * gpus, spec.gpus); };
  spec.pcie_switches = grown(spec.pcie_switches);
  spec.nics = grown(spec.nics);
  spec.nic_pcie_switch.clear();
  spec.nic_rail.clear();
  spec.gpus = gpus;
}

// The preset's NICs as long as they give the stated rate per GPU; else those the text counts; else
// one per GPU at that rate.
void equip_nics(const Measurement& measurement, const Layout& layout, NodeSpec& spec,
                std::vector<std::string>& assumptions) {
  if (layout.domains < 2) return;
  const MeasuredSystem& system = measurement.system;
  const auto set_nics = [&](std::uint32_t count, Bandwidth rate) {
    if (count != spec.nics) {
      spec.nic_pcie_switch.clear();
      spec.nic_rail.clear();
    }
    spec.nics = count;
    spec.nic_bandwidth = rate;
  };
  if (!system.nic_per_gpu) {
    if (spec.nics == 0) throw InputError(fmt::format("no NICs are known of {}", spec.name));
    assumptions.push_back(fmt::format("NICs of {}: {} x {:g} Gb/s a node", spec.name, spec.nics,
                                      gigabits(spec.nic_bandwidth)));
    return;
  }
  if (layout.isolated) return set_nics(1, *system.nic_per_gpu);

  const double per_gpu = gigabits(*system.nic_per_gpu);
  const auto close = [](double a, double b) { return std::abs(a - b) <= 0.02 * b; };
  const std::uint32_t used = system.gpus_per_node.value_or(spec.gpus);
  const auto counted = port_count(system.nic);
  const bool fits = close(spec.nics * gigabits(spec.nic_bandwidth), spec.gpus * per_gpu);
  if (fits && (!counted || counted->ports * spec.gpus != spec.nics * used * 2)) return;
  if (counted) {
    const double whole = static_cast<double>(counted->ports) * spec.gpus / used;
    if (close(counted->ports * counted->gigabits, used * per_gpu) && whole == std::floor(whole)) {
      return set_nics(static_cast<std::uint32_t>(whole), Bandwidth{counted->gigabits * 1e9 / 8});
    }
  }
  assumptions.push_back(fmt::format("one NIC of {:g} Gb/s per GPU", per_gpu));
  set_nics(spec.gpus, *system.nic_per_gpu);
}

// The generation of that family whose rate is nearest.
const FabricSpec* nearest_network(const HardwareCatalogue& catalogue,
                                  std::initializer_list<std::string_view> family, Bandwidth rate) {
  const FabricSpec* best = nullptr;
  double least = 0;
  for (const auto& [name, network] : catalogue.networks) {
    const auto begins = [&word = name](auto prefix) { return word.starts_with(prefix); };
    if (std::ranges::none_of(family, begins)) continue;
    const double off = std::abs(std::log(network.link_bandwidth.per_second() / rate.per_second()));
    if (best == nullptr || off < least) {
      best = &network;
      least = off;
    }
  }
  return best;
}

FabricSpec fabric_of(const Measurement& measurement, const NodeSpec& node, std::uint32_t domains,
                     const HardwareCatalogue& catalogue, std::vector<std::string>& assumptions) {
  const std::string text = lower_case(measurement.system.fabric + " " + measurement.system.nic);
  const Bandwidth rate = node.nic_bandwidth;
  const FabricSpec* network = nullptr;
  if (mentions(text, {"efa"})) {
    const auto own = catalogue.networks.find(node.network);
    network = own != catalogue.networks.end() && node.network.starts_with("efa")
                  ? &own->second
                  : nearest_network(catalogue, {"efa"}, rate);
  } else if (mentions(text, {"tcpx"})) {
    network = nearest_network(catalogue, {"tcpx"}, rate);
  } else if (mentions(text, {"slingshot"})) {
    network = nearest_network(catalogue, {"slingshot"}, rate);
  } else if (mentions(text, {"roce", "ethernet", "spectrum", "gib", "pollara"})) {
    network = nearest_network(catalogue, {"roce"}, rate);
  } else {
    network = nearest_network(catalogue, {"edr", "hdr", "ndr", "xdr"}, rate);
    const bool stated = mentions(text, {"infiniband", "ib ", "ib_", "ndr", "hdr", "edr", "xdr"}) ||
                        text.starts_with("ib") || text.ends_with("ib");
    if (!stated) assumptions.emplace_back("the network is not stated, InfiniBand is assumed");
  }
  require(network != nullptr, "a catalogue with every kind of network");
  FabricSpec fabric = *network;
  fabric.kind = FabricKind::RailOptimized;
  fabric.link_bandwidth = {};  // As the NICs have it.
  fabric.nodes_per_unit = std::min(32U, domains);
  // No source tells its switches: they have the ports that 32 nodes and a rail of every NIC need.
  fabric.radix = std::max({fabric.radix, 64U, 2 * node.nics});
  return fabric;
}

// Extents of a torus of `chips`, as near to a cube as they divide.
std::vector<std::uint32_t> cube(std::uint32_t chips) {
  std::vector<std::uint32_t> extents;
  std::uint32_t rest = chips;
  for (std::uint32_t dimension = 3; dimension > 1; --dimension) {
    const auto root =
        static_cast<std::uint32_t>(std::floor(std::pow(rest, 1.0 / dimension) + 1e-9));
    std::uint32_t extent = std::max(root, 1U);
    while (rest % extent != 0) --extent;
    extents.push_back(extent);
    rest /= extent;
  }
  extents.push_back(rest);
  return extents;
}

// Equal shares of every domain, its first GPUs, or those that CUDA_VISIBLE_DEVICES lists.
std::vector<std::uint32_t> used_ranks(const Measurement& measurement, const Layout& layout,
                                      const NodeSpec& node) {
  const std::uint32_t share = divide_up(measurement.gpus, layout.domains);
  if (share > node.gpus) {
    throw InputError(fmt::format("{} GPUs do not fit into {} x {} of {}", measurement.gpus,
                                 layout.domains, node.name, node.gpus));
  }
  std::vector<std::uint32_t> local;
  std::smatch visible;
  static const std::regex devices(R"(CUDA_VISIBLE_DEVICES=([0-9,]*[0-9]))");
  if (std::regex_search(measurement.environment, visible, devices)) {
    local = parse_index_list(visible[1].str(), node.gpus);
  }
  if (local.size() != share) {
    local.resize(share);
    for (std::uint32_t i = 0; i < share; ++i) local[i] = i;
  }
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t domain = 0; domain < layout.domains; ++domain) {
    for (const std::uint32_t gpu : local) {
      if (ranks.size() < measurement.gpus) ranks.push_back(domain * node.gpus + gpu);
    }
  }
  return ranks;
}

// The minor version in "2.18.5+cuda12.2" or "RCCL 2.27.7 (ROCm 7.1)": both libraries are at 2. That
// of nccl-tests says nothing, nor does "not stated (2026, new format)".
std::optional<int> version_in(const std::string& text) {
  if (text.starts_with("not stated")) return std::nullopt;
  static const std::regex tests(R"(nccl-tests\s+[0-9.]+)");
  static const std::regex version(R"((?:^|[^0-9.])2\.(\d{1,3}))");
  const std::string stated = std::regex_replace(text, tests, "");
  std::smatch found;
  if (!std::regex_search(stated, found, version)) return std::nullopt;
  return std::stoi(found[1]);
}

// The last month that a date allows, as "2023-12": "2023-12-13", "2023-2024 (repo)".
std::string month_of(const std::string& date) {
  static const std::regex month(R"((20\d\d)(?:-(0[1-9]|1[0-2])(?!\d))?)");
  std::smatch found;
  if (!std::regex_search(date, found, month)) return "";
  return fmt::format("{}-{}", found[1].str(), found[2].matched ? found[2].str() : "12");
}

// MSCCL++ has a library of its own; what it does on other chips is not measured.
bool runs_mscclpp(const Measurement& measurement, const NodeSpec& node) {
  return mentions(lower_case(measurement.library), {"msccl++", "mscclpp"}) &&
         !node.gpu.architecture.starts_with("cdna");
}

// The newest shipped version that is not newer than the stated one, else than the record; without
// any, the oldest.
std::string library_of(const Measurement& measurement, const NodeSpec& node,
                       const HardwareCatalogue& catalogue, std::vector<std::string>& assumptions) {
  std::string family = "nccl";
  if (node.gpu.architecture.starts_with("cdna")) family = "rccl";
  if (node.gpu.architecture == "tpu") family = "ideal";
  const bool mscclpp = runs_mscclpp(measurement, node);
  if (mscclpp) family = "mscclpp";
  const auto stated = mscclpp ? std::nullopt : version_in(measurement.nccl);
  const std::string until = stated ? "" : month_of(measurement.date);
  std::string oldest;
  std::string best;
  for (const auto& [name, library] : catalogue.libraries) {
    if (!name.starts_with(family)) continue;
    const auto own = version_in(library.version).value_or(0);
    const auto older_than = [&](const std::string& other) {
      return own < version_in(catalogue.libraries.at(other).version).value_or(0);
    };
    if (oldest.empty() || older_than(oldest)) oldest = name;
    if (stated && family != "ideal" && own > *stated) continue;
    if (!until.empty() && library.released > until) continue;
    if (best.empty() || !older_than(best)) best = name;
  }
  require(!oldest.empty(), "a catalogue with NCCL, RCCL, MSCCL++ and ideal libraries");
  const std::string name = best.empty() ? oldest : best;
  if (stated && version_in(catalogue.libraries.at(name).version) != stated) {
    assumptions.push_back(fmt::format("{} stands for {}", name, measurement.nccl));
  } else if (!stated && family == "nccl") {
    assumptions.push_back(
        until.empty() ? fmt::format("the version of NCCL is not stated: {}", name)
                      : fmt::format("the version of NCCL is not stated: {}, after the date", name));
  }
  return name;
}

// How the record says that collectives were started, in the words of the library's stacks.
std::string stack_of(const Measurement& measurement, const Library& library) {
  const std::string notes = lower_case(measurement.notes);
  // nccl-tests -g 8, "G 8" in some logs' headings; "one process per GPU" is the usual way.
  static const std::regex one_process(
      R"(-g [48]|\bg [48]\b|one process(?! per)|single[- ]process|threads in one)");
  std::string stack;
  if (mentions(lower_case(measurement.environment) + " " + notes, {"cuda graph"})) stack = "graph";
  if (std::regex_search(notes, one_process)) stack = "one-process";
  // That benchmark waits for each call in Python; what others start from PyTorch is timed on the
  // GPU.
  const std::string told = lower_case(measurement.source) + " " + notes;
  if (mentions(told, {"ml-engineering", "all_reduce_bench.py"})) stack = "pytorch";
  const bool known =
      std::ranges::find(library.stacks, stack, &StackRule::name) != library.stacks.end();
  return known ? stack : "";
}

std::vector<std::pair<std::string, std::string>> variables_of(
    const Measurement& measurement, std::vector<std::string>& assumptions) {
  std::vector<std::pair<std::string, std::string>> variables;
  const std::vector<std::string> known = known_variables();
  const std::string& text = measurement.environment;
  // A value may be a list, "Ring,Tree", and a comma may also lead to the next variable.
  static const std::regex assignment(R"((NCCL_[A-Z0-9_]+)=([^\s;]+?)(?=,*(?:[\s;]|$|,NCCL_)))");
  std::string unused;
  for (std::sregex_iterator match(text.begin(), text.end(), assignment), end; match != end;
       ++match) {
    const std::string name = (*match)[1];
    const std::string value = (*match)[2];
    if (name == "NCCL_TREE_THRESHOLD" && value == "0") {  // How NCCL 2.4 turned its trees off.
      variables.emplace_back("NCCL_ALGO", "Ring");
      continue;
    }
    if (std::ranges::find(known, name) == known.end()) {
      unused += (unused.empty() ? "" : ", ") + name;
      continue;
    }
    try {
      LibrarySettings settings;
      set_variable(settings, name, value);
      variables.emplace_back(name, value);
    } catch (const InputError&) {
      unused += fmt::format("{}{}={}", unused.empty() ? "" : ", ", name, value);
    }
  }
  if (!unused.empty()) assumptions.push_back("no effect here: " + unused);

  static const std::regex selected(R"((Ring|Tree|NVLSTree|NVLS) selected)");
  std::smatch algorithm;
  if (std::regex_search(text, algorithm, selected)) {
    variables.emplace_back("NCCL_ALGO", algorithm[1]);
  }
  return variables;
}

// Other kernels than those of the libraries that we predict.
std::string foreign_kernels(const Measurement& measurement, const NodeSpec& node) {
  const std::string library = lower_case(measurement.library);
  if (runs_mscclpp(measurement, node)) {
    return mentions(library, {"scratch"})
               ? "copies through a scratch buffer, zero copy is predicted"
               : "";
  }
  if (!library.empty() && !mentions(library, {"nccl", "rccl"})) {
    return "kernels of " + measurement.library;
  }
  if (mentions(lower_case(measurement.nccl), {"mccl"})) return "kernels of " + measurement.nccl;
  const std::string notes = lower_case(measurement.notes);
  if (mentions(notes, {"custom"}) && mentions(notes, {"kernel"})) return "custom kernels";
  return "";
}

}  // namespace

MeasuredCluster measured_cluster(const Measurement& measurement,
                                 const HardwareCatalogue& catalogue) {
  MeasuredCluster built;
  std::vector<std::string>& assumptions = built.assumptions;
  FoundNode found = node_of(measurement, catalogue, assumptions);
  NodeSpec& node = found.spec;
  const Layout layout = layout_of(measurement, found, assumptions);
  const std::uint32_t per_node = divide_up(measurement.gpus, layout.nodes);
  if (measurement.system.gpus_per_node && per_node > *measurement.system.gpus_per_node) {
    throw InputError(fmt::format("{} GPUs contradict {} nodes of {}", measurement.gpus,
                                 layout.nodes, *measurement.system.gpus_per_node));
  }

  built.cluster.name = node.name;
  const bool chips = node.gpu.architecture == "tpu";
  if (chips) {
    built.cluster.fabric = catalogue.networks.at(node.name == "tpu-v4" ? "ici-v4" : "ici-v5p");
    built.cluster.fabric.kind = measurement.gpus > 1 ? FabricKind::Torus : FabricKind::None;
    built.cluster.fabric.torus = cube(measurement.gpus);
    built.cluster.nodes.push_back({node, measurement.gpus});
    assumptions.emplace_back("a torus as near to a cube as the chips divide");
  } else {
    if (!found.tray && !layout.isolated) enlarge(node, per_node, assumptions);
    if (layout.isolated) {
      node.gpus = 1;
      node.scale_up = ScaleUp::None;
      node.links_per_switch.clear();
      node.in_switch_reduction = false;
      node.pcie_switches = 1;
      node.cpus = 1;
      node.cpus_per_board = 0;
      node.nic_pcie_switch.clear();
      node.nic_rail.clear();
    }
    equip_nics(measurement, layout, node, assumptions);
    if (layout.domains > 1) {
      built.cluster.fabric = fabric_of(measurement, node, layout.domains, catalogue, assumptions);
    }
    built.cluster.nodes.push_back({node, layout.domains});
  }
  built.ranks = chips ? std::vector<std::uint32_t>() : used_ranks(measurement, layout, node);
  for (std::uint32_t chip = 0; chips && chip < measurement.gpus; ++chip) {
    built.ranks.push_back(chip);
  }
  built.library = library_of(measurement, node, catalogue, assumptions);
  built.stack = stack_of(measurement, catalogue.libraries.at(built.library));
  built.variables = variables_of(measurement, assumptions);
  built.not_comparable = foreign_kernels(measurement, node);
  if (built.not_comparable.empty()) built.not_comparable = found.ambiguous;
  return built;
}

}  // namespace flyover
