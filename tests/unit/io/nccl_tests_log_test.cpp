// Does the reader take logs as people keep them, and say what is wrong with others?

#include "flyover/io/nccl_tests_log.hpp"

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/topology_reader.hpp"
#include "support/shared.hpp"

namespace flyover {
namespace {

using namespace flyover::literals;
using io::NcclTestsTable;

const std::string head =
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1048576 step: 2(factor) warmup iters: 5\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  101 on    alpha device  0 [0x19] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid  102 on    alpha device  1 [0x3b] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid  201 on     beta device  0 [0x19] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid  202 on     beta device  1 [0x3b] NVIDIA H100 80GB HBM3\n"
    "#\n";
const std::string titles =
    "#                                             out-of-place                in-place\n"
    "#       size  count  type  redop  root   time  algbw  busbw #wrong  time  algbw  busbw "
    "#wrong\n"
    "#        (B)  (elements)                 (us)  (GB/s) (GB/s)        (us)  (GB/s) (GB/s)\n";
const std::string tail = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5\n#\n";
const std::string small = "  1024  256  float  sum  -1  20.5  0.05  0.07  0  19.5  0.05  0.08  0\n";
const std::string large = "  4096  1024  float  sum  -1  21.50  0.19  0.29  0  20  0.20  0.31  0\n";

std::vector<NcclTestsTable> read(const std::string& text,
                                 std::optional<CollectiveOp> collective = {}) {
  return io::read_nccl_tests_log("x.log", text, collective);
}

std::string problem(const std::string& text) {
  try {
    (void)read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// What is told of a table whose only row has these first columns.
CollectiveOp told(const std::string& columns, const std::string& row) {
  return read("# " + columns + " time algbw busbw #wrong\n" + row + " 20.5 0.05 0.05 0\n")[0].op;
}

}  // namespace

TEST_CASE("a whole log has its ranks, hosts, type and rows out of place", "[io]") {
  const auto tables = read(head + titles + small + large + tail);
  REQUIRE(tables.size() == 1);
  const NcclTestsTable& table = tables[0];
  CHECK(table.name == "x.log");
  CHECK(table.op == CollectiveOp::AllReduce);
  CHECK(table.dtype == "fp32");
  CHECK(table.ranks == 4);
  CHECK(table.hosts == std::vector<std::string>{"alpha", "alpha", "beta", "beta"});
  CHECK(table.device == "NVIDIA H100 80GB HBM3");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].bytes == 1_KiB);
  CHECK(table.rows[0].us == 20.5);
  CHECK(table.rows[0].resolution == Approx(0.05 / 20.5));
  CHECK(table.rows[1].us == 21.5);
  CHECK(table.rows[1].resolution == Approx(0.005 / 21.5));
  CHECK(table.warnings.empty());
}

TEST_CASE("older columns, missing columns in place and several tables are read", "[io]") {
  const std::string old =
      "# size count type redop time algbw busbw error time algbw busbw error\n"
      "1024 256 float sum 20.5 0.05 0.07 2e-07 19.5 0.05 0.08 2e-07\n";
  const std::string half =
      "# size count type redop root time algbw busbw #wrong\n"
      "2048 1024 half sum -1 22 0.09 0.16 0\n";
  const auto tables = read(old + tail + head + half + tail);
  REQUIRE(tables.size() == 2);
  CHECK(tables[0].name == "x.log:1");
  CHECK(tables[0].ranks == 0);
  CHECK(tables[0].rows[0].us == 20.5);
  CHECK(tables[1].name == "x.log:14");
  CHECK(tables[1].ranks == 4);
  CHECK(tables[1].dtype == "fp16");
  CHECK(tables[1].rows[0].us == 22);
}

TEST_CASE("tags of mpirun and srun and the library's own talk change nothing", "[io]") {
  const std::string plain = head + titles + small + large + tail;
  const auto tagged = [&](const std::string& tag) {
    std::string out = tag;
    for (const char c : plain) {
      out += c;
      if (c == '\n') out += tag;
    }
    return out;
  };
  for (const std::string tag : {"[1,0]<stdout>:", "[1,12]<stdout>: ", "[0] ", "0: "}) {
    CAPTURE(tag);
    const auto tables = read(tagged(tag));
    REQUIRE(tables.size() == 1);
    CHECK(tables[0].ranks == 4);
    CHECK(tables[0].rows.size() == 2);
  }

  const std::string talk = "alpha:101:140 [0] NCCL INFO Channel 00/16 : 0 1 2 3\n";
  const auto within = read(head + talk + titles + talk + "  1024  256  float  sum  -1" + talk +
                           talk + "  20.5  0.05  0.07  0  19.5  0.05  0.08  0\n" + large + tail);
  REQUIRE(within[0].rows.size() == 2);
  CHECK(within[0].rows[0].us == 20.5);
  CHECK(within[0].rows[1].us == 21.5);
}

TEST_CASE("rows without a result are left out, and it is said", "[io]") {
  const auto table =
      read(titles + small +
           "  2048  512  float  sum  -1  N/A  N/A  N/A  N/A  19  0.05  0.08  0\n"
           "  4096  1024  float  sum  -1  22  0.05  0.07  3  19  0.05  0.08  0\n"
           "  0  0  float  sum  -1  0.2  0.00  0.00  0  0.2  0.00  0.00  0\n"
           "  8192  2048  float  sum  -1\n"
           "  8192  2048  float  sum  -1  23  0.05  0.07  N/A  19  0.05  0.08  N/A\n")[0];
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[1].us == 23);
  CHECK(table.warnings ==
        std::vector<std::string>{"x.log:5: left out: no time", "x.log:6: left out: 3 wrong results",
                                 "x.log:8: left out: the row ends before its time"});
}

