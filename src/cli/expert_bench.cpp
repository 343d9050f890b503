#include "cli/expert_bench.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/inputs.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/version.hpp"
#include "flyover/io/expert_kernels_reader.hpp"
#include "flyover/io/expert_words.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/report/table.hpp"

namespace flyover::cli {

namespace {

// As DeepEP's tests have them: a training batch, and a decode step.
constexpr std::uint32_t usual_tokens = 4096;
constexpr std::uint32_t usual_decode_tokens = 128;

std::string word_of(std::string_view option, const std::string& word,
                    const std::vector<std::string>& words) {
  if (std::ranges::find(words, word) != words.end()) return word;
  throw unknown_name(fmt::format("{}: there is no", option), word, words);
}

std::uint32_t whole_number(std::string_view option, const std::string& text) {
  std::uint32_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last || value == 0) {
    throw InputError(fmt::format("{}: expected a number above zero, got \"{}\"", option, text));
  }
  return value;
}

std::uint32_t nodes_of(const Topology& topology, std::uint32_t ep) {
  std::set<NodeId> nodes;
  for (std::uint32_t r = 0; r < ep; ++r) nodes.insert(topology.vertices[topology.gpus[r]].node);
  return static_cast<std::uint32_t>(nodes.size());
}

std::string megabytes(double bytes) {
  return fmt::format("{:.2f}", bytes * 1e-6);
}

nlohmann::ordered_json port_json(const PortBytes& port) {
  return {{"mean", port.mean}, {"most", port.most}};
}

}  // namespace

void ExpertBench::add_options(CLI::App& app) {
  const std::string group = "Exchanges of experts";
  const auto add = [&](CLI::Option* option) {
    option->group(group);
    options_.push_back(option);
    return option;
  };
  add(app.add_option("-m,--model", model_, "A model with experts: routing and sizes are its"))
      ->type_name("MODEL");
  add(app.add_option("--experts", experts_, "Routed experts"))->type_name("N");
  add(app.add_option("--chosen", chosen_, "Experts that a token is sent to"))->type_name("N");
  add(app.add_option("--gate", gate_, "top-k, group-sum-of-two, group-max or hash"))
      ->type_name("GATE");
  add(app.add_option("--groups", groups_, "Groups of experts; nodes: one per node"))
      ->type_name("N");
  add(app.add_option("--limit", limits_,
                     "Groups of which a token's experts may be, one table row each; none: any"))
      ->delimiter(',')
      ->type_name("N,...");
  add(app.add_option("--mode", mode_, "nccl, normal, direct, low-latency; moe_fused is fused"))
      ->type_name("MODE");
  add(app.add_option("--tokens", tokens_, "Of each rank [4096; low-latency 128]"))->type_name("N");
  add(app.add_option("--ep", sizes_, "Ranks of the group: the first so many GPUs, a row each"))
      ->delimiter(',')
      ->type_name("N,...");
  add(app.add_option("--hidden", hidden_, "Values of a token"))->type_name("N");
  add(app.add_option("--expert-hidden", expert_hidden_, "Of moe_fused: width of an expert"))
      ->type_name("N");
  add(app.add_option("--efficiency", efficiency_,
                     "Of moe_fused: share of peak of its matrices [as the GPU's]"))
      ->type_name("SHARE");
  add(app.add_option("--dispatch", dispatch_, "fp8, fp8-32 or bf16"))->capture_default_str();
  add(app.add_option("--combine", combine_, "Likewise"))->capture_default_str();
  add(app.add_option("--sms", sms_, "SMs of the kernels [as the library]"))->type_name("N");
  add(app.add_option("--slots", slots_, "Places for experts, redundant ones included"))
      ->type_name("N");
  add(app.add_flag("--cached", cached_, "The layout is known: no counting"));
  add(app.add_flag("--sampled", sampled_, "Draw every token's experts, instead of means"));
  add(app.add_option("--seed", seed_, "Of the draw [1]"))->type_name("N");
}

