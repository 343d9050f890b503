#include "simulate/messages.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"

namespace flyover {

namespace {

// What a program sends to, and receives from, one peer. Ranks of the program differ in who that is.
struct Counterpart {
  using TaggedOp = std::pair<std::string_view, std::uint32_t>;

  const Operation* sample = nullptr;  // Names the peer.
  std::uint32_t program = 0;
  std::vector<TaggedOp> sends;
  std::vector<TaggedOp> receives;
};

// One end of a pair of ranks.
struct End {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool receives = false;
  std::uint32_t counterpart = 0;

  [[nodiscard]] auto pair() const { return std::tie(from, to); }
};

class Pairing {
 public:
  Pairing(const Workload& workload, const Ranks& ranks) : workload_(workload), ranks_(ranks) {}

  MessagePairs run() {
    read_programs();
    const std::vector<End> ends = sorted(all_ends());
    for (auto first = ends.begin(); first != ends.end();) {
      const auto last =
          std::find_if(first, ends.end(), [&](const End& e) { return e.pair() != first->pair(); });
      out_.pairs.push_back({first->from, first->to, pattern_of({first, last})});
      first = last;
    }
    return std::move(out_);
  }

 private:
  void read_programs() {
    for (std::uint32_t p = 0; p < workload_.programs.size(); ++p) {
      first_.push_back(static_cast<std::uint32_t>(counterparts_.size()));
      std::map<std::pair<bool, std::int64_t>, std::uint32_t> known;
      const std::vector<Operation>& ops = workload_.programs[p].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        const Operation& op = ops[i];
        if (op.kind != OpKind::Send && op.kind != OpKind::Recv) continue;
        const auto [entry, fresh] = known.try_emplace(
            {op.peer_relative, op.peer}, static_cast<std::uint32_t>(counterparts_.size()));
        if (fresh) counterparts_.push_back({&op, p, {}, {}});
        Counterpart& counterpart = counterparts_[entry->second];
        (op.kind == OpKind::Send ? counterpart.sends : counterpart.receives)
            .emplace_back(op.tag, i);
      }
    }
    first_.push_back(static_cast<std::uint32_t>(counterparts_.size()));
    recent_.resize(2 * counterparts_.size());
  }

  [[nodiscard]] std::vector<End> all_ends() const {
    std::vector<End> ends;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::uint32_t p = ranks_.program(rank);
      if (p == absent) continue;
      for (std::uint32_t c = first_[p]; c < first_[p + 1]; ++c) {
        const std::uint32_t peer = peer_of(*counterparts_[c].sample, rank, ranks_.size());
        if (!counterparts_[c].sends.empty()) ends.push_back({rank, peer, false, c});
        if (!counterparts_[c].receives.empty()) ends.push_back({peer, rank, true, c});
      }
    }
    return ends;
  }

  // Ranks have few ends each: dealt out by sender, these are put in order.
  [[nodiscard]] std::vector<End> sorted(const std::vector<End>& ends) const {
    std::vector<std::uint32_t> next(ranks_.size() + std::size_t{1}, 0);
    for (const End& end : ends) ++next[end.from + 1];
    for (std::size_t r = 1; r < next.size(); ++r) next[r] += next[r - 1];
    std::vector<End> dealt(ends.size());
    for (const End& end : ends) dealt[next[end.from]++] = end;
    for (std::uint32_t r = 0, first = 0; r < ranks_.size(); ++r) {
      std::sort(dealt.begin() + first, dealt.begin() + next[r], [](const End& a, const End& b) {
        return std::tie(a.to, a.receives, a.counterpart) <
               std::tie(b.to, b.receives, b.counterpart);
      });
      first = next[r];
    }
    return dealt;
  }

  // Neighbours mostly exchange what those before them do: the last pattern of their first end.
  std::uint32_t pattern_of(std::span<const End> ends) {
    key_.clear();
    for (const End& end : ends) key_.push_back(2 * end.counterpart + (end.receives ? 1 : 0));
    Recent& recent = recent_[key_.front()];
    if (recent.key == key_) return recent.pattern;
    const auto [entry, fresh] = known_.try_emplace(key_, out_.patterns.size());
    if (fresh) out_.patterns.push_back(match(ends));
    recent = {key_, static_cast<std::uint32_t>(entry->second)};
    return recent.pattern;
  }

