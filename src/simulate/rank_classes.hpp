#pragma once

// Which ranks behave alike, and the reduced cast in which each such class is played once.
//
// Ranks, groups, pairs of ranks that exchange messages, and resources are the nodes of one graph. A
// group is joined to its members and, for each plan of its calls, to the resources that the plan
// loads, with the weight as label; a pair likewise; a rank to its SMs and its HBM, which its
// kernels load. (joint_graph.hpp and quotient.hpp find the same partition without writing all of
// that down.) Nodes start apart by what is known of each alone: a rank's program and GPU, a
// resource's kind and capacity, the start-up, cap and work of a group's plans. Colour refinement
// then gives the coarsest partition in which nodes of a class have the same surroundings.
//
// That is all that a replay depends on. Suppose that up to some instant all ranks of a class have
// done the same. Then the calls of a class of groups have the same members waiting and start
// together, on plans that are alike, and so do messages and kernels: equal streams run. Every
// resource of a class carries equally many streams of each class with the same weights, so that the
// rounds of the solver (fluid.hpp) offer the same everywhere in a class, settle a class of streams
// in the same round and leave the same on all resources of a class. Rates are equal over classes,
// so classes end together, and the ranks of a class go on as one. Nothing else enters: where the
// full replay breaks ties by number, its results do not depend on it.
//
// A fault, a slow GPU, an odd group or an uneven route thus splits the classes that it touches, and
// no others. Weights within 1e-12 of each other are one: they differ by the order of sums.

#include <optional>

#include "flyover/cost/cost_model.hpp"
#include "flyover/topology/topology.hpp"
#include "simulate/call_planner.hpp"
#include "simulate/cast.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// None when the workload or a plan is in error: the full replay says so in words of its own.
// Requires a valid workload. Costs a plan for each way in which groups and pairs lie
// (joint_graph.hpp; where the fabric is no tree, for every group), some hashes for each node that a
// group has members in, and a look at every rank; programs are looked at once, not once a rank.
[[nodiscard]] std::optional<Cast> reduced_cast(const Topology& topology, const CostModel& cost,
                                               const CallPlanner& planner,
                                               const ClusterResources& resources,
                                               Workload workload);

}  // namespace flyover
