#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "flyover/collective/algorithms.hpp"
#include "flyover/io/expert_kernels_reader.hpp"
#include "flyover/io/expert_words.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/io/presets.hpp"
#include "flyover/io/stack_reader.hpp"
#include "flyover/layout/model.hpp"
#include "flyover/report/table.hpp"
#include "flyover/topology/builders.hpp"

namespace flyover::cli {

namespace {

std::string list_presets(std::size_t width) {
  const io::Presets presets;
  std::string out;
  constexpr std::array kinds = {
      std::pair{io::PresetKind::Node, "nodes: -t NAME or NAME:COUNT, \"node\" in a file"},
      std::pair{io::PresetKind::Cluster, "clusters: -t NAME or NAME:NODES"},
      std::pair{io::PresetKind::Network, "networks: \"preset\" of a \"fabric\""},
      std::pair{io::PresetKind::Gpu, "GPUs: \"gpu\" of a \"node\""}};
  for (const auto& [kind, title] : kinds) {
    TextTable table{{{"name", true}, {"what it is", true}, {"also", true}}, {}};
    for (const io::PresetInfo& preset : presets.list(kind)) {
      table.rows.push_back(
          {preset.name, preset.summary, fmt::format("{}", fmt::join(preset.aliases, ", "))});
    }
    out += fmt::format("{}{}\n{}", out.empty() ? "" : "\n", title, render(table, width));
  }
  return out;
}

std::string list_algorithms(std::size_t width) {
  TextTable table{{{"collective", true}, {"algorithm", true}, {"how it works", true}}, {}};
  for (const Algorithm& algorithm : algorithms()) {
    table.rows.push_back({std::string(to_string(algorithm.op)),
                          std::string(to_string(algorithm.id)), std::string(algorithm.summary)});
  }
  return render(table, width);
}

std::string list_fabrics(std::size_t width) {
  TextTable table{{{"fabric", true}, {"what it is", true}}, {}};
  for (const FabricInfo& fabric : fabrics()) {
    table.rows.push_back({std::string(fabric.name), std::string(fabric.summary)});
  }
  return render(table, width);
}

std::string list_formats(std::size_t width) {
  TextTable table{{{"format", true}, {"reads", true}, {"writes", true}, {"described in", true}},
                  {}};
  table.rows = {
      {"topology JSON", "run, bench, topo", "topo --json", "docs/formats/topology.md"},
      {"workload JSON", "run, compare", "", "docs/formats/workload.md"},
      {"model JSON", "plan, compare", "", "docs/formats/model.md"},
      {"stack JSON", "plan, compare", "", "docs/formats/stack.md"},
      {"plan JSON", "compare", "plan --json", "docs/formats/plan.md"},
      {"training results", "validate --training", "", "docs/formats/training-results.md"},
      {"result JSON", "compare", "run --json", "docs/formats/result.md"},
      {"bench JSON", "", "bench --json", "docs/formats/bench.md"},
      {"sweep JSON", "sweep", "", "docs/formats/sweep.md"},
      {"sweep database", "sweep --resume", "sweep -o", "docs/formats/sweep-database.md"},
      {"price list", "sweep", "", "docs/formats/prices.md"},
      {"expert kernels", "bench, run", "", "docs/formats/expert-kernels.md"},
      {"expert loads", "run", "", "docs/formats/expert-load.md"},
      {"CSV", "", "run --csv", "docs/formats/result.md"},
      {"Chrome trace", "", "run --timeline", "docs/formats/result.md"},
      {"DOT", "", "topo --dot", "docs/formats/topology.md"},
      {"GraphML", "", "topo --graphml", "docs/formats/topology.md"},
      {"SVG", "", "topo --svg", "docs/formats/topology.md"},
  };
  return render(table, width);
}

std::string list_stacks(std::size_t width) {
  TextTable table{{{"stack", true}, {"since", true}, {"what it is", true}}, {}};
  for (const SoftwareStack& stack : io::shipped_stacks()) {
    table.rows.push_back({stack.name, stack.date, stack.summary});
  }
  return render(table, width);
}

std::string billions(std::uint64_t parameters) {
  return fmt::format("{:.{}f} B", static_cast<double>(parameters) * 1e-9,
                     parameters < 10'000'000'000 ? 2 : 1);
}

std::string list_models(std::size_t width) {
  TextTable table{{{"name", true},
                   {"parameters"},
                   {"active"},
                   {"layers"},
                   {"hidden"},
                   {"heads/kv"},
                   {"FFN"},
                   {"experts"},
                   {"also", true}},
                  {}};
  for (const io::ShippedModel& shipped : io::shipped_models()) {
    const Model model = io::load_model(shipped.name);
    const ParameterCounts counts = parameter_counts(model);
    std::string ffn = model.ffn_hidden > 0 ? std::to_string(model.ffn_hidden) : "-";
    std::string experts = "-";
    if (model.experts) {
      experts = fmt::format("{} of {} x {}", model.experts->chosen, model.experts->count,
                            model.experts->hidden);
    }
    const Attention& attention = model.attention;
    table.rows.push_back(
        {model.name, billions(counts.total()), billions(counts.active(model)),
         std::to_string(model.layers), std::to_string(model.hidden),
         attention.latent ? fmt::format("{}/latent", attention.heads)
                          : fmt::format("{}/{}", attention.heads, attention.kv_heads),
         std::move(ffn), std::move(experts), fmt::format("{}", fmt::join(shipped.aliases, ", "))});
  }
  return render(table, width);
}

std::string list_expert_libraries(std::size_t width) {
  TextTable libraries{{{"library", true}, {"modes", true}, {"what it is", true}}, {}};
  for (const std::string& name : io::expert_kernels_names()) {
    const io::Document document = io::expert_kernels_document(name);
    const io::Field root = document.root();
    libraries.rows.push_back(
        {name, fmt::format("{}", fmt::join(root["modes"].keys(), ", ")), root["summary"].text()});
  }
  TextTable modes{{{"mode", true}, {"library", true}, {"how tokens travel", true}}, {}};
  constexpr std::array how = {
      std::pair{ExpertMode::Nccl, "a plain all-to-all, one copy per token and expert"},
      std::pair{ExpertMode::Normal,
                "one copy per node over the network, then one per GPU over NVLink; sums on the way "
                "back"},
      std::pair{ExpertMode::Direct, "one copy per GPU"},
      std::pair{ExpertMode::LowLatency, "one write per token and expert, no sums on the way"},
      std::pair{ExpertMode::Fused, "dispatch, both matrices and combine in one kernel"}};
  for (const auto& [mode, text] : how) {
    modes.rows.push_back({std::string(to_string(mode)), io::default_expert_library(mode), text});
  }
  return render(libraries, width) + '\n' + render(modes, width);
}

struct Kind {
  const char* name;
  std::string (*list)(std::size_t width);
};
constexpr std::array kinds = {
    Kind{"presets", list_presets},
    Kind{"models", list_models},
    Kind{"algorithms", list_algorithms},
    Kind{"fabrics", list_fabrics},
    Kind{"stacks", list_stacks},
    Kind{"formats", list_formats},
    Kind{"expert-libraries", list_expert_libraries},
};

class List final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("kind", kind_,
                   "presets, models, algorithms, fabrics, stacks, formats or expert-libraries")
        ->required()
        ->type_name("KIND");
  }

  void run(const Terminal& terminal) override {
    std::vector<std::string> names;
    for (const Kind& kind : kinds) {
      if (kind_ == kind.name) return print(kind.list(terminal.width));
      names.emplace_back(kind.name);
    }
    throw unknown_name("flyover list: no list of", kind_, names);
  }

 private:
  std::string kind_;
};

}  // namespace

std::unique_ptr<Command> make_list() {
  return std::make_unique<List>();
}

}  // namespace flyover::cli
