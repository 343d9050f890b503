#include "flyover/io/workload_reader.hpp"

#include <algorithm>
#include <random>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/document.hpp"
#include "flyover/moe/popularity.hpp"

using namespace flyover;
using namespace flyover::literals;
using flyover::io::Document;

namespace {

using Ranks = std::vector<std::uint32_t>;

Workload read(const std::string& text, std::uint32_t gpus = 8) {
  return io::read_workload(Document::parse("dir/w.json", text), gpus);
}

std::string problem_of(const std::string& text, std::uint32_t gpus = 8) {
  try {
    (void)read(text, gpus);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// One program for eight ranks with these operations, from column 1 of line 2 on.
std::string ops(const std::string& list) {
  return R"({"ranks": 8, "groups": {"tp": ["0-3", "4-7"]}, "programs": [{"ranks": "0-7", "ops": [)"
         "\n" +
         list + "]}]}";
}

std::string op_problem(const std::string& list) {
  return problem_of(ops(list));
}

const Operation& op_of(const Workload& workload, const std::string& id) {
  for (const Program& program : workload.programs) {
    const auto found = std::ranges::find(program.ops, id, &Operation::id);
    if (found != program.ops.end()) return *found;
  }
  FAIL("no operation " << id);
  throw;
}

std::vector<std::string> ids(const Program& program) {
  std::vector<std::string> list;
  for (const Operation& op : program.ops) list.push_back(op.id);
  return list;
}

}  // namespace

TEST_CASE("collectives run one after another on all ranks", "[workload]") {
  const Workload workload = read(R"({"collectives": [
    {"op": "all_reduce", "bytes": "1 GiB", "repeat": 3},
    {"op": "broadcast", "bytes": "8 B", "group": "all", "root": 7, "name": "weights", "dtype": "fp8"},
    {"op": "barrier"}]})");
  CHECK(workload.name == "w");
  CHECK(workload.ranks == 8);
  REQUIRE(workload.programs.size() == 1);
  const Program& program = workload.programs[0];
  CHECK(program.name == "ranks 0-7");
  CHECK(program.ranks == Ranks{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(ids(program) == std::vector<std::string>{"all_reduce#1", "all_reduce#2", "all_reduce#3",
                                                 "weights#1", "barrier#1"});
  for (const Operation& op : program.ops) {
    CHECK(op.kind == OpKind::Collective);
    CHECK(op.stream == "comm");
  }
  CHECK(program.ops[0].collective == CollectiveOp::AllReduce);
  CHECK(program.ops[0].bytes == 1_GiB);
  CHECK(program.ops[0].name == "all_reduce");
  CHECK(program.ops[3].root == 7);
  CHECK(program.ops[3].dtype == "fp8");
  CHECK(program.ops[3].name == "weights");
  CHECK(program.ops[4].bytes == 0_B);
  CHECK(workload.groups[program.ops[0].group].name == "all");
}

TEST_CASE("ranks run the collectives that they take part in", "[workload]") {
  const Workload workload = read(R"({"name": "mix", "ranks": 8, "groups": {"tp": [[3, 1], [4, 5]]},
    "collectives": [
    {"op": "all_reduce", "bytes": "1 B", "group": "tp"},
    {"op": "alltoall_perf", "bytes": "1 B", "group": "0-3"},
    {"op": "all_gather", "bytes": "1 B", "group": [0, 1, 2, 3]},
    {"op": "reduce", "bytes": "1 B", "group": [[6, 7], "2,0"], "root": 1}]})");
  CHECK(workload.name == "mix");
  REQUIRE(workload.programs.size() == 4);
  CHECK(workload.programs[0].ranks == Ranks{0, 2});
  CHECK(ids(workload.programs[0]) ==
        std::vector<std::string>{"all_to_all#1", "all_gather#1", "reduce#1"});
  CHECK(workload.programs[1].ranks == Ranks{1, 3});
  CHECK(ids(workload.programs[1]) ==
        std::vector<std::string>{"all_reduce#1", "all_to_all#1", "all_gather#1"});
  CHECK(workload.programs[2].ranks == Ranks{4, 5});
  CHECK(ids(workload.programs[2]) == std::vector<std::string>{"all_reduce#1"});
  CHECK(workload.programs[3].ranks == Ranks{6, 7});
  CHECK(ids(workload.programs[3]) == std::vector<std::string>{"reduce#1"});

  const auto family = [&](const char* id) { return workload.groups[op_of(workload, id).group]; };
  CHECK(family("all_reduce#1").groups == std::vector<Ranks>{{3, 1}, {4, 5}});
  CHECK(family("all_to_all#1").name == "0-3");
  CHECK(op_of(workload, "all_to_all#1").group == op_of(workload, "all_gather#1").group);
  CHECK(family("reduce#1").name == "2,0 | 6-7");
  CHECK(family("reduce#1").groups == std::vector<Ranks>{{2, 0}, {6, 7}});
}

TEST_CASE("a workload for some of the ranks leaves the others idle", "[workload]") {
  const Workload workload =
      read(R"({"collectives": [{"op": "all_reduce", "bytes": "1 B", "group": "2-3"}]})");
  REQUIRE(workload.programs.size() == 1);
  CHECK(workload.programs[0].ranks == Ranks{2, 3});
}

TEST_CASE("programs hold every kind of operation", "[workload]") {
  const Workload workload = read(ops(R"(
    {"id": "mlp", "op": "compute", "flops": "2.1 TFLOP", "bytes": "1.4 GB", "dtype": "fp8",
     "efficiency": 0.7, "memory_efficiency": 0.9, "comment": "the large one"},
    {"op": "compute", "bytes": "1 KiB"},
    {"id": "rec", "op": "compute", "duration": "5 us", "name": "recorded", "stream": "side"},
    {"id": "ar", "op": "all_reduce", "bytes": "128 MiB", "group": "tp", "after": ["mlp"]},
    {"op": "all_gather_perf", "bytes": "1 MiB", "after": "cp"},
    {"id": "cp", "op": "copy", "bytes": "3 B"},
    {"id": "wait", "op": "delay", "duration": "0 s"},
    {"id": "s", "op": "send", "bytes": "8 B", "peer": "+1", "wrap": true, "tag": "act"},
    {"id": "r", "op": "recv", "bytes": "8 B", "peer": "-1", "wrap": true, "tag": "act"})"));
  const Operation& mlp = op_of(workload, "mlp");
  CHECK(mlp.kind == OpKind::Compute);
  CHECK(mlp.name == "mlp");
  CHECK(mlp.flops == Flops{2.1e12});
  CHECK(mlp.bytes == Bytes{1'400'000'000});
  CHECK(mlp.dtype == "fp8");
  CHECK(mlp.efficiency == 0.7);
  CHECK(mlp.memory_efficiency == 0.9);
  CHECK(mlp.stream == "compute");
  const Operation& unnamed = op_of(workload, "compute.1");
  CHECK(unnamed.name == "compute");
  CHECK(unnamed.dtype == "bf16");
  CHECK(unnamed.efficiency == 0);
  CHECK(op_of(workload, "rec").duration == Duration{5us});
  CHECK(op_of(workload, "rec").name == "recorded");
  CHECK(op_of(workload, "rec").stream == "side");
  const Operation& ar = op_of(workload, "ar");
  CHECK(ar.kind == OpKind::Collective);
  CHECK(ar.stream == "comm");
  CHECK(workload.groups[ar.group].name == "tp");
  REQUIRE(ar.after.size() == 1);
  CHECK(workload.programs[0].ops[ar.after[0]].id == "mlp");
  const Operation& gather = op_of(workload, "comm.1");
  CHECK(gather.name == "all_gather");
  REQUIRE(gather.after.size() == 1);
  CHECK(workload.programs[0].ops[gather.after[0]].id == "cp");
  CHECK(op_of(workload, "cp").kind == OpKind::Copy);
  CHECK(op_of(workload, "wait").kind == OpKind::Delay);
  const Operation& send = op_of(workload, "s");
  CHECK(send.kind == OpKind::Send);
  CHECK(send.tag == "act");
  CHECK(peer_of(send, 7, 8) == 0);
  CHECK(op_of(workload, "r").kind == OpKind::Recv);
  CHECK(peer_of(op_of(workload, "r"), 0, 8) == 7);
}

TEST_CASE("a repeated program runs one iteration after the other", "[workload]") {
  const Workload workload =
      read(R"({"ranks": "0-1", "programs": [{"ranks": "all", "repeat": 3, "ops": [
    {"id": "a", "op": "delay", "duration": "1 us"},
    {"id": "b", "op": "delay", "duration": "1 us"},
    {"id": "c", "op": "barrier", "after": ["a"]}]}]})",
           2);
  const Program& program = workload.programs[0];
  REQUIRE(program.ops.size() == 9);
  const auto after = [&](const char* id) {
    std::vector<std::string> list;
    for (const std::uint32_t other : op_of(workload, id).after)
      list.push_back(program.ops[other].id);
    std::ranges::sort(list);
    return list;
  };
  CHECK(after("a#1").empty());
  CHECK(after("c#1") == std::vector<std::string>{"a#1"});
  CHECK(after("a#2") == std::vector<std::string>{"b#1", "c#1"});
  CHECK(after("b#2").empty());  // Follows a#2 on its stream.
  CHECK(after("c#3") == std::vector<std::string>{"a#3", "b#2", "c#2"});
  CHECK(op_of(workload, "a#3").name == "a");

  const Workload once = read(
      R"({"ranks": 2, "programs": [{"ranks": "0-1", "repeat": 1, "ops": [{"id": "a", "op": "barrier"}]}]})",
      2);
  CHECK(once.programs[0].ops[0].id == "a");
}

