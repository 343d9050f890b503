#include "flyover/io/library_reader.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/collective/algorithms.hpp"
#include "flyover/io/embedded.hpp"

namespace flyover::io {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view format_name = "flyover-library-1";
constexpr std::string_view library_folder = "libraries";  // Of configs/.

// A word that `parse` understands; otherwise an error that lists the words.
template <class Parse>
auto word(const Field& field, Parse parse, const std::vector<std::string>& words) {
  const std::string text = field.text();
  if (const auto value = parse(text)) return *value;
  field.fail(fmt::format("expected one of {}, got \"{}\"{}", fmt::join(words, ", "), text,
                         did_you_mean(text, words)));
}

CollectiveOp read_operation(const Field& field) {
  const auto names = collective_op_names();
  return word(field, collective_op, {names.begin(), names.end()});
}

AlgorithmId read_algorithm(const Field& field) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms()) {
    std::string name(to_string(algorithm.id));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return word(field, algorithm_id, names);
}

Protocol read_protocol(const Field& field) {
  return word(field, protocol, {"LL", "LL128", "Simple"});
}

template <class Read>
auto read_list(const Field& parent, std::string_view key, Read read) {
  std::vector<decltype(read(parent))> items;
  if (!parent.has(key)) return items;
  for (const Field& item : parent[key].elements()) items.push_back(read(item));
  return items;
}

std::string read_text(const Field& field) {
  return field.text();
}

Duration optional_duration(const Field& field, std::string_view key) {
  return field.has(key) ? field[key].duration() : Duration{};
}

bool optional_flag(const Field& field, std::string_view key) {
  return field.has(key) && field[key].boolean();
}

double read_share(const Field& field) {
  const double share = field.positive_number();
  if (share > 1) field.fail(fmt::format("expected a share above 0 and at most 1, got {}", share));
  return share;
}

Scope read_scope(const Field& rule) {
  Scope scope;
  if (!rule.has("where")) return scope;
  const Field where = rule["where"];
  where.allow_only({"operations", "algorithms", "protocols", "architectures", "gpus", "links",
                    "min_domains", "max_domains", "min_members"});
  scope.operations = read_list(where, "operations", read_operation);
  scope.algorithms = read_list(where, "algorithms", read_algorithm);
  scope.protocols = read_list(where, "protocols", read_protocol);
  scope.architectures = read_list(where, "architectures", read_text);
  scope.gpus = read_list(where, "gpus", read_text);
  scope.links = read_list(where, "links", read_text);
  if (where.has("min_domains")) scope.min_domains = where["min_domains"].count();
  if (where.has("max_domains")) scope.max_domains = where["max_domains"].count();
  if (where.has("min_members")) scope.min_members = where["min_members"].count();
  if (scope.min_domains > scope.max_domains) {
    where.fail(fmt::format("no group spans at least {} and at most {} domains", scope.min_domains,
                           scope.max_domains));
  }
  return scope;
}

// Every number must say where it is from.
Evidence read_evidence(const Field& rule) {
  Evidence evidence{rule["source"].text(), {}};
  if (evidence.source.empty()) rule["source"].fail("expected where the numbers come from");
  if (rule.has("validity")) evidence.validity = rule["validity"].text();
  return evidence;
}

LatencyRule read_latency(const Field& field) {
  field.allow_only({"where", "base", "domain_hop", "network_hop", "network_wire", "domain_message",
                    "network_message", "overlap", "fill", "fill_half", "source", "validity"});
  LatencyRule rule;
  rule.where = read_scope(field);
  rule.base = field["base"].duration();
  rule.domain_hop = optional_duration(field, "domain_hop");
  rule.network_hop = optional_duration(field, "network_hop");
  rule.network_wire = optional_duration(field, "network_wire");
  rule.domain_message = optional_duration(field, "domain_message");
  rule.network_message = optional_duration(field, "network_message");
  if (field.has("overlap")) {
    rule.overlap = field["overlap"].number();
    if (rule.overlap < 1) field["overlap"].fail("expected an exponent of 1 or more");
  }
  if (field.has("fill")) {
    rule.fill = field["fill"].duration();
    rule.fill_half = field["fill_half"].bytes();
  }
  rule.evidence = read_evidence(field);
  return rule;
}

// A process drives one GPU unless the host's time per GPU is stated.
StackRule read_stack(const Field& field, const std::string& name) {
  field.allow_only({"launch", "issue", "most_gpus", "overlap", "source", "validity"});
  StackRule rule;
  rule.name = name;
  rule.launch = field["launch"].duration();
  if (field.has("issue")) {
    rule.issue = field["issue"].duration();
    rule.most_gpus = field["most_gpus"].count(1, 1024);
    rule.overlap = field["overlap"].number();
    if (rule.overlap < 1) field["overlap"].fail("expected an exponent of 1 or more");
  }
  rule.evidence = read_evidence(field);
  return rule;
}

