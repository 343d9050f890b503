// Does the check find what is wrong with a schedule, and say it well?

#include <catch2/catch.hpp>

#include "unit/collective/shapes.hpp"

namespace flyover {
namespace {

using Catch::Matchers::StartsWith;

// A schedule of one block each, written by hand. Each step is a transfer and what it comes after.
struct Step {
  Transfer transfer;
  std::vector<std::uint32_t> after;
};

Schedule by_hand(CollectiveOp op, std::uint32_t ranks, std::uint32_t blocks,
                 const std::vector<Step>& steps) {
  Schedule schedule;
  schedule.op = op;
  schedule.ranks = ranks;
  schedule.block_bytes.assign(blocks, Bytes{8});
  for (const Step& step : steps) {
    schedule.dependency_begin.push_back(static_cast<std::uint32_t>(schedule.dependencies.size()));
    schedule.transfers.push_back(step.transfer);
    schedule.dependencies.insert(schedule.dependencies.end(), step.after.begin(), step.after.end());
  }
  schedule.dependency_begin.push_back(static_cast<std::uint32_t>(schedule.dependencies.size()));
  return schedule;
}

Transfer copy(std::uint32_t from, std::uint32_t to, std::uint32_t block = 0) {
  return {.from = from, .to = to, .block = block, .action = Action::Copy};
}
Transfer reduce(std::uint32_t from, std::uint32_t to, std::uint32_t block = 0) {
  return {.from = from, .to = to, .block = block, .action = Action::Reduce};
}

// The schedule without one transfer; what waited for it no longer does.
Schedule without_transfer(const Schedule& schedule, std::uint32_t dropped) {
  Schedule out = schedule;
  out.transfers.clear();
  out.dependency_begin.clear();
  out.dependencies.clear();
  const auto renumbered = [&](std::uint32_t i) { return i > dropped ? i - 1 : i; };
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    if (i == dropped) continue;
    Transfer transfer = schedule.transfers[i];
    if (transfer.previous == dropped) transfer.previous = schedule.transfers[dropped].previous;
    if (transfer.previous != none) transfer.previous = renumbered(transfer.previous);
    out.transfers.push_back(transfer);
    out.dependency_begin.push_back(static_cast<std::uint32_t>(out.dependencies.size()));
    for (const std::uint32_t earlier : schedule.after(i)) {
      if (earlier != dropped) out.dependencies.push_back(renumbered(earlier));
    }
  }
  out.dependency_begin.push_back(static_cast<std::uint32_t>(out.dependencies.size()));
  return out;
}

Schedule without_dependency(Schedule schedule, std::uint32_t dropped) {
  schedule.dependencies.erase(schedule.dependencies.begin() + dropped);
  for (std::uint32_t& begin : schedule.dependency_begin) {
    if (begin > dropped) --begin;
  }
  return schedule;
}

Schedule of(CollectiveOp op, AlgorithmId id, const GroupShape& group) {
  return find_algorithm(op, id)->schedule(test::shape_of(op, group), Bytes{5040});
}

TEST_CASE("no transfer of any algorithm can be left out", "[collective][check]") {
  for (const Algorithm& algorithm : algorithms()) {
    for (const auto& sizes : {std::vector<std::uint32_t>{2, 1, 2}, std::vector<std::uint32_t>{4},
                              std::vector<std::uint32_t>{2, 2}}) {
      const auto shape = test::shape_of(algorithm.op, test::group(sizes), 1, 1);
      if (!algorithm.unsupported(shape).empty()) continue;
      const Schedule schedule = algorithm.schedule(shape, Bytes{5040});
      CAPTURE(to_string(algorithm.op), to_string(algorithm.id), sizes.size());
      std::uint32_t unnoticed = 0;
      for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
        if (check(without_transfer(schedule, i)).empty()) ++unnoticed;
      }
      // NVLS stores its result to every rank, to the one that had it already as well, which it
      // would not need: one per block in an all-gather or all-reduce.
      const bool stores_back =
          algorithm.op != CollectiveOp::ReduceScatter &&
          (algorithm.id == AlgorithmId::Nvls || algorithm.id == AlgorithmId::NvlsTree);
      if (!stores_back) CHECK(unnoticed == 0);
    }
  }
}