TEST_CASE("shuffling ranks, groups, programs and streams in the file changes nothing",
          "[workload]") {
  const Workload one =
      read(R"({"ranks": 4, "groups": {"tp": ["0,1", "2,3"], "dp": [[0, 2], [1, 3]]},
    "programs": [
      {"ranks": [0, 1], "ops": [{"op": "compute", "flops": "1 GFLOP"},
                                {"op": "all_reduce", "bytes": "8 B", "group": "tp"},
                                {"op": "delay", "duration": "1 us"},
                                {"op": "all_reduce", "bytes": "8 B", "group": [[0, 3], [2, 1]]}]},
      {"ranks": "2-3", "ops": [{"op": "all_reduce", "bytes": "8 B", "group": "tp"},
                               {"op": "all_reduce", "bytes": "8 B", "group": [[0, 3], [2, 1]]}]}]})",
           4);
  const Workload two = read(R"({"programs": [
      {"ops": [{"op": "all_reduce", "bytes": "8 B", "group": "tp"},
               {"group": [[2, 1], [0, 3]], "op": "all_reduce", "bytes": "8 B"}], "ranks": [3, 2]},
      {"ranks": "1,0", "ops": [{"op": "all_reduce", "bytes": "8 B", "group": "tp"},
                               {"op": "all_reduce", "bytes": "8 B", "group": [[0, 3], [2, 1]]},
                               {"op": "compute", "flops": "1 GFLOP"},
                               {"op": "delay", "duration": "1 us"}]}],
    "groups": {"dp": [[1, 3], [0, 2]], "tp": ["2,3", "0,1"]}, "ranks": 4})",
                            4);
  REQUIRE(one.groups.size() == two.groups.size());
  for (std::size_t i = 0; i < one.groups.size(); ++i) {
    CHECK(one.groups[i].name == two.groups[i].name);
    CHECK(one.groups[i].groups == two.groups[i].groups);
  }
  REQUIRE(one.programs.size() == two.programs.size());
  for (std::size_t i = 0; i < one.programs.size(); ++i) {
    CHECK(one.programs[i].name == two.programs[i].name);
    CHECK(one.programs[i].ranks == two.programs[i].ranks);
    CHECK(ids(one.programs[i]) == ids(two.programs[i]));
    for (std::size_t op = 0; op < one.programs[i].ops.size(); ++op) {
      CHECK(one.programs[i].ops[op].group == two.programs[i].ops[op].group);
    }
  }
}