  // Operations of one rank ascend in program order, so the k-th stays the k-th.
  [[nodiscard]] std::vector<MessagePattern> match(std::span<const End> ends) const {
    std::vector<Counterpart::TaggedOp> sends;
    std::vector<Counterpart::TaggedOp> receives;
    for (const End& end : ends) {
      const Counterpart& c = counterparts_[end.counterpart];
      auto& all = end.receives ? receives : sends;
      const auto& own = end.receives ? c.receives : c.sends;
      all.insert(all.end(), own.begin(), own.end());
    }
    std::ranges::sort(sends);
    std::ranges::sort(receives);
    std::vector<MessagePattern> out;
    for (auto send = sends.begin(), receive = receives.begin();
         send != sends.end() || receive != receives.end();) {
      const bool sent =
          send != sends.end() && (receive == receives.end() || send->first <= receive->first);
      const bool received =
          receive != receives.end() && (send == sends.end() || receive->first <= send->first);
      MessagePattern& message = out.emplace_back();
      if (sent) {
        const Operation& op = operation(ends.front().from, send->second);
        message.send = send->second;
        message.bytes = op.bytes;
        message.slowdown = op.slowdown;
      }
      if (received) {
        message.receive = receive->second;
        const Operation& op = operation(ends.front().to, receive->second);
        if (sent && op.bytes != message.bytes) disagree(ends.front(), message);
        message.bytes = op.bytes;
      }
      if (sent) ++send;
      if (received) ++receive;
    }
    return out;
  }

  [[nodiscard]] const Operation& operation(std::uint32_t rank, std::uint32_t op) const {
    return workload_.programs[ranks_.program(rank)].ops[op];
  }

  [[noreturn]] void disagree(const End& pair, const MessagePattern& message) const {
    const Operation& sent = operation(pair.from, message.send);
    const Operation& received = operation(pair.to, message.receive);
    throw InputError(fmt::format("rank {} sends {} to rank {} (\"{}\"), which expects {} (\"{}\")",
                                 pair.from, to_string(sent.bytes), pair.to, sent.id,
                                 to_string(received.bytes), received.id));
  }

  const Workload& workload_;
  const Ranks& ranks_;
  std::vector<Counterpart> counterparts_;  // Program by program.
  std::vector<std::uint32_t> first_;       // By program.
  std::map<std::vector<std::uint32_t>, std::size_t> known_;
  struct Recent {
    std::vector<std::uint32_t> key;
    std::uint32_t pattern = 0;
  };
  std::vector<Recent> recent_;      // By the first number of a key.
  std::vector<std::uint32_t> key_;  // Of the pair at hand.
  MessagePairs out_;
};

}  // namespace

MessagePairs pair_messages(const Workload& workload, const Ranks& ranks) {
  return Pairing(workload, ranks).run();
}

void Messages::add(std::uint32_t from, std::uint32_t to, const std::vector<MessagePattern>& pattern,
                   const Ranks& ranks, const RankPair& gpus, std::uint32_t count) {
  for (const MessagePattern& p : pattern) {
    const auto id = static_cast<std::uint32_t>(all.size());
    MatchedMessage& message = all.emplace_back(MatchedMessage{
        from, to, p.bytes, no_instance, no_instance, p.slowdown, gpus.from, gpus.to, count});
    if (p.send != absent) {
      message.send = ranks.first(from) + p.send;
      by_instance.emplace_back(message.send, id);
    }
    if (p.receive != absent) {
      message.receive = ranks.first(to) + p.receive;
      by_instance.emplace_back(message.receive, id);
    }
  }
}

void Messages::index() {
  std::ranges::sort(by_instance);
}

std::uint32_t Messages::of(std::uint64_t instance) const {
  const auto found = std::ranges::lower_bound(by_instance, instance, {},
                                              &std::pair<std::uint64_t, std::uint32_t>::first);
  return found->second;
}

Messages match_messages(const Workload& workload, const Ranks& ranks) {
  const MessagePairs matched = pair_messages(workload, ranks);
  Messages out;
  for (const RankPair& pair : matched.pairs) {
    out.add(pair.from, pair.to, matched.patterns[pair.pattern], ranks, pair, 1);
  }
  out.index();
  return out;
}

}  // namespace flyover
