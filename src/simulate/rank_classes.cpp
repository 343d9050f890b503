#include "simulate/rank_classes.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "simulate/colour_refinement.hpp"
#include "simulate/joint_graph.hpp"

namespace flyover {

namespace {

// Makes the cast of a partition.
class Casting {
 public:
  Casting(const JointGraph& graph, const Ranks& ranks, const MessagePairs& messages,
          const ClusterResources& resources)
      : graph_(graph),
        ranks_(ranks),
        messages_(messages),
        resources_(resources),
        class_(refine_colours(graph.colours, graph.edges)),
        size_(std::ranges::max(class_) + std::size_t{1}, 0) {
    for (const std::uint32_t c : class_) ++size_[c];
  }

  Cast make(Workload workload) {
    cast_players();
    cast_resources();
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
    return std::move(cast_);
  }

 private:
  // Ranks are the first nodes, so that their classes are numbered first, in order of rank.
  void cast_players() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::uint32_t player = class_[JointGraph::rank(rank)];
      if (player == cast_.players.size()) cast_.players.push_back({rank, size_[player]});
      cast_.player_of.push_back(player);
    }
  }

  void cast_resources() {
    std::vector<std::uint32_t> number(size_.size(), absent);
    for (std::uint32_t i = 0; i < resources_.size(); ++i) {
      const std::uint32_t c = class_[graph_.resource(ResourceId{i})];
      if (number[c] == absent) {
        number[c] = static_cast<std::uint32_t>(cast_.stands_for.size());
        cast_.stands_for.push_back(size_[c]);
      }
      cast_.stand_in.push_back(ResourceId{number[c]});
    }
  }

  void cast_groups(std::uint32_t f, std::vector<std::vector<std::uint32_t>>& groups) {
    std::vector<std::vector<std::uint32_t>> by_players;
    std::vector<PlayedGroup>& played = cast_.groups.emplace_back();
    std::vector<bool> seen(size_.size(), false);
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      const std::uint32_t node = graph_.groups[f][g];
      if (node == absent || seen[class_[node]]) continue;
      seen[class_[node]] = true;
      std::vector<std::uint32_t> players;
      for (const std::uint32_t rank : groups[g]) players.push_back(cast_.player_of[rank]);
      by_players.push_back(distinct(players));
      played.push_back({std::move(groups[g]), size_[class_[node]]});
    }
    groups = std::move(by_players);
  }

  void cast_messages() {
    const Ranks players(cast_.workload);
    std::vector<bool> seen(size_.size(), false);
    for (std::uint32_t p = 0; p < messages_.pairs.size(); ++p) {
      const RankPair& pair = messages_.pairs[p];
      const std::uint32_t c = class_[graph_.pairs[p]];
      if (seen[c]) continue;
      seen[c] = true;
      cast_.messages.add(cast_.player_of[pair.from], cast_.player_of[pair.to],
                         messages_.patterns[pair.pattern], players, pair, size_[c]);
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

  const JointGraph& graph_;
  const Ranks& ranks_;
  const MessagePairs& messages_;
  const ClusterResources& resources_;
  std::vector<std::uint32_t> class_;  // By node of the graph.
  std::vector<std::uint32_t> size_;   // By class.
  std::vector<bool> listed_;          // By player.
  Cast cast_;
};

}  // namespace

std::optional<Cast> reduced_cast(const Topology& topology, const CostModel& cost,
                                 const ClusterResources& resources, Workload workload) {
  try {
    const Ranks ranks(workload);
    std::vector<CompiledProgram> programs = compile_all(workload);
    const MessagePairs messages = pair_messages(workload, ranks);
    check_calls_agree(workload, programs, ranks);
    const JointGraph graph = joint_graph(topology, cost, resources, workload, ranks, messages);
    Cast cast = Casting(graph, ranks, messages, resources).make(std::move(workload));
    cast.programs = std::move(programs);
    return cast;
  } catch (const std::runtime_error&) {  // InputError, SimulationError.
    return std::nullopt;
  }
}

}  // namespace flyover
