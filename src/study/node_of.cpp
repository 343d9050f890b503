#include "node_of.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "words.hpp"

namespace flyover {

namespace {

using namespace literals;

enum class Form : std::uint8_t {
  Board,     // The preset as it is.
  Tray,      // A part of the preset, a rack.
  Instinct,  // MI250X: two ranks per package.
  Grace,     // GH200.
  Chip       // TPU: one to a node.
};

struct Family {
  std::string_view word;  // Of the GPU's name, lower case.
  Form form;
  std::string_view preset;
  std::string_view efa_preset;  // AWS's node, when the network is EFA.
};

// "gb200" holds "b200", so the longer word comes first.
constexpr std::array families = {
    Family{"gb300", Form::Tray, "gb300-nvl72", ""},
    Family{"gb200", Form::Tray, "gb200-nvl72", ""},
    Family{"gh200", Form::Grace, "", ""},
    Family{"vr200", Form::Tray, "vr-nvl72", ""},
    Family{"rubin", Form::Tray, "vr-nvl72", ""},
    Family{"b300", Form::Board, "dgx-b300", "aws-p6-b300"},
    Family{"b200", Form::Board, "dgx-b200", "aws-p6-b200"},
    Family{"h800", Form::Board, "hgx-h800", ""},
    Family{"h200", Form::Board, "hgx-h200", "aws-p5en"},
    Family{"h100", Form::Board, "dgx-h100", "aws-p5"},
    Family{"h20", Form::Board, "hgx-h20", ""},
    Family{"a800", Form::Board, "hgx-a800", ""},
    Family{"a100", Form::Board, "dgx-a100", "aws-p4d"},
    Family{"v100", Form::Board, "dgx-1v", ""},
    Family{"mi355", Form::Board, "mi355x-8", ""},
    Family{"mi350", Form::Board, "mi350x-8", ""},
    Family{"mi325", Form::Board, "mi325x-8", ""},
    Family{"mi300x", Form::Board, "mi300x-8", ""},
    Family{"mi250", Form::Instinct, "", ""},
    Family{"tpu-v4", Form::Chip, "tpu-v4", ""},
    Family{"tpu v4", Form::Chip, "tpu-v4", ""},
    Family{"tpu-v5p", Form::Chip, "tpu-v5p", ""},
    Family{"tpu v5p", Form::Chip, "tpu-v5p", ""},
};

// Cards for PCIe servers that the hardware facts lack (general knowledge: vendors' data sheets).
// Four links of 14.0625 GB/s join two A40s, A6000s or 3090s.
struct Card {
  std::string_view word;
  std::string_view architecture;
  int pcie_generation;
  std::uint32_t bridge_lanes;
  double lane_GBps;  // NOLINT(readability-identifier-naming)
  std::uint32_t sms;
  std::string_view preset = "";  // Of the GPU, where there is one.
};
constexpr std::array cards = {
    Card{"l40s", "ada", 4, 0, 0, 142, "L40S"},
    Card{"l40", "ada", 4, 0, 0, 142},
    Card{"l4", "ada", 4, 0, 0, 58},
    Card{"a6000", "ampere", 4, 4, 14.0625, 84},
    Card{"a40", "ampere", 4, 4, 14.0625, 84},
    Card{"a30", "ampere", 4, 4, 25, 56},
    Card{"a10", "ampere", 4, 0, 0, 72},
    Card{"4090", "ada", 4, 0, 0, 128},
    Card{"3090", "ampere", 4, 4, 14.0625, 82},
    Card{"t4", "turing", 3, 0, 0, 40},
};

template <class Map>
const typename Map::mapped_type& entry(const Map& map, std::string_view name) {
  const auto found = map.find(std::string(name));
  if (found == map.end()) throw InputError(fmt::format("the catalogue has no \"{}\"", name));
  return found->second;
}

Bandwidth pcie_x16(int generation) {
  switch (generation) {
    case 3:
      return Bandwidth{15.75e9};
    case 4:
      return Bandwidth{31.5e9};
    case 5:
      return Bandwidth{63e9};
    default:
      return Bandwidth{121e9};
  }
}

struct Match {
  std::size_t at = std::string::npos;
  const Family* family = nullptr;
};

// Every GPU that the text names, in order of the text.
std::vector<Match> matches(std::string_view text) {
  std::vector<Match> found;
  std::string rest(text);
  for (const Family& family : families) {
    for (std::size_t at = rest.find(family.word); at != std::string::npos;
         at = rest.find(family.word)) {
      found.push_back({at, &family});
      std::fill_n(rest.begin() + static_cast<std::ptrdiff_t>(at), family.word.size(), '#');
    }
  }
  std::ranges::sort(found, {}, &Match::at);
  return found;
}

struct Guess {
  double value;
  std::string_view word;
};
constexpr std::array nvlink_guesses = {Guess{2, "v100"}, Guess{3, "a100"}, Guess{4, "h100"},
                                       Guess{5, "b200"}, Guess{6, "rubin"}};
constexpr std::array nic_guesses = {Guess{100e9, "v100"}, Guess{200e9, "a100"},
                                    Guess{400e9, "h100"}, Guess{800e9, "b300"}};

template <class Guesses>
const Family* guess(const Guesses& guesses, double value) {
  const auto found = std::ranges::find(guesses, value, &Guess::value);
  if (found == guesses.end()) return nullptr;
  return std::ranges::find(families, found->word, &Family::word);
}

// By its NVLink generation, else by the NICs that come with it.
const Family* guess_family(const MeasuredSystem& system) {
  if (system.nvlink_generation) return guess(nvlink_guesses, *system.nvlink_generation);
  if (system.nic_per_gpu) return guess(nic_guesses, system.nic_per_gpu->per_second() * 8);
  return nullptr;
}

// Whether collectives see no difference between two nodes.
bool alike(const NodeSpec& a, const NodeSpec& b) {
  return a.gpu.architecture == b.gpu.architecture && a.gpu.scale_up == b.gpu.scale_up &&
         a.scale_up == b.scale_up && a.lane_bandwidth == b.lane_bandwidth &&
         a.links_per_switch == b.links_per_switch && a.mesh_lanes == b.mesh_lanes;
}

bool bridged(const Measurement& measurement, std::string_view fabric) {
  return measurement.system.nvlink_generation || mentions(fabric, {"bridge", "nvlink"});
}

// Two-socket PCIe server, from general knowledge as the preset says.
NodeSpec card_server(const HardwareCatalogue& catalogue, GpuModel gpu, bool with_bridges,
                     int generation, std::vector<std::string>& assumptions) {
  NodeSpec spec = entry(catalogue.nodes, with_bridges ? "pcie-8-bridged" : "pcie-8");
  spec.name = lower_case(gpu.name) + (with_bridges ? "-bridged" : "-pcie");
  spec.gpu = std::move(gpu);
  spec.pcie_bandwidth = pcie_x16(generation);
  if (!with_bridges) spec.gpu.scale_up = fmt::format("pcie{}", generation);
  assumptions.emplace_back("PCIe server of two sockets with two PCIe switches each");
  return spec;
}

// As RCCL's dump of a 16-rank node has it: seven links of 50 GB/s from a package's even die, six
// from its odd one; which pairs they join is general knowledge.
NodeSpec mi250x_node(const HardwareCatalogue& catalogue) {
  NodeSpec spec = entry(catalogue.nodes, "mi300x-8");
  const GpuModel& package = entry(catalogue.gpus, "MI250X");
  spec.name = "mi250x-8";
  spec.gpu = package;
  spec.gpu.name = "MI250X-GCD";
  spec.gpu.sms = package.sms / 2;
  spec.gpu.memory = Bytes{package.memory.count() / 2};
  spec.gpu.memory_bandwidth = package.memory_bandwidth * 0.5;
  for (auto& [type, rate] : spec.gpu.flops) rate = rate * 0.5;
  spec.scale_up = ScaleUp::Explicit;
  spec.mesh_lanes = 0;
  spec.lane_bandwidth = 50_GBps;
  spec.scale_up_links = {{0, 1, 4}, {2, 3, 4}, {4, 5, 4}, {6, 7, 4}, {0, 6, 2}, {2, 4, 2},
                         {0, 2, 1}, {4, 6, 1}, {1, 3, 1}, {5, 7, 1}, {1, 5, 1}, {3, 7, 1}};
  spec.pcie_bandwidth = pcie_x16(4);
  return spec;
}

// Up to four Grace Hoppers share a board, six links to each other; else each is its own node.
NodeSpec gh200_node(const Measurement& measurement, const HardwareCatalogue& catalogue) {
  NodeSpec spec = entry(catalogue.nodes, "dgx-h100");
  spec.name = "gh200";
  spec.gpu = entry(catalogue.gpus, "GH200-96GB");
  spec.gpus = std::clamp(measurement.system.gpus_per_node.value_or(1), 1U, 4U);
  spec.links_per_switch.clear();
  spec.scale_up = spec.gpus > 1 ? ScaleUp::Mesh : ScaleUp::None;
  spec.mesh_lanes = spec.gpus > 1 ? 6 : 0;
  spec.in_switch_reduction = false;
  spec.pcie_switches = spec.gpus;
  spec.cpus = spec.gpus;
  spec.nics = spec.gpus;
  return spec;
}

NodeSpec board(const Measurement& measurement, const HardwareCatalogue& catalogue,
               const Family& family, std::string_view gpu, std::string_view fabric) {
  const bool efa =
      mentions(fabric, {"efa"}) || mentions(lower_case(measurement.system.nic), {"efa"});
  const std::uint32_t per_node = measurement.system.gpus_per_node.value_or(8);
  if (family.word == "v100" && per_node > 8) return entry(catalogue.nodes, "dgx-2");
  NodeSpec spec =
      entry(catalogue.nodes, efa && !family.efa_preset.empty() ? family.efa_preset : family.preset);
  if (family.word == "a100" && mentions(gpu, {"40"})) {
    spec.gpu = entry(catalogue.gpus, "A100-SXM-40GB");
  }
  if (family.word == "h100" && mentions(gpu, {"hbm2e"})) {
    spec.gpu = entry(catalogue.gpus, "H100-SXM-HBM2e-500W");
  }
  return spec;
}

bool is_card(std::string_view gpu) {
  return mentions(gpu, {"pcie", "pci-e", "h100-nvl", "h100 nvl", "h200-nvl", "h200 nvl"});
}

std::optional<NodeSpec> card(const Measurement& measurement, const HardwareCatalogue& catalogue,
                             std::string_view gpu, std::string_view fabric,
                             std::vector<std::string>& assumptions) {
  const auto found =
      std::ranges::find_if(cards, [&](const Card& c) { return mentions(gpu, {c.word}); });
  if (found == cards.end()) return std::nullopt;
  GpuModel model = entry(catalogue.nodes, "pcie-8").gpu;
  model.name = measurement.system.gpu;
  model.architecture = found->architecture;
  model.sms = found->sms;
  if (!found->preset.empty()) model = entry(catalogue.gpus, found->preset);
  model.scale_up = "nvlink3";
  const bool bridges = found->bridge_lanes > 0 && bridged(measurement, fabric);
  NodeSpec spec =
      card_server(catalogue, std::move(model), bridges, found->pcie_generation, assumptions);
  if (bridges) {
    spec.mesh_lanes = found->bridge_lanes;
    spec.lane_bandwidth = Bandwidth{found->lane_GBps * 1e9};
  }
  return spec;
}

}  // namespace

FoundNode node_of(const Measurement& measurement, const HardwareCatalogue& catalogue,
                  std::vector<std::string>& assumptions) {
  const std::string gpu = lower_case(measurement.system.gpu);
  const std::string fabric = lower_case(measurement.system.fabric);
  const std::vector<Match> named = matches(gpu);

  FoundNode found;
  const Family* family = named.empty() ? nullptr : named.front().family;
  if (family == nullptr) {
    if (auto spec = card(measurement, catalogue, gpu, fabric, assumptions)) {
      found.spec = std::move(*spec);
      return found;
    }
    const bool unnamed = gpu.empty() || mentions(gpu, {"not stated", "unknown"});
    if (unnamed) family = guess_family(measurement.system);
    if (family == nullptr && unnamed) throw InputError("the GPU is not stated");
    if (family == nullptr) {
      throw InputError(
          fmt::format("there are no hardware facts of the GPU \"{}\"", measurement.system.gpu));
    }
    found.ambiguous = fmt::format("the GPU is not stated, {} is assumed", family->preset);
  }
  for (const Match& match : named) {
    if (match.family->preset == family->preset) continue;
    const bool same =
        match.family->form == Form::Board && family->form == Form::Board &&
        alike(entry(catalogue.nodes, match.family->preset), entry(catalogue.nodes, family->preset));
    std::string text = fmt::format("\"{}\" is taken as {}", measurement.system.gpu, family->preset);
    if (same) {
      assumptions.push_back(std::move(text));
    } else {
      found.ambiguous = std::move(text);
    }
  }

  switch (family->form) {
    case Form::Board:
      if (is_card(gpu)) {
        const NodeSpec& sxm = entry(catalogue.nodes, family->preset);
        const bool hopper = sxm.gpu.architecture == "hopper";
        GpuModel model = hopper ? entry(catalogue.gpus, "H100-PCIe") : sxm.gpu;
        found.spec = card_server(catalogue, std::move(model),
                                 mentions(gpu, {"nvl"}) || bridged(measurement, fabric),
                                 hopper ? 5 : 4, assumptions);
      } else {
        found.spec = board(measurement, catalogue, *family, gpu, fabric);
      }
      break;
    case Form::Tray: {
      const bool rubin = family->preset == "vr-nvl72";
      const bool eight = measurement.system.gpus_per_node.value_or(4) == 8;
      if (rubin && eight && !mentions(fabric, {"nvl72"})) {
        found.spec = entry(catalogue.nodes, "hgx-rubin-nvl8");
      } else {
        found.spec = entry(catalogue.nodes, family->preset);
        found.tray = true;
      }
      break;
    }
    case Form::Instinct:
      found.spec = mi250x_node(catalogue);
      assumptions.emplace_back("links between the dies of MI250X from general knowledge");
      break;
    case Form::Grace:
      found.spec = gh200_node(measurement, catalogue);
      break;
    case Form::Chip:
      found.spec = entry(catalogue.nodes, family->preset);
      break;
  }
  return found;
}

}  // namespace flyover
