#include "flyover/study/cluster_cost.hpp"

#include <array>
#include <numeric>

#include <fmt/format.h>

namespace flyover {

namespace {

std::uint64_t total(const std::map<std::string, std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& entry) { return sum + entry.second; });
}

bool is_switch(VertexKind kind) {
  constexpr std::array kinds = {VertexKind::Leaf, VertexKind::Spine, VertexKind::Core,
                                VertexKind::Switch};
  for (const VertexKind each : kinds) {
    if (kind == each) return true;
  }
  return false;
}

template <class Entry>
const Entry* find_entry(const std::map<std::string, Entry>& entries, const std::string& name) {
  const auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

// Adds up what is known, and says what is not.
class Bill {
 public:
  Bill(const PriceList& prices, std::vector<std::string>& missing)
      : quote_(prices.quote),
        missing_(missing) {}

  void add(std::uint64_t count, const PriceRange* price, const std::string& what) {
    if (count == 0) return;
    const std::optional<double> each = price == nullptr ? std::nullopt : price->at(quote_);
    if (each) {
      sum_ += static_cast<double>(count) * *each;
      return;
    }
    known_ = false;
    const bool other_quote = price != nullptr && (price->low || price->typical || price->high);
    missing_.push_back(other_quote ? fmt::format("the {} {}", to_string(quote_), what)
                                   : fmt::format("the {}", what));
  }
  [[nodiscard]] std::optional<double> sum(double unit = 1) const {
    return known_ ? std::optional(sum_ * unit) : std::nullopt;
  }

 private:
  PriceQuote quote_;
  std::vector<std::string>& missing_;
  double sum_ = 0;
  bool known_ = true;
};

std::string named(const std::string& name, std::string_view otherwise) {
  return name.empty() ? std::string(otherwise) : name;
}

}  // namespace

std::string_view to_string(PriceQuote quote) {
  constexpr std::array<std::string_view, 3> names = {"low", "typical", "high"};
  return names.at(static_cast<std::size_t>(quote));
}

std::optional<double> PriceRange::at(PriceQuote quote) const {
  switch (quote) {
    case PriceQuote::Low:
      return low;
    case PriceQuote::High:
      return high;
    case PriceQuote::Typical:
      break;
  }
  if (typical) return typical;
  if (low && high) return (*low + *high) / 2;
  return std::nullopt;
}

std::uint64_t ClusterInventory::all_gpus() const {
  return total(gpus);
}

std::uint64_t ClusterInventory::all_nodes() const {
  return total(nodes);
}

ClusterInventory inventory(const Topology& topology) {
  ClusterInventory result;
  for (std::uint32_t rank = 0; rank < topology.gpus.size(); ++rank) {
    ++result.gpus[topology.bought_gpu_model(rank).name];
  }
  for (const Node& node : topology.nodes) ++result.nodes[node.preset];
  for (const Vertex& vertex : topology.vertices) {
    if (vertex.node == no_node) {
      if (is_switch(vertex.kind)) ++result.switches;
    } else if (vertex.kind == VertexKind::Nic) {
      const Node& node = topology.nodes[vertex.node];
      ++result.nics[node.preset][node.nic_model];
    }
  }
  result.network = topology.fabric_preset;
  std::uint64_t directions = 0;
  std::uint64_t leaving_switches = 0;
  for (const Link& link : topology.links) {
    const Vertex& from = topology.vertices[link.from];
    const Vertex& to = topology.vertices[link.to];
    if (from.node != no_node && from.node == to.node) continue;
    directions += link.cables;
    if (from.node == no_node && is_switch(from.kind)) leaving_switches += link.cables;
  }
  result.links = (directions + 1) / 2;
  result.switch_ports = leaving_switches;
  const std::uint64_t per_cable = std::uint64_t{2} * topology.ports_per_cable;
  result.cables = (directions + per_cable - 1) / per_cable;
  return result;
}

ClusterCost cluster_cost(const ClusterInventory& inventory, const PriceList& prices) {
  ClusterCost cost;
  Bill hour(prices, cost.missing);
  for (const auto& [gpu, count] : inventory.gpus) {
    const PriceRange stated{.low = prices.gpu_hour,
                            .typical = prices.gpu_hour,
                            .high = prices.gpu_hour,
                            .source = {},
                            .date = {}};
    hour.add(count, prices.gpu_hour ? &stated : find_entry(prices.gpu_hours, gpu),
             fmt::format("price of a GPU-hour of {}", gpu));
  }
  cost.per_hour = hour.sum();

  Bill network(prices, cost.missing);
  Bill nodes(prices, cost.missing);
  Bill kilowatts(prices, cost.missing);
  Bill watts(prices, cost.missing);
  for (const auto& [name, count] : inventory.nodes) {
    const NodePrice* price = find_entry(prices.nodes, name);
    const std::string called = named(name, "a node without a preset");
    nodes.add(count, price == nullptr ? nullptr : &price->capital,
              fmt::format("price of {}", called));
    kilowatts.add(count, price == nullptr ? nullptr : &price->power_kW,
                  fmt::format("power of {}", called));
    if (price == nullptr || price->includes_nics) continue;
    const auto* nics = find_entry(inventory.nics, name);
    if (nics == nullptr) continue;
    for (const auto& [model, number] : *nics) {
      const NicPrice* nic = find_entry(prices.nics, model);
      const std::string nic_called = named(model, "an unnamed NIC");
      nodes.add(number, nic == nullptr ? nullptr : &nic->capital,
                fmt::format("price of {}", nic_called));
      watts.add(number, nic == nullptr ? nullptr : &nic->power_W,
                fmt::format("power of {}", nic_called));
    }
  }
  const NetworkPrice* price = find_entry(prices.networks, inventory.network);
  const std::string called = named(inventory.network, "a network without a preset");
  network.add(inventory.switches, price == nullptr ? nullptr : &price->switch_capital,
              fmt::format("price of a switch of {}", called));
  network.add(inventory.links, price == nullptr ? nullptr : &price->link_capital,
              fmt::format("price of a link of {}", called));
  watts.add(inventory.switches, price == nullptr ? nullptr : &price->switch_power_W,
            fmt::format("power of a switch of {}", called));
  if (price == nullptr || !price->power_includes_transceivers) {
    watts.add(inventory.switch_ports, price == nullptr ? nullptr : &price->transceiver_power_W,
              fmt::format("power of a transceiver of {}", called));
  }

  cost.network_capital = network.sum();
  if (cost.network_capital && nodes.sum()) cost.capital = *nodes.sum() + *cost.network_capital;
  if (kilowatts.sum() && watts.sum()) cost.power_kW = *kilowatts.sum() + *watts.sum(1e-3);
  return cost;
}

}  // namespace flyover
