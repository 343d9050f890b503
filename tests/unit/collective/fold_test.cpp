#include <map>
#include <string>
#include <tuple>

#include <catch2/catch.hpp>

#include "flyover/collective/algorithms.hpp"

namespace {

using namespace flyover;

using Edge = std::pair<std::uint32_t, std::uint32_t>;
struct Load {
  double fraction = 0;
  std::uint32_t channels = 0;
};

// Over all channels; relays are numbered from the ranks on.
std::map<Edge, Load> loads(const Summary& summary) {
  std::map<Edge, Load> sums;
  for (const EdgeLoad& edge : summary.edges) {
    Load& load = sums[{edge.from, edge.to}];
    load.fraction += edge.fraction;
    ++load.channels;
  }
  return sums;
}

std::map<Edge, Load> loads(const FoldedSummary& folded, std::uint32_t domains,
                           std::uint32_t members) {
  std::map<Edge, Load> sums;
  const auto add = [&](std::uint32_t from_domain, std::uint32_t to_domain, const MemberLoad& load) {
    const auto number = [&](std::uint32_t domain, std::uint32_t member) {
      return member == members ? domains * members + domain : domain * members + member;
    };
    Load& sum = sums[{number(from_domain, load.from), number(to_domain, load.to)}];
    sum.fraction += load.fraction;
    sum.channels += load.channels;
  };
  for (std::uint32_t d = 0; d < domains; ++d) {
    for (const MemberLoad& load : folded.inside) add(d, d, load);
  }
  for (const FoldedSummary::Edge& edge : folded.edges) {
    for (const MemberLoad& load : folded.between[edge.kind]) add(edge.from, edge.to, load);
  }
  return sums;
}

}  // namespace

TEST_CASE("a folded summary says of alike domains what the summary says") {
  std::uint32_t checked = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.fold == nullptr) continue;
    for (const std::uint32_t domains : {2U, 3U, 4U, 7U, 16U}) {
      for (const std::uint32_t members : {1U, 2U, 3U, 8U}) {
        for (const std::uint32_t channels : {1U, 2U, 8U}) {
          for (const std::uint32_t rails : {1U, members}) {
            CollectiveShape shape{
                .op = algorithm.op, .group = {}, .channels = channels, .in_switch_reduction = true};
            for (std::uint32_t i = 0; i < domains * members; ++i) {
              shape.group.domain.push_back(i / members);
              shape.group.rail.push_back(i % members % rails);
            }
            CAPTURE(to_string(algorithm.op), to_string(algorithm.id), domains, members, channels,
                    rails);
            const Summary summary = algorithm.summarise(shape);
            CollectiveShape one = shape;
            one.group.domain.resize(members);
            one.group.rail.resize(members);
            const auto fold = algorithm.fold(one, domains);
            if (!fold) continue;
            const FoldedSummary& folded = *fold;
            ++checked;
            CHECK(folded.steps == summary.steps);
            CHECK(folded.intra_hops == summary.intra_hops);
            CHECK(folded.inter_hops == summary.inter_hops);
            const auto all = loads(summary);
            const auto some = loads(folded, domains, members);
            REQUIRE(some.size() == all.size());
            for (const auto& [edge, load] : all) {
              CAPTURE(edge.first, edge.second);
              REQUIRE(some.count(edge) == 1);
              CHECK(some.at(edge).fraction == Approx(load.fraction).epsilon(1e-12));
              CHECK(some.at(edge).channels == load.channels);
            }
          }
        }
      }
    }
  }
  CHECK(checked > 500);
}
