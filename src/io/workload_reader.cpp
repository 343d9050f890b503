#include "flyover/io/workload_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/io/document.hpp"
#include "flyover/workload/repetition.hpp"
#include "io/exchange_reader.hpp"
#include "io/rank_groups.hpp"

namespace flyover::io {

namespace {

// Beyond this many operations a machine would run out of memory instead.
constexpr std::size_t max_operations = 2'000'000;

// Of what is repeated so many copies are written down, the others are left out
// (workload/repetition.hpp).
constexpr std::uint32_t held_copies = 4;

std::string name_in(const Field& field) {
  std::string name = field.text();
  if (name.empty()) field.fail("expected a name that is not empty");
  return name;
}

// What operations refer to.
struct Names {
  Groups groups;
  Exchanges exchanges;

  Names(const Field& root, std::uint32_t ranks, std::string file)
      : groups(ranks),
        exchanges(std::move(file)) {
    if (root.has("groups")) groups.read(root["groups"]);
    if (root.has("exchanges")) exchanges.read(root["exchanges"]);
  }
};

// What all collectives have, in either form.
void read_collective(const Field& field, CollectiveOp kind, Names& names, Operation& op) {
  op.kind = OpKind::Collective;
  op.collective = kind;
  op.group = field.has("group") ? names.groups.find(field["group"]) : 0;
  if (exchanges_experts(kind)) {
    for (const char* key : {"bytes", "dtype", "root"}) {
      if (field.has(key)) field[key].fail("the \"exchange\" says what is moved");
    }
    const Field exchange = field["exchange"];
    op.exchange = names.exchanges.find(exchange);
    const ExpertExchange& known = names.exchanges[op.exchange];
    if ((kind == CollectiveOp::MoeFused) != (known.mode == ExpertMode::Fused)) {
      exchange.fail(fmt::format("\"{}\" is of mode {}, which {} cannot be", known.name,
                                to_string(known.mode), to_string(kind)));
    }
    op.bytes = pair_bytes(known, kind);
    return;
  }
  if (field.has("exchange")) {
    field["exchange"].fail(fmt::format("{} exchanges no experts", to_string(kind)));
  }
  if (kind == CollectiveOp::Barrier) {
    for (const char* key : {"bytes", "dtype"}) {
      if (field.has(key)) field[key].fail("a barrier moves no data");
    }
  } else {
    op.bytes = field["bytes"].bytes();
  }
  if (field.has("dtype")) op.dtype = field["dtype"].text();
  if (field.has("root")) {
    const Field root = field["root"];
    if (!rooted(kind)) root.fail(fmt::format("{} has no root", to_string(kind)));
    const GroupFamily& family = names.groups[op.group];
    const auto smallest = std::ranges::min_element(family.groups, {}, &Ranks::size)->size();
    op.root = root.count(0, static_cast<std::uint32_t>(smallest - 1));
  }
}

std::vector<std::string> call_names() {
  const auto collectives = collective_op_names();
  std::vector<std::string> names(collectives.begin(), collectives.end());
  for (const CollectiveOp op :
       {CollectiveOp::MoeDispatch, CollectiveOp::MoeCombine, CollectiveOp::MoeFused}) {
    names.emplace_back(to_string(op));
  }
  return names;
}

std::optional<CollectiveOp> call_named(std::string_view name) {
  const auto op = collective_op(name);
  return op ? op : expert_op(name);
}

CollectiveOp read_call(const Field& field) {
  if (const auto op = call_named(field.text())) return *op;
  field.fail(fmt::format("there is no collective \"{}\"{}", field.text(),
                         did_you_mean(field.text(), call_names())));
}

// "ranks" of the workload: a number, or all ranks written out. One per GPU.
void check_rank_count(const Field& field, std::uint32_t gpus) {
  constexpr std::uint32_t most = 100'000'000;
  std::size_t ranks = gpus;
  if (field.is_number()) {
    ranks = field.count();
  } else if (!field.is_string() || field.text() != "all") {
    const Ranks list = read_ranks(field, most);
    ranks = list.size();
    if (*std::ranges::max_element(list) != ranks - 1) {
      field.fail(fmt::format("expected all ranks from 0 on, got {} of them up to {}", ranks,
                             *std::ranges::max_element(list)));
    }
  }
  if (ranks != gpus) {
    field.fail(fmt::format("the workload has {} ranks, but the topology has {} GPUs", ranks, gpus));
  }
}

// Runs a check that knows of no places, and gives its error this one.
template <class Check>
void at_place(const Field& field, Check check) {
  try {
    check();
  } catch (const InputError& error) {
    field.fail(error.problem());
  }
}

void check_room(const Field& field, std::size_t operations) {
  if (operations > max_operations) {
    field.fail(
        fmt::format("the workload has more than {} operations with its repeats", max_operations));
  }
}

// --- {"collectives": [...]} ---------------------------------------------------------------------

// One program for each set of ranks that take part in the same collectives.
std::vector<Program> programs_of(const Field& list, const std::vector<Operation>& ops,
                                 const Groups& groups, std::uint32_t ranks) {
  std::map<std::uint32_t, std::vector<bool>> members;  // By family, by rank.
  for (const Operation& op : ops) {
    const auto [member, first] = members.try_emplace(op.group, ranks, false);
    if (!first) continue;
    for (const Ranks& group : groups[op.group].groups) {
      for (const std::uint32_t rank : group) member->second[rank] = true;
    }
  }
  // Ranks that no family has told apart so far are of one kind.
  Ranks kind(ranks, 0);
  for (const auto& [family, member] : members) {
    std::map<std::pair<std::uint32_t, bool>, std::uint32_t> kinds;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto next = static_cast<std::uint32_t>(kinds.size());
      kind[rank] = kinds.try_emplace({kind[rank], member[rank]}, next).first->second;
    }
  }
  std::map<std::uint32_t, Ranks> alike;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) alike[kind[rank]].push_back(rank);

