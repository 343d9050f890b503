#include "flyover/report/summary.hpp"

#include <catch2/catch.hpp>

using namespace flyover;
using namespace flyover::literals;

namespace {

Result sample() {
  Result r;
  r.ranks = 8;
  r.operations = 24;
  r.time = 2ms;
  r.low = 1940us;
  r.high = 2150us;
  r.range = {{"nvlink4", "nvls", "larger", 700, 0.9143, 1.2143, 0.25}};
  r.validity = {"no measurement on VR200 GPUs"};
  r.breakdown = {1200, {{"tp", 600}}, 100, 0, 100};
  r.bottleneck = "compute takes 60.0 % of the run";
  r.collectives.push_back({.op = "all_reduce",
                           .group = "tp",
                           .ranks = 8,
                           .bytes = 64_MiB,
                           .count = 8,
                           .mean = 300us,
                           .low = 270us,
                           .high = 330us,
                           .longest = 310us,
                           .alone = 290us,
                           .mean_wait = 0us,
                           .algbw_GBps = 223.7,
                           .busbw_GBps = 391.5,
                           .algorithm = AlgorithmId::Nvls,
                           .protocol = Protocol::Simple,
                           .channels = 16,
                           .bottleneck = "nvlink out",
                           .alternatives = {}});
  r.links.push_back({"nvlink", 64, 3.6e12, 1e9, 0.25, 0.9, "node0/gpu0 -> node0/nvswitch0", 0.3});
  r.sensitivity = {{"nvlink", 0.1, 0.02}, {"pcie", 0.1, 0}};
  r.warnings = {"an assumption"};
  return r;
}

}  // namespace

TEST_CASE("the summary tells the whole story on its own", "[report]") {
  CHECK_THAT(summary(sample(), 0), Catch::StartsWith(
                                       R"(2.000 ms for 24 operations on 8 ranks
80 % range: 1.940 ms to 2.150 ms, compute as given
compute takes 60.0 % of the run

part              time   share
compute       1.200 ms  60.0 %
exposed tp  600.000 us  30.0 %
start-up    100.000 us   5.0 %
bubble        0.000 us   0.0 %
idle        100.000 us   5.0 %
)"));
  const std::string text = summary(sample(), 0);
  CHECK(text.find("all_reduce  tp         8  64 MiB      8  300.000 us    -10/+10%") !=
        std::string::npos);
  CHECK(text.find("nvlink       64    25.0 %    90.0 %   30.0 %  node0/gpu0 -> node0/nvswitch0") !=
        std::string::npos);
  CHECK(text.find("2.00 %") != std::string::npos);
  CHECK(text.find("pcie") == std::string::npos);  // Nothing to gain there.
  CHECK(text.find("outside of what was measured:\n  no measurement on VR200 GPUs\n") !=
        std::string::npos);
  CHECK(text.find("assumed:\n  an assumption\n") != std::string::npos);
}

TEST_CASE("stages that need the same memory share a line", "[report]") {
  Result result = sample();
  MemoryUse& memory = result.memory.emplace();
  memory.capacity = 80_GiB;
  memory.fits = true;
  memory.stages.resize(4);
  for (StageMemory& stage : memory.stages) {
    stage.parts[static_cast<std::size_t>(MemoryPart::Parameters)] = 8_GiB;
    stage.parts[static_cast<std::size_t>(MemoryPart::Activations)] = 32_GiB;
    stage.micro_batches_in_flight = 4;
  }
  memory.stages[3].parts[static_cast<std::size_t>(MemoryPart::Logits)] = 48_GiB;
  CHECK_THAT(summary(result, 0), Catch::Contains(R"(
memory of stage     needs    share  most of it            micro-batches
0-2              40.0 GiB   50.0 %  32.0 GiB activations              4
3                88.0 GiB  110.0 %  48.0 GiB logits                   4
fits
)"));
  memory.fits = false;
  memory.reason = "stage 3 of 4 needs more";
  CHECK_THAT(summary(result, 0), Catch::Contains("\ndoes not fit: stage 3 of 4 needs more\n"));
}

TEST_CASE("runs are compared with the first", "[report]") {
  Result slower = sample();
  slower.time = 3ms;
  slower.low = 2700us;
  slower.high = 3300us;
  slower.breakdown.exposed_us = {{"dp", 1600}};
  slower.validity.clear();
  CHECK(comparison({"a", "b"}, {sample(), slower}, 0) ==
        R"(                            a           b
time                 2.000 ms    3.000 ms
against the first     +0.00 %    +50.00 %
range(80%)         -3.0/+7.5%    -10/+10%
difference                  -       clear
ranks                       8           8
compute              1.200 ms    1.200 ms
exposed dp                  -    1.600 ms
exposed tp         600.000 us           -
start-up           100.000 us  100.000 us
bubble               0.000 us    0.000 us
idle               100.000 us  100.000 us

a: compute takes 60.0 % of the run
a: outside of what was measured: no measurement on VR200 GPUs
b: compute takes 60.0 % of the run
)");
}

TEST_CASE("runs that cannot be told apart are named", "[report]") {
  Result near = sample();
  near.time += 10us;
  const std::string text = comparison({"a", "b", "c"}, {sample(), near, near}, 0);
  CHECK(text.find("-  within error  within error\n") != std::string::npos);
  CHECK_THAT(text, Catch::EndsWith("b and c are within error\n"));
}
