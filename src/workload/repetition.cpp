#include "flyover/workload/repetition.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

struct Numbered {
  std::string_view base;
  std::string_view digits;  // Empty: there is no number at the end.
  std::int64_t number = 0;
};

Numbered numbered(std::string_view text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  const std::size_t begin = last == std::string_view::npos ? 0 : last + 1;
  Numbered out{text.substr(0, begin), text.substr(begin), 0};
  const char* end = out.digits.data() + out.digits.size();
  if (std::from_chars(out.digits.data(), end, out.number).ec != std::errc{}) return {text, {}, 0};
  return out;
}

// From one copy to the next; `known` is set by the first.
bool same_step(std::string_view before, std::string_view after, std::int64_t& known, bool& first) {
  const Numbered a = numbered(before);
  const Numbered b = numbered(after);
  if (a.base != b.base || a.digits.empty() != b.digits.empty()) return false;
  if (a.digits.empty()) return true;
  if (std::exchange(first, false)) known = b.number - a.number;
  return b.number - a.number == known;
}

bool same_work(const Operation& a, const Operation& b) {
  const auto parts = [](const Operation& op) {
    return std::tie(op.kind, op.collective, op.stream, op.bytes, op.dtype, op.efficiency,
                    op.memory_efficiency, op.duration, op.sms, op.group, op.root, op.exchange,
                    op.slowdown, op.peer, op.peer_relative, op.tag, op.section);
  };
  return a.flops == b.flops && parts(a) == parts(b);
}

class Regularity {
 public:
  Regularity(const Program& program, std::uint32_t section)
      : program_(program),
        section_(section),
        order_(stream_order(program)),
        ranges_(section_ranges(program, order_, section)),
        behind_(behind_section(program, order_, section)) {}

  std::string problem() {
    for (std::size_t s = 0; s < ranges_.size(); ++s) {
      if (ranges_[s].period == 0) continue;
      if (!copies_in_order(s)) {
        return fmt::format("copies on stream \"{}\" that are not in order and equally long",
                           order_.names[s]);
      }
    }
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const Operation& op = program_.ops[i];
      if (op.section != section_) continue;
      if (!waits_inside(i)) {
        return fmt::format(
            "operation \"{}\" that waits for what is not of its copy or the one "
            "before",
            op.id);
      }
      if (op.copy > 0 && !follows(i)) {
        return fmt::format("operation \"{}\" that is not like the one a copy before", op.id);
      }
    }
    return meets_on_one_stream() ? ""
                                 : "calls of one group, or messages of one tag, on two streams";
  }

  [[nodiscard]] std::int64_t name_step() const {
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const Operation& op = program_.ops[i];
      if (op.section != section_ || op.copy != 1) continue;
      const Numbered own = numbered(op.name);
      if (own.digits.empty()) continue;
      if (const auto step = own.number - numbered(program_.ops[earlier(i)].name).number;
          step != 0) {
        return step;
      }
    }
    return 0;
  }

 private:
  [[nodiscard]] std::uint32_t earlier(std::uint32_t op) const {
    const std::uint32_t s = order_.stream[op];
    return order_.ops[s][order_.place[op] - ranges_[s].period];
  }

  [[nodiscard]] bool copies_in_order(std::size_t stream) const {
    const SectionRange& range = ranges_[stream];
    if (range.end - range.begin < 2 * range.period) return false;
    for (std::uint32_t place = range.begin; place < range.end; ++place) {
      const Operation& op = program_.ops[order_.ops[stream][place]];
      if (op.section != section_ || op.copy != (place - range.begin) / range.period) return false;
    }
    return true;
  }

  [[nodiscard]] bool waits_inside(std::uint32_t i) const {
    const Operation& op = program_.ops[i];
    return std::ranges::all_of(op.after, [&](std::uint32_t other) {
      const Operation& before = program_.ops[other];
      if (before.section == section_) return before.copy == op.copy || before.copy + 1 == op.copy;
      return op.copy == 0 && !behind_[other];
    });
  }

  bool follows(std::uint32_t i) {
    const Operation& op = program_.ops[i];
    const std::uint32_t e = earlier(i);
    const Operation& before = program_.ops[e];
    if (!same_work(op, before) || !same_step(before.id, op.id, id_step_, first_id_) ||
        numbered(before.name).base != numbered(op.name).base) {
      return false;
    }
    // Names without a number of their copy stay the same.
    if (before.name != op.name && !same_step(before.name, op.name, name_step_, first_name_)) {
      return false;
    }
    // The first copy does not show what it would wait for of the one before it.
    std::vector<std::uint32_t> expected;
    for (const std::uint32_t other : before.after) {
      if (program_.ops[other].section != section_) continue;
      const std::uint32_t s = order_.stream[other];
      const std::uint32_t place = order_.place[other] + ranges_[s].period;
      if (place >= order_.ops[s].size()) return false;
      expected.push_back(order_.ops[s][place]);
    }
    std::vector<std::uint32_t> found;
    for (const std::uint32_t other : op.after) {
      if (before.copy > 0 || program_.ops[other].copy > 0) found.push_back(other);
    }
    std::ranges::sort(expected);
    std::ranges::sort(found);
    return expected == found;
  }

  [[nodiscard]] bool meets_on_one_stream() const {
    using Meeting = std::tuple<OpKind, std::int64_t, bool, std::string_view>;  // Peer or family.
    struct Use {
      std::uint32_t stream;
      bool repeats = false;
      bool spread = false;
    };
    std::map<Meeting, Use> uses;
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const Operation& op = program_.ops[i];
      const bool call = op.kind == OpKind::Collective;
      if (!call && op.kind != OpKind::Send && op.kind != OpKind::Recv) continue;
      const Meeting meeting{op.kind, call ? op.group : op.peer, !call && op.peer_relative,
                            call ? std::string_view{} : std::string_view{op.tag}};
      Use& use = uses.try_emplace(meeting, Use{order_.stream[i]}).first->second;
      use.repeats = use.repeats || op.section == section_;
      use.spread = use.spread || use.stream != order_.stream[i];
      if (use.repeats && use.spread) return false;
    }
    return true;
  }

  const Program& program_;
  std::uint32_t section_;
  StreamOrder order_;
  std::vector<SectionRange> ranges_;
  std::vector<bool> behind_;
  std::int64_t id_step_ = 0;
  std::int64_t name_step_ = 0;
  bool first_id_ = true;
  bool first_name_ = true;
};