TEST_CASE("a workload is one of three forms", "[workload]") {
  CHECK(problem_of("{}") ==
        "dir/w.json:1:1: expected a workload with \"collectives\", \"programs\" or \"training\"");
  CHECK(problem_of("[]") == "dir/w.json:1:1: expected an object, got an array");
  CHECK(
      problem_of(R"({"collectivs": []})") ==
      "dir/w.json:1:1: expected a workload with \"collectives\", \"programs\" or \"training\", is "
      "\"collectivs\" misspelt?");
  CHECK(problem_of(R"({"collectives": [], "programs": []})") ==
        "dir/w.json:1:1: \"collectives\" and \"programs\" are different forms of a workload, give "
        "one "
        "of them");
  CHECK(problem_of(R"({"training": {"model": "llama3-70b"}})") ==
        "dir/w.json:1:14: /training: a training layout is not a list of operations: it is expanded "
        "for a cluster");
}

TEST_CASE("an empty workload file is refused", "[workload]") {
  CHECK(problem_of(R"({"collectives": []})") ==
        "dir/w.json:1:17: /collectives: expected at least one collective");
  CHECK(problem_of(R"({"ranks": 8, "programs": []})") ==
        "dir/w.json:1:26: /programs: expected at least one program");
  CHECK(problem_of(R"({"ranks": 8, "programs": [{"ranks": "all", "ops": []}]})") ==
        "dir/w.json:1:51: /programs/0/ops: expected at least one operation");
}

TEST_CASE("the ranks of the workload are the GPUs of the topology", "[workload]") {
  CHECK(problem_of(R"({"ranks": 16, "programs": []})") ==
        "dir/w.json:1:11: /ranks: the workload has 16 ranks, but the topology has 8 GPUs");
  CHECK(problem_of(R"({"ranks": "0-3", "programs": []})") ==
        "dir/w.json:1:11: /ranks: the workload has 4 ranks, but the topology has 8 GPUs");
  CHECK(problem_of(R"({"ranks": [0, 2], "programs": []})") ==
        "dir/w.json:1:11: /ranks: expected all ranks from 0 on, got 2 of them up to 2");
  CHECK(problem_of(R"({"ranks": 4, "collectives": [{"op": "barrier"}]})") ==
        "dir/w.json:1:11: /ranks: the workload has 4 ranks, but the topology has 8 GPUs");
  CHECK(problem_of(R"({"ranks": "all", "collectives": [{"op": "barrier"}]})") == "no error");
  CHECK(problem_of(R"({"programs": []})") == "dir/w.json:1:1: \"ranks\" is missing");
  CHECK(problem_of(R"({"ranks": 0, "programs": []})") ==
        "dir/w.json:1:11: /ranks: expected a whole number from 1 to 100000000, got 0");
  CHECK(problem_of(R"({"ranks": true, "programs": []})") ==
        "dir/w.json:1:11: /ranks: expected ranks such as \"0-7\", \"all\" or [0, 1, 2]");
}

