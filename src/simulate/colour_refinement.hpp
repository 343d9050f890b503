#pragma once

// Which nodes of a graph cannot be told apart: colour refinement.

#include <cstdint>
#include <span>
#include <vector>

namespace flyover {

// Joins two nodes, seen from both. What the label means is between those who set it. Where nodes
// stand for classes, each of a's has `a_sees` such edges to b's and each of b's `b_sees` to a's.
struct LabelledEdge {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t label = 0;
  std::uint32_t a_sees = 1;
  std::uint32_t b_sees = 1;
};

// The coarsest partition that refines `colours` and is equitable: any two nodes of a class have,
// for every class and label, equally many edges of that label to nodes of that class. Returns the
// class of every node; classes are numbered by their smallest node.
//
// Every round tells the nodes of a class apart by their neighbours' classes, and looks again only
// at the neighbours of nodes that were split off, while one part of each class keeps its number
// (after Cardon & Crochemore 1982): every edge is looked at a few times. Multisets are compared by
// sums of hashes of 128 bits, which for a billion nodes are wrong once in 10^20 times.
[[nodiscard]] std::vector<std::uint32_t> refine_colours(std::span<const std::uint32_t> colours,
                                                        std::span<const LabelledEdge> edges);

}  // namespace flyover
