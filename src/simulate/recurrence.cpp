#include "simulate/recurrence.hpp"

#include <algorithm>
#include <utility>

namespace flyover {

namespace {

// Looks per copy: a run that has become steady soon shows it soon.
constexpr std::uint32_t most_marks = 16;

}  // namespace

Recurrence::Recurrence(const Cast& cast, const Ranks& ranks) : cast_(cast), ranks_(ranks) {
  for (const Program& program : cast.workload.programs) orders_.push_back(stream_order(program));
  first_slot_.push_back(0);
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const std::uint32_t p = ranks.program(rank);
    const std::size_t streams = p == absent ? 0 : orders_[p].ops.size();
    first_slot_.push_back(first_slot_.back() + static_cast<std::uint32_t>(streams));
  }
  done_.resize(slots());
  clock_of_.resize(slots());
  const auto sections = static_cast<std::uint32_t>(cast.workload.sections.size());
  places_.resize(sections);
  clocks_.resize(sections);
  for (std::uint32_t section = 0; section < sections; ++section) {
    if (cast.workload.sections[section].elided == 0) continue;
    find_places(section);
    if (!meets_itself(section)) {
      failed_ = true;
      return;
    }
    choose_clock(section);
    failed_ = failed_ || !clocks_[section].open;
  }
}

void Recurrence::find_places(std::uint32_t section) {
  for (std::uint32_t p = 0; p < orders_.size(); ++p) {
    const Program& program = cast_.workload.programs[p];
    const std::vector<bool> is_behind = behind_section(program, orders_[p], section);
    Places& places = places_[section].emplace_back();
    places.ranges = section_ranges(program, orders_[p], section);
    for (const std::vector<std::uint32_t>& ops : orders_[p].ops) {
      const auto first = std::ranges::find_if(ops, [&](std::uint32_t op) { return is_behind[op]; });
      places.behind.push_back(static_cast<std::uint32_t>(first - ops.begin()));
    }
    places.needed.resize(orders_[p].ops.size());
    for (const Operation& op : program.ops) {
      if (op.section != section) continue;
      for (const std::uint32_t other : op.after) {
        if (program.ops[other].section == section) continue;
        std::uint32_t& needed = places.needed[orders_[p].stream[other]];
        needed = std::max(needed, orders_[p].place[other] + 1);
      }
    }
  }
}

void Recurrence::choose_clock(std::uint32_t section) {
  Clock& clock = clocks_[section];
  for (std::uint32_t rank = 0; rank < ranks_.size() && !clock.open; ++rank) {
    if (ranks_.program(rank) == absent) continue;
    const std::vector<SectionRange>& ranges = places_[section][ranks_.program(rank)].ranges;
    const auto busiest = std::ranges::max_element(ranges, {}, &SectionRange::period);
    if (busiest == ranges.end() || busiest->period == 0) continue;
    clock.slot = first_slot_[rank] + static_cast<std::uint32_t>(busiest - ranges.begin());
    clock.range = *busiest;
    clock.open = true;
    ++open_;
    clock_of_[clock.slot] = true;
    const std::uint32_t marks = std::min(most_marks, clock.range.period);
    clock.mark.assign(clock.range.period, absent);
    clock.kept.resize(marks);
    for (std::uint32_t i = 0; i < marks; ++i) {
      clock.mark[std::uint64_t{i} * clock.range.period / marks] = i;
    }
  }
}

// Whether what ranks do together is the same one copy on.
bool Recurrence::meets_itself(std::uint32_t section) const {
  for (const Program& program : cast_.workload.programs) {
    if (!irregularity(program, section).empty()) return false;
  }
  return calls_keep_step(section) && messages_keep_step(section);
}

bool Recurrence::calls_keep_step(std::uint32_t section) const {
  const std::size_t families = cast_.workload.groups.size();
  std::vector<std::vector<std::uint32_t>> calls;  // Of a copy, by program, by family.
  for (const Program& program : cast_.workload.programs) {
    std::vector<std::uint32_t>& own = calls.emplace_back(families);
    for (const Operation& op : program.ops) {
      if (op.section == section && op.copy == 0 && op.kind == OpKind::Collective) ++own[op.group];
    }
  }
  for (std::size_t f = 0; f < families; ++f) {
    for (const auto& group : cast_.workload.groups[f].groups) {
      std::uint32_t known = absent;
      for (const std::uint32_t rank : group) {
        const std::uint32_t p = ranks_.program(rank);
        const std::uint32_t own = p == absent ? 0 : calls[p][f];
        if (known != absent && own != known) return false;
        known = own;
      }
    }
  }
  return true;
}