TEST_CASE("wrong collectives say what is wrong", "[workload]") {
  const auto problem = [](const std::string& collective) {
    return problem_of("{\"collectives\": [\n" + collective + "]}");
  };
  CHECK(problem(R"({"op": "all_redcue", "bytes": "8 B"})") ==
        "dir/w.json:2:8: /collectives/0/op: there is no collective \"all_redcue\", did you mean "
        "\"all_reduce\"?");
  CHECK(problem(R"({"op": "all_reduce", "byte": "8 B"})") ==
        "dir/w.json:2:22: /collectives/0/byte: is not a known option, did you mean \"bytes\"?");
  CHECK(problem(R"({"op": "all_reduce"})") ==
        "dir/w.json:2:1: /collectives/0: \"bytes\" is missing");
  CHECK(
      problem(R"({"op": "all_reduce", "bytes": 1024})") ==
      "dir/w.json:2:31: /collectives/0/bytes: expected a size with its unit such as \"128 MiB\" or "
      "\"8 B\", got \"1024\"");
  CHECK(problem(R"({"op": "all_reduce", "bytes": "0 B"})") ==
        "dir/w.json:2:31: /collectives/0/bytes: expected a size above zero such as \"128 MiB\" or "
        "\"8 "
        "B\", got \"0 B\"");
  CHECK(
      problem(R"({"op": "all_reduce", "bytes": "-8 B"})") ==
      "dir/w.json:2:31: /collectives/0/bytes: expected a size of zero or more such as \"128 MiB\" "
      "or \"8 B\", got \"-8 B\"");
  CHECK(problem(R"({"op": "barrier", "bytes": "8 B"})") ==
        "dir/w.json:2:28: /collectives/0/bytes: a barrier moves no data");
  CHECK(
      problem(R"({"op": "barrier", "repeat": 0})") ==
      "dir/w.json:2:29: /collectives/0/repeat: expected a whole number from 1 to 100000000, got 0");
  CHECK(problem(R"({"op": "barrier", "name": ""})") ==
        "dir/w.json:2:27: /collectives/0/name: expected a name that is not empty");
  CHECK(problem(R"({"op": "all_reduce", "bytes": "8 B", "root": 1})") ==
        "dir/w.json:2:46: /collectives/0/root: all_reduce has no root");
  CHECK(problem(R"({"op": "reduce", "bytes": "8 B", "root": 8})") ==
        "dir/w.json:2:42: /collectives/0/root: expected a whole number from 0 to 7, got 8");
  CHECK(problem(R"({"op": "barrier", "group": "tp"})") ==
        "dir/w.json:2:28: /collectives/0/group: there is no group \"tp\"");
  CHECK(problem(R"({"op": "barrier", "group": "alll"})") ==
        "dir/w.json:2:28: /collectives/0/group: there is no group \"alll\", did you mean \"all\"?");
  CHECK(problem(R"({"op": "barrier", "group": "0-8"})") ==
        "dir/w.json:2:28: /collectives/0/group: 8 is out of range, expected 0 to 7");
  CHECK(problem(R"({"op": "barrier", "group": "0-3,2"})") ==
        "dir/w.json:2:28: /collectives/0/group: 2 is named twice in \"0-3,2\"");
  CHECK(problem(R"({"op": "barrier", "group": [0, 8]})") ==
        "dir/w.json:2:32: /collectives/0/group/1: expected a whole number from 0 to 7, got 8");
  CHECK(problem(R"({"op": "barrier", "group": [0, 1, 0]})") ==
        "dir/w.json:2:35: /collectives/0/group/2: rank 0 is named twice");
  CHECK(problem(R"({"op": "barrier", "group": []})") ==
        "dir/w.json:2:28: /collectives/0/group: expected at least one rank");
  CHECK(problem(R"({"op": "barrier", "group": 3})") ==
        "dir/w.json:2:28: /collectives/0/group: expected ranks such as \"0-7\", \"all\" or [0, 1, "
        "2]");
}

TEST_CASE("wrong groups say what is wrong", "[workload]") {
  const auto problem = [](const std::string& groups) {
    return problem_of("{\"collectives\": [{\"op\": \"barrier\"}], \"groups\":\n" + groups + "}");
  };
  CHECK(problem(R"({"comment": "none", "tp": "0-7"})") == "no error");
  CHECK(problem(R"({"tp": ["0-3", "3-7"]})") ==
        "dir/w.json:2:16: /groups/tp/1: rank 3 is in an earlier group already; groups of one name "
        "are "
        "disjoint");
  CHECK(problem(R"({"tp": [[0, 1], [2, 8]]})") ==
        "dir/w.json:2:21: /groups/tp/1/1: expected a whole number from 0 to 7, got 8");
  CHECK(problem(R"({"tp": [[0, 1], [2, 2]]})") ==
        "dir/w.json:2:21: /groups/tp/1/1: rank 2 is named twice");
  CHECK(problem(R"({"all": "0-3"})") ==
        "dir/w.json:2:9: /groups/all: is there already: \"all\" is the group of all ranks");
  CHECK(
      problem(R"({"4tp": "0-3"})") ==
      "dir/w.json:2:9: /groups/4tp: expected a name that does not begin with a digit, which ranks "
      "do");
  CHECK(problem(R"({"tp": "0-3", "tp": "4-7"})") ==
        "dir/w.json:2:15: /groups/tp: the key \"tp\" is given twice, first in line 2");
  CHECK(problem("[]") == "dir/w.json:2:1: /groups: expected an object, got an array");
}

TEST_CASE("of what repeats often a few copies are written down", "[workload]") {
  const Workload calls = read(R"({"collectives": [
    {"op": "barrier", "repeat": 3000000}, {"op": "barrier", "repeat": 2},
    {"op": "all_reduce", "bytes": "8 B", "repeat": 5}]})");
  CHECK(ids(calls.programs[0]) == std::vector<std::string>{"barrier#1", "barrier#2", "barrier#3",
                                                           "barrier#4", "barrier#5", "barrier#6",
                                                           "all_reduce#1", "all_reduce#2",
                                                           "all_reduce#3", "all_reduce#4"});
  REQUIRE(calls.sections.size() == 2);
  CHECK(calls.sections[0].elided == 2'999'996);
  CHECK(calls.sections[1].elided == 1);

  const Workload iterations = read(R"({"ranks": 8, "programs": [
    {"ranks": "0-3", "repeat": 1000, "ops": [{"op": "barrier", "group": "0-3"}]},
    {"ranks": "4-7", "ops": [{"op": "barrier", "group": "4-7"}]}]})");
  REQUIRE(iterations.sections.size() == 1);
  CHECK(iterations.sections[0].elided == 996);
  CHECK(iterations.programs[0].ops.size() == 4);
  CHECK(iterations.programs[1].ops.size() == 1);
}