NetworkRule read_network(const Field& field) {
  field.allow_only({"links", "hop", "message", "protocols", "source", "validity"});
  NetworkRule rule;
  for (const Field& link : field["links"].elements()) rule.links.push_back(link.text());
  if (rule.links.empty()) field["links"].fail("expected at least one network");
  rule.hop = optional_duration(field, "hop");
  rule.message = optional_duration(field, "message");
  rule.protocols = read_list(field, "protocols", read_protocol);
  rule.evidence = read_evidence(field);
  return rule;
}

EfficiencyRule read_efficiency(const Field& field) {
  field.allow_only({"where", "share", "source", "validity"});
  EfficiencyRule rule;
  rule.where = read_scope(field);
  const Field share = field["share"];
  if (share.is_number()) {
    rule.points.push_back({1, read_share(share)});
  } else {
    for (const Field& point : share.elements()) {
      point.allow_only({"members", "share"});
      const std::uint32_t members = point["members"].count();
      if (!rule.points.empty() && members <= rule.points.back().members) {
        point["members"].fail("expected more members than at the point before");
      }
      rule.points.push_back({members, read_share(point["share"])});
    }
    if (rule.points.empty()) share.fail("expected a share, or at least one point");
  }
  rule.evidence = read_evidence(field);
  return rule;
}

CapRule read_cap(const Field& field) {
  field.allow_only({"where", "total", "per_channel", "source", "validity"});
  CapRule rule;
  rule.where = read_scope(field);
  if (!field.has("total") && !field.has("per_channel")) {
    field.fail("expected \"total\" or \"per_channel\"");
  }
  if (field.has("total")) rule.total = field["total"].bandwidth().per_second();
  if (field.has("per_channel")) rule.per_channel = field["per_channel"].bandwidth().per_second();
  rule.evidence = read_evidence(field);
  return rule;
}

DtypeRule read_dtype(const Field& field) {
  field.allow_only({"where", "dtypes", "rate", "supported", "source", "validity"});
  DtypeRule rule;
  rule.where = read_scope(field);
  for (const Field& dtype : field["dtypes"].elements()) rule.dtypes.push_back(dtype.text());
  if (field.has("rate")) rule.rate = read_share(field["rate"]);
  if (field.has("supported")) rule.supported = field["supported"].boolean();
  rule.evidence = read_evidence(field);
  return rule;
}

ChannelRule read_channel(const Field& field) {
  field.allow_only({"where", "count", "source", "validity"});
  ChannelRule rule;
  rule.where = read_scope(field);
  rule.count = field["count"].count(1, 1024);
  rule.evidence = read_evidence(field);
  return rule;
}

template <std::size_t n>
std::array<double, n> read_numbers(const Field& field) {
  if (field.size() != n) {
    field.fail(fmt::format("expected {} numbers, got {}", n, field.size()));
  }
  std::array<double, n> numbers{};
  for (std::size_t i = 0; i < n; ++i) {
    numbers[i] = field[i].number();
    if (numbers[i] < 0) field[i].fail(fmt::format("expected zero or more, got {}", numbers[i]));
  }
  return numbers;
}

// Speeds that a search tries from the highest down.
std::vector<double> read_speeds(const Field& field) {
  std::vector<double> speeds;
  for (const Field& item : field.elements()) {
    const double speed = item.positive_number();
    if (!speeds.empty() && speed >= speeds.back()) item.fail("expected falling speeds");
    speeds.push_back(speed);
  }
  if (speeds.empty()) field.fail("expected at least one speed");
  return speeds;
}

TunerArchitecture read_tuner_architecture(const Field& field) {
  field.allow_only({"node_speeds", "network_speeds", "ll", "ring_ll128", "tree_ll128",
                    "tree_simple", "halve_fast_channels"});
  TunerArchitecture architecture;
  architecture.node_speeds = read_speeds(field["node_speeds"]);
  architecture.network_speeds = read_speeds(field["network_speeds"]);
  architecture.ll = read_numbers<3>(field["ll"]);
  architecture.ring_ll128 = read_numbers<3>(field["ring_ll128"]);
  architecture.tree_ll128 = read_numbers<3>(field["tree_ll128"]);
  architecture.tree_simple = read_numbers<3>(field["tree_simple"]);
  architecture.halve_fast_channels = optional_flag(field, "halve_fast_channels");
  return architecture;
}

template <std::size_t n>
std::array<std::uint32_t, n> read_counts(const Field& field) {
  if (field.size() != n) {
    field.fail(fmt::format("expected {} whole numbers, got {}", n, field.size()));
  }
  std::array<std::uint32_t, n> counts{};
  for (std::size_t i = 0; i < n; ++i) counts[i] = field[i].count();
  return counts;
}

