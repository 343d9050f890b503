#include "moe/kernel_limits.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

constexpr double giga = 1e9;

bool returns(CollectiveOp op) {
  return op == CollectiveOp::MoeCombine;
}

// Tokens that an SM, or all of a channel's SMs, read and write.
struct SmWork {
  double read = 0;
  double written = 0;

  // Of `message` bytes each.
  [[nodiscard]] double seconds(double message, double read_GBps, double write_GBps) const {
    return message * std::max(read / (read_GBps * giga), written / (write_GBps * giga));
  }
  [[nodiscard]] double seconds(const ExpertKernels& kernels, double message) const {
    return seconds(message, kernels.sm_read_GBps, kernels.sm_write_GBps);
  }
};

// Where a channel has two SMs, one sends and receives and the other forwards; in one node, one
// sends and the other receives. Seconds of the busier, were there one channel.
double paired_seconds(const ExpertKernels& kernels, bool combine, bool one_node,
                      const CopyWork& work, double message) {
  SmWork first;
  SmWork second;
  if (one_node && combine) {
    first = {work.received, work.received};
    second = {work.to_ranks, work.tokens};
  } else if (one_node) {
    first = {work.tokens, work.to_ranks};
    second = {work.received, work.received};
  } else if (combine) {
    first = {work.received + work.to_nodes, work.received + work.tokens};
    second = {work.forwarded, work.arriving};
  } else {
    first = {work.tokens + work.received, work.to_nodes + work.received};
    second = {work.arriving, work.forwarded};
  }
  return std::max(first.seconds(kernels, message), second.seconds(kernels, message));
}

// Where every SM does everything, into buffers that are large enough to stay where they are:
// DeepEP V2's own account of reads and writes (MOE.md 1.5), of all SMs together.
SmWork pooled_work(bool combine, bool hops, const CopyWork& work) {
  if (!hops) {
    return combine ? SmWork{work.received, work.received} : SmWork{work.tokens, work.to_ranks};
  }
  if (combine) return {work.received + work.forwarded, work.received + work.arriving};
  return {work.tokens + work.arriving, work.tokens + work.own_node + work.forwarded};
}

}  // namespace

KernelUse kernel_use(const ExpertExchange& exchange, CollectiveOp op, std::uint32_t ranks) {
  const ExpertKernels& kernels = *exchange.kernels;
  KernelUse use;
  use.sms = exchange.sms > 0 ? exchange.sms : kernels.sms;
  use.channels = use.sms / kernels.sms_per_channel;
  if (use.channels == 0 && use.sms > 0) {
    throw InputError(fmt::format("{} needs {} SMs per channel, got {}", kernels.name,
                                 kernels.sms_per_channel, use.sms));
  }
  use.chunk = exchange.chunk;
  if (use.chunk == 0 && !kernels.chunks.empty()) {
    const auto rule =
        std::ranges::find_if(kernels.chunks, [&](const auto& c) { return ranks <= c.ranks; });
    const ExpertKernels::Chunks& chunks =
        rule == kernels.chunks.end() ? kernels.chunks.back() : *rule;
    use.chunk = returns(op) ? chunks.combine : chunks.dispatch;
  }
  if (kernels.ring_tokens > 0 && use.chunk > kernels.ring_tokens) {
    throw InputError(fmt::format("{}: a chunk of {} tokens does not fit into a ring of {}",
                                 kernels.name, use.chunk, kernels.ring_tokens));
  }
  return use;
}

std::vector<CopyWork> copy_work(const ExpertExchange& exchange, const ExpertGroup& group,
                                const ExpertCopies& copies) {
  std::vector<CopyWork> work(group.ranks());
  for (std::uint32_t from = 0; from < group.ranks(); ++from) {
    work[from].tokens = static_cast<double>(tokens_of(exchange, from));
    work[from].own_node = copies.to_node.at(from, group.node[from]);
    for (std::uint32_t node = 0; node < group.nodes(); ++node) {
      const std::vector<std::uint32_t>& members = group.members[node];
      const std::uint32_t forwarder =
          group.node[from] == node ? from : members[group.index[from] % members.size()];
      work[from].to_nodes += copies.to_node.at(from, node);
      work[forwarder].arriving += copies.to_node.at(from, node);
      for (const std::uint32_t to : members) {
        const double wanted = copies.to_rank.at(from, to);
        work[from].to_ranks += wanted;
        work[forwarder].forwarded += wanted;
        work[to].received += wanted;
      }
    }
  }
  return work;
}