TEST_CASE("the program's name tells the collective, wherever it stands", "[io]") {
  const std::string table =
      "# size count type redop root time algbw busbw #wrong\n"
      "1024 64 float none -1 20.5 0.05 0.05 0\n";
  CHECK(read("$ mpirun -np 4 ./build/alltoall_perf -b 8\n" + table)[0].op ==
        CollectiveOp::AllToAll);
  CHECK(read("# Collective test starting: all_gather_perf\n" + table)[0].op ==
        CollectiveOp::AllGather);
  CHECK(read(table + tail + "ran /opt/nccl-tests/build/all_gather_perf\n")[0].op ==
        CollectiveOp::AllGather);
  CHECK(read(table, CollectiveOp::AllToAll)[0].op == CollectiveOp::AllToAll);
  CHECK(problem("./hypercube_perf\n" + table)
            .starts_with("x.log:2: hypercube_perf is not a collective that is modelled: there are "
                         "all_reduce, "));
}

TEST_CASE("without a name the columns tell the collective where they can", "[io]") {
  CHECK(told("size count type redop root", "1024 256 float sum -1") == CollectiveOp::AllReduce);
  CHECK(told("size count type redop", "1024 256 float sum") == CollectiveOp::AllReduce);
  CHECK(told("size count type redop root", "1024 64 float sum -1") == CollectiveOp::ReduceScatter);
  CHECK(told("size count type redop root", "1024 256 float sum 0") == CollectiveOp::Reduce);
  CHECK(told("size count type redop root", "1024 256 float none 2") == CollectiveOp::Broadcast);
  CHECK(told("size count type root", "1024 256 float 2") == CollectiveOp::Broadcast);
  CHECK(told("size count type redop root", "1024 256 float none -1") == CollectiveOp::SendRecv);
  CHECK(problem("# size count type redop root time algbw busbw\n1024 64 float none -1 2 0 0\n") ==
        "x.log:1: cannot tell the collective: the log names no program, and all_gather_perf and "
        "alltoall_perf print such columns; say which with --collective");
}

