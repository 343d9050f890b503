#include "flyover/workload/collective_op.hpp"

#include <catch2/catch.hpp>

using namespace flyover;

TEST_CASE("a collective has one name and is known by nccl-tests' spellings", "[workload]") {
  for (const std::string& name : collective_op_names()) {
    CAPTURE(name);
    const auto op = collective_op(name);
    REQUIRE(op.has_value());
    CHECK(to_string(*op) == name);
    CHECK(collective_op(name + "_perf") == op);
  }
  CHECK(collective_op_names().size() == 10);
  CHECK(collective_op("alltoall_perf") == CollectiveOp::AllToAll);
  CHECK(collective_op("AllReduce") == CollectiveOp::AllReduce);
  CHECK(collective_op("reduce-scatter") == CollectiveOp::ReduceScatter);
  CHECK_FALSE(collective_op("all_redcue").has_value());
  CHECK_FALSE(collective_op("").has_value());
}

TEST_CASE("bus factors are those of nccl-tests", "[workload]") {
  CHECK(bus_factor(CollectiveOp::AllReduce, 8) == 1.75);
  CHECK(bus_factor(CollectiveOp::AllGather, 8) == 0.875);
  CHECK(bus_factor(CollectiveOp::ReduceScatter, 8) == 0.875);
  CHECK(bus_factor(CollectiveOp::AllToAll, 8) == 0.875);
  CHECK(bus_factor(CollectiveOp::Scatter, 4) == 0.75);
  CHECK(bus_factor(CollectiveOp::Gather, 4) == 0.75);
  CHECK(bus_factor(CollectiveOp::Broadcast, 8) == 1);
  CHECK(bus_factor(CollectiveOp::Reduce, 8) == 1);
  CHECK(bus_factor(CollectiveOp::SendRecv, 8) == 1);
  CHECK(bus_factor(CollectiveOp::AllReduce, 1) == 1);
}