bool Recurrence::messages_keep_step(std::uint32_t section) const {
  const auto next = [&](std::uint32_t rank, std::uint64_t instance) {
    const auto op = static_cast<std::uint32_t>(instance - ranks_.first(rank));
    const StreamOrder& order = orders_[ranks_.program(rank)];
    const SectionRange& range = places_[section][ranks_.program(rank)].ranges[order.stream[op]];
    const std::uint32_t place = order.place[op] + range.period;
    const bool inside = range.period > 0 && range.holds(order.place[op]) && range.holds(place);
    return inside ? ranks_.first(rank) + order.ops[order.stream[op]][place] : no_instance;
  };
  for (const MatchedMessage& message : cast_.messages.all) {
    // One without a counterpart never ends, nor does the run.
    if (message.send == no_instance || message.receive == no_instance) return false;
    const std::uint64_t sent = next(message.from, message.send);
    const std::uint64_t received = next(message.to, message.receive);
    if (sent != no_instance) {
      const MatchedMessage& later = cast_.messages.all[cast_.messages.of(sent)];
      if (later.receive == no_instance || later.to != message.to ||
          !one_copy_on(section, message.receive, later.receive)) {
        return false;
      }
    }
    if (received != no_instance) {
      const MatchedMessage& later = cast_.messages.all[cast_.messages.of(received)];
      if (later.send == no_instance || later.from != message.from ||
          !one_copy_on(section, message.send, later.send)) {
        return false;
      }
    }
  }
  return true;
}

bool Recurrence::one_copy_on(std::uint32_t section, std::uint64_t from, std::uint64_t to) const {
  const std::uint32_t rank = ranks_.rank_of(from);
  const StreamOrder& order = orders_[ranks_.program(rank)];
  const auto a = static_cast<std::uint32_t>(from - ranks_.first(rank));
  const auto b = static_cast<std::uint32_t>(to - ranks_.first(rank));
  const std::uint32_t stream = order.stream[a];
  const std::uint32_t period = places_[section][ranks_.program(rank)].ranges[stream].period;
  return period > 0 && order.stream[b] == stream && order.place[b] == order.place[a] + period;
}

void Recurrence::tick(std::uint32_t slot) {
  for (std::uint32_t section = 0; section < clocks_.size(); ++section) {
    const Clock& clock = clocks_[section];
    if (!clock.open || clock.slot != slot || done_[slot] < clock.range.begin) continue;
    if (done_[slot] >= clock.range.end) {
      failed_ = true;
      return;
    }
    const std::uint32_t mark = clock.mark[(done_[slot] - clock.range.begin) % clock.range.period];
    if (mark == absent) continue;
    due_section_ = section;
    due_mark_ = mark;
  }
}

std::optional<std::uint32_t> Recurrence::observe(Moment& moment) {
  const std::uint32_t section = std::exchange(due_section_, no_section);
  Clock& clock = clocks_[section];
  Moment& kept = clock.kept[due_mark_];
  if (kept.slots.empty() || !recurs(section, kept, moment)) {
    kept = std::move(moment);
    return std::nullopt;
  }
  earlier_ = std::move(kept);
  clock.open = false;
  --open_;
  // Time has a gap now.
  for (Clock& other : clocks_) {
    for (Moment& old : other.kept) old = {};
  }
  return section;
}

bool Recurrence::recurs(std::uint32_t section, const Moment& before, const Moment& after) const {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_.program(rank) == absent) continue;
    const Places& places = places_[section][ranks_.program(rank)];
    for (std::uint32_t s = 0; s < places.ranges.size(); ++s) {
      const SectionRange& range = places.ranges[s];
      SlotState a = before.slots[first_slot_[rank] + s];
      const SlotState& b = after.slots[first_slot_[rank] + s];
      if (b.done + (b.next == OpState::Blocked ? 0U : 1U) > places.behind[s]) return false;
      // Later copies do not wait for what the first one does.
      if (a.done < places.needed[s]) return false;
      if (range.period == 0) {
        // It may wait for a long time, but not do anything.
        if (a.done != b.done || a.next != b.next || b.next == OpState::Running) return false;
        continue;
      }
      if (a.done < range.begin || b.done >= range.end) return false;
      a.done += range.period;
      if (!(a == b)) return false;
    }
  }
  return true;
}

}  // namespace flyover
