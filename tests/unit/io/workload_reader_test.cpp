#include "flyover/io/workload_reader.hpp"

#include <algorithm>
#include <random>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/document.hpp"

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
      "\"reduce\", \"scatter\", \"gather\", \"sendrecv\" or \"barrier\", got \"comptue\", did you "
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
        "\"name\", \"stream\", \"after\" and \"duration\"");
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
