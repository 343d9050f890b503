#include "simulate/cast.hpp"

namespace flyover {

Cast full_cast(Workload workload, std::uint32_t resources) {
  Cast cast;
  const Ranks ranks(workload);
  cast.programs = compile_all(workload);
  cast.messages = match_messages(workload, ranks);
  check_calls_agree(workload, cast.programs, ranks);
  for (std::uint32_t rank = 0; rank < workload.ranks; ++rank) {
    cast.players.push_back({rank, 1});
    cast.player_of.push_back(rank);
  }
  for (const GroupFamily& family : workload.groups) {
    std::vector<PlayedGroup>& played = cast.groups.emplace_back();
    for (const auto& group : family.groups) played.push_back({group, 1, {}});
  }
  for (std::uint32_t r = 0; r < resources; ++r) cast.resources.push_back({ResourceId{r}, 1});
  cast.workload = std::move(workload);
  return cast;
}

}  // namespace flyover