TEST_CASE("no dependency of rings, trees, PAT and recursive halving can be left out",
          "[collective][check]") {
  using enum CollectiveOp;
  const auto [op, id] =
      GENERATE(table<CollectiveOp, AlgorithmId>({{AllReduce, AlgorithmId::Ring},
                                                 {AllReduce, AlgorithmId::Tree},
                                                 {AllReduce, AlgorithmId::RecursiveDoubling},
                                                 {AllReduce, AlgorithmId::Nvls},
                                                 {AllReduce, AlgorithmId::AllPairs},
                                                 {AllGather, AlgorithmId::Ring},
                                                 {AllGather, AlgorithmId::Pat},
                                                 {ReduceScatter, AlgorithmId::Pat},
                                                 {Broadcast, AlgorithmId::Ring},
                                                 {Reduce, AlgorithmId::Tree}}));
  CAPTURE(to_string(op), to_string(id));
  const Schedule schedule = of(op, id, test::group({5}));
  for (std::uint32_t i = 0; i < schedule.dependencies.size(); ++i) {
    CAPTURE(i);
    CHECK_THAT(check(without_dependency(schedule, i)), StartsWith("unordered: "));
  }
}

TEST_CASE("no reduction can be done twice", "[collective][check]") {
  for (const Algorithm& algorithm : algorithms()) {
    for (const auto& sizes : {std::vector<std::uint32_t>{2, 1, 2}, std::vector<std::uint32_t>{4}}) {
      const auto shape = test::shape_of(algorithm.op, test::group(sizes), 1, 1);
      if (!algorithm.unsupported(shape).empty()) continue;
      const Schedule schedule = algorithm.schedule(shape, Bytes{5040});
      CAPTURE(to_string(algorithm.op), to_string(algorithm.id), sizes.size());
      for (const Transfer& transfer : schedule.transfers) {
        if (transfer.action == Action::Copy) continue;
        // Once more, after all else.
        Schedule again = schedule;
        for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
          again.dependencies.push_back(i);
        }
        again.transfers.push_back(transfer);
        again.transfers.back().previous = none;
        again.dependency_begin.push_back(static_cast<std::uint32_t>(again.dependencies.size()));
        CHECK_THAT(check(again), Catch::Matchers::Contains("reduced twice"));
      }
    }
  }
  Schedule ring = of(CollectiveOp::AllReduce, AlgorithmId::Ring, test::group({3}));
  ring.transfers.back().action = Action::Reduce;
  CHECK(check(ring) == "contribution of rank 0 to block 2 reduced twice at rank 0");
}

TEST_CASE("the check names what is missing", "[collective][check]") {
  using enum CollectiveOp;
  CHECK(check(by_hand(Broadcast, 3, 1, {{copy(0, 1), {}}})) == "rank 2 ends without block 0");
  CHECK(check(by_hand(Reduce, 3, 1, {{reduce(1, 0), {}}})) ==
        "rank 0 ends without the contribution of rank 2 to block 0");
  CHECK(check(by_hand(Broadcast, 3, 1, {{copy(1, 2), {}}})) ==
        "rank 1 sends block 0 without having it");
  CHECK(
      check(by_hand(Reduce, 3, 1, {{reduce(1, 0), {}}, {reduce(2, 1), {}}, {reduce(1, 0), {1}}})) ==
      "unordered: transfer 0 (rank 1 -> rank 0, block 0) and transfer 1 (rank 2 -> rank 1, block "
      "0) both use block 0 at rank 1");
  CHECK(check(by_hand(Reduce, 3, 1,
                      {{reduce(1, 0), {}}, {reduce(2, 1), {0}}, {reduce(1, 0), {1}}})) ==
        "contribution of rank 1 to block 0 reduced twice at rank 0");
}

TEST_CASE("sums need no order, but reading a sum does", "[collective][check]") {
  using enum CollectiveOp;
  CHECK(check(by_hand(Reduce, 3, 1, {{reduce(1, 0), {}}, {reduce(2, 0), {}}})).empty());
  CHECK(check(by_hand(
            AllReduce, 3, 1,
            {{reduce(1, 0), {}}, {reduce(2, 0), {}}, {copy(0, 1), {0, 1}}, {copy(0, 2), {0}}})) ==
        "unordered: transfer 1 (rank 2 -> rank 0, block 0) and transfer 3 (rank 0 -> rank 2, block "
        "0) both use block 0 at rank 0");
}