TEST_CASE("programs that repeat unequally are written out", "[workload]") {
  const Workload workload = read(R"({"ranks": 8, "programs": [
    {"ranks": "0-3", "repeat": 10, "ops": [{"op": "barrier", "group": "0-3"}]},
    {"ranks": "4-7", "repeat": 20, "ops": [{"op": "barrier", "group": "4-7"}]}]})");
  CHECK(workload.sections.empty());
  CHECK(workload.programs[1].ops.size() == 20);
}

TEST_CASE("wrong programs say what is wrong", "[workload]") {
  CHECK(problem_of(R"({"ranks": 8, "programs": [
    {"ranks": "0-3", "ops": [{"op": "barrier", "group": "0-3"}]},
    {"ranks": [4, 3], "ops": [{"op": "barrier", "group": "3-4"}]}]})") ==
        "dir/w.json:3:15: /programs/1/ranks: rank 3 is in program 0 already");
  CHECK(problem_of(R"({"ranks": 8, "programs": [{"ranks": "0-8", "ops": []}]})") ==
        "dir/w.json:1:37: /programs/0/ranks: 8 is out of range, expected 0 to 7");
  CHECK(problem_of(R"({"ranks": 8, "programs": [{"ops": []}]})") ==
        "dir/w.json:1:27: /programs/0: \"ranks\" is missing");
  CHECK(problem_of(R"({"ranks": 8, "programs": [{"rank": "0", "ops": []}]})") ==
        "dir/w.json:1:28: /programs/0/rank: is not a known option, did you mean \"ranks\"?");
  CHECK(problem_of(R"({"ranks": 8, "programs": [
    {"ranks": "0-3", "repeat": 3000000, "ops": [{"op": "barrier", "group": "0-3"}]},
    {"ranks": "4-7", "repeat": 2, "ops": [{"op": "barrier", "group": "4-7"}]}]})") ==
        "dir/w.json:2:5: /programs/0: the workload has more than 2000000 operations with its "
        "repeats");
  CHECK(problem_of(R"({"ranks": 8, "program": [], "training": {}})") ==
        "dir/w.json:1:41: /training: a training layout is not a list of operations: it is expanded "
        "for a cluster");
  CHECK(problem_of(R"({"ranks": 8, "group": {}, "programs": []})") ==
        "dir/w.json:1:14: /group: is not a known option, did you mean \"groups\"?");
}

TEST_CASE("wrong operations say what is wrong", "[workload]") {
  CHECK(
      op_problem(R"({"op": "comptue"})") ==
      "dir/w.json:2:8: /programs/0/ops/0/op: expected \"compute\", \"copy\", \"delay\", \"send\", "
      "\"recv\", \"all_reduce\", \"all_gather\", \"reduce_scatter\", \"all_to_all\", "
      "\"broadcast\", "
      "\"reduce\", \"scatter\", \"gather\", \"sendrecv\", \"barrier\", "
      "\"moe_dispatch\", \"moe_combine\" or \"moe_fused\", got \"comptue\", did you "
      "mean \"compute\"?");
  CHECK(op_problem(R"({"id": "a"})") == "dir/w.json:2:1: /programs/0/ops/0: \"op\" is missing");
  CHECK(op_problem("7") == "dir/w.json:2:1: /programs/0/ops/0: expected an object, got 7");
  CHECK(op_problem(R"({"op": "compute"})") ==
        "dir/w.json:2:1: /programs/0/ops/0: expected \"flops\", \"bytes\" or both, or a "
        "\"duration\"");
  CHECK(
      op_problem(R"({"op": "compute", "flops": "0 FLOP"})") ==
      "dir/w.json:2:28: /programs/0/ops/0/flops: expected a number of operations above zero where "
      "there are no \"bytes\"");
  CHECK(op_problem(R"({"op": "compute", "flops": "1 TFLOPS"})") ==
        "dir/w.json:2:28: /programs/0/ops/0/flops: expected a number of operations such as \"2.1 "
        "TFLOP\", got \"1 TFLOPS\": \"TFLOPS\" is a FLOP rate");
  CHECK(op_problem(R"({"op": "compute", "flops": "1 TFLOP", "duration": "1 us"})") ==
        "dir/w.json:2:28: /programs/0/ops/0/flops: \"duration\" leaves nothing to compute from "
        "\"flops\": give one or the other");
  CHECK(op_problem(R"({"op": "compute", "duration": "0 us"})") ==
        "dir/w.json:2:31: /programs/0/ops/0/duration: expected a duration above zero");
  CHECK(op_problem(R"({"op": "compute", "duration": "1 us", "peer": 1})") ==
        "dir/w.json:2:39: /programs/0/ops/0/peer: is not a known option, known are \"op\", \"id\", "
        "\"name\", \"stream\", \"after\", \"duration\" and \"sms\"");
  for (const char* share : {"0", "1.5", "-1"}) {
    CHECK(op_problem(
              fmt::format(R"({{"op": "compute", "bytes": "1 B", "efficiency": {}}})", share)) ==
          fmt::format("dir/w.json:2:49: /programs/0/ops/0/efficiency: expected a share of the peak "
                      "above 0 and up to 1, got {}",
                      share));
  }
  CHECK(op_problem(R"({"op": "delay"})") ==
        "dir/w.json:2:1: /programs/0/ops/0: \"duration\" is missing");
  CHECK(
      op_problem(R"({"op": "copy", "flops": "1 FLOP"})") ==
      "dir/w.json:2:16: /programs/0/ops/0/flops: is not a known option, known are \"op\", \"id\", "
      "\"name\", \"stream\", \"after\" and \"bytes\"");
  CHECK(
      op_problem(R"({"op": "all_reduce", "bytes": "1 B", "group": "tpp"})") ==
      "dir/w.json:2:47: /programs/0/ops/0/group: there is no group \"tpp\", did you mean \"tp\"?");
  CHECK(
      op_problem(R"({"op": "all_reduce", "bytes": "1 B", "group": "0-3"})") ==
      "dir/w.json:2:47: /programs/0/ops/0/group: rank 4 of this program is in no group of \"0-3\"");
  CHECK(op_problem(R"({"op": "gather", "bytes": "1 B", "group": "tp", "root": 4})") ==
        "dir/w.json:2:57: /programs/0/ops/0/root: expected a whole number from 0 to 3, got 4");
  CHECK(op_problem(R"({"op": "barrier", "stream": ""})") ==
        "dir/w.json:2:29: /programs/0/ops/0/stream: expected a name that is not empty");
}

