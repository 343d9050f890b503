#pragma once

#include <cstdint>

#include "flyover/topology/builders.hpp"

namespace flyover {

// Throws InputError, naming the node type, when its parts contradict each other.
void check_node(const NodeSpec& spec);

// Appends one node: its vertices (GPUs, NVSwitches, PCIe switches, sockets, NICs), the links
// between them, and its entry in Topology::nodes.
void add_node(Topology& topology, const NodeSpec& spec, std::uint32_t type,
              std::uint32_t gpu_model);

// Appends a node like one of `pattern`, which has the same types and GPU models.
void add_copy(Topology& topology, const Topology& pattern, NodeId original);

}  // namespace flyover