std::string ExpertBench::given() const {
  const auto used =
      std::ranges::find_if(options_, [](const CLI::Option* o) { return o->count() > 0; });
  return used == options_.end() ? "" : "--" + (*used)->get_lnames().front();
}

void ExpertBench::run(CollectiveOp op, const BenchInputs& inputs, const Terminal& terminal) {
  op_ = op;
  OutputFiles files;
  files.claim("--json", inputs.json);
  Settings settings = sort_settings(inputs.settings);
  settings.params = inputs.params;
  refuse_settings(settings.workload, "flyover bench reads no workload");

  const std::vector<std::string> libraries = io::expert_kernels_names();
  const bool of_kernels = std::ranges::find(libraries, inputs.library) != libraries.end();
  const Cluster cluster(inputs.topology, of_kernels ? "" : inputs.library, settings);
  const auto gpus = static_cast<std::uint32_t>(cluster.topology.gpus.size());
  const ExpertExchange base = exchange(of_kernels ? inputs.library : "");

  const ExpertPlanner planner(cluster.topology, cluster.cost);
  const std::vector<std::uint32_t> sizes = group_sizes(gpus);
  const std::vector<std::string> limits = limits_.empty() ? std::vector<std::string>{""} : limits_;
  // Plans are remembered by the address of their exchange.
  std::vector<ExpertExchange> exchanges;
  exchanges.reserve(sizes.size() * limits.size());
  std::vector<Row> rows;
  std::string first_problem;
  for (const std::uint32_t ep : sizes) {
    std::vector<std::uint32_t> ranks(ep);
    std::iota(ranks.begin(), ranks.end(), 0U);
    const std::uint32_t nodes = nodes_of(cluster.topology, ep);
    for (const std::string& limit : limits) {
      Row row;
      row.ep = ep;
      row.nodes = nodes;
      row.limit = limit;
      try {
        exchanges.push_back(on(base, ep, nodes, limit));
        row.plan = planner.plan(exchanges.back(), op_, ranks);
        row.kernel = kernel_alone(row.plan);
        row.spans_nodes = row.plan.traffic.network.most > 0;
        row.bottleneck = bottleneck_bandwidth(row.plan.traffic, row.kernel, row.spans_nodes);
      } catch (const InputError& error) {
        row.problem = error.problem();
        if (first_problem.empty()) first_problem = row.problem;
      }
      rows.push_back(std::move(row));
    }
  }
  if (std::ranges::all_of(rows, [](const Row& row) { return !row.problem.empty(); })) {
    throw InputError(first_problem);
  }
  files.put("--json", [&] { return json(cluster.inputs, base, rows); });
  if (!terminal.quiet && !files.uses_standard_output()) {
    print(text(terminal.width, inputs.topology, base, rows));
  }
  files.commit();
}