TEST_CASE("wrong ids and dependencies say what is wrong", "[workload]") {
  CHECK(op_problem(R"({"id": "a", "op": "barrier"}, {"id": "a", "op": "barrier"})") ==
        "dir/w.json:2:38: /programs/0/ops/1/id: the id \"a\" is taken by operation 0 of this "
        "program");
  CHECK(
      op_problem(R"({"id": "mlp", "op": "barrier"}, {"op": "barrier", "after": ["mpl"]})") ==
      "dir/w.json:2:61: /programs/0/ops/1/after/0: this program has no operation \"mpl\", did you "
      "mean \"mlp\"?");
  CHECK(op_problem(R"({"op": "barrier", "after": [1]})") ==
        "dir/w.json:2:29: /programs/0/ops/0/after/0: expected a string, got 1");
  CHECK(op_problem(R"({"op": "barrier", "after": 1})") ==
        "dir/w.json:2:28: /programs/0/ops/0/after: expected an array, got 1");
  CHECK(
      op_problem(R"({"id": "a", "op": "barrier", "after": ["b"]}, {"id": "b", "op": "barrier"})") ==
      "dir/w.json:1:85: /programs/0/ops: operations wait for each other: a -> b -> a");
  // The ids of the file are named, not those of an iteration.
  CHECK(problem_of(R"({"ranks": 8, "programs": [{"name": "p", "ranks": "all", "repeat": 2, "ops": [
    {"id": "a", "op": "barrier", "after": ["a"]}]}]})") ==
        "dir/w.json:1:77: /programs/0/ops: operations wait for each other: a -> a");
}

TEST_CASE("wrong peers say what is wrong", "[workload]") {
  const auto problem = [](const std::string& peer) {
    return op_problem(R"({"op": "send", "bytes": "1 B", "peer": )" + peer + "}");
  };
  CHECK(problem("\"+1\", \"wrap\": true") == "no error");
  CHECK(problem("\"+1\"") ==
        "dir/w.json:2:40: /programs/0/ops/0/peer: rank 7 has no peer +1, the ranks are 0 to 7; "
        "\"wrap\": true would count around the end");
  CHECK(problem("\"-1\"") ==
        "dir/w.json:2:40: /programs/0/ops/0/peer: rank 0 has no peer -1, the ranks are 0 to 7; "
        "\"wrap\": true would count around the end");
  CHECK(
      problem("\"+9223372036854775807\"") ==
      "dir/w.json:2:40: /programs/0/ops/0/peer: rank 0 has no peer +9223372036854775807, the ranks "
      "are 0 to 7; \"wrap\": true would count around the end");
  CHECK(problem("\"+8\", \"wrap\": true") ==
        "dir/w.json:2:40: /programs/0/ops/0/peer: rank 0 would be its own peer");
  CHECK(problem("3") == "dir/w.json:2:40: /programs/0/ops/0/peer: rank 3 would be its own peer");
  CHECK(problem("8") ==
        "dir/w.json:2:40: /programs/0/ops/0/peer: rank 8 is not there, the ranks are 0 to 7");
  CHECK(problem("-1") ==
        "dir/w.json:2:40: /programs/0/ops/0/peer: rank -1 is not there, the ranks are 0 to 7");
  CHECK(
      problem("3, \"wrap\": true") ==
      "dir/w.json:2:51: /programs/0/ops/0/wrap: expected only beside a \"peer\" that is an offset "
      "such as \"+1\"");
  for (const char* peer : {"\"3\"", "\"+\"", "\"+-1\"", "\"next\"", "true", "\"+1x\""}) {
    CHECK(
        problem(peer) ==
        "dir/w.json:2:40: /programs/0/ops/0/peer: expected a rank such as 3, or an offset from the "
        "own rank such as \"+1\" or \"-1\"");
  }
}