  std::vector<Program> programs;
  std::size_t operations = 0;
  for (auto& [number, same] : alike) {
    Program program{"ranks " + index_list(same), std::move(same), {}};
    for (const Operation& op : ops) {
      if (members.at(op.group)[program.ranks.front()]) program.ops.push_back(op);
    }
    operations += program.ops.size();
    check_room(list, operations);
    if (!program.ops.empty()) programs.push_back(std::move(program));
  }
  return programs;
}

Workload read_collectives(const Field& root, std::uint32_t gpus, const std::string& file) {
  root.allow_only({"name", "ranks", "groups", "exchanges", "collectives"});
  if (root.has("ranks")) check_rank_count(root["ranks"], gpus);
  Names names(root, gpus, file);

  const Field list = root["collectives"];
  if (list.size() == 0) list.fail("expected at least one collective");
  std::vector<Operation> ops;
  std::vector<Section> sections;
  std::map<std::string, std::uint32_t> used;
  for (const Field& field : list.elements()) {
    field.allow_only({"op", "bytes", "exchange", "group", "repeat", "root", "dtype", "name"});
    Operation op;
    const CollectiveOp kind = read_call(field["op"]);
    read_collective(field, kind, names, op);
    op.stream = "comm";
    op.name = field.has("name") ? name_in(field["name"]) : std::string(to_string(kind));
    const std::uint32_t repeat = field.has("repeat") ? field["repeat"].count() : 1;
    const std::uint32_t held = std::min(repeat, held_copies);
    check_room(field, ops.size() + held);
    op.sections_before = static_cast<std::uint32_t>(sections.size());
    if (held < repeat) {
      op.section = static_cast<std::uint32_t>(sections.size());
      sections.push_back({repeat - held, "calls", 1});
    }
    for (op.copy = 0; op.copy < held; ++op.copy) {
      op.id = fmt::format("{}#{}", op.name, ++used[op.name]);
      ops.push_back(op);
    }
  }
  std::vector<Program> programs = programs_of(list, ops, names.groups, gpus);
  Workload workload{"",
                    gpus,
                    names.groups.take(),
                    std::move(programs),
                    std::move(sections),
                    names.exchanges.take()};
  at_place(root, [&] { validate(workload); });
  return workload;
}

// --- {"ranks": ..., "groups": ..., "programs": [...]} -------------------------------------------

struct Peer {
  std::int64_t value = 0;
  bool relative = false;
};

// 3, or "+1" and "-1".
Peer read_peer(const Field& field) {
  if (field.is_number()) return {field.integer(), false};
  if (field.is_string()) {
    const std::string text = field.text();
    const char* last = text.data() + text.size();
    const bool plus = text.starts_with('+');
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + (plus ? 1 : 0), last, value);
    const bool sign = plus ? !text.starts_with("+-") : text.starts_with('-');
    if (sign && end == last && error == std::errc{}) return {value, true};
  }
  field.fail("expected a rank such as 3, or an offset from the own rank such as \"+1\" or \"-1\"");
}

class ProgramReader {
 public:
  // Borrows all, which must outlive it.
  ProgramReader(const Field& field, std::uint32_t ranks, Names& names)
      : field_(field),
        ranks_(ranks),
        names_(names) {}

