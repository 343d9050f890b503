#include "placement.hpp"

#include <algorithm>

#include "flyover/base/error.hpp"

namespace flyover {

Placement::Placement(const GroupShape& shape)
    : shape_(shape),
      members_(by_domain(shape)),
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

void Placement::append_from_entry(std::uint32_t domain, std::uint32_t channel,
                                  std::vector<std::uint32_t>& out) const {
  const std::vector<std::uint32_t>& members = members_[domain];
  const auto starts_rail = [&](std::size_t i) {
    return i == 0 || shape_.rail[members[i]] != shape_.rail[members[i - 1]];
  };
  std::uint32_t rails = 0;
  for (std::size_t i = 0; i < members.size(); ++i) rails += starts_rail(i) ? 1 : 0;
  require(rails > 0, "a domain of one member or more");

  std::size_t first = 0;
  for (std::uint32_t seen = 0;; ++first) {
    if (starts_rail(first) && seen++ == channel % rails) break;
  }
  const std::size_t sharing = on_rail(domain, shape_.rail[members[first]]).size();
  const auto entry = members.begin() + static_cast<std::ptrdiff_t>(first) +
                     static_cast<std::ptrdiff_t>(channel / rails % sharing);
  out.insert(out.end(), entry, members.end());
  out.insert(out.end(), members.begin(), entry);
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
