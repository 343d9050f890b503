// Public questions about training steps with known answers: shared/cases/cases.json, as
// public_cases_test.cpp has those about collectives.

#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/io/stack_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/workload_reader.hpp"
#include "flyover/layout/fused_chunk.hpp"
#include "flyover/layout/step_estimate.hpp"
#include "flyover/simulate/replay.hpp"
#include "support/cases.hpp"
#include "support/cluster.hpp"
#include "support/same_result.hpp"

using namespace flyover;
using test::answer_of;

namespace {

double step_seconds(const std::string& topology, Model model, const std::string& stack,
                    std::uint32_t sequence, const Layout& layout) {
  const test::Cluster cluster(io::load_topology(topology), test::library("nccl-2.8"));
  TrainingJob job;
  job.model = std::move(model);
  job.sequence = sequence;
  job.stack = io::load_stack(stack);
  job.options = job.stack.options;
  job.options.compute = KernelType::Fp16;
  job.overlap = job.stack.overlap;
  REQUIRE(problems(layout, job.model, sequence, 0).empty());
  const StepParts parts(job, io::read_kernels(io::kernel_document(job.stack.kernels)),
                        cluster.topology.gpu_model(0), 8);
  const MessageTimes times(cluster.topology, cluster.cost);
  return to_seconds(StepEstimator(parts, times).estimate(layout).time);
}

struct Megatron {
  std::string model;
  std::string cluster;
  std::uint32_t pipeline, chunks, batch, micro_batch;
};

double megatron_seconds(const Megatron& run, bool selective) {
  Layout layout;
  layout.tensor = 8;
  layout.pipeline = run.pipeline;
  layout.virtual_stages = run.chunks;
  if (run.chunks > 1) layout.schedule = PipelineSchedule::Interleaved;
  layout.sharding = Sharding::None;
  layout.sequence_parallel = selective;
  layout.recompute = selective ? Recompute::Selective : Recompute::Full;
  layout.global_batch = run.batch;
  layout.micro_batch = run.micro_batch;
  return step_seconds(run.cluster, io::load_model(run.model), "megatron-2022", 2048, layout);
}

}  // namespace

TEST_CASE("dualpipe-replay: DeepSeek-V3's fused chunk takes what its public trace shows",
          "[cases]") {
  const auto answer = answer_of("dualpipe-replay");
  if (!answer) return;
  const test::Cluster cluster(io::load_topology("hgx-h800"), test::library("nccl-2.27"));
  const auto file =
      std::filesystem::path(FLYOVER_SOURCE_DIR) / "workloads" / "deepseek-v3-fused-chunk.json";
  const Workload shipped = io::read_workload(io::Document::load(file), 8);
  const Result result = replay(cluster.topology, cluster.cost, shipped).result;
  CHECK(to_microseconds(result.time) == Approx((*answer)["span_us"].get<double>()).epsilon(0.05));
  // Of its parts the file has the means: all kernels, and dispatch and combine without notify.
  CHECK(4 * 31'066.0 == Approx((*answer)["compute_union_us"].get<double>()).epsilon(0.001));

  // It is the order that the step's model writes for the same times.
  using std::chrono_literals::operator""us;
  FusedChunk chunk;
  chunk.forward.assign(4, {4363us, 4346us, 4604us, 6181us, {}});
  chunk.backward.assign(4, {{}, 3405us, 5306us, 5063us, 6181us, 9341us, 2389us});
  const Workload made = fused_chunk_workload(chunk, shipped.name, 8);
  CHECK(result.time == replay(cluster.topology, cluster.cost, made).result.time);
  CHECK(result.time == run_fused_chunk(chunk).span);
  test::check_same_programs(canonical(made), canonical(shipped));
}

TEST_CASE("megatron-seqsel-table5: four models, full and selective recomputation") {
  const auto answer = answer_of("megatron-seqsel-table5");
  if (!answer) return;
  const std::map<std::string, Megatron> runs = {
      {"22B", {"megatron-22b", "dgx-a100:1", 1, 1, 4, 4}},
      {"175B", {"megatron-175b", "dgx-a100:8", 8, 3, 64, 1}},
      {"530B", {"megatron-530b", "dgx-a100:35", 35, 3, 280, 1}},
      {"1T", {"megatron-1t", "dgx-a100:64", 64, 1, 512, 1}},
  };
  double errors = 0;
  for (const auto& [name, run] : runs) {
    CAPTURE(name);
    const double full = megatron_seconds(run, false);
    const double selective = megatron_seconds(run, true);
    CHECK(full == Approx((*answer)["full"][name].get<double>()).epsilon(0.10));
    CHECK(selective == Approx((*answer)["seqsel"][name].get<double>()).epsilon(0.10));
    CHECK(full / selective == Approx((*answer)["speedup"][name].get<double>()).epsilon(0.05));
    errors += std::abs(full / (*answer)["full"][name].get<double>() - 1) +
              std::abs(selective / (*answer)["seqsel"][name].get<double>() - 1);
  }
  CHECK(errors / 8 <= 0.03);
}

// The issue names no sequence and no micro-batch: BERT's 512, and 16.
TEST_CASE("tp-vs-pp-dgx: a pipeline wins with many micro-batches, tensors with few") {
  if (!answer_of("tp-vs-pp-dgx")) return;
  const Model model = io::load_model("gpt-7.5b");
  const auto seconds = [&](bool pipeline, std::uint32_t micro_batches) {
    Layout layout;
    (pipeline ? layout.pipeline : layout.tensor) = 8;
    layout.sharding = Sharding::None;
    layout.micro_batch = 16;
    layout.global_batch = 16 * micro_batches;
    return step_seconds("dgx-a100:1", model, "megatron-2021", 512, layout);
  };
  CHECK(seconds(false, 128) > 1.3 * seconds(true, 128));
  CHECK(seconds(false, 4) < seconds(true, 4));
}