  Program read() {
    field_.allow_only({"name", "ranks", "repeat", "ops"});
    program_.ranks = read_ranks(field_["ranks"], ranks_);
    std::ranges::sort(program_.ranks);
    program_.name =
        field_.has("name") ? field_["name"].text() : "ranks " + index_list(program_.ranks);
    const Field ops = field_["ops"];
    if (ops.size() == 0) ops.fail("expected at least one operation");
    program_.ops.reserve(ops.size());
    ids_.reserve(ops.size());
    for (const Field& op : ops.elements()) read_op(op);
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) read_after(ops[i], program_.ops[i]);
    at_place(ops, [&] { check_order(program_); });
    return std::move(program_);
  }

 private:
  void read_op(const Field& field) {
    const Field word = field["op"];
    Operation op;
    read_kind(field, word, op);
    const bool local =
        op.kind == OpKind::Compute || op.kind == OpKind::Copy || op.kind == OpKind::Delay;
    op.stream = local ? "compute" : "comm";
    if (field.has("stream")) op.stream = name_in(field["stream"]);
    // Counted per stream, so that an id does not depend on the order between streams.
    const std::uint32_t position = on_stream_[op.stream]++;
    op.id = field.has("id") ? name_in(field["id"]) : fmt::format("{}.{}", op.stream, position);
    op.name = field.has("name")               ? name_in(field["name"])
              : field.has("id")               ? op.id
              : op.kind == OpKind::Collective ? std::string(to_string(op.collective))
                                              : word.text();
    const auto index = static_cast<std::uint32_t>(program_.ops.size());
    if (const auto [other, unique] = ids_.emplace(op.id, index); !unique) {
      const Field place = field.has("id") ? field["id"] : field;
      place.fail(fmt::format("the id \"{}\" is taken by operation {} of this program", op.id,
                             other->second));
    }
    program_.ops.push_back(std::move(op));
  }

  void read_kind(const Field& field, const Field& word, Operation& op) {
    const std::string kind = word.text();
    if (kind == "compute") return read_compute(field, op);
    if (kind == "copy") {
      field.allow_only({"op", "id", "name", "stream", "after", "bytes"});
      op.kind = OpKind::Copy;
      op.bytes = field["bytes"].bytes();
    } else if (kind == "delay") {
      field.allow_only({"op", "id", "name", "stream", "after", "duration"});
      op.kind = OpKind::Delay;
      op.duration = field["duration"].duration();
    } else if (kind == "send" || kind == "recv") {
      op.kind = kind == "send" ? OpKind::Send : OpKind::Recv;
      read_transfer(field, op);
    } else if (const auto collective = call_named(kind)) {
      field.allow_only(
          {"op", "id", "name", "stream", "after", "bytes", "exchange", "group", "root", "dtype"});
      read_collective(field, *collective, names_, op);
      check_members(field, op);
    } else {
      const auto names = call_names();
      std::vector<std::string> words = {"compute", "copy", "delay", "send", "recv"};
      words.insert(words.end(), names.begin(), names.end());
      (void)word.one_of(words);
    }
  }

  static void read_compute(const Field& field, Operation& op) {
    op.kind = OpKind::Compute;
    if (field.has("duration")) {
      for (const char* key : {"flops", "bytes", "dtype", "efficiency", "memory_efficiency"}) {
        if (field.has(key)) {
          field[key].fail(
              fmt::format("\"duration\" leaves nothing to compute from \"{}\": give one "
                          "or the other",
                          key));
        }
      }
      field.allow_only({"op", "id", "name", "stream", "after", "duration", "sms"});
      op.duration = field["duration"].duration();
      if (op.duration == Duration::zero()) field["duration"].fail("expected a duration above zero");
      if (field.has("sms")) op.sms = field["sms"].count(1, 10'000);
      return;
    }
    if (field.has("sms")) {
      field["sms"].fail("goes with a \"duration\"; \"flops\" are spread over all SMs");
    }
    field.allow_only({"op", "id", "name", "stream", "after", "duration", "flops", "bytes", "dtype",
                      "efficiency", "memory_efficiency"});
    if (!field.has("flops") && !field.has("bytes")) {
      field.fail("expected \"flops\", \"bytes\" or both, or a \"duration\"");
    }
    if (field.has("flops")) op.flops = field["flops"].flops();
    if (field.has("bytes")) op.bytes = field["bytes"].bytes();
    if (op.flops == Flops{0} && op.bytes == Bytes{0}) {
      field["flops"].fail(
          "expected a number of operations above zero where there are no \"bytes\"");
    }
    op.dtype = field.has("dtype") ? name_in(field["dtype"]) : "bf16";
    op.efficiency = share(field, "efficiency");
    op.memory_efficiency = share(field, "memory_efficiency");
  }

  static double share(const Field& field, std::string_view key) {
    if (!field.has(key)) return 0;
    const double value = field[key].number();
    if (!(value > 0 && value <= 1)) {
      field[key].fail(
          fmt::format("expected a share of the peak above 0 and up to 1, got {}", value));
    }
    return value;
  }

  void read_transfer(const Field& field, Operation& op) const {
    field.allow_only({"op", "id", "name", "stream", "after", "bytes", "peer", "wrap", "tag"});
    op.bytes = field["bytes"].bytes();
    if (field.has("tag")) op.tag = field["tag"].text();
    const Field place = field["peer"];
    const Peer peer = read_peer(place);
    op.peer = peer.value;
    op.peer_relative = peer.relative;
    const bool wrap = field.has("wrap") && field["wrap"].boolean();
    if (wrap && !peer.relative) {
      field["wrap"].fail("expected only beside a \"peer\" that is an offset such as \"+1\"");
    }
    if (!peer.relative && (peer.value < 0 || peer.value >= ranks_)) {
      place.fail(
          fmt::format("rank {} is not there, the ranks are 0 to {}", peer.value, ranks_ - 1));
    }
    for (const std::uint32_t rank : program_.ranks) {
      // Offsets beyond all ranks are out of range for every rank; clamped, the sum cannot overflow.
      const auto all = static_cast<std::int64_t>(ranks_);
      const std::int64_t sum = rank + std::clamp(peer.value, -all, all);
      if (peer.relative && !wrap && (sum < 0 || sum >= all)) {
        place.fail(
            fmt::format("rank {} has no peer {:+}, the ranks are 0 to {}; \"wrap\": true would "
                        "count around the end",
                        rank, peer.value, ranks_ - 1));
      }
      if (peer_of(op, rank, ranks_) == rank) {
        place.fail(fmt::format("rank {} would be its own peer", rank));
      }
    }
  }

  void check_members(const Field& field, const Operation& op) {
    const GroupFamily& family = names_.groups[op.group];
    if (op.group >= outsider_.size()) outsider_.resize(op.group + 1);
    auto& outsider = outsider_[op.group];
    if (!outsider) {
      std::vector<bool> member(ranks_, false);
      for (const Ranks& group : family.groups) {
        for (const std::uint32_t rank : group) member[rank] = true;
      }
      const auto first =
          std::ranges::find_if(program_.ranks, [&](auto rank) { return !member[rank]; });
      outsider = first == program_.ranks.end() ? ranks_ : *first;
    }
    if (*outsider == ranks_) return;
    field["group"].fail(
        fmt::format("rank {} of this program is in no group of \"{}\"", *outsider, family.name));
  }

  void read_after(const Field& field, Operation& op) const {
    if (!field.has("after")) return;
    const Field after = field["after"];
    const auto add = [&](const Field& id) {
      const auto found = ids_.find(id.text());
      if (found == ids_.end()) {
        std::vector<std::string> names;
        for (const Operation& other : program_.ops) names.push_back(other.id);
        id.fail(fmt::format("this program has no operation \"{}\"{}", id.text(),
                            did_you_mean(id.text(), names)));
      }
      op.after.push_back(found->second);
    };
    if (after.is_string()) {
      add(after);
    } else {
      for (const Field& id : after.elements()) add(id);
    }
  }

  const Field& field_;
  std::uint32_t ranks_;
  Names& names_;
  Program program_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::unordered_map<std::string, std::uint32_t> on_stream_;
  // By family: the first rank of the program that is in no group of it, or ranks_; empty: not
  // known.
  std::vector<std::optional<std::uint32_t>> outsider_;
};

