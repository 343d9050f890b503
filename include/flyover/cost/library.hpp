#pragma once

// A communication library as data: read from configs/libraries/*.json (io/library_reader.hpp),
// where every number stands beside its source, and steered by NCCL's own variables.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/collective.hpp"
#include "flyover/cost/nccl_tuner.hpp"
#include "flyover/cost/protocol.hpp"
#include "flyover/cost/site_parameters.hpp"

namespace flyover {

// NCCL's variables as set by the user; empty means the library's default.
struct LibrarySettings {
  std::vector<AlgorithmId> algorithms;            // NCCL_ALGO: allowed ones; empty: all.
  std::vector<AlgorithmId> forbidden_algorithms;  // NCCL_ALGO=^Tree
  std::vector<Protocol> protocols;                // NCCL_PROTO: allowed ones; empty: all.
  std::vector<Protocol> forbidden_protocols;
  bool nvls = true;      // NCCL_NVLS_ENABLE
  bool collnet = false;  // NCCL_COLLNET_ENABLE: the network's switches may reduce (SHARP).
  bool pxn = true;       // NCCL_PXN_DISABLE=0; the caller hands it to the Router.
  std::optional<std::uint32_t> min_channels;  // NCCL_MIN_NCHANNELS, NCCL_MIN_CTAS
  std::optional<std::uint32_t> max_channels;  // NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS
  std::vector<std::string> notes;             // Accepted, but with no effect on the model.

  [[nodiscard]] bool allows(AlgorithmId algorithm) const;
  [[nodiscard]] bool allows(Protocol protocol) const;
};

// Reads one variable into the settings. Throws InputError for an unknown variable (with the nearest
// known name) or value. NCCL_ALGO and NCCL_PROTO take a comma list, or "^" and a list to leave out.
void set_variable(LibrarySettings& settings, std::string_view name, std::string_view value);
[[nodiscard]] std::vector<std::string> known_variables();

// What a rule of a library is about. An empty list stands for everything.
struct Scope {
  std::vector<CollectiveOp> operations;
  std::vector<AlgorithmId> algorithms;
  std::vector<Protocol> protocols;
  std::vector<std::string> architectures;  // GpuModel::architecture.
  std::vector<std::string> gpus;           // GpuModel::name.
  // Classes of link ("nvlink4", "ndr") or families of them ("nvlink", "xgmi", "pcie", "network").
  std::vector<std::string> links;
  std::uint32_t min_domains = 1;  // Scale-up domains that the group spans.
  std::uint32_t max_domains = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t min_members = 1;  // Of the fullest domain.
};

// One class of links: a generation and the family it belongs to.
struct LinkClass {
  std::string name;    // "nvlink4", "xgmi-mi300", "pcie", "ndr"
  std::string family;  // "nvlink", "xgmi", "pcie", "network"

