#include "support/chunked_dispatch.hpp"

#include <algorithm>
#include <vector>

#include "flyover/engine/event_queue.hpp"
#include "moe/exchange_flows.hpp"
#include "moe/kernel_limits.hpp"

namespace flyover::test {

namespace {

enum class Happening : std::uint32_t {
  ChannelFree,
  LeftNic,
  Arrived,
  Forwarded,
  LeftGpu,
  Released,
  InPlace
};

// Serves in the order in which it is asked.
class Port {
 public:
  Time serve(Time now, double bytes, double rate) {
    free_ = std::max(free_, now) + from_seconds(bytes / rate);
    return free_;
  }

 private:
  Time free_{};
};

struct Chunk {
  std::uint32_t from = 0;
  std::uint32_t channel = 0;
  std::uint32_t node = 0;
  std::uint32_t forwarder = 0;
  double tokens = 0;
  std::uint32_t to = 0;       // Of a forwarded part: its rank.
  std::uint32_t pending = 0;  // Parts that have not left the forwarder.
  std::uint32_t whole = 0;    // Of a part: the chunk that it is of.
};

struct Channel {
  std::vector<double> left;       // Tokens by destination node,
  std::vector<double> in_flight;  // and in the ring there.
  std::uint32_t next = 0;
  bool copying = false;
};

class Run {
 public:
  Run(const ExpertExchange& exchange, const ExpertGroup& group, const ExpertCopies& copies,
      const ChunkedMachine& machine)
      : kernels_(*exchange.kernels),
        group_(group),
        copies_(copies),
        machine_(machine),
        use_(kernel_use(exchange, CollectiveOp::MoeDispatch, group.ranks())),
        message_(message_bytes(exchange, CollectiveOp::MoeDispatch)),
        nic_out_(group.ranks()),
        nic_in_(group.ranks()),
        nvlink_out_(group.ranks()),
        nvlink_in_(group.ranks()),
        forwarders_(std::size_t{group.ranks()} * use_.channels) {
    for (std::uint32_t r = 0; r < group.ranks(); ++r) {
      for (std::uint32_t c = 0; c < use_.channels; ++c) {
        Channel channel;
        channel.next = (c + group.node[r]) % group.nodes();
        channel.in_flight.assign(group.nodes(), 0);
        for (std::uint32_t n = 0; n < group.nodes(); ++n) {
          channel.left.push_back(copies.to_node.at(r, n) / use_.channels);
        }
        channels_.push_back(std::move(channel));
      }
    }
  }

  Duration time() {
    for (std::uint32_t r = 0; r < group_.ranks(); ++r) {
      for (std::uint32_t c = 0; c < use_.channels; ++c) start(r, c);
    }
    Event event;
    while (events_.pop(event)) happen(static_cast<Happening>(event.kind), event.payload);
    return last_ - Time{};
  }

 private:
  void at(Time when, Happening what, std::size_t chunk) {
    events_.schedule(when, Phase::Finish, static_cast<std::uint32_t>(what), chunk);
  }
  Channel& channel(std::uint32_t rank, std::uint32_t c) {
    return channels_[std::size_t{rank} * use_.channels + c];
  }

  // Takes the next destination that has tokens left and room in its ring.
  void start(std::uint32_t rank, std::uint32_t c) {
    Channel& own = channel(rank, c);
    if (own.copying) return;
    for (std::uint32_t i = 0; i < group_.nodes(); ++i) {
      const std::uint32_t node = (own.next + i) % group_.nodes();
      const double tokens = std::min<double>(own.left[node], use_.chunk);
      if (tokens <= 0 || own.in_flight[node] + tokens > kernels_.ring_tokens) continue;
      own.left[node] -= tokens;
      own.in_flight[node] += tokens;
      own.next = (node + 1) % group_.nodes();
      own.copying = true;
      Chunk chunk;
      chunk.from = rank;
      chunk.channel = c;
      chunk.node = node;
      chunk.tokens = tokens;
      const std::vector<std::uint32_t>& members = group_.members[node];
      chunk.forwarder = group_.node[rank] == node ? rank : members[group_.index[rank]];
      chunks_.push_back(chunk);
      // The SM that sends also copies what its channel receives to where it belongs.
      double to_nodes = 0;
      double received = 0;
      for (std::uint32_t n = 0; n < group_.nodes(); ++n) to_nodes += copies_.to_node.at(rank, n);
      for (std::uint32_t r = 0; r < group_.ranks(); ++r) received += copies_.to_rank.at(r, rank);
      const double written = tokens * (1 + received / to_nodes) * message_;
      const Duration copying = from_seconds(written / (kernels_.sm_write_GBps * 1e9));
      const Duration posting = group_.node[rank] == node ? Duration{} : kernels_.post;
      at(events_.now() + copying + posting, Happening::ChannelFree, chunks_.size() - 1);
      return;
    }
  }

