#pragma once

// What one site differs in from the sites that a library's rules were fitted to: its software
// stack, its cables and switches, its settings. study/calibrate.hpp fits it to a measured table.
//
//   T(S) = max(0, launch + base + domain_latency x (domain hops and messages)
//                        + network_latency x (network hops and messages)
//                        + pipeline x fill x S / (S + pipeline_size x fill_half))
//          + S / rate
//
// and every efficiency of a link inside a domain is multiplied by domain_bandwidth, of a network
// link by network_bandwidth, and every cap of LL and LL128 by protocol_bandwidth.

#include <span>
#include <string>
#include <string_view>

namespace flyover {

struct SiteParameter {
  double value = 1;         // Seconds for `launch`, a factor for all others.
  double uncertainty = 0;   // Standard deviation: seconds for `launch`, relative for all others.
  bool determined = false;  // By the measurements that it was fitted to;
  std::string reason;       // why not, "" when it is or was not fitted.
};

// The defaults change nothing, to the bit.
struct SiteParameters {
  SiteParameter launch{.value = 0, .reason = {}};  // Added to every call; may be below zero.
  SiteParameter domain_latency;
  SiteParameter network_latency;  // Of hops and messages; not of wires beyond NIC, leaf, NIC.
  SiteParameter pipeline;         // Of the time to fill the pipeline once chunks are large,
  SiteParameter pipeline_size;    // and of the size at which they are half-way there.
  SiteParameter domain_bandwidth;
  SiteParameter network_bandwidth;
  SiteParameter protocol_bandwidth;  // Of LL and LL128.
};

struct SiteParameterInfo {
  std::string_view name;     // "domain_latency"
  std::string_view summary;  // "hops and messages inside a domain"
  SiteParameter SiteParameters::*member;
  bool seconds = false;  // Added; all others multiply.
};
// All of them, in the order of the struct.
[[nodiscard]] std::span<const SiteParameterInfo> site_parameters();

// Whether they change any time.
[[nodiscard]] bool neutral(const SiteParameters& site);

}  // namespace flyover
