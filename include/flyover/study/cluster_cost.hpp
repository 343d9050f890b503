#pragma once

// What a cluster costs to rent, to buy and to power: docs/models/cost-of-clusters.md.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/topology/topology.hpp"

namespace flyover {

enum class PriceQuote : std::uint8_t { Low, Typical, High };
[[nodiscard]] std::string_view to_string(PriceQuote quote);  // "low", "typical", "high"

// A price, or a power, as far as it is known.
struct PriceRange {
  std::optional<double> low;
  std::optional<double> typical;
  std::optional<double> high;
  std::string source;  // Where it is from,
  std::string date;    // and of when.
  // Typical between two ends that are known is their mean; otherwise only what is there.
  [[nodiscard]] std::optional<double> at(PriceQuote quote) const;
};

struct NodePrice {
  PriceRange capital;         // Dollars.
  PriceRange power_kW;        // Of the whole node under load.
  bool includes_nics = true;  // Both of them; otherwise NicPrice comes on top.
};

struct NicPrice {
  PriceRange capital;
  PriceRange power_W;
};

// Of one generation of a network ("ndr"). A link is what joins two ports: a twin-port cable has
// two.
struct NetworkPrice {
  PriceRange switch_capital;
  PriceRange switch_power_W;
  bool power_includes_transceivers = false;  // The switch's, of its own ports.
  PriceRange link_capital;                   // Cable and connectors or transceivers of both ends.
  PriceRange transceiver_power_W;            // Of one port of a switch.
};

// Prices by the names that presets have.
struct PriceList {
  PriceQuote quote = PriceQuote::Typical;
  std::optional<double> gpu_hour;  // Dollars, of whatever GPU; wins over the list.
  std::map<std::string, PriceRange> gpu_hours;
  std::map<std::string, NodePrice> nodes;
  std::map<std::string, NicPrice> nics;
  std::map<std::string, NetworkPrice> networks;
};

// What has to be paid for.
struct ClusterInventory {
  std::map<std::string, std::uint64_t> gpus;   // By model.
  std::map<std::string, std::uint64_t> nodes;  // By preset; "" of those that have no name.
  // NICs by preset of their node, then by model.
  std::map<std::string, std::map<std::string, std::uint64_t>> nics;
  std::string network;         // Its preset; "" when it has none.
  std::uint64_t switches = 0;  // Of the fabric.
  std::uint64_t links = 0;     // Of the fabric: pairs of ports.
  std::uint64_t cables = 0;    // The same by Topology::ports_per_cable, as `flyover topo` counts.
  std::uint64_t switch_ports = 0;  // That are in use.
  [[nodiscard]] std::uint64_t all_gpus() const;
  [[nodiscard]] std::uint64_t all_nodes() const;
};
// Trunks count as the cables that they stand for, but the switches behind them as one: ask a
// topology of cables (io::FabricDetail::Cables). What is out of service was paid for all the same.
[[nodiscard]] ClusterInventory inventory(const Topology& topology);

// A part of which a price is not known makes its sum unknown, never cheaper.
struct ClusterCost {
  std::optional<double> per_hour;         // Dollars: GPU-hours, which come with all the rest.
  std::optional<double> capital;          // Dollars: nodes and network.
  std::optional<double> network_capital;  // Of it, switches and links.
  std::optional<double> power_kW;
  std::vector<std::string> missing;  // "the price of a switch of roce-400", ...
};
[[nodiscard]] ClusterCost cluster_cost(const ClusterInventory& inventory, const PriceList& prices);

}  // namespace flyover
