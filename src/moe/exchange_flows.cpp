#include "moe/exchange_flows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace flyover {

namespace {

// Of one count of a dispatch or one flag of a combine (MOE.md 2.2).
constexpr double signal_bytes = 4;

bool returns(CollectiveOp op) {
  return op == CollectiveOp::MoeCombine;
}

double rounded_up(double bytes, std::uint32_t alignment) {
  return std::ceil(bytes / alignment) * alignment;
}

double row_sum(const CopyTable& table, std::uint32_t row) {
  const double* first = table.counts.data() + std::size_t{row} * table.columns;
  return std::accumulate(first, first + table.columns, 0.0);
}

class FlowWriter {
 public:
  FlowWriter(const ExpertExchange& exchange, CollectiveOp op, const ExpertGroup& group,
             const ExpertCopies& copies)
      : exchange_(exchange),
        op_(op),
        group_(group),
        copies_(copies),
        message_(message_bytes(exchange, op)) {
    flows_.ranks = group.ranks();
    flows_.bytes.assign(std::size_t{flows_.ranks} * flows_.ranks, 0);
    flows_.remote_copies.assign(flows_.ranks, 0);
    flows_.signals.assign(flows_.ranks, 0);
  }

  ExchangeFlows write() {
    if (exchange_.mode == ExpertMode::Normal) {
      two_hops();
    } else {
      one_hop(exchange_.mode == ExpertMode::Direct ? copies_.to_rank : copies_.pairs);
      if (exchange_.mode == ExpertMode::LowLatency) signals();
    }
    return std::move(flows_);
  }

 private:
  // `copies` of tokens on the way from a source towards their experts.
  void send(std::uint32_t from, std::uint32_t to, double copies) {
    if (from == to) return;
    if (returns(op_)) std::swap(from, to);
    flows_.bytes[std::size_t{from} * flows_.ranks + to] += copies * message_;
    if (crosses(from, to)) flows_.remote_copies[from] += copies;
  }

  [[nodiscard]] bool crosses(std::uint32_t from, std::uint32_t to) const {
    return group_.node[from] != group_.node[to] || !exchange_.nvlink;
  }

  void one_hop(const CopyTable& table) {
    for (std::uint32_t from = 0; from < flows_.ranks; ++from) {
      for (std::uint32_t to = 0; to < flows_.ranks; ++to) send(from, to, table.at(from, to));
    }
  }

  // Over the network to the member of the same index, which forwards.
  void two_hops() {
    for (std::uint32_t node = 0; node < group_.nodes(); ++node) {
      const std::vector<std::uint32_t>& members = group_.members[node];
      for (std::uint32_t from = 0; from < flows_.ranks; ++from) {
        std::uint32_t forwarder = from;
        if (group_.node[from] != node) {
          forwarder = members[group_.index[from] % members.size()];
          send(from, forwarder, copies_.to_node.at(from, node));
        }
        for (const std::uint32_t to : members) send(forwarder, to, copies_.to_rank.at(from, to));
      }
    }
  }

  // Every rank tells the sources, or the owners, of every expert how many there were.
  void signals() {
    const ExpertRouting& routing = exchange_.routing;
    const double each =
        static_cast<double>(routing.slots > 0 ? routing.slots : routing.experts) / flows_.ranks;
    for (std::uint32_t from = 0; from < flows_.ranks; ++from) {
      for (std::uint32_t to = 0; to < flows_.ranks; ++to) {
        if (from == to) continue;
        flows_.bytes[std::size_t{from} * flows_.ranks + to] += each * signal_bytes;
        if (crosses(from, to)) flows_.signals[from] += each;
      }
    }
  }

  const ExpertExchange& exchange_;
  CollectiveOp op_;
  const ExpertGroup& group_;
  const ExpertCopies& copies_;
  double message_;
  ExchangeFlows flows_;
};

PortBytes busiest(const std::vector<double>& out, const std::vector<double>& in) {
  PortBytes port;
  for (std::size_t r = 0; r < out.size(); ++r) {
    port.mean += out[r] / static_cast<double>(out.size());
    port.most = std::max({port.most, out[r], in[r]});
  }
  return port;
}

}  // namespace

double message_bytes(const ExpertExchange& exchange, CollectiveOp op) {
  const double payload = returns(op) ? exchange.combine_bytes : exchange.dispatch_bytes;
  if (exchange.mode == ExpertMode::Nccl) return payload;
  const ExpertKernels& kernels = *exchange.kernels;
  const std::uint32_t chosen = exchange.routing.chosen;
  double extra = 0;
  if (returns(op)) {
    extra = kernels.combine_header + static_cast<double>(kernels.combine_per_choice) * chosen;
  } else {
    extra = kernels.header;
    if (!exchange.cached) extra += static_cast<double>(kernels.per_choice) * chosen;
  }
  return rounded_up(payload + extra, kernels.alignment);
}

ExchangeFlows exchange_flows(const ExpertExchange& exchange, CollectiveOp op,
                             const ExpertGroup& group, const ExpertCopies& copies) {
  return FlowWriter(exchange, op, group, copies).write();
}

ExpertTraffic traffic_of(const ExpertExchange& exchange, CollectiveOp op, const ExpertGroup& group,
                         const ExpertCopies& copies, const ExchangeFlows& flows) {
  const std::uint32_t ranks = group.ranks();
  double payload = returns(op) ? exchange.combine_bytes : exchange.dispatch_bytes;
  if (op == CollectiveOp::MoeFused) payload += exchange.combine_bytes;
  ExpertTraffic traffic;
  traffic.basis = copies.basis;

  const CopyTable& moved =
      exchange.mode == ExpertMode::Normal || exchange.mode == ExpertMode::Direct ? copies.to_rank
                                                                                 : copies.pairs;
  double tokens = 0;
  double nodes = 0;
  double wanted = 0;
  std::vector<double> to_nodes(ranks, 0);
  std::vector<double> sent(ranks, 0);
  std::vector<double> received(ranks, 0);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    tokens += static_cast<double>(tokens_of(exchange, r));
    to_nodes[r] = row_sum(copies.to_node, r);
    nodes += to_nodes[r];
    to_nodes[r] *= payload;
    wanted += row_sum(copies.to_rank, r);
    sent[r] = row_sum(moved, r) * payload;
    for (std::uint32_t to = 0; to < ranks; ++to) received[to] += moved.at(r, to) * payload;
  }
  if (tokens > 0) {
    traffic.nodes_per_token = nodes / tokens;
    traffic.ranks_per_token = wanted / tokens;
  }
  traffic.logical_nvlink = busiest(sent, received);
  traffic.logical_network =
      exchange.mode == ExpertMode::Normal ? busiest(to_nodes, to_nodes) : traffic.logical_nvlink;

  std::vector<double> network_out(ranks, 0);
  std::vector<double> network_in(ranks, 0);
  std::vector<double> nvlink_out(ranks, 0);
  std::vector<double> nvlink_in(ranks, 0);
  for (std::uint32_t from = 0; from < ranks; ++from) {
    for (std::uint32_t to = 0; to < ranks; ++to) {
      const double bytes = flows.at(from, to);
      const bool inside = group.node[from] == group.node[to] && exchange.nvlink;
      (inside ? nvlink_out : network_out)[from] += bytes;
      (inside ? nvlink_in : network_in)[to] += bytes;
    }
  }
  traffic.network = busiest(network_out, network_in);
  traffic.nvlink = busiest(nvlink_out, nvlink_in);
  return traffic;
}

}  // namespace flyover
