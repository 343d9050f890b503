// The symbolic check. Blocks do not touch each other, so each is run alone, over the transfers that
// carry it, with the set of contributions that every rank holds of it.

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "flyover/collective/schedule.hpp"

namespace flyover {

namespace {

bool reduces(CollectiveOp op) {
  return op == CollectiveOp::AllReduce || op == CollectiveOp::ReduceScatter ||
         op == CollectiveOp::Reduce || op == CollectiveOp::Barrier;
}

bool names_owners(CollectiveOp op) {
  return op == CollectiveOp::AllGather || op == CollectiveOp::ReduceScatter ||
         op == CollectiveOp::AllToAll || op == CollectiveOp::Scatter ||
         op == CollectiveOp::SendRecv;
}

bool names_sources(CollectiveOp op) {
  return op == CollectiveOp::AllToAll || op == CollectiveOp::Gather || op == CollectiveOp::SendRecv;
}

std::string name(const Schedule& schedule, std::uint32_t rank) {
  return rank < schedule.ranks ? fmt::format("rank {}", rank)
                               : fmt::format("relay {}", rank - schedule.ranks);
}

std::string name_transfer(const Schedule& schedule, std::uint32_t index) {
  const Transfer& transfer = schedule.transfers[index];
  return fmt::format("transfer {} ({} -> {}, block {})", index, name(schedule, transfer.from),
                     name(schedule, transfer.to), transfer.block);
}

// What makes the schedule unreadable, or "".
std::string malformed(const Schedule& s) {
  const std::size_t blocks = s.block_bytes.size();
  const auto bad_list = [&](const std::vector<std::uint32_t>& list, bool wanted) {
    return list.size() != (wanted ? blocks : 0) ||
           std::ranges::any_of(list, [&](std::uint32_t rank) { return rank >= s.ranks; });
  };
  if (s.ranks == 0) return "no ranks";
  if (s.root >= s.ranks) return fmt::format("root {} is not a rank", s.root);
  if (s.relay_domain.size() != s.relays) return "not one domain for every relay";
  if (bad_list(s.block_owner, names_owners(s.op))) return "not one owner for every block";
  if (bad_list(s.block_source, names_sources(s.op))) return "not one source for every block";
  if (s.dependency_begin.size() != s.transfers.size() + 1 || s.dependency_begin.front() != 0 ||
      s.dependency_begin.back() != s.dependencies.size() ||
      !std::ranges::is_sorted(s.dependency_begin)) {
    return "dependency_begin does not index the dependencies";
  }
  for (std::uint32_t i = 0; i < s.transfers.size(); ++i) {
    const Transfer& transfer = s.transfers[i];
    if (std::max(transfer.from, transfer.to) >= s.ranks + s.relays ||
        transfer.from == transfer.to) {
      return fmt::format("transfer {} is not between two ranks", i);
    }
    if (transfer.block >= blocks) return fmt::format("transfer {} carries no known block", i);
    if (transfer.action == Action::Contribute &&
        (!reduces(s.op) || std::max(transfer.from, transfer.to) >= s.ranks)) {
      return fmt::format("{} contributes, but not from one rank of a sum to another",
                         name_transfer(s, i));
    }
    for (const std::uint32_t earlier : s.after(i)) {
      if (earlier >= i) {
        return fmt::format("{} comes before transfer {}, which it needs", name_transfer(s, i),
                           earlier);
      }
    }
    if (transfer.previous == none) continue;
    if (transfer.previous >= i) {
      return fmt::format("{} comes before transfer {}, its previous", name_transfer(s, i),
                         transfer.previous);
    }
    const Transfer& previous = s.transfers[transfer.previous];
    if (previous.from != transfer.from || previous.to != transfer.to ||
        previous.channel != transfer.channel) {
      return fmt::format("{} is not on the connection of its previous, {}", name_transfer(s, i),
                         name_transfer(s, transfer.previous));
    }
  }
  return {};
}

enum class Access : std::uint8_t { Read, Add, Write };

class Checker {
 public:
  explicit Checker(const Schedule& schedule)
      : schedule_(schedule),
        reduces_(reduces(schedule.op)),
        words_(reduces_ ? (schedule.ranks + 63) / 64 : 1),
        held_(std::size_t{words_} * (schedule.ranks + schedule.relays)),
        uses_(schedule.ranks + schedule.relays),
        local_(schedule.transfers.size()),
        visited_(schedule.transfers.size(), none) {}

  std::string run() {
    sort_by_block();
    for (block_ = 0; block_ < schedule_.block_bytes.size(); ++block_) {
      start();
      for (std::uint32_t i = 0; i < carriers_.size(); ++i) {
        note_ancestors(i);
        if (auto problem = order(i); !problem.empty()) return problem;
        if (auto problem = execute(schedule_.transfers[carriers_[i]]); !problem.empty()) {
          return problem;
        }
      }
      if (auto problem = compare_with_promise(); !problem.empty()) return problem;
    }
    return {};
  }