TEST_CASE("a workload of a hundred thousand operations is read", "[workload]") {
  std::string list;
  for (int i = 0; i < 100'000; ++i) {
    list += fmt::format(R"({}{{"id": "op{}", "op": "delay", "duration": "1 us", "stream": "s{}")",
                        i == 0 ? "" : ",\n", i, i % 8);
    if (i > 0) list += fmt::format(R"(, "after": ["op{}"])", i - 1);
    list += '}';
  }
  const Workload workload = read(ops(list));
  CHECK(workload.programs[0].ops.size() == 100'000);
  CHECK(workload.programs[0].ops.back().id == "op99999");
}

namespace {

// An exchange of 16 experts, two of which are chosen, with more members.
std::string exchange_with(const std::string& members,
                          const std::string& routing = R"("experts": 16, "chosen": 2)") {
  return fmt::format(R"({{"exchanges": {{"x": {{"tokens": 64, "hidden": 256, {}
"routing": {{{}}}}}}}, "collectives": [{{"op": "moe_dispatch", "exchange": "x"}}]}})",
                     members, routing);
}

}  // namespace

TEST_CASE("exchanges of experts are read with what the library and the model say", "[io]") {
  const Workload w = read(R"({
    "ranks": 8, "groups": {"ep": ["0-3", "4-7"]},
    "exchanges": {
      "plain": {"tokens": 4096, "routing": {"model": "deepseek-v3"}},
      "drawn": {"mode": "low-latency", "tokens": [1, 2, 3, 4], "hidden": 1000, "dispatch": "bf16",
                "combine": {"bytes": "1500 B"}, "sms": 12, "hook": true, "nvlink": false,
                "routing": {"experts": 64, "chosen": 4, "gate": "group-max", "groups": 8,
                            "groups_chosen": 2, "popularity": {"zipf": 1}, "slots": 72,
                            "placement": "global", "sampled": true, "seed": 9}}
    },
    "programs": [{"ranks": "0-7", "ops": [
      {"op": "moe_dispatch", "exchange": "plain", "group": "ep"},
      {"op": "moe_combine", "exchange": "drawn", "group": "ep"},
      {"op": "compute", "duration": "1 us", "sms": 100}]}]})");
  REQUIRE(w.exchanges.size() == 2);
  const ExpertExchange& plain = w.exchanges[0];
  CHECK(plain.name == "plain");
  CHECK(plain.mode == ExpertMode::Normal);
  CHECK(plain.kernels->name == "deepep-v1");
  CHECK(plain.hidden == 7168);
  CHECK(plain.dispatch_bytes == 7392);
  CHECK(plain.combine_bytes == 14336);
  CHECK(plain.routing.experts == 256);
  CHECK(plain.routing.chosen == 8);
  CHECK(plain.routing.gate == Gate::GroupSumOfTwo);
  CHECK(plain.routing.groups == 8);
  CHECK(plain.routing.groups_chosen == 4);
  CHECK_FALSE(plain.routing.sampled);

  const ExpertExchange& drawn = w.exchanges[1];
  CHECK(drawn.mode == ExpertMode::LowLatency);
  CHECK(drawn.rank_tokens == Ranks{1, 2, 3, 4});
  CHECK(drawn.tokens == 0);
  CHECK(drawn.dispatch_bytes == 2000);
  CHECK(drawn.combine_bytes == 1500);
  CHECK(drawn.sms == 12);
  CHECK(drawn.hook);
  CHECK_FALSE(drawn.nvlink);
  CHECK(drawn.routing.gate == Gate::GroupMax);
  CHECK(drawn.routing.popularity.size() == 64);
  CHECK(drawn.routing.popularity == zipf_popularity(64, 1, 1));
  CHECK(drawn.routing.slots == 72);
  CHECK(drawn.routing.placement == Placement::Global);
  CHECK(drawn.routing.sampled);
  CHECK(drawn.routing.seed == 9);

  const Operation& dispatch = op_of(w, "comm.0");
  CHECK(dispatch.collective == CollectiveOp::MoeDispatch);
  CHECK(dispatch.exchange == 0);
  CHECK(dispatch.bytes == Bytes{4096LL * 8 * 7392});
  CHECK(op_of(w, "comm.1").bytes == Bytes{4LL * 4 * 1500});
  CHECK(op_of(w, "compute.0").sms == 100);
}

TEST_CASE("a gate follows from its groups", "[io]") {
  const auto gate = [](const std::string& routing) {
    return read(exchange_with("", routing)).exchanges[0].routing.gate;
  };
  CHECK(gate(R"("experts": 16, "chosen": 2)") == Gate::TopK);
  CHECK(gate(R"("experts": 16, "chosen": 2, "groups": 4)") == Gate::TopK);
  CHECK(gate(R"("experts": 16, "chosen": 2, "groups": 4, "groups_chosen": 2)") ==
        Gate::GroupSumOfTwo);
  CHECK(gate(R"("experts": 16, "chosen": 2, "groups": 4, "groups_chosen": 4)") == Gate::TopK);
  CHECK(gate(R"("model": "deepseek-v3", "groups_chosen": 8)") == Gate::TopK);
  CHECK(gate(R"("model": "mixtral-8x7b")") == Gate::TopK);
}

