#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/collective/collective.hpp"

namespace flyover {

// A group by place instead of by rank: domains in order of their first rank, the members of each in
// order of their rails. Borrows the shape, which must outlive it.
class Placement {
 public:
  explicit Placement(const GroupShape& shape);

  [[nodiscard]] std::uint32_t domains() const {
    return static_cast<std::uint32_t>(members_.size());
  }
  [[nodiscard]] std::span<const std::uint32_t> members(std::uint32_t domain) const {
    return members_[domain];
  }
  // The domain of a rank, as an index below domains().
  [[nodiscard]] std::uint32_t domain_of(std::uint32_t rank) const { return domain_of_[rank]; }
  [[nodiscard]] bool together(std::uint32_t a, std::uint32_t b) const {
    return domain_of_[a] == domain_of_[b];
  }
  // The members of the domain on a rail, possibly none.
  [[nodiscard]] std::span<const std::uint32_t> on_rail(std::uint32_t domain,
                                                       std::uint32_t rail) const;

  // Where `channel` enters a domain: on the rails of entry_rails, counted round and round; channels
  // that meet on a rail take its members in turn. Refers into members(domain).
  [[nodiscard]] const std::uint32_t& entry(std::uint32_t domain, std::uint32_t channel) const;
  // Its position among the members.
  [[nodiscard]] std::uint32_t entry_member(std::uint32_t domain, std::uint32_t channel) const {
    return static_cast<std::uint32_t>(&entry(domain, channel) - members_[domain].data());
  }
  // Channels that can enter without one rail carrying more of them than another: as many as a
  // domain may have members, rounded down to a multiple of its rails.
  [[nodiscard]] std::uint32_t even_channels() const;
  // The members of a domain from the one where `channel` enters.
  void append_from_entry(std::uint32_t domain, std::uint32_t channel,
                         std::vector<std::uint32_t>& out) const;
  // All ranks, one domain after the other, each from its entry.
  [[nodiscard]] std::vector<std::uint32_t> ring(std::uint32_t channel) const;

 private:
  const GroupShape& shape_;
  std::vector<std::vector<std::uint32_t>> members_;
  std::vector<std::vector<std::uint32_t>> entry_rails_;
  std::vector<std::uint32_t> domain_of_;
};

}  // namespace flyover
