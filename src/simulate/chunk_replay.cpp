#include "flyover/simulate/chunk_replay.hpp"

#include <unordered_map>

#include "flyover/base/error.hpp"
#include "flyover/engine/event_queue.hpp"
#include "flyover/engine/fluid.hpp"
#include "flyover/routing/summit.hpp"

namespace flyover {

namespace {

enum EventKind : std::uint32_t { StreamEnds, Solve, BytesFlow };

struct Edge {
  std::vector<Load> loads;
  Duration latency{};
};

// The distinct edges of a schedule, and each transfer's. A connection is (channel, from, to).
class Edges {
 public:
  Edges(const Topology& topology, const Router& router, const Schedule& schedule,
        std::span<const std::uint32_t> ranks) {
    std::unordered_map<std::uint64_t, std::uint32_t> known;
    of_.reserve(schedule.transfers.size());
    for (const Transfer& t : schedule.transfers) {
      require(t.from < (1U << 24) && t.to < (1U << 24), "replay_chunks: ranks below 2^24");
      const std::uint64_t connection =
          std::uint64_t{t.channel} << 48 | std::uint64_t{t.from} << 24 | t.to;
      const auto [entry, fresh] =
          known.try_emplace(connection, static_cast<std::uint32_t>(edges_.size()));
      if (fresh) edges_.push_back(make(topology, router, schedule, ranks, t));
      of_.push_back(entry->second);
    }
  }

  [[nodiscard]] const Edge& of(std::uint64_t transfer) const { return edges_[of_[transfer]]; }

 private:
  static bool in_network(const Schedule& schedule, std::uint32_t rank) {
    return rank >= schedule.ranks && schedule.relay_domain[rank - schedule.ranks] == network_relay;
  }

  // Half of the way to a rank of another node that takes part in the same sum.
  static Route through_network(const Topology& topology, const Router& router,
                               const Schedule& schedule, std::span<const std::uint32_t> ranks,
                               const Transfer& t) {
    const bool up = in_network(schedule, t.to);
    const std::uint32_t own = ranks[up ? t.from : t.to];
    std::uint32_t other = own;
    for (const Transfer& peer : schedule.transfers) {
      if (peer.channel != t.channel || !in_network(schedule, peer.to)) continue;
      if (topology.node_of_rank(ranks[peer.from]) == topology.node_of_rank(own)) continue;
      other = ranks[peer.from];
      break;
    }
    require(other != own, "a sum in the network has members in several nodes");
    const std::uint32_t from = up ? own : other;
    SummitCut cut = cut_at_summit(topology, router.route(from, up ? other : own, t.channel),
                                  topology.node_of_rank(from));
    return up ? std::move(cut.up) : std::move(cut.down);
  }

  static Route route_of(const Topology& topology, const Router& router, const Schedule& schedule,
                        std::span<const std::uint32_t> ranks, const Transfer& t) {
    if (in_network(schedule, t.to) || in_network(schedule, t.from)) {
      return through_network(topology, router, schedule, ranks, t);
    }
    if (t.to >= schedule.ranks) return router.to_switch(ranks[t.from]);
    if (t.from >= schedule.ranks) return router.from_switch(ranks[t.to]);
    return router.route(ranks[t.from], ranks[t.to], t.channel);
  }

  static Edge make(const Topology& topology, const Router& router, const Schedule& schedule,
                   std::span<const std::uint32_t> ranks, const Transfer& t) {
    const Route route = route_of(topology, router, schedule, ranks, t);
    Edge edge{.loads = {}, .latency = route.latency};
    for (const Hop& hop : route.hops) {
      edge.loads.push_back({ResourceId{static_cast<std::uint32_t>(hop.link)}, hop.share});
    }
    return edge;
  }

  std::vector<Edge> edges_;
  std::vector<std::uint32_t> of_;
};

// What becomes ready when a transfer ends, in CSR form.
struct Successors {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> next;
  std::vector<std::uint32_t> waits;  // Per transfer.

  explicit Successors(const Schedule& schedule) {
    const auto n = static_cast<std::uint32_t>(schedule.transfers.size());
    begin.assign(n + 1, 0);
    waits.assign(n, 0);
    const auto for_edges = [&](auto visit) {
      for (std::uint32_t t = 0; t < n; ++t) {
        for (const std::uint32_t before : schedule.after(t)) visit(before, t);
        if (schedule.transfers[t].previous != none) visit(schedule.transfers[t].previous, t);
      }
    };
    for_edges([&](std::uint32_t before, std::uint32_t t) {
      ++begin[before + 1];
      ++waits[t];
    });
    for (std::uint32_t t = 0; t < n; ++t) begin[t + 1] += begin[t];
    next.resize(begin[n]);
    std::vector<std::uint32_t> fill(begin.begin(), begin.end() - 1);
    for_edges([&](std::uint32_t before, std::uint32_t t) { next[fill[before]++] = t; });
  }
};

}  // namespace

ChunkReplay replay_chunks(const Topology& topology, const Router& router, const Schedule& schedule,
                          std::span<const std::uint32_t> ranks) {
  require(ranks.size() == schedule.ranks, "replay_chunks: as many GPUs as ranks");
  EventQueue queue;
  FluidSystem fluid(queue, StreamEnds, Solve);
  for (const Link& link : topology.links) fluid.add_resource(link.bandwidth.per_second());

  const Edges edges(topology, router, schedule, ranks);
  Successors successors(schedule);
  const auto start = [&](std::uint32_t t) {
    queue.schedule(time_after(queue.now(), edges.of(t).latency), Phase::Start, BytesFlow, t);
  };
  for (std::uint32_t t = 0; t < schedule.transfers.size(); ++t) {
    if (successors.waits[t] == 0) start(t);
  }

  ChunkReplay out;
  std::uint64_t done = 0;
  for (Event event; queue.pop(event); ++out.events) {
    if (event.kind == Solve) {
      fluid.solve();
    } else if (event.kind == BytesFlow) {
      const Transfer& transfer = schedule.transfers[event.payload];
      fluid.start({.loads = edges.of(event.payload).loads,
                   .work = static_cast<double>(schedule.block_bytes[transfer.block].count()),
                   .key = event.payload,
                   .payload = event.payload});
    } else if (fluid.ended(event)) {
      ++done;
      const auto t = fluid.payload(StreamId{static_cast<std::uint32_t>(event.payload)});
      for (std::uint32_t i = successors.begin[t]; i < successors.begin[t + 1]; ++i) {
        if (--successors.waits[successors.next[i]] == 0) start(successors.next[i]);
      }
    }
  }
  require(done == schedule.transfers.size(), "replay_chunks: a schedule without cycles");
  out.time = queue.now().time_since_epoch();
  for (std::uint32_t link = 0; link < topology.links.size(); ++link) {
    out.link_bytes.push_back(fluid.use(ResourceId{link}).amount);
  }
  return out;
}

}  // namespace flyover
