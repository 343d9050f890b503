#pragma once

// The groups of a joint graph: what their calls load.

#include "simulate/joint_context.hpp"
#include "simulate/loader_writer.hpp"

namespace flyover {

// Plans the calls of all groups, of those that lie alike once, and adds the groups to `out`, which
// is the writer's. Throws as the cost model does.
void add_group_loaders(const JointContext& context, LoaderWriter& writer, JointGraph& out);

}  // namespace flyover