ExpertExchange ExpertBench::exchange(const std::string& library) const {
  ExpertExchange out;
  out.name = "bench";
  const bool fused = op_ == CollectiveOp::MoeFused;
  if (fused && !mode_.empty() && mode_ != "fused") {
    throw InputError(fmt::format("--mode {}: moe_fused is of mode fused", mode_));
  }
  out.mode = fused ? ExpertMode::Fused
             : mode_.empty()
                 ? ExpertMode::Normal
                 : io::expert_mode_named(word_of("--mode", mode_, io::expert_mode_words()));
  if (!fused && out.mode == ExpertMode::Fused) {
    throw InputError(
        fmt::format("--mode fused: {} is one half of it, see moe_fused", to_string(op_)));
  }
  io::take_kernels(out, library.empty() ? io::default_expert_library(out.mode) : library);
  std::optional<Model> model;
  if (!model_.empty()) {
    model = io::load_model(model_);
    out.routing = io::routing_of(*model);
    out.hidden = model->hidden;
    out.expert_hidden = model->experts->hidden;
  }
  if (experts_) out.routing.experts = *experts_;
  if (chosen_) out.routing.chosen = *chosen_;
  if (hidden_) out.hidden = *hidden_;
  if (expert_hidden_) out.expert_hidden = *expert_hidden_;
  const auto need = [](std::uint32_t value, std::string_view option) {
    if (value == 0) throw InputError(fmt::format("expected --model, or {} above zero", option));
  };
  need(out.routing.experts, "--experts");
  need(out.routing.chosen, "--chosen");
  need(out.hidden, "--hidden");
  if (fused) {
    need(out.expert_hidden, "--expert-hidden");
    if (efficiency_) out.efficiency = *efficiency_;
    if (!(out.efficiency >= 0 && out.efficiency <= 1)) {
      throw InputError("--efficiency: expected a share of the peak above 0 and up to 1");
    }
    out.dtype = "fp8";
  }
  if (!gate_.empty()) out.routing.gate = io::gate_named(word_of("--gate", gate_, io::gate_words()));
  out.tokens = tokens_ > 0                          ? tokens_
               : out.mode == ExpertMode::LowLatency ? usual_decode_tokens
                                                    : usual_tokens;
  out.dispatch_bytes =
      io::payload_bytes(word_of("--dispatch", dispatch_, io::payload_words()), out.hidden);
  out.combine_bytes =
      io::payload_bytes(word_of("--combine", combine_, io::payload_words()), out.hidden);
  if (sms_) out.sms = *sms_;
  if (slots_) out.routing.slots = *slots_;
  out.cached = cached_;
  out.routing.sampled = sampled_;
  if (seed_) {
    if (!sampled_) throw InputError("--seed: draws nothing without --sampled");
    out.routing.seed = *seed_;
  }
  return out;
}

std::vector<std::uint32_t> ExpertBench::group_sizes(std::uint32_t gpus) const {
  if (sizes_.empty()) {
    std::vector<std::uint32_t> sizes;
    for (std::uint32_t ep = 8; ep <= gpus && ep <= 1024; ep *= 2) sizes.push_back(ep);
    return sizes.empty() ? std::vector<std::uint32_t>{gpus} : sizes;
  }
  for (const std::uint32_t ep : sizes_) {
    if (ep < 2 || ep > gpus) {
      throw InputError(
          fmt::format("--ep: expected 2 to {} ranks, the topology's GPUs, got {}", gpus, ep));
    }
  }
  return sizes_;
}

ExpertExchange ExpertBench::on(const ExpertExchange& base, std::uint32_t ep, std::uint32_t nodes,
                               const std::string& limit) const {
  ExpertExchange out = base;
  ExpertRouting& routing = out.routing;
  if (groups_ == "nodes" || (groups_.empty() && routing.groups == 0 && !limit.empty())) {
    routing.groups = nodes;
  } else if (!groups_.empty()) {
    routing.groups = whole_number("--groups", groups_);
  }
  if (!limit.empty()) {
    routing.groups_chosen =
        limit == "none" ? routing.groups : std::min(whole_number("--limit", limit), routing.groups);
  }
  if (routing.groups > 0 && routing.groups_chosen == 0) routing.groups_chosen = routing.groups;
  // All groups are no limit.
  const bool limited = routing.groups > 0 && routing.groups_chosen < routing.groups;
  if (!limited && routing.gate != Gate::Hash) routing.gate = Gate::TopK;
  if (limited && routing.gate == Gate::TopK) routing.gate = Gate::GroupSumOfTwo;
  // Where experts do not divide, the most popular ones are there twice.
  if (!slots_ && routing.experts % ep != 0) {
    routing.slots = (routing.experts + ep - 1) / ep * ep;
    routing.placement = Placement::Global;
  }
  return out;
}

