#include "simulate/expert_stats.hpp"

namespace flyover {

ExpertStats expert_stats(const ExpertExchange& exchange, const ExpertPlan& plan,
                         std::uint32_t ranks) {
  ExpertStats out;
  out.exchange = exchange.name;
  out.library = exchange.kernels->name;
  out.mode = exchange.mode;
  out.balanced = plan.balanced;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    out.tokens += static_cast<double>(tokens_of(exchange, rank)) / ranks;
  }
  out.traffic = plan.traffic;
  out.kernel = kernel_alone(plan);
  const bool spans_nodes = plan.traffic.network.most > 0;
  out.bottleneck_GBps = bottleneck_bandwidth(plan.traffic, out.kernel, spans_nodes);
  out.bottleneck_side = spans_nodes ? "RDMA" : "NVLink";
  out.sms = plan.sms;
  return out;
}

}  // namespace flyover
