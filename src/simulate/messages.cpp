#include "simulate/messages.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"

namespace flyover {

namespace {

struct Side {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string_view tag;
  bool receives = false;
  std::uint64_t instance = 0;
  const Operation* op = nullptr;

  [[nodiscard]] auto channel() const { return std::tie(from, to, tag); }
};

}  // namespace

std::uint32_t Messages::of(std::uint64_t instance) const {
  const auto found = std::ranges::lower_bound(by_instance, instance, {},
                                              &std::pair<std::uint64_t, std::uint32_t>::first);
  return found->second;
}

Messages match_messages(const Workload& workload, const Ranks& ranks) {
  std::vector<Side> sides;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks.program(rank) == absent) continue;
    const Program& program = workload.programs[ranks.program(rank)];
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const Operation& op = program.ops[i];
      if (op.kind != OpKind::Send && op.kind != OpKind::Recv) continue;
      const std::uint32_t peer = peer_of(op, rank, ranks.size());
      const bool receives = op.kind == OpKind::Recv;
      sides.push_back({receives ? peer : rank, receives ? rank : peer, op.tag, receives,
                       ranks.first(rank) + i, &op});
    }
  }
  // Instances of one rank ascend in program order, so the k-th stays the k-th.
  std::ranges::sort(sides, [](const Side& a, const Side& b) {
    return std::tie(a.from, a.to, a.tag, a.receives, a.instance) <
           std::tie(b.from, b.to, b.tag, b.receives, b.instance);
  });

  Messages out;
  for (auto first = sides.begin(); first != sides.end();) {
    const auto last = std::find_if(first, sides.end(),
                                   [&](const Side& s) { return s.channel() != first->channel(); });
    const auto receives = std::find_if(first, last, [](const Side& s) { return s.receives; });
    const auto sends = receives - first;
    const auto pairs = std::max(sends, last - receives);
    for (std::ptrdiff_t k = 0; k < pairs; ++k) {
      MatchedMessage message;
      message.from = first->from;
      message.to = first->to;
      if (k < sends) {
        message.send = first[k].instance;
        message.bytes = first[k].op->bytes;
        message.slowdown = first[k].op->slowdown;
      }
      if (k < last - receives) {
        message.receive = receives[k].instance;
        if (k < sends && receives[k].op->bytes != message.bytes) {
          throw InputError(
              fmt::format("rank {} sends {} to rank {} (\"{}\"), which expects {} (\"{}\")",
                          message.from, to_string(message.bytes), message.to, first[k].op->id,
                          to_string(receives[k].op->bytes), receives[k].op->id));
        }
        message.bytes = receives[k].op->bytes;
      }
      const auto id = static_cast<std::uint32_t>(out.all.size());
      if (message.send != no_instance) out.by_instance.emplace_back(message.send, id);
      if (message.receive != no_instance) out.by_instance.emplace_back(message.receive, id);
      out.all.push_back(message);
    }
    first = last;
  }
  std::ranges::sort(out.by_instance);
  return out;
}

}  // namespace flyover