std::string ExpertBench::json(const std::vector<InputDigest>& inputs, const ExpertExchange& base,
                              const std::vector<Row>& rows) const {
  nlohmann::ordered_json out = {{"format", "flyover-bench-experts-1"}, {"flyover", version()}};
  out["inputs"] = nlohmann::ordered_json::array();
  for (const InputDigest& input : inputs) {
    out["inputs"].push_back({{"role", input.role},
                             {"name", input.name},
                             {"digest", input.digest},
                             {"overrides", input.overrides}});
  }
  out["op"] = to_string(op_);
  out["mode"] = to_string(base.mode);
  out["library"] = base.kernels->name;
  out["experts"] = base.routing.experts;
  out["chosen"] = base.routing.chosen;
  out["hidden"] = base.hidden;
  out["tokens"] = base.tokens;
  out["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json item = {{"ep", row.ep}, {"nodes", row.nodes}};
    if (!row.limit.empty()) item["limit"] = row.limit;
    if (!row.problem.empty()) {
      item["problem"] = row.problem;
      out["rows"].push_back(std::move(item));
      continue;
    }
    const ExpertTraffic& t = row.plan.traffic;
    item.update({{"time_us", to_microseconds(row.plan.plan.alone)},
                 {"kernel_us", to_microseconds(row.kernel)},
                 {"bottleneck_GBps", row.bottleneck},
                 {"bottleneck_side", row.spans_nodes ? "RDMA" : "NVLink"},
                 {"nodes_per_token", t.nodes_per_token},
                 {"ranks_per_token", t.ranks_per_token},
                 {"logical_network_bytes", port_json(t.logical_network)},
                 {"network_bytes", port_json(t.network)},
                 {"logical_nvlink_bytes", port_json(t.logical_nvlink)},
                 {"nvlink_bytes", port_json(t.nvlink)},
                 {"sms", row.plan.sms},
                 {"balanced", row.plan.balanced},
                 {"basis", t.basis},
                 {"bottleneck", row.plan.plan.bottleneck}});
    out["rows"].push_back(std::move(item));
  }
  return out.dump(2) + '\n';
}

std::string ExpertBench::text(std::size_t width, const std::string& topology,
                              const ExpertExchange& base, const std::vector<Row>& rows) const {
  TextTable table{{{"EP"}, {"nodes"}}, {}};
  const bool limits = !limits_.empty();
  if (limits) table.columns.push_back({"limit"});
  for (const TextTable::Column& column : std::vector<TextTable::Column>{{"time(us)"},
                                                                        {"kernel(us)"},
                                                                        {"GB/s"},
                                                                        {"of", true},
                                                                        {"nodes/token"},
                                                                        {"ranks/token"},
                                                                        {"NIC MB"},
                                                                        {"logical"},
                                                                        {"NVLink MB"},
                                                                        {"logical"},
                                                                        {"SMs"},
                                                                        {"limited by", true},
                                                                        {"traffic is", true}}) {
    table.columns.push_back(column);
  }
  for (const Row& row : rows) {
    std::vector<std::string> cells = {std::to_string(row.ep), std::to_string(row.nodes)};
    if (limits) cells.push_back(row.limit);
    const ExpertTraffic& t = row.plan.traffic;
    if (!row.problem.empty()) {
      cells.resize(table.columns.size(), "-");
      cells.back() = row.problem;
    } else {
      for (std::string cell :
           {fmt::format("{:.1f}", to_microseconds(row.plan.plan.alone)),
            fmt::format("{:.1f}", to_microseconds(row.kernel)),
            fmt::format("{:.1f}", row.bottleneck), std::string(row.spans_nodes ? "RDMA" : "NVLink"),
            fmt::format("{:.3f}", t.nodes_per_token), fmt::format("{:.3f}", t.ranks_per_token),
            megabytes(t.network.most), megabytes(t.logical_network.mean), megabytes(t.nvlink.most),
            megabytes(t.logical_nvlink.mean), std::to_string(row.plan.sms),
            row.plan.plan.bottleneck, t.basis}) {
        cells.push_back(std::move(cell));
      }
    }
    table.rows.push_back(std::move(cells));
  }
  std::string head = fmt::format(
      "# flyover {}: {} on {}, {} of {}, {} tokens of {} values per rank, {} of {} experts\n",
      version(), to_string(op_), topology, to_string(base.mode), base.kernels->name, base.tokens,
      base.hidden, base.routing.chosen, base.routing.experts);
  return head +
         "# GB/s: DeepEP's bottleneck bandwidth, logical bytes by the time of the kernel alone\n" +
         render(table, width);
}

}  // namespace flyover::cli
