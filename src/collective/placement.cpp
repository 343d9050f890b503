#include "placement.hpp"

#include <algorithm>

namespace flyover {

Placement::Placement(const GroupShape& shape)
    : shape_(shape),
      members_(by_domain(shape)),
      entry_rails_(entry_rails(shape)),
      domain_of_(shape.ranks()) {
  for (std::uint32_t domain = 0; domain < domains(); ++domain) {
    for (const std::uint32_t rank : members_[domain]) domain_of_[rank] = domain;
    std::ranges::stable_sort(members_[domain], {},
                             [&](std::uint32_t rank) { return shape.rail[rank]; });
  }
}

std::span<const std::uint32_t> Placement::on_rail(std::uint32_t domain, std::uint32_t rail) const {
  const auto rail_of = [&](std::uint32_t rank) { return shape_.rail[rank]; };
  const std::vector<std::uint32_t>& members = members_[domain];
  return {std::ranges::lower_bound(members, rail, {}, rail_of),
          std::ranges::upper_bound(members, rail, {}, rail_of)};
}

const std::uint32_t& Placement::entry(std::uint32_t domain, std::uint32_t channel) const {
  const std::vector<std::uint32_t>& rails = entry_rails_[domain];
  const auto sharing = on_rail(domain, rails[channel % rails.size()]);
  return sharing[channel / rails.size() % sharing.size()];
}

std::uint32_t Placement::even_channels() const {
  std::size_t most = 0;
  for (const auto& members : members_) most = std::max(most, members.size());
  return static_cast<std::uint32_t>(most - most % entry_rails_.front().size());
}

void Placement::append_from_entry(std::uint32_t domain, std::uint32_t channel,
                                  std::vector<std::uint32_t>& out) const {
  const std::vector<std::uint32_t>& members = members_[domain];
  const auto first = members.begin() + (&entry(domain, channel) - members.data());
  out.insert(out.end(), first, members.end());
  out.insert(out.end(), members.begin(), first);
}

std::vector<std::uint32_t> Placement::ring(std::uint32_t channel) const {
  std::vector<std::uint32_t> order;
  order.reserve(domain_of_.size());
  for (std::uint32_t domain = 0; domain < domains(); ++domain) {
    append_from_entry(domain, channel, order);
  }
  return order;
}

}  // namespace flyover
