// Summaries derived from schedules written by hand.

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "unit/collective/shapes.hpp"

namespace flyover {
namespace {

Schedule two_blocks_along_a_chain() {
  Schedule schedule;
  schedule.op = CollectiveOp::Broadcast;
  schedule.ranks = 3;
  schedule.block_bytes = {Bytes{6}, Bytes{2}};
  schedule.transfers = {{.from = 0, .to = 1, .block = 0},
                        {.from = 1, .to = 2, .block = 0},
                        {.from = 0, .to = 1, .block = 1, .previous = 0},
                        {.from = 1, .to = 2, .block = 1, .previous = 1}};
  schedule.dependency_begin = {0, 0, 1, 1, 2};
  schedule.dependencies = {0, 2};
  return schedule;
}

TEST_CASE("a summary counts bytes, messages, steps and hops", "[collective][summary]") {
  const GroupShape group{.domain = {0, 0, 1}, .rail = {0, 1, 0}};
  const Schedule schedule = two_blocks_along_a_chain();
  REQUIRE(check(schedule).empty());
  const Summary summary = summarise(schedule, group);
  CHECK(summary.edges == std::vector<EdgeLoad>{{0, 1, 1.0, 2, 0}, {1, 2, 1.0, 2, 0}});
  CHECK(summary.steps == 3);  // The second block follows the first.
  CHECK(summary.intra_hops == 1);
  CHECK(summary.inter_hops == 1);
}

TEST_CASE("a summary weighs blocks by their bytes, and alike when there are none",
          "[collective][summary]") {
  const GroupShape group{.domain = {0, 0, 1}, .rail = {0, 1, 0}};
  Schedule schedule = two_blocks_along_a_chain();
  schedule.transfers[2].channel = 1;
  schedule.transfers[2].previous = none;
  CHECK(summarise(schedule, group).edges.front() == EdgeLoad{0, 1, 0.75, 1, 0});
  schedule.block_bytes = {Bytes{0}, Bytes{0}};
  CHECK(summarise(schedule, group).edges.front() == EdgeLoad{0, 1, 0.5, 1, 0});
}

TEST_CASE("a summary needs the shape of the schedule's group", "[collective][summary]") {
  CHECK_THROWS_AS(summarise(two_blocks_along_a_chain(), test::group({2})), InternalError);
}

}  // namespace
}  // namespace flyover