// The program with its iterations written out. The next begins when all of one has ended.
Program iterated(const Program& once, std::uint32_t iterations, std::uint32_t section) {
  const auto size = static_cast<std::uint32_t>(once.ops.size());
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> ends;  // First and last by stream.
  for (std::uint32_t i = 0; i < size; ++i) {
    ends.try_emplace(once.ops[i].stream, i, i).first->second.second = i;
  }
  Program program{once.name, once.ranks, {}};
  program.ops.reserve(static_cast<std::size_t>(size) * iterations);
  for (std::uint32_t iteration = 0; iteration < iterations; ++iteration) {
    const std::uint32_t base = iteration * size;
    for (Operation op : once.ops) {
      op.id += fmt::format("#{}", iteration + 1);
      for (std::uint32_t& other : op.after) other += base;
      op.section = section;
      if (section != no_section) op.copy = iteration;
      program.ops.push_back(std::move(op));
    }
    if (iteration == 0) continue;
    for (const auto& [stream, own] : ends) {
      for (const auto& [other_stream, other] : ends) {
        program.ops[base + own.first].after.push_back(base - size + other.second);
      }
    }
  }
  return program;
}

// Writes the iterations of all programs out: a few, where all that repeat do so equally often and
// their copies are a section.
void iterate(const Field& root, Workload& workload, const std::vector<std::uint32_t>& repeats) {
  const std::vector<Program> once = std::move(workload.programs);
  const std::uint32_t most = *std::ranges::max_element(repeats);
  const bool equal = std::ranges::all_of(
      repeats, [&](std::uint32_t repeat) { return repeat == 1 || repeat == most; });
  bool few = equal && most > held_copies;
  const auto write = [&] {
    workload.programs.clear();
    std::size_t operations = 0;
    for (std::size_t i = 0; i < once.size(); ++i) {
      const std::uint32_t held = few ? std::min(repeats[i], held_copies) : repeats[i];
      operations += once[i].ops.size() * held;
      check_room(root["programs"][i], operations);
      if (repeats[i] == 1) {
        workload.programs.push_back(once[i]);
      } else {
        workload.programs.push_back(iterated(once[i], held, few ? 0 : no_section));
      }
    }
  };
  write();
  if (!few) return;
  few = std::ranges::all_of(workload.programs,
                            [](const Program& p) { return irregularity(p, 0).empty(); });
  if (few) {
    workload.sections.push_back({most - held_copies, "iterations", 1});
  } else {
    write();
  }
}

