#include "simulate/rank_classes.hpp"

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "simulate/reduction.hpp"

namespace flyover {

namespace {

// Makes the cast of a reduction.
class Casting {
 public:
  Casting(std::shared_ptr<const Reduction> reduction, const Ranks& ranks,
          const MessagePairs& messages)
      : reduction_(std::move(reduction)),
        quotient_(reduction_->quotient()),
        ranks_(ranks),
        messages_(messages) {}

  Cast make(Workload workload) {
    cast_players();
    for (const std::uint32_t c : reduction_->resource_classes()) {
      cast_.resources.push_back({*quotient_.first_resources()[c], quotient_.size(c)});
    }
    for (std::uint32_t f = 0; f < workload.groups.size(); ++f) {
      cast_groups(f, workload.groups[f].groups);
    }
    for (Program& program : workload.programs) {
      std::vector<std::uint32_t> players;
      for (const std::uint32_t rank : program.ranks) players.push_back(cast_.player_of[rank]);
      program.ranks = distinct(players);
    }
    workload.ranks = static_cast<std::uint32_t>(cast_.players.size());
    cast_.workload = std::move(workload);
    cast_messages();
    cast_.reduction = std::move(reduction_);
    return std::move(cast_);
  }

 private:
  void cast_players() {
    std::vector<std::uint32_t> number(quotient_.classes(), absent);
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::uint32_t c = quotient_.of_rank(rank);
      if (number[c] == absent) {
        number[c] = static_cast<std::uint32_t>(cast_.players.size());
        cast_.players.push_back({rank, quotient_.size(c)});
      }
      cast_.player_of.push_back(number[c]);
    }
  }

  void cast_groups(std::uint32_t f, std::vector<std::vector<std::uint32_t>>& groups) {
    std::vector<std::vector<std::uint32_t>> by_players;
    std::vector<PlayedGroup>& played = cast_.groups.emplace_back();
    std::vector<bool> seen(quotient_.classes(), false);
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      const std::uint32_t c = quotient_.of_group(f, g);
      if (c == absent || seen[c]) continue;
      seen[c] = true;
      std::vector<std::uint32_t> players;
      for (const std::uint32_t rank : groups[g]) players.push_back(cast_.player_of[rank]);
      by_players.push_back(distinct(players));
      const JointGraph& graph = reduction_->graph();
      played.push_back(
          {std::move(groups[g]), quotient_.size(c), graph.geometries[graph.geometry_of[f][g]]});
    }
    groups = std::move(by_players);
  }

  void cast_messages() {
    const Ranks players(cast_.workload);
    std::vector<bool> seen(quotient_.classes(), false);
    for (std::uint32_t p = 0; p < messages_.pairs.size(); ++p) {
      const RankPair& pair = messages_.pairs[p];
      const std::uint32_t c = quotient_.of_pair(p);
      if (seen[c]) continue;
      seen[c] = true;
      cast_.messages.add(cast_.player_of[pair.from], cast_.player_of[pair.to],
                         messages_.patterns[pair.pattern], players, pair, quotient_.size(c));
    }
    cast_.messages.index();
  }

  // Each once, in the order in which they come.
  std::vector<std::uint32_t> distinct(const std::vector<std::uint32_t>& players) {
    listed_.resize(cast_.players.size(), false);
    std::vector<std::uint32_t> out;
    for (const std::uint32_t player : players) {
      if (!listed_[player]) out.push_back(player);
      listed_[player] = true;
    }
    for (const std::uint32_t player : out) listed_[player] = false;
    return out;
  }

  std::shared_ptr<const Reduction> reduction_;
  const Quotient& quotient_;
  const Ranks& ranks_;
  const MessagePairs& messages_;
  std::vector<bool> listed_;  // By player.
  Cast cast_;
};

}  // namespace

std::optional<Cast> reduced_cast(const Topology& topology, const CostModel& cost,
                                 const CallPlanner& planner, const ClusterResources& resources,
                                 Workload workload) {
  try {
    const Ranks ranks(workload);
    std::vector<CompiledProgram> programs = compile_all(workload);
    const MessagePairs messages = pair_messages(workload, ranks);
    check_calls_agree(workload, programs, ranks);
    auto reduction = std::make_shared<const Reduction>(topology, cost, planner, resources, workload,
                                                       ranks, messages);
    Cast cast = Casting(std::move(reduction), ranks, messages).make(std::move(workload));
    cast.programs = std::move(programs);
    return cast;
  } catch (const std::runtime_error&) {  // InputError, SimulationError.
    return std::nullopt;
  }
}

}  // namespace flyover
