#include "flyover/cost/library.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"

namespace flyover {

namespace {

template <class T>
bool holds(const std::vector<T>& list, const T& item) {
  return std::ranges::find(list, item) != list.end();
}

template <class T>
bool any_or_holds(const std::vector<T>& list, const T& item) {
  return list.empty() || holds(list, item);
}

}  // namespace

bool LibrarySettings::allows(AlgorithmId algorithm) const {
  return any_or_holds(algorithms, algorithm) && !holds(forbidden_algorithms, algorithm);
}

bool LibrarySettings::allows(Protocol protocol) const {
  return any_or_holds(protocols, protocol) && !holds(forbidden_protocols, protocol);
}

std::string link_family(std::string_view name) {
  const std::size_t end = name.find_first_of("0123456789-");
  return std::string(name.substr(0, end));
}

bool covers(const Scope& scope, const RuleQuery& query) {
  if (!any_or_holds(scope.operations, query.op)) return false;
  if (!any_or_holds(scope.algorithms, query.algorithm)) return false;
  if (!any_or_holds(scope.protocols, query.protocol)) return false;
  if (query.domains < scope.min_domains || query.domains > scope.max_domains) return false;
  if (query.members < scope.min_members) return false;
  if (!scope.architectures.empty() &&
      std::ranges::find(scope.architectures, query.architecture) == scope.architectures.end()) {
    return false;
  }
  if (!scope.gpus.empty() && std::ranges::find(scope.gpus, query.gpu) == scope.gpus.end()) {
    return false;
  }
  if (scope.links.empty()) return true;
  return query.link != nullptr &&
         (holds(scope.links, query.link->name) || holds(scope.links, query.link->family));
}

double share_at(const EfficiencyRule& rule, std::uint32_t members) {
  require(!rule.points.empty(), "an efficiency rule has a point");
  const auto above = std::ranges::find_if(
      rule.points, [&](const EfficiencyRule::Point& point) { return point.members >= members; });
  if (above == rule.points.begin()) return rule.points.front().share;
  if (above == rule.points.end()) return rule.points.back().share;
  const EfficiencyRule::Point& low = *(above - 1);
  const EfficiencyRule::Point& high = *above;
  const double position =
      std::log2(double(members) / low.members) / std::log2(double(high.members) / low.members);
  return low.share + position * (high.share - low.share);
}

std::uint32_t channels_per_peer(const PointToPointRule& rule, std::uint32_t members, Bytes bytes) {
  std::uint32_t channels = rule.channels;
  while (channels > 1 && std::uint64_t{channels} * members > rule.channels) channels /= 2;
  while (channels <= rule.channels / 2 && bytes.count() > rule.part.count() * channels) {
    channels *= 2;
  }
  return channels;
}

void set_stack(Library& library, std::string_view name) {
  std::vector<std::string> names;
  for (const StackRule& stack : library.stacks) names.push_back(stack.name);
  if (std::ranges::find(names, name) == names.end()) {
    if (names.empty()) {
      throw InputError(
          fmt::format("{} {} has no stacks, got \"{}\"", library.name, library.version, name));
    }
    throw InputError(fmt::format("expected a stack out of {}, got \"{}\"{}", fmt::join(names, ", "),
                                 name, did_you_mean(name, names)));
  }
  library.stack = name;
}

const StackRule* stack_in_use(const Library& library) {
  const auto found = std::ranges::find(library.stacks, library.stack, &StackRule::name);
  return found == library.stacks.end() ? nullptr : &*found;
}

const NetworkRule* network_rule(const Library& library, std::string_view generation) {
  const std::string kind = link_family(generation);
  const auto found = std::ranges::find_if(library.networks, [&](const NetworkRule& rule) {
    return std::ranges::any_of(
        rule.links, [&](const std::string& link) { return link == generation || link == kind; });
  });
  return found == library.networks.end() ? nullptr : &*found;
}

}  // namespace flyover