Workload read_programs(const Field& root, std::uint32_t gpus, const std::string& file) {
  root.allow_only({"name", "ranks", "groups", "exchanges", "programs"});
  check_rank_count(root["ranks"], gpus);
  Names names(root, gpus, file);

  const Field list = root["programs"];
  if (list.size() == 0) list.fail("expected at least one program");
  std::vector<Program> programs;
  std::vector<std::uint32_t> owner(gpus, 0);  // Program number from 1.
  std::vector<std::uint32_t> repeats;
  for (const Field& field : list.elements()) {
    programs.push_back(ProgramReader(field, gpus, names).read());
    const Program& program = programs.back();
    for (const std::uint32_t rank : program.ranks) {
      const std::uint32_t other =
          std::exchange(owner[rank], static_cast<std::uint32_t>(programs.size()));
      if (other != 0) {
        field["ranks"].fail(fmt::format("rank {} is in program {} already", rank, other - 1));
      }
    }
    repeats.push_back(field.has("repeat") ? field["repeat"].count() : 1);
  }
  Workload workload{"", gpus, names.groups.take(), std::move(programs), {}, names.exchanges.take()};
  // Before repeats change the ids that its messages name.
  at_place(root, [&] { validate(workload); });
  iterate(root, workload, repeats);
  return workload;
}

Workload read_form(const Field& root, std::uint32_t gpus, const std::string& file) {
  constexpr std::array<std::string_view, 3> forms = {"collectives", "programs", "training"};
  std::vector<std::string_view> found;
  std::ranges::copy_if(forms, std::back_inserter(found), [&](auto key) { return root.has(key); });
  if (found.size() > 1) {
    root.fail(fmt::format("\"{}\" and \"{}\" are different forms of a workload, give one of them",
                          found[0], found[1]));
  }
  if (found.empty()) {
    const std::vector<std::string> words(forms.begin(), forms.end());
    const auto keys = root.keys();
    const auto slip =
        std::ranges::find_if(keys, [&](const auto& k) { return !nearest(k, words).empty(); });
    const std::string hint = slip == keys.end() ? "" : fmt::format(", is \"{}\" misspelt?", *slip);
    root.fail("expected a workload with \"collectives\", \"programs\" or \"training\"" + hint);
  }
  if (found[0] == "collectives") return read_collectives(root, gpus, file);
  if (found[0] == "programs") return read_programs(root, gpus, file);
  root["training"].fail(
      "a training layout is not a list of operations: it is expanded for a cluster");
}

}  // namespace

Workload read_workload(const Document& document, std::uint32_t gpus) {
  require(gpus > 0, "read_workload: a cluster with GPUs");
  const Field root = document.root();
  Workload workload = read_form(root, gpus, document.name());
  workload.name = root.has("name") ? root["name"].text()
                                   : std::filesystem::path(document.name()).stem().string();
  return canonical(std::move(workload));
}

}  // namespace flyover::io
