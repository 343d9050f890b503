#include "schedule_writer.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

std::vector<Bytes> split(Bytes bytes, std::uint64_t parts) {
  require(bytes >= Bytes{0}, "a size of zero or more");
  const auto count = static_cast<std::int64_t>(parts);
  const std::int64_t share = bytes.count() / count;
  std::vector<Bytes> blocks(parts, Bytes{share});
  std::fill_n(blocks.begin(), bytes.count() % count, Bytes{share + 1});
  return blocks;
}

ScheduleWriter::ScheduleWriter(const CollectiveShape& shape, std::uint64_t transfers,
                               std::uint64_t dependencies) {
  if (std::max(transfers, dependencies) >= none) {
    throw InputError(fmt::format(
        "{} over {} ranks takes {} transfers message by message, more than the {} that can be "
        "replayed; replay it as a stream instead",
        to_string(shape.op), shape.group.ranks(), transfers, none - 1));
  }
  schedule_.op = shape.op;
  schedule_.ranks = shape.group.ranks();
  schedule_.root = shape.root;
  schedule_.transfers.reserve(transfers);
  schedule_.dependency_begin.reserve(transfers + 1);
  schedule_.dependencies.reserve(dependencies);
}

Schedule ScheduleWriter::finish() {
  schedule_.dependency_begin.push_back(static_cast<std::uint32_t>(schedule_.dependencies.size()));
  return std::move(schedule_);
}

Summary SummaryWriter::finish(std::uint64_t blocks) {
  std::vector<EdgeLoad>& edges = summary_.edges;
  const auto key = [](const EdgeLoad& edge) {
    return std::tuple(edge.channel, edge.from, edge.to);
  };
  if (!std::ranges::is_sorted(edges, {}, key)) std::ranges::sort(edges, {}, key);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (kept > 0 && key(edges[kept - 1]) == key(edges[i])) {
      edges[kept - 1].messages += edges[i].messages;
    } else {
      edges[kept++] = edges[i];
    }
  }
  edges.resize(kept);
  for (EdgeLoad& edge : edges) {
    edge.fraction = static_cast<double>(edge.messages) / static_cast<double>(blocks);
  }
  return std::move(summary_);
}

}  // namespace flyover
