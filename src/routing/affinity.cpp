#include "affinity.hpp"

#include <algorithm>
#include <map>

#include "digraph.hpp"

namespace flyover::routing {

namespace {

// The nearest ports of a GPU, ascending; empty when it reaches none.
std::vector<std::uint32_t> nearest_ports(const std::vector<std::uint32_t>& hops,
                                         std::uint32_t ports, std::uint32_t gpu) {
  const auto first = hops.begin() + static_cast<std::ptrdiff_t>(gpu) * ports;
  std::vector<std::uint32_t> nearest;
  std::uint32_t least = none;
  for (std::uint32_t p = 0; p < ports; ++p) {
    const std::uint32_t h = first[p];
    if (h == none || h > least) continue;
    if (h < least) nearest.clear();
    least = h;
    nearest.push_back(p);
  }
  return nearest;
}

}  // namespace

std::vector<PortUse> assign_ports(const PortDistances& d) {
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> equals;
  for (std::uint32_t g = 0; g < d.gpus; ++g)
    equals[nearest_ports(d.built, d.ports, g)].push_back(g);

  std::vector<PortUse> uses(d.gpus);
  std::vector<std::uint32_t> users(d.ports, 0);
  for (const auto& [ports, gpus] : equals) {
    const std::size_t n = ports.size(), m = gpus.size();
    if (n == 0) continue;
    for (std::size_t k = 0; k < m; ++k) {
      const std::size_t begin = k * n / m;
      const std::size_t end = std::max(begin + 1, (k + 1) * n / m);
      PortUse& use = uses[gpus[k]];
      for (std::size_t i = begin; i < end; ++i) {
        if (d.current[gpus[k] * d.ports + ports[i]] == none) continue;
        use.ports.push_back(ports[i]);
        ++users[ports[i]];
      }
      const auto hops = d.current.begin() + static_cast<std::ptrdiff_t>(gpus[k]) * d.ports;
      std::stable_sort(use.ports.begin(), use.ports.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return hops[a] < hops[b]; });
    }
  }
  for (std::uint32_t g = 0; g < d.gpus; ++g) {
    if (!uses[g].ports.empty()) continue;
    uses[g].displaced = true;
    const std::vector<std::uint32_t> next = nearest_ports(d.current, d.ports, g);
    if (next.empty()) continue;
    const std::uint32_t chosen =
        *std::min_element(next.begin(), next.end(),
                          [&](std::uint32_t a, std::uint32_t b) { return users[a] < users[b]; });
    uses[g].ports.push_back(chosen);
    ++users[chosen];
  }
  return uses;
}

}  // namespace flyover::routing
