#pragma once

// How sure the time of a run is, and whether two runs differ by more than that.
// docs/models/uncertainty.md derives the equations.

#include <string_view>

#include "flyover/base/units.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/study/residual_ranges.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover {

// Fills in low, high, range and validity of a result, to first order: the exposed time e of each
// class of communication becomes e x low to e x high, classes vary independently, and compute stays
// as given.
//
//   low  = time - sqrt(sum over classes of (e (1 - low))^2),  high likewise
//
// e is the exposed time of the family, shared among its kinds of calls by their time, and of
// start-up by their number; waiting (bubble, idle) stretches as the rest does. Groups of one family
// and size count as the one that spans most domains.
void add_range(Result& result, const Topology& topology, const Workload& workload,
               std::string_view library, const ResidualRanges& ranges);

// By how much two runs differ, and by how much they must to be told apart. In a class that both
// have, the part of the error that a site's runs share cancels:
//
//   margin^2 = sum over classes of  d^2 + u^2 - 2 correlation d u
//
// with d by how much the slower run may be shorter and u by how much the faster may be longer.
struct Difference {
  Duration time{};    // Of the second less the first.
  Duration margin{};  // The smallest difference that lies outside of 80 % of such errors.
  bool within_error = false;
};
[[nodiscard]] Difference difference(const Result& first, const Result& second);

}  // namespace flyover