std::int64_t id_step(const Program& program, std::uint32_t section) {
  const StreamOrder order = stream_order(program);
  const std::vector<SectionRange> ranges = section_ranges(program, order, section);
  for (std::size_t s = 0; s < ranges.size(); ++s) {
    if (ranges[s].period == 0) continue;
    const auto& ops = order.ops[s];
    return numbered(program.ops[ops[ranges[s].begin + ranges[s].period]].id).number -
           numbered(program.ops[ops[ranges[s].begin]].id).number;
  }
  return 0;
}

// One section of one program with more copies.
class Unroller {
 public:
  Unroller(const Program& program, std::uint32_t section, std::uint32_t copies)
      : program_(program),
        section_(section),
        copies_(copies),
        order_(stream_order(program)),
        ranges_(section_ranges(program, order_, section)),
        name_step_(name_step(program, section)),
        id_step_(flyover::id_step(program, section)),
        behind_(behind_section(program, order_, section)) {}

  std::vector<Operation> run() {
    place_operations();
    std::vector<Operation> out;
    out.reserve(placed_.size());
    for (const Placed& p : placed_) {
      Operation& op = out.emplace_back(program_.ops[p.op]);
      for (std::uint32_t& other : op.after) other = index_of(p, other);
      const std::int64_t copies = p.shift;
      if (copies == 0) continue;
      op.id = advanced(op.id, copies * id_step_);
      if (name_step_ != 0) op.name = advanced(op.name, copies * name_step_);
      if (op.section == section_) op.copy += static_cast<std::uint32_t>(copies);
    }
    return out;
  }

 private:
  struct Placed {
    std::uint32_t op = 0;
    std::uint32_t shift = 0;  // Copies that it, or its number, moved by.
  };

  // Before the section; copy by copy; behind it. On each stream that is its order.
  void place_operations() {
    std::vector<std::vector<std::uint32_t>> copies;
    std::vector<std::uint32_t> before;
    std::vector<std::uint32_t> after;
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const Operation& op = program_.ops[i];
      if (op.section == section_) {
        if (op.copy >= copies.size()) copies.resize(op.copy + std::size_t{1});
        copies[op.copy].push_back(i);
      } else {
        (behind_[i] ? after : before).push_back(i);
      }
    }
    index_.resize(program_.ops.size());
    second_copy_ = static_cast<std::uint32_t>(copies[1].size());
    const auto put = [&](const std::vector<std::uint32_t>& ops, std::uint32_t shift) {
      for (const std::uint32_t op : ops) {
        const bool again = program_.ops[op].section == section_ && program_.ops[op].copy == 1;
        if (!again || shift == 0) index_[op] = static_cast<std::uint32_t>(placed_.size());
        if (program_.ops[op].section != section_) {
          shift = program_.ops[op].sections_before > section_ ? copies_ : 0;
        }
        placed_.push_back({op, shift});
      }
    };
    put(before, 0);
    put(copies[0], 0);
    for (std::uint32_t shift = 0; shift < copies_; ++shift) put(copies[1], shift);
    for (std::size_t c = 1; c < copies.size(); ++c) put(copies[c], copies_);
    put(after, copies_);
  }

  // What an operation that moved waits for.
  [[nodiscard]] std::uint32_t index_of(const Placed& of, std::uint32_t other) const {
    const Operation& op = program_.ops[other];
    const Operation& waiting = program_.ops[of.op];
    if (op.section != section_) return index_[other];
    if (waiting.section != section_)
      return index_[other] + (op.copy == 1 ? copies_ * second_copy_ : 0);
    // Copy 1 waits for copy 0, of which only the first is its own.
    if (op.copy == 0 && waiting.copy == 1 && of.shift > 0) {
      const std::uint32_t s = order_.stream[other];
      return index_[order_.ops[s][order_.place[other] + ranges_[s].period]] +
             (of.shift - 1) * second_copy_;
    }
    return index_[other] + (op.copy == 1 ? of.shift * second_copy_ : 0);
  }

  const Program& program_;
  std::uint32_t section_;
  std::uint32_t copies_;
  StreamOrder order_;
  std::vector<SectionRange> ranges_;
  std::int64_t name_step_;
  std::int64_t id_step_;
  std::vector<bool> behind_;
  std::vector<Placed> placed_;
  std::uint32_t second_copy_ = 0;     // Operations of copy 1.
  std::vector<std::uint32_t> index_;  // By operation, in the result; of copy 1 where it is first.
};

