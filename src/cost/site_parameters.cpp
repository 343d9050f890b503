#include "flyover/cost/site_parameters.hpp"

#include <algorithm>
#include <array>

namespace flyover {

namespace {

constexpr std::array table = {
    SiteParameterInfo{"launch", "start of every call", &SiteParameters::launch, true},
    SiteParameterInfo{"domain_latency", "hops and messages inside a scale-up domain",
                      &SiteParameters::domain_latency},
    SiteParameterInfo{"network_latency", "hops and messages across the network",
                      &SiteParameters::network_latency},
    SiteParameterInfo{"pipeline", "time to fill the pipeline", &SiteParameters::pipeline},
    SiteParameterInfo{"pipeline_size", "size at which half of it is reached",
                      &SiteParameters::pipeline_size},
    SiteParameterInfo{"domain_bandwidth", "bandwidth of links inside a scale-up domain",
                      &SiteParameters::domain_bandwidth},
    SiteParameterInfo{"network_bandwidth", "bandwidth of network links",
                      &SiteParameters::network_bandwidth},
    SiteParameterInfo{"protocol_bandwidth", "what the LL and LL128 kernels can move",
                      &SiteParameters::protocol_bandwidth},
};

}  // namespace

std::span<const SiteParameterInfo> site_parameters() {
  return table;
}

bool neutral(const SiteParameters& site) {
  return std::ranges::all_of(table, [&](const SiteParameterInfo& info) {
    return (site.*info.member).value == (info.seconds ? 0.0 : 1.0);
  });
}

}  // namespace flyover