NcclTuning read_tuning(const Field& field) {
  field.allow_only({"source", "validity", "architectures", "lane_speeds_GBps", "pcie_share",
                    "network_share", "latencies_us", "network_post_us", "nvls_ratio",
                    "ring_plateau", "ring_plateau_bytes", "tree_correction", "max_channels",
                    "threads", "thread_bytes"});
  read_evidence(field);
  NcclTuning tuning;
  const Field architectures = field["architectures"];
  for (const std::string& name : architectures.keys()) {
    const Field entry = architectures[name];
    if (!entry.is_string()) {
      tuning.architectures.emplace(name, read_tuner_architecture(entry));
      continue;
    }
    const auto like = tuning.architectures.find(entry.text());
    if (like == tuning.architectures.end()) {
      entry.fail(fmt::format("expected an architecture further up, got \"{}\"", entry.text()));
    }
    const TunerArchitecture copy = like->second;
    tuning.architectures.emplace(name, copy);
  }
  const Field lanes = field["lane_speeds_GBps"];
  for (const std::string& name : lanes.keys()) {
    tuning.lane_speeds.emplace(name, lanes[name].positive_number());
  }
  tuning.pcie_share = read_share(field["pcie_share"]);
  tuning.network_share = read_share(field["network_share"]);
  const Field latencies = field["latencies_us"];
  for (const std::string& name : latencies.keys()) {
    const Field entry = latencies[name];
    const auto id = algorithm_id(name);
    if (!id) entry.fail(fmt::format("\"{}\" is not an algorithm", name));
    entry.allow_only({"base", "nvlink", "pcie", "network"});
    tuning.latencies.emplace(
        *id, TunerLatency{read_numbers<3>(entry["base"]), read_numbers<3>(entry["nvlink"]),
                          read_numbers<3>(entry["pcie"]), read_numbers<3>(entry["network"])});
  }
  if (!tuning.latencies.contains(AlgorithmId::Ring) ||
      !tuning.latencies.contains(AlgorithmId::Tree)) {
    latencies.fail("expected at least \"ring\" and \"tree\"");
  }
  tuning.network_post = field["network_post_us"].number();
  tuning.nvls_ratio = read_share(field["nvls_ratio"]);
  tuning.ring_plateau = field["ring_plateau"].positive_number();
  tuning.ring_plateau_bytes = field["ring_plateau_bytes"].number();
  const Field correction = field["tree_correction"];
  correction.allow_only({"LL", "LL128", "Simple"});
  for (const Protocol p : all_protocols) {
    for (const Field& factor : correction[to_string(p)].elements()) {
      tuning.tree_correction[static_cast<std::size_t>(p)].push_back(read_share(factor));
    }
  }
  tuning.max_channels = field["max_channels"].count(1, 1024);
  tuning.threads = read_counts<3>(field["threads"]);
  tuning.thread_bytes = read_counts<3>(field["thread_bytes"]);
  return tuning;
}

void read_protocols(const Field& field, Library& library) {
  for (const std::string& name : field.keys()) {
    const Field entry = field[name];
    const auto id = protocol(name);
    if (!id) entry.fail(fmt::format("expected LL, LL128 or Simple, got \"{}\"", name));
    entry.allow_only({"wire_bytes", "source"});
    const double wire = entry["wire_bytes"].number();
    if (wire < 1) entry["wire_bytes"].fail("expected at least one byte per byte of payload");
    static_cast<void>(entry["source"].text());
    library.protocols.push_back(*id);
    library.wire_bytes.emplace(*id, wire);
  }
  if (library.protocols.empty()) field.fail("expected at least one protocol");
}

void read_algorithms(const Field& field, Library& library) {
  for (const std::string& name : field.keys()) {
    const Field list = field[name];
    const auto op = collective_op(name);
    if (!op) {
      const auto names = collective_op_names();
      list.fail(fmt::format("\"{}\" is not a collective{}", name, did_you_mean(name, names)));
    }
    std::vector<AlgorithmId>& ids = library.algorithms[*op];
    for (const Field& item : list.elements()) {
      const AlgorithmId id = read_algorithm(item);
      if (find_algorithm(*op, id) == nullptr) {
        item.fail(fmt::format("there is no {} for {}", to_string(id), to_string(*op)));
      }
      if (std::ranges::find(ids, id) != ids.end()) item.fail("is listed twice");
      ids.push_back(id);
    }
    if (ids.empty()) list.fail("expected at least one algorithm");
  }
}

