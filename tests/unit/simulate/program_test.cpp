#include "simulate/program.hpp"

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "simulate/messages.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

Operation collective(std::string id, CollectiveOp op, Bytes bytes, std::uint32_t family = 0) {
  Operation out;
  out.id = out.name = std::move(id);
  out.kind = OpKind::Collective;
  out.collective = op;
  out.bytes = bytes;
  out.group = family;
  out.stream = "comm";
  return out;
}

Operation message(std::string id, OpKind kind, std::int64_t peer, Bytes bytes) {
  Operation out;
  out.id = out.name = std::move(id);
  out.kind = kind;
  out.peer = peer;
  out.bytes = bytes;
  out.stream = "comm";
  return out;
}

struct Ready {
  explicit Ready(Workload w) : workload(std::move(w)) {
    for (const Program& p : workload.programs) {
      programs.push_back(compile(p, workload.groups.size()));
    }
  }
  Workload workload;
  std::vector<CompiledProgram> programs;
};

}  // namespace

TEST_CASE("operations of a stream follow each other, and a wait named twice counts once",
          "[simulate]") {
  Program program{"p", {0}, {}};
  program.ops = {collective("a", CollectiveOp::AllReduce, 1_MiB),
                 collective("b", CollectiveOp::AllReduce, 1_MiB)};
  program.ops[1].after = {0};
  const CompiledProgram compiled = compile(program, 1);
  CHECK(compiled.waits == std::vector<std::uint32_t>{0, 1});
  REQUIRE(compiled.successors(0).size() == 1);
  CHECK(compiled.successors(0)[0] == 1);
  CHECK(compiled.call_of == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("members that disagree on a collective are told apart by name", "[simulate]") {
  Ready r({"w",
           2,
           {{"tp", {{0, 1}}}},
           {{"p", {0}, {collective("a", CollectiveOp::AllReduce, 1_MiB)}},
            {"q", {1}, {collective("b", CollectiveOp::AllReduce, 2_MiB)}}}});
  const Ranks ranks(r.workload);
  CHECK_THROWS_WITH(check_calls_agree(r.workload, r.programs, ranks),
                    "members of group \"tp\" disagree on its collective number 1: rank 0 (p \"a\") "
                    "calls all_reduce of 1 MiB, but rank 1 (q \"b\") calls all_reduce of 2 MiB");
}

TEST_CASE("sends meet receives in order, and their sizes must agree", "[simulate]") {
  Ready r(
      {"w",
       2,
       {},
       {{"p", {0}, {message("s", OpKind::Send, 1, 1_MiB), message("t", OpKind::Send, 1, 2_MiB)}},
        {"q", {1}, {message("u", OpKind::Recv, 0, 1_MiB), message("v", OpKind::Recv, 0, 2_MiB)}}}});
  const Ranks ranks(r.workload);
  const Messages messages = match_messages(r.workload, ranks);
  REQUIRE(messages.all.size() == 2);
  CHECK(messages.all[0].bytes == 1_MiB);
  CHECK(messages.all[0].send == 0);
  CHECK(messages.all[0].receive == 2);
  CHECK(messages.of(3) == 1);

  r.workload.programs[1].ops[1].bytes = 3_MiB;
  CHECK_THROWS_WITH(match_messages(r.workload, ranks),
                    "rank 0 sends 2 MiB to rank 1 (\"t\"), which expects 3 MiB (\"v\")");
}