  friend bool operator==(const LinkClass&, const LinkClass&) = default;
};
// "nvlink4" belongs to "nvlink": the letters before the first digit or dash.
[[nodiscard]] std::string link_family(std::string_view name);

// One candidate, as the rules see it. `link` is the class that joins the group's members inside a
// domain (latency, cap rules), or the link that is loaded (efficiency rules).
struct RuleQuery {
  CollectiveOp op = CollectiveOp::AllReduce;
  AlgorithmId algorithm = AlgorithmId::Ring;
  Protocol protocol = Protocol::Simple;
  std::string_view architecture;
  std::string_view gpu;
  const LinkClass* link = nullptr;
  std::uint32_t domains = 1;
  std::uint32_t members = 1;
};
[[nodiscard]] bool covers(const Scope& scope, const RuleQuery& query);

// Where a number comes from, and where it stops being true.
struct Evidence {
  std::string source;
  std::string validity;
};

// Time before bytes flow at their full rate.
//
//   startup(S) = base + messages + overlapped(hops, S/rate) + fill S / (S + fill_half)
//   hops       = domain_hops x domain_hop + network_hops x (network_hop + wire beyond network_wire)
//   overlapped(h, t) = (h^p + t^p)^(1/p) - t, with p = overlap: 1 adds the hops to the transfer;
//   above 1 they hide behind it (a long ring keeps all of its hops busy at once).
//
// On top of it come the stack's share (StackRule) and the network's (NetworkRule).
struct LatencyRule {
  Scope where;
  Duration base{};
  Duration domain_hop{};
  Duration network_hop{};
  Duration network_wire{};  // Wire latency that network_hop already includes.
  Duration
      domain_message{};  // Per message that a rank posts one after the other to distinct peers.
  Duration network_message{};
  double overlap = 1;
  Duration fill{};  // Pipeline fill once chunks have grown to their full size ...
  Bytes fill_half;  // ... half of which is reached at this size.
  Evidence evidence;
};

// How the software stack starts a collective: a process per GPU, one process for all GPUs of a host
// that starts them one after the other, a graph. The host starts the next call while the last one
// runs, so that its time hides behind the GPUs' (overlapped() above):
//
//   gpu = launch + startup(S) + S/rate
//   T   = gpu + overlapped(issue x GPUs of the process, gpu)
struct StackRule {
  std::string name;
  Duration launch{};            // Of a kernel, on every call.
  Duration issue{};             // Of the host, per GPU that a process drives; 0: one GPU each.
  std::uint32_t most_gpus = 1;  // That one process drives.
  double overlap = 1;
  Evidence evidence;
};

// A kind of network that differs from the one that the latency rules were fitted on.
struct NetworkRule {
  std::vector<std::string> links;   // Generations ("roce-400") or kinds of them ("roce").
  Duration hop{};                   // More per network hop,
  Duration message{};               // and per message to a peer in another domain.
  Duration fill{};                  // More pipeline fill (as in LatencyRule): deeper proxies and
  Bytes fill_half;                  // larger messages take longer to reach the full rate.
  std::vector<Protocol> protocols;  // Those that it carries; empty: all.
  Evidence evidence;
};

// The share of a link's bandwidth that payload and protocol together can use, at some numbers of
// the group's members in a domain; in between the share goes with the logarithm of the number.
struct EfficiencyRule {
  struct Point {
    std::uint32_t members = 1;
    double share = 1;
  };
  Scope where;
  std::vector<Point> points;  // Ascending in members, at least one.
  Evidence evidence;
};
[[nodiscard]] double share_at(const EfficiencyRule& rule, std::uint32_t members);

// A limit on the bus bandwidth (as nccl-tests defines it): what the kernels can move.
struct CapRule {
  Scope where;
  double total = std::numeric_limits<double>::infinity();        // Bytes per second.
  double per_channel = std::numeric_limits<double>::infinity();  // Bytes per second and channel.
  Evidence evidence;
};

// The data type's effect: a factor on the rate, or "this algorithm cannot reduce it".
struct DtypeRule {
  Scope where;
  std::vector<std::string> dtypes;
  double rate = 1;
  bool supported = true;
  Evidence evidence;
};

// Channels: thread blocks that the library gives to a collective; each takes one SM.
struct ChannelRule {
  Scope where;
  std::uint32_t count = 1;
  Evidence evidence;
};

// Channels of plain sends and receives inside one domain: the library shares `channels` out over
// the group's members, by powers of two, and doubles a peer's share while each of its channels
// would carry more than `part`.
struct PointToPointRule {
  std::uint32_t channels = 1;
  Bytes part;
  Evidence evidence;
};
// For one message of `bytes` between members of a group.
[[nodiscard]] std::uint32_t channels_per_peer(const PointToPointRule& rule, std::uint32_t members,
                                              Bytes bytes);

enum class ChoiceRule : std::uint8_t {
  Fastest,   // The smallest predicted time.
  NcclModel  // The plan that NCCL's own tuning model ranks first; Fastest where NCCL has no model.
};

struct Library {
  std::string name;
  std::string version;
  std::string summary;
  std::string released;  // "2025-06"; "" when not stated.
  ChoiceRule choice = ChoiceRule::Fastest;
  // Start-up is Summary::steps times the longest wire latency, whatever the latency rules say.
  bool lockstep = false;
  // In domains without switches rings and chains use all direct links between members.
  bool mesh_rings = false;
  // Rings leave a domain on the rail on which they enter the next one.
  bool rail_rings = false;
  std::vector<Protocol> protocols;
  std::map<Protocol, double> wire_bytes;  // Per byte of payload.
  std::map<CollectiveOp, std::vector<AlgorithmId>> algorithms;
  std::vector<CollectiveOp> tuned;  // Those that NCCL_ALGO and NCCL_PROTO speak of.
  // In each list the first rule that covers a candidate holds.
  std::vector<LatencyRule> latencies;
  std::vector<NetworkRule> networks;
  std::vector<EfficiencyRule> efficiencies;
  std::vector<CapRule> caps;
  std::vector<DtypeRule> dtypes;
  std::vector<ChannelRule> channels;
  std::optional<PointToPointRule> point_to_point;  // None: every message has all channels.
  std::optional<NcclTuning> tuning;                // With ChoiceRule::NcclModel.
  std::vector<StackRule> stacks;
  std::string stack;  // The one in use, one of `stacks`; "" where there are none.
  std::map<std::string, std::string> sources;
  LibrarySettings settings;
  SiteParameters site;  // Neutral unless calibrated.
};

// Takes another stack. Throws InputError, with the nearest name, when the library has none of it.
void set_stack(Library& library, std::string_view name);
// The stack in use, or null.
[[nodiscard]] const StackRule* stack_in_use(const Library& library);
// What differs on a network of this generation, or null.
[[nodiscard]] const NetworkRule* network_rule(const Library& library, std::string_view generation);

}  // namespace flyover
