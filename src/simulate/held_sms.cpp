#include "simulate/held_sms.hpp"

#include <limits>

namespace flyover {

namespace {

// So large a claim beside ordinary kernels, which count as one each, comes first; and what is left
// to them by one that holds the whole GPU is so little that they wait.
constexpr double first_claim = 1e5;

}  // namespace

HeldSms::HeldSms(FluidSystem& fluid, const ClusterResources& resources, const Cast& cast,
                 std::uint64_t instances)
    : fluid_(fluid) {
  if (cast.workload.exchanges.empty()) return;
  streams_.resize(instances);
  loads_.reserve(cast.players.size());
  for (const Player& player : cast.players) {
    loads_.emplace_back(cast.stand_in(resources.sms(player.rank)), 1);
  }
}

void HeldSms::hold(std::uint32_t player, std::uint64_t instance, std::uint32_t sms,
                   std::uint64_t key) {
  streams_[instance] = fluid_.start({.loads = std::span(&loads_[player], 1),
                                     .work = std::numeric_limits<double>::infinity(),
                                     .rate_cap = static_cast<double>(sms),
                                     .flows = first_claim,
                                     .key = key,
                                     .payload = key});
}

void HeldSms::give_back(std::uint64_t instance) {
  fluid_.stop(streams_[instance]);
}

}  // namespace flyover
