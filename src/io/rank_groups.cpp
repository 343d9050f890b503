#include "io/rank_groups.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "flyover/base/quantity.hpp"
#include "flyover/base/text.hpp"

namespace flyover::io {

namespace {

Ranks all_ranks(std::uint32_t ranks) {
  Ranks all(ranks);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

}  // namespace

Ranks read_ranks(const Field& field, std::uint32_t ranks) {
  if (field.is_string()) {
    return field.parsed([&](const std::string& text) {
      return text == "all" ? all_ranks(ranks) : parse_index_list(text, ranks);
    });
  }
  if (!field.is_array()) {
    field.fail("expected ranks such as \"0-7\", \"all\" or [0, 1, 2]");
  }
  Ranks list;
  std::vector<bool> named(ranks, false);
  for (const Field& element : field.elements()) {
    const std::uint32_t rank = element.count(0, ranks - 1);
    if (named[rank]) element.fail(fmt::format("rank {} is named twice", rank));
    named[rank] = true;
    list.push_back(rank);
  }
  if (list.empty()) field.fail("expected at least one rank");
  return list;
}

Groups::Groups(std::uint32_t ranks) : ranks_(ranks) {
  add("all", {all_ranks(ranks)});
}

void Groups::read(const Field& field) {
  for (const std::string& name : field.keys()) {
    const Field family = field[name];
    if (name == "comment") continue;
    if (name == "all") family.fail("is there already: \"all\" is the group of all ranks");
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) {
      family.fail("expected a name that does not begin with a digit, which ranks do");
    }
    add(name, read_family(family));
  }
}

std::uint32_t Groups::find(const Field& field) {
  if (field.is_string()) {
    const std::string name = field.text();
    if (const auto known = index_.find(name); known != index_.end()) return known->second;
    if (name.empty() || name[0] < '0' || name[0] > '9') {
      std::vector<std::string> names;
      for (const GroupFamily& family : families_) names.push_back(family.name);
      field.fail(fmt::format("there is no group \"{}\"{}", name, did_you_mean(name, names)));
    }
  }
  std::vector<Ranks> groups = read_family(field);
  std::ranges::sort(groups, {},
                    [](const Ranks& group) { return *std::ranges::min_element(group); });
  std::string name;
  for (const Ranks& group : groups) name += (name.empty() ? "" : " | ") + index_list(group);
  const auto known = index_.find(name);
  return known != index_.end() ? known->second : add(std::move(name), std::move(groups));
}

std::uint32_t Groups::add(std::string name, std::vector<Ranks> groups) {
  const auto number = static_cast<std::uint32_t>(families_.size());
  index_.emplace(name, number);
  families_.push_back({std::move(name), std::move(groups)});
  return number;
}

// One group ("0-7", [0, 1, 2]) or an array of them.
std::vector<Ranks> Groups::read_family(const Field& field) const {
  if (!field.is_array() || field.size() == 0 || field[0].is_number()) {
    return {read_ranks(field, ranks_)};
  }
  std::vector<Ranks> groups;
  std::vector<bool> taken(ranks_, false);
  for (const Field& element : field.elements()) {
    groups.push_back(read_ranks(element, ranks_));
    for (const std::uint32_t rank : groups.back()) {
      if (taken[rank]) {
        element.fail(
            fmt::format("rank {} is in an earlier group already; groups of one name "
                        "are disjoint",
                        rank));
      }
      taken[rank] = true;
    }
  }
  return groups;
}

}  // namespace flyover::io