std::uint32_t sms_for(const ExpertExchange& exchange, CollectiveOp op, const ExpertGroup& group,
                      const std::vector<CopyWork>& work, double link_seconds) {
  constexpr double read_GBps = 200;
  constexpr double write_GBps = 50;
  constexpr double margin = 1.25;
  const bool hops = exchange.mode == ExpertMode::Normal && group.nodes() > 1;
  const double message = message_bytes(exchange, op);
  double copying = 0;
  for (const CopyWork& own : work) {
    copying = std::max(copying,
                       pooled_work(returns(op), hops, own).seconds(message, read_GBps, write_GBps));
  }
  const double needed = link_seconds > 0 ? std::ceil(margin * copying / link_seconds) : 0;
  const auto sms = static_cast<std::uint32_t>(std::max(4.0, needed));
  return sms + sms % 2;
}

KernelLimit kernel_limit(const ExpertExchange& exchange, CollectiveOp op, const ExpertGroup& group,
                         const ExpertCopies& copies, const ExchangeFlows& flows,
                         const std::vector<CopyWork>& work, const KernelUse& use,
                         Duration round_trip) {
  const ExpertKernels& kernels = *exchange.kernels;
  const double message = message_bytes(exchange, op);
  const bool combine = returns(op);
  const bool one_node = group.nodes() == 1;
  const bool hops = exchange.mode == ExpertMode::Normal && !one_node;
  const double channels = use.channels;
  const double post = to_seconds(kernels.post);

  KernelLimit limit;
  const auto take = [&](double seconds, auto words) {
    if (seconds > limit.seconds) limit = {seconds, words()};
  };
  for (std::uint32_t r = 0; r < group.ranks(); ++r) {
    double copying = 0;
    if (kernels.sm_write_GBps > 0) {
      copying = kernels.sms_per_channel == 2
                    ? paired_seconds(kernels, combine, one_node, work[r], message) / channels
                    : pooled_work(combine, hops, work[r]).seconds(kernels, message) / use.sms;
    }
    // A channel copies a chunk, then posts it.
    const double posting = use.chunk > 0 ? flows.remote_copies[r] / use.chunk * post / channels : 0;
    take(copying + posting, [&] {
      return posting > copying ? fmt::format("writes of {} tokens", use.chunk)
                               : fmt::format("sms ({})", use.sms);
    });
    if (!hops || kernels.ring_tokens == 0) continue;
    // A ring's worth of tokens per channel and node is on the way or waits: until it has crossed,
    // been seen, forwarded a chunk at a time and the news has returned.
    const double turn = to_seconds(round_trip) + 2 * to_seconds(kernels.poll) + post +
                        use.chunk * copying * channels / std::max(1.0, work[r].to_nodes);
    for (std::uint32_t node = 0; node < group.nodes(); ++node) {
      if (group.node[r] == node) continue;
      const double rings = copies.to_node.at(r, node) / channels / kernels.ring_tokens;
      take(rings * turn, [&] { return fmt::format("window of {} tokens", kernels.ring_tokens); });
    }
  }
  return limit;
}

double local_copy_bytes(const ExpertExchange& exchange, CollectiveOp op, const ExpertGroup& group,
                        const std::vector<CopyWork>& work) {
  const bool combine = returns(op);
  const double pairs_per_token = exchange.routing.chosen;
  double copies = 0;
  for (const CopyWork& own : work) {
    switch (exchange.mode) {
      case ExpertMode::Normal:
        if (group.nodes() == 1) {
          copies += combine ? own.to_ranks + own.tokens : 2 * own.received;
        } else {
          copies += combine ? own.forwarded + own.arriving + own.to_nodes + own.tokens
                            : own.tokens + own.to_nodes + 2 * own.received;
        }
        break;
      case ExpertMode::Direct:
        copies += combine ? own.to_ranks + own.tokens : 2 * own.tokens + 2 * own.received;
        break;
      case ExpertMode::LowLatency:
        // Casts into, or copies from, send buffers; then unpacks or sums.
        copies += combine ? (3 * pairs_per_token + 1) * own.tokens
                          : (2 + 2 * pairs_per_token) * own.tokens;
        break;
      case ExpertMode::Nccl:
      case ExpertMode::Fused:
        break;
    }
  }
  return copies * message_bytes(exchange, op) / group.ranks();
}

}  // namespace flyover
