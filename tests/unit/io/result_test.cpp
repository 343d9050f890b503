// Is a result read back as it was written, its ranges too?

#include <catch2/catch.hpp>

#include "flyover/io/result_reader.hpp"
#include "flyover/io/result_writer.hpp"

using namespace flyover;
using namespace flyover::literals;
using namespace std::chrono_literals;

TEST_CASE("a result survives its file", "[io]") {
  Result result;
  result.inputs = {{"topology", "dgx-h100", "0123", {"a=b"}}};
  result.ranks = 8;
  result.time = 2ms;
  result.low = 1900us;
  result.high = 2300us;
  result.range = {{"nvlink4", "nvls", "larger", 700, 0.9, 1.25, 0.15}};
  result.validity = {"no measurement on VR200 GPUs"};
  result.breakdown = {1300, {{"tp", 600}}, 100, 0, 0};
  CollectiveStats calls;
  calls.op = "all_reduce";
  calls.mean = 300us;
  calls.low = 270us;
  calls.high = 375us;
  ExpertStats& experts = calls.experts.emplace();
  experts.exchange = "layer";
  experts.library = "deepep-v1";
  experts.mode = ExpertMode::LowLatency;
  experts.balanced = true;
  experts.tokens = 127.5;
  experts.traffic = {3.95, 7.5, {1, 2}, {3, 4}, {5, 6}, {7, 8}, "expected, closed form"};
  experts.kernel = 250us;
  experts.bottleneck_GBps = 43.5;
  experts.bottleneck_side = "RDMA";
  experts.sms = 20;
  experts.other_modes = {{ExpertMode::Nccl, 500us}};
  result.collectives = {calls};
  result.warnings = {"an assumption"};
  MemoryUse& memory = result.memory.emplace();
  memory.capacity = 80_GiB;
  memory.reason = "stage 1 needs more";
  memory.stages.resize(2);
  memory.stages[1].parts[static_cast<std::size_t>(MemoryPart::Working)] = 90_GiB;
  memory.stages[1].micro_batches_in_flight = 1.5;
  memory.fullest = 1;

  const std::string text = io::result_json(result);
  const Result read = io::read_result(io::Document::parse("r.json", text));

  CHECK(io::result_json(read) == text);
  CHECK(read.high == result.high);
  CHECK(read.range.at(0).correlation == 0.15);
  CHECK(read.collectives.at(0).low == 270us);
  CHECK(read.collectives.at(0).experts->traffic.nvlink.most == 8);
  CHECK(read.collectives.at(0).experts->other_modes.at(0).time == 500us);
  CHECK(read.validity == result.validity);
  REQUIRE(read.memory);
  CHECK(read.memory->stages.at(1)[MemoryPart::Working] == 90_GiB);
  CHECK(read.memory->fullest == 1);
  CHECK(io::result_csv(read).find("time_us,low_us,high_us,longest_us") != std::string::npos);
  CHECK(io::result_csv(read).find(",300,270,375,") != std::string::npos);
}