 private:
  // The uses that one rank makes of the block, as places in carriers_. Uses of one kind that need
  // no order among themselves (reads; additions, as sums do not depend on order) form a bunch; all
  // of the bunch come after all of the bunch before.
  struct Uses {
    std::uint32_t block = none;  // The block that the rest is about.
    Access kind = Access::Read;
    std::vector<std::uint32_t> bunch;
    std::vector<std::uint32_t> before;
  };

  void sort_by_block() {
    begin_.assign(schedule_.block_bytes.size() + 1, 0);
    for (const Transfer& transfer : schedule_.transfers) ++begin_[transfer.block + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    sorted_.resize(schedule_.transfers.size());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::uint32_t i = 0; i < schedule_.transfers.size(); ++i) {
      const std::uint32_t block = schedule_.transfers[i].block;
      local_[i] = next[block] - begin_[block];
      sorted_[next[block]++] = i;
    }
  }

  void start() {
    carriers_ = std::span(sorted_).subspan(begin_[block_], begin_[block_ + 1] - begin_[block_]);
    row_ = (carriers_.size() + 63) / 64;
    ancestors_.assign(row_ * carriers_.size(), 0);
    std::ranges::fill(held_, 0);
    if (reduces_) {
      for (std::uint32_t rank = 0; rank < schedule_.ranks; ++rank) {
        held(rank)[rank / 64] |= std::uint64_t{1} << (rank % 64);
      }
    } else {
      held(first_holder())[0] = 1;
    }
  }

  [[nodiscard]] std::uint32_t first_holder() const {
    if (names_sources(schedule_.op)) return schedule_.block_source[block_];
    return schedule_.op == CollectiveOp::AllGather ? schedule_.block_owner[block_] : schedule_.root;
  }

  std::span<std::uint64_t> held(std::uint32_t rank) {
    return std::span(held_).subspan(std::size_t{rank} * words_, words_);
  }

  // What a rank holds of the block at the start of a sum.
  std::span<std::uint64_t> contribution(std::uint32_t rank) {
    contribution_.assign(words_, 0);
    contribution_[rank / 64] = std::uint64_t{1} << (rank % 64);
    return contribution_;
  }

  // --- order

  // Which carriers of the block end before carrier i starts, as far as dependencies within the
  // block tell, which they nearly always do.
  void note_ancestors(std::uint32_t i) {
    const std::uint32_t index = carriers_[i];
    const auto add = [&](std::uint32_t earlier) {
      if (schedule_.transfers[earlier].block != block_) return;
      std::uint64_t* const own = &ancestors_[row_ * i];
      const std::uint64_t* const theirs = &ancestors_[row_ * local_[earlier]];
      for (std::size_t w = 0; w < row_; ++w) own[w] |= theirs[w];
      own[local_[earlier] / 64] |= std::uint64_t{1} << (local_[earlier] % 64);
    };
    for (const std::uint32_t earlier : schedule_.after(index)) add(earlier);
    if (schedule_.transfers[index].previous != none) add(schedule_.transfers[index].previous);
  }

  // Whether carrier u must end before carrier i starts.
  bool is_before(std::uint32_t u, std::uint32_t i) {
    if ((ancestors_[row_ * i + u / 64] >> (u % 64)) & 1) return true;
    // Perhaps by way of other blocks: search backwards through all that i waits for.
    const std::uint32_t wanted = carriers_[u];
    ++searches_;
    stack_.assign(1, carriers_[i]);
    while (!stack_.empty()) {
      const std::uint32_t index = stack_.back();
      stack_.pop_back();
      if (index == wanted) return true;
      const auto visit = [&](std::uint32_t earlier) {
        if (earlier == none || earlier < wanted || visited_[earlier] == searches_) return;
        visited_[earlier] = searches_;
        stack_.push_back(earlier);
      };
      for (const std::uint32_t earlier : schedule_.after(index)) visit(earlier);
      visit(schedule_.transfers[index].previous);
    }
    return false;
  }

  std::string order(std::uint32_t i) {
    const Transfer& transfer = schedule_.transfers[carriers_[i]];
    const Access change = transfer.action == Action::Copy ? Access::Write : Access::Add;
    // What a rank contributes is its input, which nothing changes.
    if (transfer.action != Action::Contribute) {
      if (const auto u = conflict(transfer.from, Access::Read, i)) return unordered(*u, i);
    }
    if (const auto u = conflict(transfer.to, change, i)) return unordered(*u, i);
    return {};
  }

