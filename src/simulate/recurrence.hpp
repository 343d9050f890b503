#pragma once

// Where a replay is in the sections of its workload that repeat, and when its state comes again.
//
// Everything that a replay will do depends on its state: which operations have ended, run or wait,
// for how long they have, and what is left of their streams at which rates. All of it is relative
// to the present. Operations of one stream follow each other, so that per stream of a rank one
// number, how many have ended, and the state of the next one tell all (SlotState).
//
// Suppose that the state at one moment is that of an earlier one, but that every stream with
// operations of the section has gone on by one copy of it, and no other has moved. Operations one
// copy apart are alike, wait for operations one copy apart and meet such operations of other ranks
// (repetition.hpp; the constructor looks at what ranks do with each other). So what happened
// between the two moments happens again, one copy on and later by the time between them, and
// again, for as long as no stream leaves the section. With n copies more in the program, the state
// comes again n times and then goes on as it does without them. A replay of the short program thus
// adds up what the n periods did and goes on, later by n times the period.
//
// The short program must not have done by then what the long one would not have: no stream has
// begun what is behind the section.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/workload/repetition.hpp"
#include "simulate/cast.hpp"
#include "simulate/ledger.hpp"
#include "simulate/program.hpp"
#include "simulate/state.hpp"
#include "simulate/statistics.hpp"

namespace flyover {

// A stream of a rank.
struct SlotState {
  std::uint32_t done = 0;           // Of its operations.
  OpState next = OpState::Blocked;  // Of the one after those.
  // Since the next one began, and of the stream of the engine that it started, if it is the first
  // of those that it belongs to: since its rate changed.
  Duration begun{};
  bool flows = false;
  double left = 0;
  double rate = 0;
  Duration since{};

  friend bool operator==(const SlotState&, const SlotState&) = default;
};

struct Moment {
  Time when;
  std::vector<SlotState> slots;
  // What had been accounted for.
  std::vector<double> activities;
  std::vector<CallStatistics::Totals> calls;
  std::vector<double> amounts;  // By resource of the engine.
};

// Borrows the cast, which must outlive it.
class Recurrence {
 public:
  Recurrence(const Cast& cast, const Ranks& ranks);

  // Whether a section has copies left out and may still recur; failed(): one has not.
  [[nodiscard]] bool active() const { return open_ > 0; }
  [[nodiscard]] bool failed() const { return failed_; }

  [[nodiscard]] std::uint32_t slots() const { return first_slot_.back(); }
  [[nodiscard]] std::uint32_t slot(std::uint32_t rank, std::uint32_t op) const {
    return first_slot_[rank] + orders_[ranks_.program(rank)].stream[op];
  }
  // Calls visit(rank, slot, ended operations, next operation or absent) for all streams of ranks.
  template <class Visit>
  void for_slots(Visit visit) const {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_.program(rank) == absent) continue;
      const auto& streams = orders_[ranks_.program(rank)].ops;
      for (std::uint32_t s = 0; s < streams.size(); ++s) {
        const std::uint32_t done = done_[first_slot_[rank] + s];
        visit(rank, first_slot_[rank] + s, done,
              done < streams[s].size() ? streams[s][done] : absent);
      }
    }
  }
  // Whether the slot has operations of the section.
  [[nodiscard]] bool repeats(std::uint32_t rank, std::uint32_t slot, std::uint32_t section) const {
    return places_[section][ranks_.program(rank)].ranges[slot - first_slot_[rank]].period > 0;
  }

  // An operation has ended.
  void count(std::uint32_t rank, std::uint32_t op) {
    const std::uint32_t s = slot(rank, op);
    ++done_[s];
    if (clock_of_[s]) tick(s);
  }
  // Whether, now that the picosecond is over, somebody should look.
  [[nodiscard]] bool due() const { return due_section_ != no_section; }
  // Compares the state with that of a copy ago; the section that recurs, if it does, is then done
  // with and `moment` unchanged. Keeps the moment otherwise. Requires due().
  std::optional<std::uint32_t> observe(Moment& moment);
  // The moment that was equal to the last one observed.
  [[nodiscard]] const Moment& earlier() const { return earlier_; }

 private:
  // A section in a program.
  struct Places {
    std::vector<SectionRange> ranges;   // By stream.
    std::vector<std::uint32_t> behind;  // By stream: the first operation behind the section,
    std::vector<std::uint32_t> needed;  // and how many before it the first copy waits for.
  };
  // The stream of one rank that says when to look, some times per copy.
  struct Clock {
    std::uint32_t slot = absent;
    SectionRange range;
    std::vector<std::uint32_t> mark;  // By place in a copy: which look, or absent.
    std::vector<Moment> kept;         // By mark.
    bool open = false;
  };

  void find_places(std::uint32_t section);
  void choose_clock(std::uint32_t section);
  [[nodiscard]] bool meets_itself(std::uint32_t section) const;
  [[nodiscard]] bool calls_keep_step(std::uint32_t section) const;
  [[nodiscard]] bool messages_keep_step(std::uint32_t section) const;
  [[nodiscard]] bool one_copy_on(std::uint32_t section, std::uint64_t from, std::uint64_t to) const;
  void tick(std::uint32_t slot);
  [[nodiscard]] bool recurs(std::uint32_t section, const Moment& before, const Moment& after) const;

  const Cast& cast_;
  const Ranks& ranks_;
  std::vector<StreamOrder> orders_;          // By program.
  std::vector<std::vector<Places>> places_;  // By section, by program.
  std::vector<Clock> clocks_;                // By section.
  std::vector<std::uint32_t> first_slot_;    // By rank, and one more.
  std::vector<std::uint32_t> done_;          // By slot.
  std::vector<bool> clock_of_;               // By slot: whether it is a clock.
  std::uint32_t open_ = 0;
  bool failed_ = false;
  std::uint32_t due_section_ = no_section;
  std::uint32_t due_mark_ = 0;
  Moment earlier_;
};

}  // namespace flyover
