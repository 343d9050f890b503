#pragma once

// The messages of a joint graph: what one block sends to another is one loader, each pair of ranks
// a part of it.

#include "simulate/joint_context.hpp"
#include "simulate/loader_writer.hpp"

namespace flyover {

// Plans all messages, of pairs that lie alike once, and adds the pairs to `out`, which is the
// writer's. Throws as the cost model does.
void add_pair_loaders(const JointContext& context, LoaderWriter& writer, JointGraph& out);

}  // namespace flyover
