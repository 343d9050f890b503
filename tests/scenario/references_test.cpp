// The reference answers that other simulators and closed forms give: shared/peers.md. To 0.1 %.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "support/cluster.hpp"
#include "support/clusters.hpp"

using namespace flyover;
using namespace flyover::literals;
using test::Cluster;
using test::crossbar;
using test::library;
using test::rails;

namespace {

struct Reference {
  std::uint32_t gpus;
  double milliseconds;
};

double run(const Cluster& c, const char* op, const char* bytes) {
  return to_seconds(c.time(fmt::format(
             R"({{"collectives":[{{"op":"{}","bytes":"{}","group":"all"}}]}})", op, bytes))) *
         1e3;
}

Library one_ring() {
  return library("ideal", {{"NCCL_ALGO", "Ring"},
                           {"NCCL_MIN_NCHANNELS", "1"},
                           {"NCCL_MAX_NCHANNELS", "1"},
                           {"NCCL_PXN_DISABLE", "1"}});
}

// Nodes of eight at 450 GB/s with a 50 GB/s NIC per GPU; a rail-optimised path has 4 links of 0.5
// us.
Topology rail_cluster(std::uint32_t gpus) {
  return gpus == 8 ? crossbar(8, 450_GBps, 1us) : rails(gpus / 8, 450_GBps, 50_GBps, 500ns, 1us);
}

}  // namespace

TEST_CASE("ring all-reduce of 1 GiB on one switch", "[scenario][peers]") {
  const auto [gpus, expected] = GENERATE(Reference{8, 4.1897}, Reference{64, 4.8236},
                                         Reference{512, 5.7849}, Reference{1024, 6.8135});
  CAPTURE(gpus);
  CHECK(run(Cluster(crossbar(gpus, 450_GBps, 1us), one_ring()), "all_reduce", "1 GiB") ==
        Approx(expected).epsilon(1e-3));
}

TEST_CASE("one rank-ordered ring over a rail-optimised fabric", "[scenario][peers]") {
  const auto [gpus, expected] = GENERATE(Reference{8, 4.1897}, Reference{64, 42.531},
                                         Reference{512, 44.910}, Reference{1024, 47.000});
  CAPTURE(gpus);
  CHECK(run(Cluster(rail_cluster(gpus), one_ring()), "all_reduce", "1 GiB") ==
        Approx(expected).epsilon(1e-3));
}

TEST_CASE("all-to-all of 256 MiB per GPU on one switch", "[scenario][peers]") {
  const auto [gpus, expected] = GENERATE(Reference{8, 0.52296}, Reference{64, 0.58820},
                                         Reference{256, 0.59519}, Reference{512, 0.59636});
  CAPTURE(gpus);
  CHECK(run(Cluster(crossbar(gpus, 450_GBps, 1us)), "all_to_all", "256 MiB") ==
        Approx(expected).epsilon(1e-3));
}

TEST_CASE("all-to-all of 256 MiB per GPU over a rail-optimised fabric", "[scenario][peers]") {
  const auto [gpus, expected] = GENERATE(Reference{8, 0.52296}, Reference{64, 4.6986},
                                         Reference{256, 5.2019}, Reference{512, 5.2858});
  CAPTURE(gpus);
  CHECK(run(Cluster(rail_cluster(gpus), library("ideal", {{"NCCL_PXN_DISABLE", "1"}})),
            "all_to_all", "256 MiB") == Approx(expected).epsilon(1e-3));
}
