#include "simulate/colour_refinement.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include <catch2/catch.hpp>

using namespace flyover;

namespace {

using Classes = std::vector<std::uint32_t>;
using Edges = std::vector<LabelledEdge>;

// The definition, round by round: exact multisets instead of hashes, all nodes every time.
Classes refine_naively(Classes colours, const Edges& edges) {
  for (std::size_t count = 0;;) {
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> sight(colours.size());
    for (const LabelledEdge& edge : edges) {
      sight[edge.a].emplace_back(colours[edge.b], edge.label);
      sight[edge.b].emplace_back(colours[edge.a], edge.label);
    }
    std::map<std::pair<std::uint32_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>>,
             std::uint32_t>
        number;
    Classes next;
    for (std::size_t v = 0; v < colours.size(); ++v) {
      std::ranges::sort(sight[v]);
      const auto fresh = static_cast<std::uint32_t>(number.size());
      next.push_back(number.try_emplace({colours[v], sight[v]}, fresh).first->second);
    }
    colours = next;
    if (number.size() == count) return colours;
    count = number.size();
  }
}

Edges ring(std::uint32_t n) {
  Edges edges;
  for (std::uint32_t v = 0; v < n; ++v) edges.push_back({v, (v + 1) % n, 7});
  return edges;
}

}  // namespace

TEST_CASE("the nodes of a ring are one class", "[simulate][classes]") {
  CHECK(refine_colours(Classes(6, 0), ring(6)) == Classes{0, 0, 0, 0, 0, 0});
}

TEST_CASE("a marked node of a ring parts the others by their distance", "[simulate][classes]") {
  CHECK(refine_colours(Classes{0, 0, 5, 0, 0, 0}, ring(6)) == Classes{0, 1, 2, 1, 0, 3});
}

TEST_CASE("labels and parallel edges tell nodes apart", "[simulate][classes]") {
  CHECK(refine_colours(Classes(4, 0), Edges{{0, 1, 1}, {2, 3, 2}}) == Classes{0, 0, 1, 1});
  CHECK(refine_colours(Classes(4, 0), Edges{{0, 1, 1}, {2, 3, 1}, {2, 3, 1}}) ==
        Classes{0, 0, 1, 1});
}

TEST_CASE("nodes without edges stay as they are given", "[simulate][classes]") {
  CHECK(refine_colours(Classes{4, 2, 4}, {}) == Classes{0, 1, 0});
  CHECK(refine_colours({}, {}).empty());
}

TEST_CASE("refinement finds what its definition finds, in whatever order edges come",
          "[simulate][classes]") {
  std::mt19937_64 random(5);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t n = 1 + below(40);
    Classes colours(n);
    for (std::uint32_t& c : colours) c = below(1 + below(3));
    Edges edges;
    for (std::uint32_t e = below(2 * n); e > 0; --e) {
      edges.push_back({below(n), below(n), below(1 + below(3))});
    }
    const Classes found = refine_colours(colours, edges);
    CHECK(found == refine_naively(colours, edges));
    std::shuffle(edges.begin(), edges.end(), random);
    CHECK(found == refine_colours(colours, edges));
  }
}

TEST_CASE("classes of a graph, refined with how often each sees the other, are those of the graph",
          "[simulate][classes]") {
  // Nodes of three kinds: `each` of the second around every one of the first, all of the third
  // joined to all of the first. The quotient has one node for each kind.
  constexpr std::uint32_t hubs = 4;
  constexpr std::uint32_t each = 3;
  constexpr std::uint32_t others = 2;
  Edges edges;
  for (std::uint32_t h = 0; h < hubs; ++h) {
    for (std::uint32_t i = 0; i < each; ++i) edges.push_back({h, hubs + each * h + i, 1});
    for (std::uint32_t o = 0; o < others; ++o) edges.push_back({h, hubs + each * hubs + o, 2});
  }
  const Classes whole = refine_colours(Classes(hubs + each * hubs + others, 0), edges);
  CHECK(std::ranges::max(whole) == 2);
  const Edges quotient{{0, 1, 1, each, 1}, {0, 2, 2, others, hubs}};
  CHECK(refine_colours(Classes(3, 0), quotient) == Classes{0, 1, 2});
}

TEST_CASE("nodes that see equally many of a class once or several times over are alike",
          "[simulate][classes]") {
  const Edges twice_or_double{{0, 2, 1}, {0, 2, 1}, {1, 3, 1, 2, 2}};
  CHECK(refine_colours(Classes(4, 0), twice_or_double) == Classes{0, 0, 0, 0});
  const Edges once_or_double{{0, 2, 1}, {1, 3, 1, 2, 2}};
  CHECK(refine_colours(Classes(4, 0), once_or_double) == Classes{0, 1, 0, 1});
}
