// Results depend on what a workload says, not on the order in which it lists ranks, groups,
// programs and operations.

#include <catch2/catch.hpp>

#include "flyover/io/result_writer.hpp"
#include "flyover/io/timeline_writer.hpp"
#include "support/cluster.hpp"
#include "support/clusters.hpp"

using namespace flyover;
using namespace flyover::literals;
using test::Cluster;

TEST_CASE("a shuffled file gives the same bytes", "[scenario][order]") {
  const Cluster c(test::rails(2, 450_GBps, 50_GBps, 500ns, 1us), test::library("nccl"));
  const char* ordered = R"({"ranks": 16,
    "groups": {"dp": [[0,8],[1,9],[2,10],[3,11],[4,12],[5,13],[6,14],[7,15]],
               "tp": [[0,1,2,3,4,5,6,7],[8,9,10,11,12,13,14,15]]},
    "programs": [
      {"name": "a", "ranks": "0-7", "ops": [
        {"id": "f", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16"},
        {"id": "x", "op": "all_reduce", "bytes": "64 MiB", "group": "tp", "after": ["f"], "stream": "t"},
        {"id": "y", "op": "all_reduce", "bytes": "96 MiB", "group": "dp", "after": ["f"], "stream": "d"},
        {"id": "g", "op": "compute", "bytes": "2 GB", "after": ["x"]}]},
      {"name": "b", "ranks": "8-15", "ops": [
        {"id": "f", "op": "compute", "flops": "2 TFLOP", "dtype": "bf16"},
        {"id": "x", "op": "all_reduce", "bytes": "64 MiB", "group": "tp", "after": ["f"], "stream": "t"},
        {"id": "y", "op": "all_reduce", "bytes": "96 MiB", "group": "dp", "after": ["f"], "stream": "d"}]}]})";
  const char* shuffled = R"({"programs": [
      {"name": "b", "ranks": [15,14,8,9,10,11,13,12], "ops": [
        {"id": "y", "op": "all_reduce", "bytes": "96 MiB", "group": "dp", "after": ["f"], "stream": "d"},
        {"id": "f", "op": "compute", "flops": "2 TFLOP", "dtype": "bf16"},
        {"id": "x", "op": "all_reduce", "bytes": "64 MiB", "group": "tp", "after": ["f"], "stream": "t"}]},
      {"name": "a", "ranks": [7,6,5,4,3,2,1,0], "ops": [
        {"id": "x", "op": "all_reduce", "bytes": "64 MiB", "group": "tp", "after": ["f"], "stream": "t"},
        {"id": "f", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16"},
        {"id": "g", "op": "compute", "bytes": "2 GB", "after": ["x"]},
        {"id": "y", "op": "all_reduce", "bytes": "96 MiB", "group": "dp", "after": ["f"], "stream": "d"}]}],
    "groups": {"tp": [[8,9,10,11,12,13,14,15],[0,1,2,3,4,5,6,7]],
               "dp": [[7,15],[5,13],[6,14],[0,8],[1,9],[2,10],[4,12],[3,11]]},
    "ranks": 16})";
  const ReplayOptions options{.timeline = true};
  const Replay a = c.run(ordered, options);
  const Replay b = c.run(shuffled, options);
  CHECK(io::result_json(a.result) == io::result_json(b.result));
  CHECK(io::timeline_json(a.trace, a.result) == io::timeline_json(b.trace, b.result));
  const Cluster again(test::rails(2, 450_GBps, 50_GBps, 500ns, 1us), test::library("nccl"));
  CHECK(io::result_json(again.run(ordered, options).result) == io::result_json(a.result));
}