  void happen(Happening what, std::size_t id) {
    const Chunk chunk = chunks_[id];
    const Time now = events_.now();
    const double bytes = chunk.tokens * message_;
    switch (what) {
      case Happening::ChannelFree:
        channel(chunk.from, chunk.channel).copying = false;
        if (chunk.forwarder == chunk.from) {
          at(now, Happening::Arrived, id);
        } else {
          at(nic_out_[chunk.from].serve(now, bytes, machine_.network_rate), Happening::LeftNic, id);
        }
        start(chunk.from, chunk.channel);
        break;
      case Happening::LeftNic:
        at(nic_in_[chunk.forwarder].serve(now, bytes, machine_.network_rate) +
               machine_.network_latency,
           Happening::Arrived, id);
        break;
      case Happening::Arrived: {
        // Seen at the next poll; the forwarder of the channel takes one chunk after the other.
        Port& forwarder = forwarders_[std::size_t{chunk.forwarder} * use_.channels + chunk.channel];
        const double written = bytes * wanted(chunk);
        at(forwarder.serve(now + kernels_.poll / 2, written, kernels_.sm_write_GBps * 1e9),
           Happening::Forwarded, id);
        break;
      }
      case Happening::Forwarded:
        forward(id);
        break;
      case Happening::LeftGpu:
        if (--chunks_[chunk.whole].pending == 0) release(chunk.whole);
        at(nvlink_in_[chunk.to].serve(now, bytes, machine_.nvlink_rate) + machine_.nvlink_latency,
           Happening::InPlace, id);
        break;
      case Happening::Released:
        channel(chunk.from, chunk.channel).in_flight[chunk.node] -= chunk.tokens;
        start(chunk.from, chunk.channel);
        break;
      case Happening::InPlace:
        last_ = std::max(last_, now);
        break;
    }
  }

  // Copies for ranks of the node that a token of the chunk has.
  [[nodiscard]] double wanted(const Chunk& chunk) const {
    double copies = 0;
    for (const std::uint32_t to : group_.members[chunk.node]) {
      copies += copies_.to_rank.at(chunk.from, to);
    }
    return copies / copies_.to_node.at(chunk.from, chunk.node);
  }

  void forward(std::size_t id) {
    const Chunk whole = chunks_[id];
    for (const std::uint32_t to : group_.members[whole.node]) {
      Chunk part = whole;
      part.to = to;
      part.whole = static_cast<std::uint32_t>(id);
      part.tokens *=
          copies_.to_rank.at(whole.from, to) / copies_.to_node.at(whole.from, whole.node);
      if (to == whole.forwarder) {
        last_ = std::max(last_, events_.now());
        continue;
      }
      ++chunks_[id].pending;
      chunks_.push_back(part);
      at(nvlink_out_[whole.forwarder].serve(events_.now(), part.tokens * message_,
                                            machine_.nvlink_rate),
         Happening::LeftGpu, chunks_.size() - 1);
    }
    if (chunks_[id].pending == 0) release(id);
  }

  // Seen at a poll, told over the network, and seen there at another.
  void release(std::size_t id) {
    const bool local = chunks_[id].forwarder == chunks_[id].from;
    at(events_.now() + kernels_.poll + (local ? Duration{} : machine_.network_latency),
       Happening::Released, id);
  }

  const ExpertKernels& kernels_;
  const ExpertGroup& group_;
  const ExpertCopies& copies_;
  const ChunkedMachine& machine_;
  KernelUse use_;
  double message_;
  EventQueue events_;
  std::vector<Port> nic_out_, nic_in_, nvlink_out_, nvlink_in_, forwarders_;
  std::vector<Channel> channels_;  // By rank and channel.
  std::vector<Chunk> chunks_;
  Time last_{};
};

}  // namespace

Duration chunked_dispatch(const ExpertExchange& exchange, const ExpertGroup& group,
                          const ExpertCopies& copies, const ChunkedMachine& machine) {
  return Run(exchange, group, copies, machine).time();
}

}  // namespace flyover::test
