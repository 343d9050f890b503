// Bus bandwidths of large all_reduces that have a name among those who buy such systems, as issue 3
// states them. `flyover validate` has all measurements.

#include <catch2/catch.hpp>

#include "flyover/io/topology_reader.hpp"
#include "support/cluster.hpp"

namespace flyover::cost_test {
namespace {

using namespace flyover::literals;

double busbw(const std::string& topology, std::uint32_t gpus, Bytes bytes,
             const std::vector<std::pair<std::string, std::string>>& variables = {}) {
  const test::Cluster cluster(io::load_topology(topology), test::library("nccl", variables));
  CollectiveCall call;
  call.bytes = bytes;
  for (std::uint32_t rank = 0; rank < gpus; ++rank) call.ranks.push_back(rank);
  return static_cast<double>(bytes.count()) / to_seconds(cluster.cost.choose(call).plan.alone) /
         1e9 * bus_factor(call.op, gpus);
}

struct Known {
  std::string topology;
  std::uint32_t gpus;
  double gigabytes_per_second;
};

}  // namespace

TEST_CASE("NVLS comes within 5 % of what systems are known for", "[cost][measurements]") {
  const auto [topology, gpus, expected] =
      GENERATE(Known{"dgx-h100", 5, 420}, Known{"dgx-h100", 6, 440}, Known{"dgx-h100", 7, 460},
               Known{"dgx-h100", 8, 480}, Known{"hgx-h800", 8, 215}, Known{"dgx-b200", 8, 838},
               Known{"gb200-nvl72", 72, 835});
  CAPTURE(topology, gpus);
  CHECK(busbw(topology, gpus, 8_GiB) == Approx(expected).epsilon(0.05));
}

TEST_CASE("rings on H100 reach 365 to 370 GB/s whatever their length, within 5 %",
          "[cost][measurements]") {
  const std::uint32_t gpus = GENERATE(5U, 6U, 7U, 8U);
  CAPTURE(gpus);
  const double ring = busbw("dgx-h100", gpus, 8_GiB, {{"NCCL_ALGO", "Ring"}});
  CHECK(ring >= 0.95 * 365);
  CHECK(ring <= 1.05 * 370);
}

}  // namespace flyover::cost_test
