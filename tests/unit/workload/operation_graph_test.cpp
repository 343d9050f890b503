#include "flyover/workload/operation_graph.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

Operation delay(std::string id, std::string stream = "compute",
                std::vector<std::uint32_t> after = {}) {
  Operation op;
  op.id = std::move(id);
  op.name = op.id;
  op.stream = std::move(stream);
  op.after = std::move(after);
  op.duration = 1_ps;
  return op;
}

Operation collective(std::string id, CollectiveOp kind, std::uint32_t group = 0) {
  Operation op = delay(std::move(id), "comm");
  op.kind = OpKind::Collective;
  op.collective = kind;
  op.bytes = 1_MiB;
  op.group = group;
  return op;
}

Operation send(std::string id, std::int64_t peer, bool relative) {
  Operation op = delay(std::move(id), "comm");
  op.kind = OpKind::Send;
  op.bytes = 8_B;
  op.peer = peer;
  op.peer_relative = relative;
  return op;
}

// Four ranks in pairs, one program.
Workload pairs(std::vector<Operation> ops) {
  return {"w", 4, {{"tp", {{0, 1}, {2, 3}}}}, {{"p", {0, 1, 2, 3}, std::move(ops)}}};
}

std::string problem_of(const Workload& workload) {
  try {
    validate(workload);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string problem_of(Operation op) {
  return problem_of(pairs({std::move(op)}));
}

// Everything that a workload says, in the order in which it says it.
std::string print(const Workload& workload) {
  std::string text = fmt::format("{} ranks\n", workload.ranks);
  for (const GroupFamily& family : workload.groups) {
    text += family.name;
    for (const auto& group : family.groups) text += fmt::format(" [{}]", fmt::join(group, ","));
    text += '\n';
  }
  for (const Program& program : workload.programs) {
    text += fmt::format("{}: {}\n", program.name, fmt::join(program.ranks, ","));
    for (const Operation& op : program.ops) {
      text += fmt::format("  {} {} on {} after {}", op.id, op.duration.count(), op.stream,
                          fmt::join(op.after, ","));
      if (op.kind == OpKind::Collective) text += " in " + workload.groups[op.group].name;
      text += '\n';
    }
  }
  return text;
}

}  // namespace

TEST_CASE("a sound workload is accepted", "[workload]") {
  CHECK(problem_of(pairs({delay("a"), collective("ar", CollectiveOp::AllReduce),
                          collective("bar", CollectiveOp::Barrier), send("s", 1, true)})) ==
        "no error");
}

TEST_CASE("an empty workload is refused", "[workload]") {
  CHECK(problem_of(Workload{}) == "the workload has no ranks");
  CHECK(problem_of(Workload{"w", 4, {}, {}}) == "the workload is empty: it has no operations");
  CHECK(problem_of(pairs({})) == "the workload is empty: it has no operations");
}

TEST_CASE("groups must be disjoint sets of ranks that are there", "[workload]") {
  Workload workload = pairs({delay("a")});
  auto& groups = workload.groups[0].groups;
  groups = {{0, 1}, {2, 4}};
  CHECK(problem_of(workload) == "group 1 of \"tp\" names rank 4, but the ranks are 0 to 3");
  groups = {{0, 1, 0}};
  CHECK(problem_of(workload) == "group 0 of \"tp\" names rank 0 twice");
  groups = {{0, 1}, {2, 1}};
  CHECK(problem_of(workload) == "rank 1 is in two groups of \"tp\", 0 and 1");
  groups = {{0, 1}, {}};
  CHECK(problem_of(workload) == "group 1 of \"tp\" has no ranks");
  groups = {{0, 1}};
  workload.groups.push_back(workload.groups[0]);
  CHECK(problem_of(workload) == "two families of groups are named \"tp\"");
}

TEST_CASE("a rank runs one program", "[workload]") {
  Workload workload = pairs({delay("a")});
  workload.programs.push_back({"q", {3}, {delay("a")}});
  CHECK(problem_of(workload) == "rank 3 is in two programs, \"p\" and \"q\"");
  workload.programs[1].ranks = {4};
  CHECK(problem_of(workload) == "program \"q\" names rank 4, but the ranks are 0 to 3");
  workload.programs[1].ranks = {};
  CHECK(problem_of(workload) == "program \"q\" has no ranks");
  workload.programs = {{"p", {1, 1}, {delay("a")}}};
  CHECK(problem_of(workload) == "program \"p\" names rank 1 twice");
  workload.programs = {{"p", {2, 1}, {delay("a")}}};
  CHECK(problem_of(workload) == "program \"p\" has ranks that do not ascend");
}

TEST_CASE("ids are there once", "[workload]") {
  CHECK(problem_of(pairs({delay("a"), delay("b"), delay("a")})) ==
        "program \"p\": operation \"a\": another operation has the same id");
  CHECK(problem_of(pairs({delay("a"), delay("")})) == "program \"p\": operation 1 has no id");
  CHECK(problem_of(delay("a", "")) == "program \"p\": operation \"a\": has no stream");
  CHECK(problem_of(delay("a", "s", {7})) ==
        "program \"p\": operation \"a\": waits for an operation that is not there");
}

TEST_CASE("an operation has work to do", "[workload]") {
  Operation op = delay("a");
  op.duration = Duration{-1};
  CHECK(problem_of(op) == "program \"p\": operation \"a\": has a negative duration");

  op.kind = OpKind::Copy;
  CHECK(problem_of(op) == "program \"p\": operation \"a\": copies no bytes");
  op.bytes = Bytes{-1};
  CHECK(problem_of(op) == "program \"p\": operation \"a\": has a negative size");

  op = delay("a");
  op.kind = OpKind::Compute;
  CHECK(problem_of(op) == "no error");
  op.efficiency = 1.5;
  CHECK(problem_of(op) ==
        "program \"p\": operation \"a\": has an efficiency of 1.5, which is not from 0 to 1");
  op.efficiency = 0.5;
  op.duration = 0_ps;
  CHECK(problem_of(op) ==
        "program \"p\": operation \"a\": has no work: neither operations nor bytes "
        "nor a duration");
  op.flops = Flops{std::numeric_limits<double>::quiet_NaN()};
  CHECK(
      problem_of(op) ==
      "program \"p\": operation \"a\": has a number of operations that is negative or not finite");

  op = collective("ar", CollectiveOp::AllReduce);
  op.bytes = 0_B;
  CHECK(problem_of(op) == "program \"p\": operation \"ar\": moves no bytes");
  op = send("s", 1, true);
  op.bytes = 0_B;
  CHECK(problem_of(op) == "program \"p\": operation \"s\": moves no bytes");
}

TEST_CASE("a collective's ranks are in its groups", "[workload]") {
  CHECK(problem_of(collective("ar", CollectiveOp::AllReduce, 1)) ==
        "program \"p\": operation \"ar\": names a group that is not there");
  Workload workload = pairs({collective("ar", CollectiveOp::AllReduce)});
  workload.groups[0].groups = {{0, 1}, {3}};
  CHECK(problem_of(workload) == "program \"p\": operation \"ar\": rank 2 is in no group of \"tp\"");

  Operation broadcast = collective("bc", CollectiveOp::Broadcast);
  broadcast.root = 1;
  CHECK(problem_of(broadcast) == "no error");
  broadcast.root = 2;
  CHECK(
      problem_of(broadcast) ==
      "program \"p\": operation \"bc\": has its root at position 2, but a group of \"tp\" has only "
      "2 ranks");
}

TEST_CASE("a call fits its exchange of experts", "[workload]") {
  ExpertExchange exchange;
  exchange.name = "x";
  exchange.routing.experts = 4;
  exchange.routing.chosen = 2;
  exchange.tokens = 10;
  exchange.dispatch_bytes = 100;
  exchange.combine_bytes = 200;
  exchange.kernels = std::make_shared<const ExpertKernels>();
  Operation op = collective("a", CollectiveOp::MoeDispatch);
  op.exchange = 0;
  op.bytes = 2000_B;
  const auto problem = [&](const Operation& call) {
    Workload w = pairs({call});
    w.exchanges = {exchange};
    return problem_of(w);
  };
  CHECK(problem(op) == "no error");
  exchange.rank_tokens = {10, 3};
  exchange.tokens = 0;
  CHECK(problem(op) == "no error");
  const std::string at = "program \"p\": operation \"a\": ";

  Operation wrong = op;
  wrong.bytes = 1999_B;
  CHECK(problem(wrong) == at + "moves 1999 B, but \"x\" makes it 2000 B");
  wrong = op;
  wrong.exchange = 1;
  CHECK(problem(wrong) == at + "names an exchange that is not there");
  wrong = op;
  wrong.collective = CollectiveOp::MoeFused;
  CHECK(problem(wrong) == at + "moe_fused cannot be of mode normal, as \"x\" is");
  wrong = op;
  wrong.collective = CollectiveOp::AllToAll;
  CHECK(problem(wrong) == at + "exchanges no experts, but names an exchange");

  exchange.rank_tokens = {10, 3, 1};
  CHECK(problem(op) == at + "\"x\" states the tokens of 3 ranks, but a group of \"tp\" has 2");
  exchange.tokens = 10;
  CHECK(problem(op) == "exchange \"x\" needs tokens, either of each rank or by position");
  exchange.rank_tokens.clear();
  exchange.kernels = nullptr;
  CHECK(problem(op) == "exchange \"x\" has no kernels");
}

TEST_CASE("SMs go with a duration", "[workload]") {
  Operation op = delay("a");
  op.kind = OpKind::Compute;
  op.sms = 20;
  CHECK(problem_of(pairs({op})) == "no error");
  op.duration = {};
  op.flops = Flops{1};
  CHECK(problem_of(pairs({op})) ==
        "program \"p\": operation \"a\": says how many SMs it takes, "
        "which goes with a duration only");
}

TEST_CASE("a peer is another rank", "[workload]") {
  CHECK(problem_of(send("s", 4, false)) ==
        "program \"p\": operation \"s\": has rank 4 as its peer, but the ranks are 0 to 3");
  CHECK(problem_of(send("s", -1, false)) ==
        "program \"p\": operation \"s\": has rank -1 as its peer, but the ranks are 0 to 3");
  CHECK(problem_of(send("s", 2, false)) ==
        "program \"p\": operation \"s\": rank 2 is its own peer");
  CHECK(problem_of(send("s", -4, true)) ==
        "program \"p\": operation \"s\": rank 0 is its own peer");
}

TEST_CASE("relative peers wrap around", "[workload]") {
  CHECK(peer_of(send("s", 1, true), 3, 4) == 0);
  CHECK(peer_of(send("s", -1, true), 0, 4) == 3);
  CHECK(peer_of(send("s", -9, true), 0, 4) == 3);
  CHECK(peer_of(send("s", std::numeric_limits<std::int64_t>::max(), true), 3, 4) == 2);
  CHECK(peer_of(send("s", std::numeric_limits<std::int64_t>::min(), true), 3, 4) == 3);
  CHECK(peer_of(send("s", 2, false), 0, 4) == 2);
}

TEST_CASE("a circle of waiting operations is printed", "[workload]") {
  CHECK(problem_of(pairs({delay("a", "x", {2}), delay("b", "y", {0}), delay("c", "z", {1})})) ==
        "program \"p\": operations wait for each other: a -> c -> b -> a");
  CHECK(problem_of(delay("a", "x", {0})) ==
        "program \"p\": operations wait for each other: a -> a");
  // b follows a on its stream, and a waits for c, which waits for b.
  CHECK(problem_of(pairs({delay("a", "x", {2}), delay("b", "x"), delay("c", "y", {1})})) ==
        "program \"p\": operations wait for each other: a -> c -> b -> a");
  // An operation may wait for a later one on another stream.
  CHECK(problem_of(pairs({delay("a", "x", {1}), delay("b", "y")})) == "no error");

  std::vector<Operation> ring;
  for (std::uint32_t i = 0; i < 20; ++i) {
    ring.push_back(delay(std::to_string(i), std::to_string(i), {(i + 1) % 20}));
  }
  CHECK(
      problem_of(pairs(std::move(ring))) ==
      "program \"p\": operations wait for each other: 0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> "
      "9 -> 10 -> 11 -> (8 more) -> 0");
}

TEST_CASE("a hundred thousand operations in a chain are checked and ordered", "[workload]") {
  constexpr std::uint32_t length = 100'000;
  std::vector<Operation> chain;
  for (std::uint32_t i = 0; i < length; ++i) {
    chain.push_back(delay(std::to_string(i), i % 2 == 0 ? "even" : "odd"));
    if (i + 1 < length) chain.back().after = {i + 1};  // Backwards: the deepest way to walk it.
  }
  Workload workload = pairs(std::move(chain));
  CHECK_THAT(problem_of(workload),
             Catch::StartsWith("program \"p\": operations wait for each other: "));

  for (std::uint32_t i = 0; i < length; ++i) workload.programs[0].ops[i].stream = std::to_string(i);
  CHECK(problem_of(workload) == "no error");
  const Workload ordered = canonical(std::move(workload));
  CHECK(ordered.programs[0].ops.front().id == "99999");
  CHECK(ordered.programs[0].ops.back().id == "0");
}

TEST_CASE("the canonical order puts operations behind what they wait for", "[workload]") {
  const Workload ordered = canonical(pairs({delay("c1", "comm", {1, 1}), delay("k1", "compute"),
                                            delay("c2", "comm"), delay("k2", "compute", {0})}));
  CHECK(print(ordered) ==
        "4 ranks\n"
        "tp [0,1] [2,3]\n"
        "p: 0,1,2,3\n"
        "  k1 1 on compute after \n"
        "  c1 1 on comm after 0\n"
        "  c2 1 on comm after \n"
        "  k2 1 on compute after 1\n");
}

TEST_CASE("the canonical order does not depend on the order of the file", "[workload]") {
  std::mt19937 random(11);
  const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    Workload workload{"w",
                      8,
                      {{"all", {{0, 1, 2, 3, 4, 5, 6, 7}}},
                       {"dp", {{0, 4}, {1, 5}, {2, 6}, {7, 3}}},
                       {"tp", {{3, 2, 1, 0}, {4, 5, 6, 7}}}},
                      {{"p", {0, 1, 2, 3}, {}}, {"q", {4, 5}, {}}, {"r", {6, 7}, {}}}};
    for (Program& program : workload.programs) {
      const std::uint32_t size = 1 + below(12);
      for (std::uint32_t i = 0; i < size; ++i) {
        Operation op = delay(fmt::format("op{}", i), fmt::format("s{}", below(4)));
        for (std::uint32_t other = 0; other < i; ++other) {
          if (below(4) == 0) op.after.push_back(other);
        }
        if (below(2) == 0) {
          op.kind = OpKind::Collective;
          op.bytes = 1_KiB;
          op.group = below(3);
        }
        op.duration = Duration{below(1000)};
        program.ops.push_back(std::move(op));
      }
    }
    REQUIRE_NOTHROW(validate(workload));
    const std::string expected = print(canonical(workload));

    Workload shuffled = workload;
    std::vector<std::uint32_t> place = {0, 1, 2};
    std::ranges::shuffle(place, random);
    for (std::uint32_t i = 0; i < 3; ++i) shuffled.groups[place[i]] = workload.groups[i];
    for (GroupFamily& family : shuffled.groups) std::ranges::shuffle(family.groups, random);
    for (Program& program : shuffled.programs) {
      const std::vector<Operation> ops = program.ops;
      // Any interleaving of the streams: stable by the turn that each operation draws for its
      // stream.
      std::vector<std::uint32_t> order(ops.size());
      for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
      std::ranges::shuffle(order, random);
      for (const char* stream : {"s0", "s1", "s2", "s3"}) {
        std::vector<std::uint32_t> members;
        for (const std::uint32_t i : order) {
          if (ops[i].stream == stream) members.push_back(i);
        }
        std::ranges::sort(members);
        auto next = members.begin();
        for (std::uint32_t& i : order) {
          if (ops[i].stream == stream) i = *next++;
        }
      }
      std::vector<std::uint32_t> new_place(order.size());
      for (std::uint32_t i = 0; i < order.size(); ++i) new_place[order[i]] = i;
      for (std::uint32_t i = 0; i < order.size(); ++i) {
        program.ops[i] = ops[order[i]];
        if (program.ops[i].kind == OpKind::Collective) {
          program.ops[i].group = place[program.ops[i].group];
        }
        for (std::uint32_t& other : program.ops[i].after) other = new_place[other];
        std::ranges::shuffle(program.ops[i].after, random);
      }
    }
    std::ranges::shuffle(shuffled.programs, random);
    REQUIRE_NOTHROW(validate(shuffled));
    REQUIRE(print(canonical(shuffled)) == expected);
    REQUIRE(print(canonical(canonical(workload))) == expected);
  }
}