  // Notes a use, and returns an earlier one that it should have come after.
  std::optional<std::uint32_t> conflict(std::uint32_t rank, Access kind, std::uint32_t i) {
    Uses& uses = uses_[rank];
    if (uses.block != block_) {
      uses.block = block_;
      uses.bunch.clear();
      uses.before.clear();
      uses.kind = kind;
    }
    if (!uses.bunch.empty() && (kind != uses.kind || kind == Access::Write)) {
      uses.before.swap(uses.bunch);
      uses.bunch.clear();
      uses.kind = kind;
    }
    uses.bunch.push_back(i);
    const auto found =
        std::ranges::find_if_not(uses.before, [&](std::uint32_t u) { return is_before(u, i); });
    if (found == uses.before.end()) return std::nullopt;
    return *found;
  }

  [[nodiscard]] std::string unordered(std::uint32_t u, std::uint32_t i) const {
    const Transfer& first = schedule_.transfers[carriers_[u]];
    const Transfer& second = schedule_.transfers[carriers_[i]];
    const std::uint32_t shared =
        second.from == first.to || second.from == first.from ? second.from : second.to;
    return fmt::format("unordered: {} and {} both use block {} at {}",
                       name_transfer(schedule_, carriers_[u]),
                       name_transfer(schedule_, carriers_[i]), block_, name(schedule_, shared));
  }

  // --- contents

  std::string execute(const Transfer& transfer) {
    const auto from =
        transfer.action == Action::Contribute ? contribution(transfer.from) : held(transfer.from);
    const auto to = held(transfer.to);
    if (std::ranges::all_of(from, [](std::uint64_t word) { return word == 0; })) {
      return fmt::format("{} sends block {} without having it", name(schedule_, transfer.from),
                         block_);
    }
    if (transfer.action == Action::Copy) {
      std::ranges::copy(from, to.begin());
      return {};
    }
    for (std::uint32_t w = 0; w < words_; ++w) {
      if (const std::uint64_t twice = from[w] & to[w]; twice != 0) {
        const std::uint32_t rank = reduces_ ? w * 64 + bit(twice) : first_holder();
        return fmt::format("contribution of rank {} to block {} reduced twice at {}", rank, block_,
                           name(schedule_, transfer.to));
      }
      to[w] |= from[w];
    }
    return {};
  }

  static std::uint32_t bit(std::uint64_t word) {
    return static_cast<std::uint32_t>(__builtin_ctzll(word));
  }

  std::string compare_with_promise() {
    switch (schedule_.op) {
      case CollectiveOp::AllReduce:
      case CollectiveOp::Barrier:
      case CollectiveOp::AllGather:
      case CollectiveOp::Broadcast:
        for (std::uint32_t rank = 0; rank < schedule_.ranks; ++rank) {
          if (auto problem = expect_whole(rank); !problem.empty()) return problem;
        }
        return {};
      case CollectiveOp::Reduce:
      case CollectiveOp::Gather:
        return expect_whole(schedule_.root);
      case CollectiveOp::ReduceScatter:
      case CollectiveOp::AllToAll:
      case CollectiveOp::Scatter:
      case CollectiveOp::SendRecv:
        return expect_whole(schedule_.block_owner[block_]);
      case CollectiveOp::MoeDispatch:
      case CollectiveOp::MoeCombine:
      case CollectiveOp::MoeFused:
        break;
    }
    return "no collective that has schedules";
  }

  std::string expect_whole(std::uint32_t rank) {
    const auto has = held(rank);
    if (!reduces_) {
      return has[0] != 0 ? "" : fmt::format("rank {} ends without block {}", rank, block_);
    }
    for (std::uint32_t other = 0; other < schedule_.ranks; ++other) {
      if (((has[other / 64] >> (other % 64)) & 1) == 0) {
        return fmt::format("rank {} ends without the contribution of rank {} to block {}", rank,
                           other, block_);
      }
    }
    return {};
  }

  const Schedule& schedule_;
  const bool reduces_;
  const std::uint32_t
      words_;  // Per set of contributions; blocks that are only copied have a single one.
  std::vector<std::uint64_t> held_;
  std::vector<std::uint64_t> contribution_;
  std::vector<Uses> uses_;

  std::uint32_t block_ = 0;
  std::span<const std::uint32_t> carriers_;  // Transfers of the block.
  std::vector<std::uint32_t> begin_;         // Per block, into sorted_.
  std::vector<std::uint32_t> sorted_;        // Transfers by block.
  std::vector<std::uint32_t> local_;         // Per transfer, its place among its block's.

  std::size_t row_ = 0;  // Words per row of ancestors_.
  std::vector<std::uint64_t> ancestors_;
  std::uint32_t searches_ = 0;
  std::vector<std::uint32_t> visited_;  // Per transfer, the last search that saw it.
  std::vector<std::uint32_t> stack_;
};

}  // namespace

std::string check(const Schedule& schedule) {
  if (auto problem = malformed(schedule); !problem.empty()) return problem;
  return Checker(schedule).run();
}

}  // namespace flyover
