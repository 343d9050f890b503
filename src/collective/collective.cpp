#include "flyover/collective/collective.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

constexpr std::array<std::string_view, 17> names = {
    "ring",           "tree",          "nvls",         "nvls-tree",
    "collnet-direct", "collnet-chain", "pat",          "recursive-doubling",
    "direct",         "pairwise",      "hierarchical", "all-pairs",
    "one-shot",       "moe-normal",    "moe-direct",   "moe-low-latency",
    "moe-fused"};

// "NVLSTree", "nvls-tree" and "nvls_tree" are one name.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '-' || c == '_') continue;
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> by_domain(const GroupShape& shape) {
  std::vector<std::vector<std::uint32_t>> domains;
  std::unordered_map<std::uint32_t, std::size_t> place;
  for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
    const auto [entry, is_new] = place.try_emplace(shape.domain[rank], domains.size());
    if (is_new) domains.emplace_back();
    domains[entry->second].push_back(rank);
  }
  return domains;
}

std::vector<std::vector<std::uint32_t>> entry_rails(const GroupShape& shape) {
  std::vector<std::vector<std::uint32_t>> rails = by_domain(shape);
  std::vector<std::uint32_t> common;
  std::size_t fewest = shape.ranks();
  for (std::vector<std::uint32_t>& own : rails) {
    for (std::uint32_t& member : own) member = shape.rail[member];
    std::ranges::sort(own);
    own.erase(std::unique(own.begin(), own.end()), own.end());
    fewest = std::min(fewest, own.size());
    if (&own == &rails.front()) {
      common = own;
      continue;
    }
    std::vector<std::uint32_t> both;
    std::ranges::set_intersection(common, own, std::back_inserter(both));
    common = std::move(both);
  }
  for (std::vector<std::uint32_t>& own : rails) {
    if (common.empty()) {
      own.resize(fewest);
    } else {
      own = common;
    }
  }
  return rails;
}

std::string_view to_string(AlgorithmId algorithm) {
  const auto i = static_cast<std::size_t>(algorithm);
  require(i < names.size(), "an algorithm with a name");
  return names[i];
}

std::optional<AlgorithmId> algorithm_id(std::string_view name) {
  const std::string wanted = plain(name);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (wanted == plain(names[i])) return static_cast<AlgorithmId>(i);
  }
  return std::nullopt;
}

}  // namespace flyover
