// MSCCL++ on the systems of its own gate, and the kernels that it takes by size.

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/io/topology_reader.hpp"
#include "support/cluster.hpp"

using namespace flyover;
using test::Cluster;
using test::library;

namespace {

CollectivePlan plan_of(const Cluster& cluster, CollectiveOp op, std::int64_t bytes) {
  CollectiveCall call{op, Bytes{bytes}, "fp32", {}, 0};
  for (std::uint32_t r = 0; r < cluster.topology.gpus.size(); ++r) call.ranks.push_back(r);
  return cluster.cost.choose(call).plan;
}

}  // namespace

TEST_CASE("MSCCL++'s reference times on A100 and H100 are met", "[scenario][mscclpp]") {
  // microsoft/mscclpp, test/deploy/perf_ndmv4.jsonl and perf_ndmv5.jsonl; of two kernels the
  // faster.
  using enum CollectiveOp;
  struct Reference {
    const char* system;
    CollectiveOp op;
    std::int64_t bytes;
    double microseconds;
  };
  const auto [system, op, bytes, microseconds] =
      GENERATE(Reference{"azure-ndv4", AllReduce, 8192, 6.51},
               Reference{"azure-ndv4", AllReduce, 73728, 8.28},
               Reference{"azure-ndv4", AllReduce, 16777216, 156.81},
               Reference{"azure-ndv4", AllReduce, 33554432, 288.65},
               Reference{"azure-ndv4", AllReduce, 50331648, 397.79},
               Reference{"azure-ndv4", AllReduce, 1073741824, 7701.98},
               Reference{"azure-ndv4", AllGather, 1073741824, 3683.13},
               Reference{"azure-ndv4", AllToAll, 1073741824, 3887.87},
               Reference{"azure-ndv4:2", AllReduce, 8192, 18.42},
               Reference{"azure-ndv4:2", AllReduce, 25165824, 311.28},
               Reference{"azure-ndv4:2", AllReduce, 50331648, 517.43},
               Reference{"azure-ndv4:2", AllReduce, 3221225472, 25565.46},
               Reference{"azure-ndv4:2", AllGather, 3221225472, 13168.31},
               Reference{"azure-ndv4:2", AllToAll, 1073741824, 23071.5},
               Reference{"azure-ndv5:2", AllReduce, 8192, 15.10},
               Reference{"azure-ndv5:2", AllReduce, 25165824, 212.39},
               Reference{"azure-ndv5:2", AllReduce, 50331648, 363.40},
               Reference{"azure-ndv5:2", AllReduce, 3221225472, 15989.38},
               Reference{"azure-ndv5:2", AllGather, 3221225472, 7480.40},
               Reference{"azure-ndv5:2", AllToAll, 1073741824, 11076.24});
  CAPTURE(system, to_string(op), bytes);
  const Cluster cluster(io::load_topology(system), library("mscclpp"));
  CHECK(to_seconds(plan_of(cluster, op, bytes).alone) * 1e6 == Approx(microseconds).epsilon(0.15));
}

TEST_CASE("MSCCL++ goes from one shot over all pairs to NVLS where there is one",
          "[scenario][mscclpp]") {
  const auto taken = [](const char* system, std::int64_t bytes) {
    const CollectivePlan plan = plan_of(Cluster(io::load_topology(system), library("mscclpp")),
                                        CollectiveOp::AllReduce, bytes);
    return std::string(to_string(plan.algorithm)) + " " + std::string(to_string(plan.protocol));
  };
  // Its own selection: one shot up to 16 KiB; NVLS from 128 KiB on at the latest.
  for (const char* system : {"dgx-a100", "dgx-h100"}) {
    CHECK(taken(system, 1 << 10) == "one-shot LL");
    CHECK(taken(system, 1 << 14) == "one-shot LL");
  }
  CHECK(taken("dgx-h100", 1 << 17) == "nvls Simple");
  CHECK(taken("dgx-a100", 1 << 16) == "all-pairs LL");
  CHECK(taken("dgx-a100", 1 << 24) == "all-pairs Simple");
  CHECK(taken("dgx-h100:2", 1 << 13) == "all-pairs LL");
  CHECK(taken("dgx-h100:2", 1 << 30) == "all-pairs Simple");
}

TEST_CASE("MSCCL++ has no kernel for domains of different sizes, and says so",
          "[scenario][mscclpp]") {
  const Cluster cluster(io::load_topology("dgx-h100:2"), library("mscclpp"));
  CollectiveCall call{CollectiveOp::AllReduce, Bytes{1 << 20}, "fp32", {0, 1, 8}, 0};
  CHECK_THROWS_WITH(cluster.cost.choose(call),
                    Catch::Matchers::Contains("all-pairs: needs as many ranks in every domain"));
}
