#include "flyover/moe/balance.hpp"

#include <algorithm>

#include "flyover/base/error.hpp"

namespace flyover {

LoadBalance load_balance(std::span<const double> loads) {
  require(!loads.empty(), "loads to compare");
  LoadBalance balance;
  for (const double load : loads) {
    balance.mean += load;
    balance.most = std::max(balance.most, load);
  }
  balance.mean /= static_cast<double>(loads.size());
  return balance;
}

ExpertLoads expert_loads(std::span<const double> load, std::span<const std::uint32_t> slots,
                         const ExpertGroup& group) {
  require(group.ranks() > 0 && slots.size() % group.ranks() == 0, "as many slots on every rank");
  std::vector<double> copies(load.size(), 0);
  for (const std::uint32_t expert : slots) ++copies[expert];
  ExpertLoads loads{.slot = {},
                    .rank = std::vector<double>(group.ranks(), 0),
                    .node = std::vector<double>(group.nodes(), 0)};
  const std::size_t of_rank = slots.size() / group.ranks();
  for (std::size_t s = 0; s < slots.size(); ++s) {
    loads.slot.push_back(load[slots[s]] / copies[slots[s]]);
    loads.rank[s / of_rank] += loads.slot[s];
  }
  for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
    loads.node[group.node[rank]] += loads.rank[rank];
  }
  return loads;
}

std::vector<double> received(const CopyTable& table) {
  std::vector<double> sums(table.columns, 0);
  for (std::size_t i = 0; i < table.counts.size(); ++i) sums[i % table.columns] += table.counts[i];
  return sums;
}

}  // namespace flyover
