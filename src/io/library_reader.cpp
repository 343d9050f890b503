#include "flyover/io/library_reader.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/collective/algorithms.hpp"
#include "flyover/io/embedded.hpp"
#include "io/fitted.hpp"

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
  check_fitted(rule);
  Evidence evidence{rule["source"].text(), {}};
  if (evidence.source.empty()) rule["source"].fail("expected where the numbers come from");
  if (rule.has("validity")) evidence.validity = rule["validity"].text();
  return evidence;
}

LatencyRule read_latency(const Field& field) {
  field.allow_only({"where", "base", "domain_hop", "network_hop", "network_wire", "domain_message",
                    "network_message", "overlap", "fill", "fill_half", "source", "validity",
                    "fitted"});
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
  field.allow_only({"launch", "issue", "most_gpus", "overlap", "source", "validity", "fitted"});
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
  field.allow_only({"links", "hop", "message", "fill", "fill_half", "protocols", "source",
                    "validity", "fitted"});
  NetworkRule rule;
  for (const Field& link : field["links"].elements()) rule.links.push_back(link.text());
  if (rule.links.empty()) field["links"].fail("expected at least one network");
  rule.hop = optional_duration(field, "hop");
  rule.message = optional_duration(field, "message");
  rule.fill = optional_duration(field, "fill");
  if (field.has("fill_half")) rule.fill_half = field["fill_half"].bytes();
  rule.protocols = read_list(field, "protocols", read_protocol);
  rule.evidence = read_evidence(field);
  return rule;
}

EfficiencyRule read_efficiency(const Field& field) {
  field.allow_only({"where", "share", "source", "validity", "fitted"});
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
  field.allow_only({"where", "total", "per_channel", "source", "validity", "fitted"});
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

PointToPointRule read_point_to_point(const Field& field) {
  field.allow_only({"channels", "part", "source", "validity"});
  PointToPointRule rule;
  rule.channels = field["channels"].count(1, 1024);
  rule.part = field["part"].bytes();
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
                    "tree_simple", "nvls_tree", "nvls_efficiency", "bus_limit", "ring_plateau",
                    "collnet_direct", "halve_fast_channels"});
  TunerArchitecture architecture;
  architecture.node_speeds = read_speeds(field["node_speeds"]);
  architecture.network_speeds = read_speeds(field["network_speeds"]);
  architecture.ll = field["ll"].positive_number();
  architecture.ring_ll128 = read_numbers<3>(field["ring_ll128"]);
  architecture.tree_ll128 = read_numbers<3>(field["tree_ll128"]);
  architecture.tree_simple = read_numbers<3>(field["tree_simple"]);
  if (field.has("nvls_tree")) architecture.nvls_tree = read_numbers<3>(field["nvls_tree"]);
  if (field.has("nvls_efficiency")) {
    architecture.nvls_efficiency = read_share(field["nvls_efficiency"]);
  }
  if (field.has("bus_limit")) architecture.bus_limit = field["bus_limit"].positive_number();
  architecture.ring_plateau = field["ring_plateau"].positive_number();
  if (field.has("collnet_direct")) {
    architecture.collnet_direct = read_share(field["collnet_direct"]);
  }
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

// By vendor of the processors; "any" for those that have no entry of their own.
void read_hosts(const Field& hosts, NcclTuning& tuning) {
  for (const std::string& vendor : hosts.keys()) {
    const Field host = hosts[vendor];
    host.allow_only({"ll", "network_post_us"});
    tuning.hosts[vendor == "any" ? "" : vendor] = {read_numbers<2>(host["ll"]),
                                                   host["network_post_us"].number()};
  }
  if (!tuning.hosts.contains("")) hosts.fail("expected an entry for \"any\" host");
}

void read_tuner_networks(const Field& networks, NcclTuning& tuning) {
  networks.allow_only({"joined", "joined_port_GBps", "plugin_latencies_us"});
  tuning.joined_networks = read_list(networks, "joined", read_text);
  if (networks.has("joined_port_GBps")) tuning.joined_port = networks["joined_port_GBps"].number();
  if (!networks.has("plugin_latencies_us")) return;
  const Field latencies = networks["plugin_latencies_us"];
  for (const std::string& name : latencies.keys()) {
    tuning.plugin_latencies.emplace(name, latencies[name].positive_number());
  }
}