TEST_CASE("what is wrong with an exchange is said at its place", "[io]") {
  const auto members = [](const std::string& text) {
    return problem_of(exchange_with(text + ","));
  };
  const auto routing = [](const std::string& text) { return problem_of(exchange_with("", text)); };
  const std::string at = "dir/w.json:1:";
  CHECK(
      members(R"("mode": "norml")") ==
      at +
          R"(59: /exchanges/x/mode: expected "nccl", "normal", "direct", "low-latency" or "fused", got "norml", did you mean "normal"?)");
  CHECK(members(R"("libary": "deepep-v1")") ==
        at + R"(51: /exchanges/x/libary: is not a known option, did you mean "library"?)");
  CHECK_THAT(
      members(R"("library": "deepep-1")"),
      Catch::Contains("/exchanges/x/library: ") && Catch::Contains("did you mean \"deepep-v1\"?"));
  CHECK_THAT(members(R"("mode": "direct", "library": "deepep-v1")"),
             Catch::Contains("/exchanges/x/library: ") || Catch::Contains("direct"));
  CHECK(members(R"("hook": true)") ==
        at + "59: /exchanges/x/hook: is for mode low-latency, and this exchange is of mode normal");
  CHECK(members(R"("efficiency": 0.5)") ==
        at + "65: /exchanges/x/efficiency: is for mode fused, and this exchange is of mode normal");
  CHECK_THAT(members(R"("dispatch": "fp7")"), Catch::Contains("did you mean \"fp8\"?"));
  CHECK_THAT(members(R"("mode": "fused")"), Catch::Contains("expert_hidden"));

  const std::string second = "dir/w.json:2:";
  CHECK(routing(R"("experts": 16)") == second + R"(12: /exchanges/x/routing: "chosen" is missing)");
  CHECK_THAT(routing(R"("experts": 16, "chosen": 17)"),
             Catch::Contains("/routing/chosen: expected a whole number from 1 to 16, got 17"));
  CHECK_THAT(routing(R"("model": "llama3-8b")"),
             Catch::Contains("/routing/model: llama3-8b has no experts"));
  CHECK_THAT(routing(R"("experts": 16, "chosen": 2, "groups": 3)"),
             Catch::Contains("/routing/groups: 16 experts do not divide into 3 groups"));
  CHECK_THAT(routing(R"("experts": 16, "chosen": 2, "gate": "group-max")"),
             Catch::Contains(R"(/routing/gate: group-max needs "groups" and "groups_chosen")"));
  CHECK_THAT(
      routing(R"("experts": 16, "chosen": 2, "gate": "top-k", "groups": 4, "groups_chosen": 2)"),
      Catch::Contains("/routing/groups_chosen: top-k chooses no groups"));
  CHECK_THAT(routing(R"("experts": 16, "chosen": 8, "groups": 8, "groups_chosen": 2)"),
             Catch::Contains(
                 "/routing/groups_chosen: 2 groups have 4 experts, of which 8 are to be chosen"));
  CHECK_THAT(
      routing(R"("experts": 16, "chosen": 2, "popularity": [1, 2])"),
      Catch::Contains("/routing/popularity: expected 16 numbers, one for each expert, got 2"));
  CHECK_THAT(routing(R"("experts": 16, "chosen": 2, "placement": "hierarchical")"),
             Catch::Contains(R"(hierarchical placement needs "groups" of experts)"));
  CHECK_THAT(routing(R"("experts": 16, "chosen": 2, "seed": 3)"),
             Catch::Contains(R"(/routing/seed: draws nothing without "sampled": true)"));
  CHECK_THAT(routing(R"("experts": 16, "chosen": 2, "slots": 8)"),
             Catch::Contains("/routing/slots: expected a whole number from 16 to"));
}

TEST_CASE("calls that do not fit their exchange are refused at their place", "[io]") {
  const auto call = [](const std::string& members, const std::string& mode = "normal") {
    return problem_of(fmt::format(
        R"({{"exchanges": {{"layer": {{"mode": "{}", "tokens": 8, "hidden": 64, "expert_hidden": 64, "routing": {{"experts": 8, "chosen": 2}}}}}},
"collectives": [{{{}}}]}})",
        mode, members));
  };
  CHECK_THAT(call(R"("op": "moe_dispatch", "exchange": "layr")", "fused"),
             Catch::Contains(R"(there is no exchange "layr", did you mean "layer"?)"));
  CHECK_THAT(call(R"("op": "moe_dispatch", "exchange": "layer")", "fused"),
             Catch::Contains(R"("layer" is of mode fused, which moe_dispatch cannot be)"));
  const auto plain = [](const std::string& members) {
    return problem_of(fmt::format(
        R"({{"exchanges": {{"layer": {{"tokens": [8, 8], "hidden": 64, "routing": {{"experts": 8, "chosen": 2}}}}}},
"collectives": [{{{}}}]}})",
        members));
  };
  CHECK_THAT(plain(R"("op": "moe_fused", "exchange": "layer")"),
             Catch::Contains(R"("layer" is of mode normal, which moe_fused cannot be)"));
  CHECK_THAT(plain(R"("op": "moe_dispatch")"), Catch::Contains(R"("exchange" is missing)"));
  CHECK_THAT(plain(R"("op": "moe_dispatch", "exchange": "layer", "bytes": "1 MB")"),
             Catch::Contains(R"(/bytes: the "exchange" says what is moved)"));
  CHECK_THAT(plain(R"("op": "all_reduce", "exchange": "layer", "bytes": "1 MB")"),
             Catch::Contains("/exchange: all_reduce exchanges no experts"));
  CHECK_THAT(
      plain(R"("op": "moe_dispatch", "exchange": "layer")"),
      Catch::Contains(R"("layer" states the tokens of 2 ranks, but a group of "all" has 8)"));
  CHECK_THAT(plain(R"("op": "moe_dipatch", "exchange": "layer")"),
             Catch::Contains(R"(did you mean "moe_dispatch"?)"));
  CHECK_THAT(op_problem(R"({"op": "compute", "flops": "1 GFLOP", "sms": 20})"),
             Catch::Contains(R"(/sms: goes with a "duration")"));
}
