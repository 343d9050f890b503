#include "simulate/joint_graph.hpp"

#include <bit>

#include "simulate/group_loaders.hpp"
#include "simulate/joint_context.hpp"
#include "simulate/pair_loaders.hpp"

namespace flyover {

namespace {

void add_blocks(const JointContext& context, LoaderWriter& writer) {
  for (std::uint32_t b = 0; b < context.blocks.size(); ++b) {
    Digest facts;
    facts.add(BlockNode);
    facts.add(context.blocks.kind(b));
    for (std::uint32_t g = 0; g < context.blocks.gpus(b); ++g) {
      const std::uint32_t rank = context.blocks.first_rank(b) + g;
      facts.add(rank < context.ranks.size() ? context.ranks.program(rank) : absent - 1);
    }
    writer.add_node(facts);
  }
}

void add_fabric(const JointContext& context, LoaderWriter& writer) {
  for (const LinkId link : context.blocks.fabric_links()) {
    const ResourceId r = ClusterResources::of(link);
    Digest facts;
    facts.add(LinkNode);
    facts.add(context.resources.class_of(r));
    facts.add(std::bit_cast<std::uint64_t>(context.resources.capacity(r)));
    facts.add(context.resources.cables(r));
    facts.add(context.resources.in_service(r) ? 1U : 0U);
    writer.add_node(facts);
  }
}

}  // namespace

JointGraph joint_graph(const JointContext& context) {
  JointGraph graph;
  const auto nodes = [&] { return static_cast<std::uint32_t>(graph.colours.size()); };
  LoaderWriter writer(context.blocks, graph);
  add_blocks(context, writer);
  graph.first_fabric = nodes();
  add_fabric(context, writer);
  graph.first_loader = nodes();
  add_group_loaders(context, writer, graph);
  add_pair_loaders(context, writer, graph);
  return graph;
}

}  // namespace flyover