void read_tuner_shares(const Field& shares, NcclTuning& tuning) {
  shares.allow_only({"ring_ll", "ring_ll_gather", "ring_ll128", "lone_ring_ll128", "lone_tree",
                     "pat", "collnet_chain"});
  tuning.ring_ll = read_share(shares["ring_ll"]);
  tuning.ring_ll_gather = read_share(shares["ring_ll_gather"]);
  tuning.ring_ll128 = read_share(shares["ring_ll128"]);
  tuning.lone_ring_ll128 = read_share(shares["lone_ring_ll128"]);
  tuning.lone_tree = read_share(shares["lone_tree"]);
  tuning.pat = read_share(shares["pat"]);
  tuning.collnet_chain = read_share(shares["collnet_chain"]);
}

void read_tuner_nvls(const Field& nvls, NcclTuning& tuning) {
  nvls.allow_only({"ratio", "gather_ratio", "gather_skips_own", "tree_linear", "tree_ratio"});
  tuning.nvls_ratio = read_share(nvls["ratio"]);
  tuning.nvls_gather_ratio = nvls["gather_ratio"].number();
  tuning.nvls_gather_skips_own = nvls["gather_skips_own"].boolean();
  tuning.nvls_tree_linear = nvls["tree_linear"].boolean();
  tuning.nvls_tree_ratio = read_share(nvls["tree_ratio"]);
}

void read_tuner_hops(const Field& hops, NcclTuning& tuning) {
  hops.allow_only({"ll_in_nodes", "rings_close", "lone_exposed", "arity_us"});
  tuning.ll_node_hops = hops["ll_in_nodes"].positive_number();
  tuning.rings_close = hops["rings_close"].boolean();
  tuning.lone_hops_exposed = hops["lone_exposed"].boolean();
  tuning.arity_us = hops["arity_us"].number();
}