bool has_section(const Program& program, std::uint32_t section) {
  return std::ranges::any_of(program.ops,
                             [&](const Operation& op) { return op.section == section; });
}

}  // namespace

StreamOrder stream_order(const Program& program) {
  StreamOrder out;
  std::unordered_map<std::string_view, std::uint32_t> known;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const std::string_view name = program.ops[i].stream;
    const auto [entry, fresh] =
        known.try_emplace(name, static_cast<std::uint32_t>(out.names.size()));
    if (fresh) {
      out.names.push_back(name);
      out.ops.emplace_back();
    }
    out.stream.push_back(entry->second);
    out.place.push_back(static_cast<std::uint32_t>(out.ops[entry->second].size()));
    out.ops[entry->second].push_back(i);
  }
  return out;
}

std::vector<SectionRange> section_ranges(const Program& program, const StreamOrder& order,
                                         std::uint32_t section) {
  std::vector<SectionRange> ranges(order.names.size());
  for (std::size_t s = 0; s < ranges.size(); ++s) {
    SectionRange& range = ranges[s];
    for (std::uint32_t place = 0; place < order.ops[s].size(); ++place) {
      const Operation& op = program.ops[order.ops[s][place]];
      if (op.section != section) continue;
      if (range.end == 0) range.begin = place;
      range.end = place + 1;
      if (op.copy == 0) ++range.period;
    }
  }
  return ranges;
}

// The order of a program puts operations behind what they wait for, but for those that a file lists
// earlier: hence rounds.
std::vector<bool> behind_section(const Program& program, const StreamOrder& order,
                                 std::uint32_t section) {
  std::vector<bool> behind(program.ops.size(), false);
  for (bool changed = true; std::exchange(changed, false);) {
    std::vector<bool> seen(order.names.size(), false);
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const Operation& op = program.ops[i];
      const std::uint32_t s = order.stream[i];
      if (op.section == section) {
        seen[s] = true;
        continue;
      }
      const bool is = seen[s] || std::ranges::any_of(op.after, [&](std::uint32_t other) {
                        return program.ops[other].section == section || behind[other];
                      });
      if (is && !behind[i]) behind[i] = changed = true;
      seen[s] = seen[s] || is;
    }
  }
  return behind;
}

std::string irregularity(const Program& program, std::uint32_t section) {
  return Regularity(program, section).problem();
}

std::int64_t name_step(const Program& program, std::uint32_t section) {
  return Regularity(program, section).name_step();
}

std::string advanced(std::string_view text, std::int64_t by) {
  const Numbered parts = numbered(text);
  if (parts.digits.empty() || by == 0) return std::string(text);
  return fmt::format("{}{}", parts.base, parts.number + by);
}

Workload unrolled(const Workload& workload, std::uint64_t copies) {
  Workload out = workload;
  for (std::uint32_t section = 0; section < out.sections.size(); ++section) {
    const std::uint64_t more = std::min(copies, out.sections[section].elided);
    if (more == 0) continue;
    require(more < std::numeric_limits<std::uint32_t>::max(), "unrolled: copies that fit");
    out.sections[section].elided -= more;
    for (Program& program : out.programs) {
      if (!has_section(program, section)) continue;
      program.ops = Unroller(program, section, static_cast<std::uint32_t>(more)).run();
    }
  }
  return out;
}

std::uint64_t meant_operations(const Workload& workload, const Program& program) {
  std::uint64_t sum = program.ops.size();
  for (const Operation& op : program.ops) {
    if (op.section != no_section && op.copy == 0) sum += workload.sections[op.section].elided;
  }
  return sum;
}

}  // namespace flyover