TEST_CASE("a contribution is the input, whatever has been added to the sender's block",
          "[collective][check]") {
  using enum CollectiveOp;
  const auto give = [](std::uint32_t from, std::uint32_t to) {
    return Transfer{.from = from, .to = to, .action = Action::Contribute};
  };
  // Crosswise, and each rank gives what it had, not the sum that it has by then.
  CHECK(check(by_hand(AllReduce, 2, 1, {{give(0, 1), {}}, {give(1, 0), {}}})).empty());
  CHECK_THAT(check(by_hand(AllReduce, 2, 1, {{reduce(0, 1), {}}, {reduce(1, 0), {}}})),
             StartsWith("unordered: "));
  CHECK(check(by_hand(AllReduce, 3, 1, {{give(0, 1), {}}, {give(1, 2), {0}}, {give(2, 0), {1}}})) ==
        "rank 0 ends without the contribution of rank 1 to block 0");
  CHECK(check(by_hand(Broadcast, 2, 1, {{give(0, 1), {}}})) ==
        "transfer 0 (rank 0 -> rank 1, block 0) contributes, but not from one rank of a sum to "
        "another");
  Schedule relayed = by_hand(Reduce, 2, 1, {{give(0, 2), {}}});
  relayed.relays = 1;
  relayed.relay_domain = {0};
  CHECK(check(relayed) ==
        "transfer 0 (rank 0 -> relay 0, block 0) contributes, but not from one rank of a sum to "
        "another");
}

TEST_CASE("an order by way of other blocks or of a connection counts", "[collective][check]") {
  // Rank 1 passes block 0 on after block 1, which follows block 0 on the connection 0 -> 1.
  std::vector<Step> steps = {
      {copy(0, 1, 0), {}}, {copy(0, 1, 1), {}}, {copy(1, 2, 1), {1}}, {copy(1, 2, 0), {2}}};
  CHECK_THAT(check(by_hand(CollectiveOp::Broadcast, 3, 2, steps)), StartsWith("unordered: "));
  steps[1].transfer.previous = 0;
  CHECK(check(by_hand(CollectiveOp::Broadcast, 3, 2, steps)).empty());
}

TEST_CASE("a relay starts empty", "[collective][check]") {
  Schedule schedule = by_hand(CollectiveOp::Reduce, 2, 1,
                              {{reduce(0, 2), {}}, {reduce(1, 2), {}}, {copy(2, 0), {0, 1}}});
  schedule.relays = 1;
  schedule.relay_domain = {0};
  CHECK(check(schedule).empty());
  schedule.transfers[0].action = Action::Copy;
  CHECK_THAT(check(schedule), StartsWith("unordered: ") && Catch::Matchers::EndsWith("at relay 0"));
  schedule = by_hand(CollectiveOp::Reduce, 2, 1, {{copy(2, 0), {}}});
  schedule.relays = 1;
  schedule.relay_domain = {0};
  CHECK(check(schedule) == "relay 0 sends block 0 without having it");
}

TEST_CASE("a schedule that is not well formed is described", "[collective][check]") {
  const std::vector<Step> steps = {{copy(0, 1), {}}, {copy(1, 2), {0}}};
  Schedule schedule = by_hand(CollectiveOp::Broadcast, 3, 1, steps);
  REQUIRE(check(schedule).empty());
  std::string expected;
  SECTION("no ranks") {
    schedule.ranks = 0;
    expected = "no ranks";
  }
  SECTION("root") {
    schedule.root = 3;
    expected = "root 3 is not a rank";
  }
  SECTION("relays") {
    schedule.relays = 1;
    expected = "not one domain for every relay";
  }
  SECTION("owners") {
    schedule.op = CollectiveOp::AllGather;
    expected = "not one owner for every block";
  }
  SECTION("sources") {
    schedule.op = CollectiveOp::Gather;
    expected = "not one source for every block";
  }
  SECTION("self") {
    schedule.transfers[1].to = 1;
    expected = "transfer 1 is not between two ranks";
  }
  SECTION("rank") {
    schedule.transfers[1].to = 3;
    expected = "transfer 1 is not between two ranks";
  }
  SECTION("block") {
    schedule.transfers[1].block = 1;
    expected = "transfer 1 carries no known block";
  }
  SECTION("dependency order") {
    schedule.dependencies[0] = 1;
    expected = "transfer 1 (rank 1 -> rank 2, block 0) comes before transfer 1, which it needs";
  }
  SECTION("previous order") {
    schedule.transfers[0].previous = 1;
    expected = "transfer 0 (rank 0 -> rank 1, block 0) comes before transfer 1, its previous";
  }
  SECTION("connection") {
    schedule.transfers[1].previous = 0;
    expected =
        "transfer 1 (rank 1 -> rank 2, block 0) is not on the connection of its previous, "
        "transfer 0 (rank 0 -> rank 1, block 0)";
  }
  SECTION("index") {
    schedule.dependency_begin.pop_back();
    expected = "dependency_begin does not index the dependencies";
  }
  CHECK(check(schedule) == expected);
}

}  // namespace
}  // namespace flyover