NcclTuning read_tuning(const Field& field) {
  field.allow_only({"source", "validity", "architectures", "lane_speeds_GBps", "pcie_share",
                    "network_share", "latencies_us", "hosts", "networks", "shares", "nvls", "hops",
                    "ring_plateau_bytes", "tree_correction", "max_channels", "threads",
                    "thread_bytes"});
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
  read_hosts(field["hosts"], tuning);
  if (field.has("networks")) read_tuner_networks(field["networks"], tuning);
  read_tuner_shares(field["shares"], tuning);
  read_tuner_nvls(field["nvls"], tuning);
  read_tuner_hops(field["hops"], tuning);
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

struct Shipped {
  std::string stem;        // "nccl-2.27"
  std::string stands_for;  // The version asked for, where another one is taken; else "".
};

std::string_view minor_version(std::string_view version) {
  const std::size_t dot = version.find('.');
  return dot == std::string_view::npos ? version : version.substr(0, version.find('.', dot + 1));
}

std::vector<std::string> shipped_stems() {
  std::vector<std::string> stems;
  for (const EmbeddedFile& file : embedded_files()) {
    const fs::path path(file.path);
    if (path.parent_path() == library_folder && path.extension() == ".json") {
      stems.push_back(path.stem().string());
    }
  }
  return stems;
}

// The highest version out of `stems` that is not above `most` ("": any).
std::string newest(const std::vector<std::string>& stems, std::string_view family,
                   std::string_view most) {
  std::string best;
  for (const std::string& stem : stems) {
    if (!stem.starts_with(family) || stem.size() == family.size()) continue;
    if (stem[family.size()] != '-') continue;
    const std::string_view version = std::string_view(stem).substr(family.size() + 1);
    if (!most.empty() && version_less(most, version)) continue;
    if (best.empty() || version_less(best, stem)) best = stem;
  }
  return best;
}

Shipped find_shipped(std::string_view name) {
  const std::vector<std::string> stems = shipped_stems();
  const auto is = [](std::string_view wanted) {
    return [wanted](const std::string& stem) { return stem == wanted; };
  };
  if (std::ranges::any_of(stems, is(name))) return {std::string(name), ""};
  if (std::string stem = newest(stems, name, ""); !stem.empty()) return {std::move(stem), ""};

  const std::size_t dash = name.rfind('-');
  const std::string_view version = dash == std::string_view::npos ? "" : name.substr(dash + 1);
  const std::string_view family = name.substr(0, dash);
  const bool numbered = !version.empty() && std::isdigit(static_cast<unsigned char>(version[0]));
  if (const std::string any = newest(stems, family, ""); numbered && !any.empty()) {
    const std::string_view wanted = minor_version(version);
    const std::string stem = newest(stems, family, wanted);
    if (stem.empty()) {
      throw InputError(fmt::format("{} {} is older than all that are known of it: {}", family,
                                   version, fmt::join(library_names(), ", ")));
    }
    const bool same = std::string_view(stem).substr(dash + 1) == wanted;
    return {stem, same ? "" : std::string(version)};
  }
  const std::vector<std::string> names = library_names();
  throw InputError(fmt::format("no communication library \"{}\"{}; there are {}", name,
                               did_you_mean(name, names), fmt::join(names, ", ")));
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

using Tree = nlohmann::ordered_json;

Tree parse_tree(const std::string& text) {
  return Tree::parse(text, nullptr, true, true);
}

std::string embedded_text(const std::string& stem) {
  return std::string(embedded_file(fmt::format("{}/{}.json", library_folder, stem)));
}

// The text of a library with all that it builds on.
std::string whole_text(const std::string& stem,  // NOLINT(misc-no-recursion)
                       const LibraryTexts& texts) {
  std::string text = texts(stem);
  Tree tree = parse_tree(text);
  if (!tree.contains("extends")) return text;
  Tree base = parse_tree(whole_text(tree["extends"].get<std::string>(), texts));
  tree.erase("extends");
  base.merge_patch(tree);
  return base.dump(2);
}

// `text` laid over `base` as a merge patch (RFC 7386): objects member by member, all else as a
// whole, null removes.
Document merged(std::string name, const std::string& base, const std::string& text,
                const std::string& stands_for) {
  Tree patch = parse_tree(text);
  if (patch.empty() && stands_for.empty()) return Document::parse(std::move(name), base);
  Tree tree = parse_tree(base);
  patch.erase("extends");
  tree.merge_patch(patch);
  if (!stands_for.empty()) tree["stands_for"] = stands_for;
  return Document::parse(std::move(name), tree.dump(2));
}

}  // namespace

Library read_library(const Document& document) {
  const Field root = document.root();
  root.allow_only({"format",     "name",         "version",    "summary",    "choice",
                   "lockstep",   "mesh_rings",   "rail_rings", "sources",    "protocols",
                   "algorithms", "tuned",        "stack",      "stacks",     "latencies",
                   "networks",   "efficiencies", "caps",       "dtypes",     "channels",
                   "tuning",     "defaults",     "released",   "stands_for", "point_to_point"});
  const std::string format = root["format"].text();
  if (format != format_name) {
    root["format"].fail(fmt::format("expected \"{}\", got \"{}\"", format_name, format));
  }
  Library library;
  library.name = root["name"].text();
  library.version = root["version"].text();
  library.summary = root["summary"].text();
  if (root.has("released")) library.released = root["released"].text();
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
  if (root.has("point_to_point")) {
    library.point_to_point = read_point_to_point(root["point_to_point"]);
  }
  if (library.latencies.empty()) root.fail("expected \"latencies\" with at least one rule");
  if (root.has("defaults")) read_defaults(root["defaults"], library.settings);
  if (root.has("stands_for")) {
    library.settings.notes.push_back(
        fmt::format("{} {} is not known: the nearest older one, {}, stands for it", library.name,
                    root["stands_for"].text(), library.version));
  }
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
  if (name.ends_with(".json")) {
    const fs::path path(name);
    Document own = Document::load(path);
    if (!own.root().has("extends")) return own;
    const Field base = own.root()["extends"];
    const std::string text = base.parsed([](const std::string& other) {
      return whole_text(find_shipped(other).stem, embedded_text);
    });
    return merged(std::string(name), text, read_file(path), "");
  }
  const Shipped shipped = find_shipped(name);
  return merged(fmt::format("{}/{}.json", library_folder, shipped.stem),
                whole_text(shipped.stem, embedded_text), "{}", shipped.stands_for);
}

Library read_library_from(const std::string& stem, const LibraryTexts& texts) {
  return read_library(
      Document::parse(fmt::format("{}/{}.json", library_folder, stem), whole_text(stem, texts)));
}

LibraryInput load_library_input(std::string_view name, std::span<const Setting> settings,
                                std::span<const Setting> variables) {
  Document document = library_document(name);
  for (const Setting& setting : settings) document.apply(setting);
  Library library = read_library(document);
  for (const Setting& variable : variables) {
    try {
      set_variable(library.settings, variable.path, variable.value);
    } catch (const InputError& error) {
      throw InputError(Place{"--set nccl." + variable.path, 0, 0, {}}, error.problem());
    }
  }
  return {std::move(library), document.digest()};
}

}  // namespace flyover::io