TEST_CASE("what is wrong in a log is said with its line", "[io]") {
  CHECK(problem("hello\n") ==
        "x.log: has no table of nccl-tests: expected a line of titles such as \"# size count type "
        "redop root time algbw busbw #wrong\"");
  CHECK(problem(titles) == "x.log:2: no rows follow these titles");
  CHECK(problem("# size count type redop rot time algbw busbw\n")
            .starts_with("x.log:1: nccl-tests prints no column \"rot\", did you mean \"root\"?"));
  CHECK(problem("# size count redop time algbw busbw\n") ==
        "x.log:1: expected a column \"type\" among the titles size, count, redop, time, algbw, "
        "busbw");
  CHECK(problem(titles + "1024 256 float sum -1 fast 0.05 0.07 0 19 0.05 0.08 0\n") ==
        "x.log:4: expected a time in us, got \"fast\"");
  CHECK(problem(titles + "1024 256 float sum one 20 0.05 0.07 0 19 0.05 0.08 0\n") ==
        "x.log:4: expected a root or -1, got \"one\"");
  CHECK(problem(titles + "1024 256 flaot sum -1 20 0.05 0.07 0 19 0.05 0.08 0\n")
            .starts_with("x.log:4: no data type \"flaot\", did you mean \"float\"?"));
  CHECK(problem(titles + "1024 256 float sum -1 20 0.05 0.07 0 19 0.05 0.08 0 1 2\n") ==
        "x.log:4: expected 13 values as the titles of line 2 say, got 15");
  CHECK(problem(titles + "1024 256 float sum -1 N/A N/A N/A N/A N/A N/A N/A N/A\n") ==
        "x.log:2: no row of this table has a size and a time");
  CHECK_THROWS_WITH(io::load_nccl_tests_log("nowhere.log"), "nowhere.log: there is no such file");
  CHECK_THROWS_WITH(io::load_nccl_tests_log("/tmp"), "/tmp: is a directory, expected a log");
}

TEST_CASE("a long line in between is no reason to stop", "[io]") {
  CHECK(read(titles + small + std::string(10'000'000, 'a') + "\n" + large)[0].rows.size() == 2);
}

TEST_CASE("ranks run on the nodes of their hosts", "[io]") {
  const Topology two = io::load_topology_input("dgx-h100:2", {}).topology;
  const NcclTestsTable table = read(head + titles + small + large + tail)[0];
  CHECK(io::place_ranks(table, two).ranks == std::vector<std::uint32_t>{0, 1, 8, 9});
  const Topology one = io::load_topology_input("dgx-h100", {}).topology;
  CHECK(io::place_ranks(table, one).ranks == std::vector<std::uint32_t>{0, 1, 2, 3});
  NcclTestsTable bare = read(titles + large + small)[0];
  const CalibrationTable all = io::place_ranks(bare, two);
  CHECK(all.ranks.size() == 16);
  CHECK(all.rows[0].bytes == 1_KiB);
  CHECK(io::place_ranks(bare, two, 8).ranks.size() == 8);

  CHECK_THROWS_WITH(io::place_ranks(bare, two, 32),
                    "x.log: ran on 32 GPUs, but the topology has 16");
  CHECK_THROWS_WITH(io::place_ranks(table, two, 8), "x.log: lists 4 ranks, but --gpus says 8");
  CHECK_THROWS_WITH(io::place_ranks(bare, two, 1),
                    "x.log: ran on a single GPU, which has nothing to send");
  bare.root = 16;
  CHECK_THROWS_WITH(io::place_ranks(bare, two), "x.log: has root 16, but 16 ranks");
}

TEST_CASE("public logs are read", "[io]") {
  const auto folder = test::shared_material("formats/samples/nccl_tests");
  if (!folder) return;
  const auto rows = [&](const std::string& name) {
    const auto tables = io::load_nccl_tests_log(*folder / name);
    REQUIRE(tables.size() == 1);
    CHECK(tables[0].op == CollectiveOp::AllReduce);
    CHECK(tables[0].dtype == "fp32");
    return tables[0].rows.size();
  };
  CHECK(rows("all_reduce_2xh20_16nic_nvls_nccl1244.txt") == 10);
  CHECK(rows("all_reduce_2xh800_ring_crossnic0_4of8gpus.txt") == 7);
  CHECK(rows("all_reduce_gb200_nvl72_72gpu.txt") == 5);
  CHECK(io::load_nccl_tests_log(*folder / "all_reduce_gb200_nvl72_72gpu.txt")[0].ranks == 72);
}

}  // namespace flyover