void read_stacks(const Field& root, Library& library) {
  if (!root.has("stacks") && !root.has("stack")) return;
  if (root.has("stacks")) {
    const Field stacks = root["stacks"];
    for (const std::string& name : stacks.keys()) {
      library.stacks.push_back(read_stack(stacks[name], name));
    }
  }
  (void)root["stack"].parsed([&](const std::string& text) {
    set_stack(library, text);
    return 0;
  });
}

// Variables that the library starts with, before the user's.
void read_defaults(const Field& field, LibrarySettings& settings) {
  for (const std::string& name : field.keys()) {
    if (name == "comment") continue;
    const Field value = field[name];
    (void)value.parsed([&](const std::string& text) {
      set_variable(settings, name, text);
      return 0;
    });
  }
}

// "2.27" below "2.9": numbers count as numbers.
bool version_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (!a.empty() && !b.empty()) {
    if (digit(a.front()) && digit(b.front())) {
      const auto number = [&](std::string_view& text) {
        std::uint64_t value = 0;
        while (!text.empty() && digit(text.front())) {
          value = value * 10 + static_cast<std::uint64_t>(text.front() - '0');
          text.remove_prefix(1);
        }
        return value;
      };
      const std::uint64_t x = number(a);
      const std::uint64_t y = number(b);
      if (x != y) return x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && !b.empty();
}

}  // namespace

Library read_library(const Document& document) {
  const Field root = document.root();
  root.allow_only({"format",     "name",       "version",   "summary",   "choice",       "lockstep",
                   "mesh_rings", "rail_rings", "sources",   "protocols", "algorithms",   "tuned",
                   "stack",      "stacks",     "latencies", "networks",  "efficiencies", "caps",
                   "dtypes",     "channels",   "tuning",    "defaults"});
  const std::string format = root["format"].text();
  if (format != format_name) {
    root["format"].fail(fmt::format("expected \"{}\", got \"{}\"", format_name, format));
  }
  Library library;
  library.name = root["name"].text();
  library.version = root["version"].text();
  library.summary = root["summary"].text();
  library.choice = root["choice"].one_of({"fastest", "nccl-model"}) == "fastest"
                       ? ChoiceRule::Fastest
                       : ChoiceRule::NcclModel;
  library.lockstep = optional_flag(root, "lockstep");
  library.mesh_rings = optional_flag(root, "mesh_rings");
  library.rail_rings = optional_flag(root, "rail_rings");
  if (root.has("sources")) {
    const Field sources = root["sources"];
    for (const std::string& tag : sources.keys()) library.sources.emplace(tag, sources[tag].text());
  }
  read_protocols(root["protocols"], library);
  read_algorithms(root["algorithms"], library);
  library.tuned = read_list(root, "tuned", read_operation);
  read_stacks(root, library);
  library.latencies = read_list(root, "latencies", read_latency);
  library.networks = read_list(root, "networks", read_network);
  library.efficiencies = read_list(root, "efficiencies", read_efficiency);
  library.caps = read_list(root, "caps", read_cap);
  library.dtypes = read_list(root, "dtypes", read_dtype);
  library.channels = read_list(root, "channels", read_channel);
  if (library.latencies.empty()) root.fail("expected \"latencies\" with at least one rule");
  if (root.has("defaults")) read_defaults(root["defaults"], library.settings);
  if (root.has("tuning")) library.tuning = read_tuning(root["tuning"]);
  if (library.choice == ChoiceRule::NcclModel && !library.tuning) {
    root["choice"].fail("\"nccl-model\" needs \"tuning\"");
  }
  return library;
}

std::vector<std::string> library_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    const fs::path path(file.path);
    if (path.parent_path() != library_folder) continue;
    const std::string stem = path.stem().string();
    names.push_back(stem);
    if (const std::size_t dash = stem.rfind('-'); dash != std::string::npos) {
      names.push_back(stem.substr(0, dash));
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Document library_document(std::string_view name) {
  if (name.ends_with(".json")) return Document::load(fs::path(name));

  std::string_view best_stem;
  std::string_view best_text;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(library_folder) || !file.path.ends_with(".json")) continue;
    std::string_view stem = file.path.substr(library_folder.size() + 1);
    stem.remove_suffix(std::string_view(".json").size());
    const bool version_of = stem.starts_with(name) && stem.substr(name.size()).starts_with('-');
    if (stem != name && !version_of) continue;
    if (best_stem.empty() || stem == name || (best_stem != name && version_less(best_stem, stem))) {
      best_stem = stem;
      best_text = file.text;
    }
  }
  if (best_stem.empty()) {
    const std::vector<std::string> names = library_names();
    throw InputError(fmt::format("no communication library \"{}\"{}; there are {}", name,
                                 did_you_mean(name, names), fmt::join(names, ", ")));
  }
  return Document::parse(fmt::format("{}/{}.json", library_folder, best_stem),
                         std::string(best_text));
}

}  // namespace flyover::io
