#include "recorded_cluster.hpp"

#include <algorithm>
#include <regex>

#include <fmt/format.h>

#include "words.hpp"

namespace flyover {

namespace {

constexpr std::uint32_t rack_gpus = 72;
constexpr std::uint32_t tray_gpus = 4;

struct Nics {
  std::string ports;  // "8x400G", of a node.
  std::optional<double> gigabits_per_gpu;
};

// Submitters list storage and management too: "Storage: 2x ..., Compute: 8x ..., Management: ...".
std::string compute_part(const std::string& text) {
  static const std::regex compute(R"(Compute:([^:]*)(?:,[^,:]*:|$))");
  std::smatch found;
  return std::regex_search(text, found, compute) ? found[1].str() : text;
}

Nics nics_of(const std::string& words, std::uint32_t gpus_per_node) {
  static const std::regex gigabytes(R"((\d+)x\s*([\d.]+)\s*GB/s)");
  static const std::regex per_gpu(R"((?:^|[^-\d.])([\d.]+)\s*Gb(?:/s|ps) per GPU)");
  static const std::regex per_node(
      R"((?:^|[^-\d.x])([\d.]+)\s*Gb(?:/s|ps)\s*(?:per node|node-node))");
  static const std::regex ports(R"((\d+)x[^,;+]*?([\d.]+)\s*Gb)");
  const std::string text = compute_part(words);
  std::smatch found;
  const auto counted = [&](double rate) {
    const std::uint32_t count = static_cast<std::uint32_t>(std::stoul(found[1]));
    return Nics{fmt::format("{}x{:.0f}G", count, rate), count * rate / gpus_per_node};
  };
  if (std::regex_search(text, found, gigabytes)) return counted(8 * std::stod(found[2]));
  if (std::regex_search(text, found, per_gpu)) return {"", std::stod(found[1])};
  if (std::regex_search(text, found, ports)) return counted(std::stod(found[2]));
  if (std::regex_search(text, found, per_node)) return {"", std::stod(found[1]) / gpus_per_node};
  return {};
}

std::string network_of(const std::string& words, std::vector<std::string>& assumptions) {
  const std::string text = lower_case(words);
  if (mentions(text, {"efa"})) return "EFA";
  if (mentions(text, {"omni-path"})) {
    assumptions.emplace_back("Omni-Path is taken as InfiniBand of its rate");
    return "InfiniBand";
  }
  if (mentions(text, {"infiniband", " ib ", "ndr", "hdr"})) return "InfiniBand";
  if (mentions(text, {"roce", "ethernet"})) return "RoCE";
  return "";
}

// Racks share the GPUs equally and in whole trays, where the number allows it.
std::uint32_t racks_of(std::uint32_t gpus) {
  const std::uint32_t least = (gpus + rack_gpus - 1) / rack_gpus;
  for (std::uint32_t racks = least; racks * tray_gpus <= gpus; ++racks) {
    if (gpus % (racks * tray_gpus) == 0) return racks;
  }
  return least;
}

// A node with as many GPUs as take part in it, and their share of everything else.
void shrink(NodeSpec& node, std::uint32_t gpus) {
  if (gpus == node.gpus || node.scale_up == ScaleUp::Explicit || node.scale_up == ScaleUp::Pairs) {
    return;
  }
  const auto share = [&](std::uint32_t count) {
    return (count * gpus + node.gpus - 1) / node.gpus;
  };
  node.nics = share(node.nics);
  node.pcie_switches = share(node.pcie_switches);
  node.cpus = share(node.cpus);
  if (node.cpus_per_board != 0 && node.cpus % node.cpus_per_board != 0) node.cpus_per_board = 0;
  if (!node.nic_rail.empty()) node.nic_rail.resize(node.nics);
  const auto beyond = [&](std::uint32_t place) { return place >= node.pcie_switches; };
  if (!node.nic_pcie_switch.empty()) {
    node.nic_pcie_switch.resize(node.nics);
    if (std::ranges::any_of(node.nic_pcie_switch, beyond)) node.nic_pcie_switch.clear();
  }
  node.gpus = gpus;
}

}  // namespace

MeasuredCluster recorded_cluster(const TrainingRecord& record, const std::string& date,
                                 const HardwareCatalogue& catalogue) {
  const RecordedHardware& hardware = record.hardware;
  std::vector<std::string> assumptions;
  Measurement measurement;
  measurement.date = date;
  measurement.gpus = *hardware.gpus;
  MeasuredSystem& system = measurement.system;
  system.gpu = hardware.gpu;
  system.gpus_per_node = hardware.gpus_per_node;
  system.nodes = hardware.nodes;
  const Nics nics = nics_of(hardware.nic, hardware.gpus_per_node.value_or(8));
  system.nic = nics.ports;
  if (nics.gigabits_per_gpu) system.nic_per_gpu = Bandwidth{*nics.gigabits_per_gpu * 1e9 / 8};
  system.fabric = network_of(hardware.nic, assumptions);
  if (mentions(lower_case(hardware.gpu), {"nvl72"})) {
    system.fabric = fmt::format("{}x NVL72 {}", racks_of(measurement.gpus), system.fabric);
  }
  MeasuredCluster built = measured_cluster(measurement, catalogue);
  NodeGroup& group = built.cluster.nodes.front();
  if (measurement.gpus % group.count == 0) shrink(group.spec, measurement.gpus / group.count);
  built.assumptions.insert(built.assumptions.begin(), assumptions.begin(), assumptions.end());
  return built;
}

}  // namespace flyover
