// Do records of training runs become what their sources mean?

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/training_left_out.hpp"
#include "flyover/io/training_results_reader.hpp"
#include "flyover/study/training_validation.hpp"

namespace flyover {

namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

const TrainingCatalogue& catalogue() {
  static const TrainingCatalogue shipped = io::training_catalogue();
  return shipped;
}

// A record with `more` in its layout and `hardware` instead of eight H100.
std::string text_of_record(
    const std::string& more = "",
    const std::string& hardware =
        R"({"gpu": "H100-80GB-SXM", "gpus": 16, "gpus_per_node": 8, "nodes": 2, "nic": null})",
    const std::string& precision = "bf16") {
  return R"([{"id": "a", "group": "g", "kind": "pretrain", "tags": [1],
    "model": {"name": "own", "arch_complete": true, "seq": 4096, "arch": {"layers": 30, "hidden": 4096,
      "ffn": 14336, "heads": 32, "kv_heads": 8, "head_dim": 128, "vocab": 128256, "ffn_matrices": 3}},
    "hardware": )" +
         hardware + R"(, "precision": ")" + precision +
         R"(", "layout": {"tp": 2, "pp": 2, "cp": 1, "mbs": 1, "gbs": 64)" + more +
         R"(}, "framework": {"name": "Megatron-Bridge/Megatron-Core", "version": "NeMo container 25.09"},
    "measured": {"tokens_per_s_per_gpu": 8192}, "quality": "A"}])";
}

std::vector<TrainingRecord> records_of(const std::string& text) {
  return io::read_training_results(io::Document::parse("r.json", text));
}

RecordedJob job_of(const std::string& text) {
  return training_job_of(records_of(text).front(), catalogue());
}

std::string problem(const std::string& text) {
  try {
    static_cast<void>(job_of(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

bool says(const RecordedJob& job, const std::string& words) {
  return std::ranges::any_of(job.assumptions, [&](const std::string& assumption) {
    return assumption.find(words) != std::string::npos;
  });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("a record's time is the stated step, else what tokens per second imply",
          "[study][training]") {
  CHECK(records_of(text_of_record()).front().step_seconds == 64.0 * 4096 / (8192 * 16));
  const std::string stated =
      replaced(text_of_record(), R"("tokens_per_s_per_gpu": 8192)", R"("step_time_s": 3.5)");
  CHECK(records_of(stated).front().step_seconds == 3.5);
  const std::string nothing = replaced(text_of_record(), R"("tokens_per_s_per_gpu": 8192)", "");
  CHECK_FALSE(records_of(nothing).front().step_seconds);
}

TEST_CASE("lists and objects with results are read alike", "[study][training]") {
  const auto records = records_of(R"({"results": )" + text_of_record() + "}");
  REQUIRE(records.size() == 1);
  CHECK(records.front().id == "a");
  CHECK(records.front().model->layers == 30);
  // Measured kernels lie beside results.
  CHECK(records_of(R"([{"id": "k", "op": "gemm", "shape": {"m": 1}}])").empty());
}

TEST_CASE("a record of the wrong form is refused with its place", "[study][training]") {
  const auto error_of = [](const std::string& text) { return problem(text); };
  CHECK_THAT(error_of(text_of_record(R"(, "vp": "two")")), Contains("/0/layout/vp"));
  CHECK_THAT(error_of(text_of_record(R"(, "sp": "maybe")")),
             Contains("/0/layout/sp: expected true or false, got \"maybe\""));
  CHECK_THAT(error_of("[3]"),
             Contains("/0: expected a record: an object with id, model, layout, ..."));
  CHECK_THAT(error_of(R"([{"id": "x"}])"), Contains("model"));
}

TEST_CASE("a layout is filled up with the stack's defaults, and says so", "[study][training]") {
  const RecordedJob job = job_of(text_of_record());
  CHECK(job.job.stack.name == "nemo-25");
  CHECK(job.layout.data == 4);
  CHECK(job.layout.sharding == job.job.stack.sharding);
  CHECK(job.layout.sequence_parallel);
  CHECK(says(job, "sharding is not stated"));
  CHECK(says(job, "recompute is not stated"));
  CHECK(says(job, "the network is not stated"));
}

TEST_CASE("words of layouts mean what their frameworks mean", "[study][training]") {
  const auto layout = [](const std::string& more) { return job_of(text_of_record(more)).layout; };
  CHECK(layout(R"(, "zero": 2)").sharding == Sharding::Gradients);
  CHECK(layout(R"(, "zero": 3, "fsdp": 2)").shard_group == 2);
  CHECK(layout(R"(, "zero": 3, "fsdp": 4)").shard_group == 0);
  CHECK(layout(R"(, "zero": 1, "zero1_group": 2)").shard_group == 2);
  CHECK(layout(R"(, "zero": 2, "fsdp_strategy": "SHARD_GRAD_OP")").keep_gathered);
  CHECK(layout(R"(, "recompute": "full")").recompute == Recompute::Full);
  CHECK(layout(R"(, "recompute": "selective-attention")").recompute_modules.empty());
  CHECK_THAT(layout(R"(, "recompute": "selective:[\"layernorm\", \"moe_act\"]")").recompute_modules,
             Equals(std::vector<std::string>{"norm", "activation"}));
  CHECK_THAT(layout(R"(, "recompute": "norm,act")").recompute_modules,
             Equals(std::vector<std::string>{"norm", "activation"}));
  CHECK_FALSE(layout(R"(, "sp": false)").sequence_parallel);
  const Layout interleaved = layout(R"(, "vp": 5)");
  CHECK(interleaved.schedule == PipelineSchedule::Interleaved);
  CHECK(interleaved.virtual_stages == 5);
  CHECK(interleaved.chunk_layers.empty());
  // 30 layers, an embedding and a head are 32.
  CHECK_THAT(layout(R"(, "vp": 4)").chunk_layers,
             Equals(std::vector<std::uint32_t>{3, 4, 4, 4, 4, 4, 4, 3}));
}

TEST_CASE("words of options and overlap mean what their frameworks mean", "[study][training]") {
  const auto job = [](const std::string& more) { return job_of(text_of_record(more)).job; };
  CHECK(job(R"(, "tp_comm_overlap": "1")").overlap.tensor == TensorOverlap::Pipelined);
  CHECK(job(R"(, "tp_comm_overlap": "False")").overlap.tensor == TensorOverlap::None);
  CHECK(job(R"(, "async_tp": true)").overlap.tensor == TensorOverlap::Pipelined);
  CHECK(job(R"(, "recipe_knobs": {"moe_token_dispatcher_type": "\"flex\""})").overlap.dispatch ==
        ExpertDispatch::Fused);
  CHECK(job(R"(, "recipe_knobs": {"overlap_moe_expert_parallel_comm": "True"})").overlap.experts);
  CHECK(job(R"(, "recipe_knobs": {"cuda_graph_impl": "\"local\""})").options.cuda_graphs);
  CHECK_FALSE(job(R"(, "recipe_knobs": {"cuda_graph_impl": "\"none\""})").options.cuda_graphs);
  CHECK(job(R"(, "recipe_env": {"FULL_CUDA_GRAPH": "0", "LAYER_CUDA_GRAPH": "1"})")
            .options.cuda_graphs);
  CHECK_FALSE(job(R"(, "mp_mode": "PURE")").options.fp32_gradients);
  CHECK(job(R"(, "mp_mode": "DEFAULT")").options.fp32_gradients);
  const RecordedJob lora =
      job_of(replaced(text_of_record(), R"("kind": "pretrain")", R"("kind": "lora")"));
  REQUIRE(lora.job.options.lora);
  CHECK(lora.job.options.lora->rank == 16);
  CHECK(says(lora, "adapters of rank 16"));
}

TEST_CASE("precisions have types", "[study][training]") {
  const auto type = [](const std::string& word) {
    return job_of(replaced(text_of_record(), R"("precision": "bf16")",
                           R"("precision": ")" + word + '"'))
        .job.options.compute;
  };
  CHECK(type("bf16/fp16") == KernelType::Bf16);
  CHECK(type("fp8-cs") == KernelType::Fp8);
  CHECK(type("fp8-rowwise") == KernelType::Fp8Block);
  CHECK(type("mxfp8") == KernelType::Mxfp8);
  CHECK(type("nvfp4") == KernelType::Nvfp4);
}

TEST_CASE("clusters have the NICs that the words state", "[study][training]") {
  struct Case {
    std::string nic;
    std::uint32_t nics;
    double gigabits;
    std::string network;
  };
  const auto entry = GENERATE(
      Case{"ConnectX-7 400 Gb/s per GPU", 8, 400, "ndr"},
      Case{"4x100 Gb/s Omni-Path per node", 4, 100, "edr"},
      Case{"1600 Gb/s per node RoCE", 8, 200, "roce-200"},
      Case{"A100 80GB with 1600 Gbps node-node interconnect (RoCE)", 8, 200, "roce-200"},
      Case{"8x50 GB/s InfiniBand per node", 8, 400, "ndr"},
      Case{"Storage: 2x ConnectX-7 IB NDR 200Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s, "
           "Management: 100Gb/s Ethernet NIC",
           8, 400, "ndr"},
      Case{"8x200 Gb/s HDR InfiniBand per node", 8, 200, "hdr"},
      Case{"InfiniBand; Data bandwidth for GPU-PCIe: 504 GB/s; PCIe-NIC: 500 GB/s", 8, 400, "ndr"});
  CAPTURE(entry.nic);
  const RecordedJob job = job_of(text_of_record(
      "", R"({"gpu": "H100-80GB-SXM", "gpus": 16, "gpus_per_node": 8, "nodes": 2, "nic": ")" +
              entry.nic + R"("})"));
  const NodeSpec& node = job.cluster.nodes.front().spec;
  CHECK(node.nics == entry.nics);
  CHECK(node.nic_bandwidth.per_second() * 8e-9 == Approx(entry.gigabits));
  CHECK(job.cluster.fabric.preset == entry.network);
}

TEST_CASE("racks share GPUs equally, and rank r is GPU r", "[study][training]") {
  const RecordedJob job = job_of(text_of_record(
      "", R"({"gpu": "GB200-NVL72", "gpus": 128, "gpus_per_node": 4, "nodes": 32, "nic": null})"));
  const NodeGroup& racks = job.cluster.nodes.front();
  CHECK(racks.count == 2);
  CHECK(racks.spec.gpus == 64);
  CHECK(racks.spec.nics == 64);
  CHECK(build_topology(job.cluster).gpus.size() == 128);
}

TEST_CASE("what cannot be predicted has a reason", "[study][training]") {
  CHECK(problem(replaced(text_of_record(), R"("tp": 2, )", "")) ==
        "the layout is not stated: tensor is missing");
  CHECK(problem(replaced(text_of_record(), R"("arch_complete": true)",
                         R"("arch_complete": false)")) == "the architecture of own is not known");
  CHECK(problem(replaced(text_of_record(), R"("kind": "pretrain")", R"("kind": "chunk")")) ==
        "a part of a step, not a step, was measured");
  CHECK(problem(replaced(text_of_record(), R"("kind": "pretrain")", R"("kind": "inference")")) ==
        "inference, not training");
  CHECK(problem(replaced(text_of_record(), "bf16", "int8")) ==
        "the precision \"int8\" is not known");
  CHECK(problem(text_of_record(R"(, "recompute": "selective:[\"cat\"]")")) ==
        "recomputation of \"cat\" is not known");
  CHECK(problem(text_of_record(R"(, "schedule": "1f2b")")) == "the schedule \"1f2b\" is not known");
  CHECK_THAT(problem(replaced(text_of_record(), "\"gbs\": 64", "\"gbs\": 63")),
             Contains("impossible layout: global batch 63 is not a multiple"));
  CHECK_THAT(problem(text_of_record("", R"({"gpu": "Abacus", "gpus": 16})")),
             Contains("no hardware facts of the GPU \"Abacus\""));
}

TEST_CASE("a framework that no stack speaks for is taken as its nearest", "[study][training]") {
  const auto stack = [](const std::string& name, const std::string& version) {
    std::string text = replaced(text_of_record(), "Megatron-Bridge/Megatron-Core", name);
    text = replaced(text, "NeMo container 25.09", version);
    return job_of(text);
  };
  const RecordedJob older = stack("NeMo", "23.05");
  CHECK(older.job.stack.name == "nemo-24");
  CHECK(says(older, "no stack is known of NeMo 23.05: nemo-24"));
  CHECK(stack("Abacus", "1").job.stack.name == catalogue().default_stack);
}

TEST_CASE("nearly all shipped results of quality A can be predicted", "[study][training]") {
  const std::vector<TrainingRecord> records = io::shipped_training_results();
  CHECK(records.size() == 971);
  std::size_t of_quality = 0;
  std::size_t possible = 0;
  for (const TrainingRecord& record : records) {
    if (record.quality != 'A') continue;
    ++of_quality;
    CAPTURE(record.id);
    try {
      static_cast<void>(training_job_of(record, catalogue()));
      CHECK(record.step_seconds);
      ++possible;
    } catch (const InputError& error) {
      CHECK(error.problem() == "a part of a step, not a step, was measured");
    }
  }
  CHECK(of_quality == 794);
  CHECK(possible == 793);
}

TEST_CASE("predictions have parts that add up, and skipped records reasons", "[study][training]") {
  std::vector<TrainingRecord> records = records_of(text_of_record());
  records.push_back(records.front());
  records.back().kind = "chunk";
  RecordEstimator estimator(catalogue());
  const std::vector<ValidatedStep> steps = predict_steps(records, catalogue(), estimator);
  REQUIRE(steps.size() == 2);
  REQUIRE(steps.front().predicted);
  Duration sum{};
  for (const Duration part : steps.front().predicted->parts) sum += part;
  CHECK(sum == steps.front().predicted->time);
  CHECK(steps.back().skipped == "a part of a step, not a step, was measured");
  const TrainingSummary summary = summarise_steps(steps, StepFit::Shipped);
  CHECK(summary.records == 2);
  CHECK(summary.predicted == 1);
  CHECK(summary.by_quality.at('A').rows == 1);
  CHECK(summary.skipped.size() == 1);
  CHECK(summarise_steps(steps, StepFit::LeftOut).predicted == 0);
}

TEST_CASE("families rank layouts by time per sequence", "[study][training]") {
  std::vector<ValidatedStep> steps;
  const double measured[] = {4, 3, 2, 1};
  const double predicted[] = {4, 3, 1, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    ValidatedStep& step = steps.emplace_back();
    step.quality = 'A';
    step.family = "f";
    step.layout = std::to_string(i);
    step.sequences = 10;
    step.measured_seconds = measured[i];
    step.predicted.emplace().time = from_seconds(predicted[i]);
    step.left_out_seconds = measured[i];
  }
  const auto families = summarise_steps(steps, StepFit::Shipped).families;
  REQUIRE(families.size() == 1);
  CHECK(families.front().layouts == 4);
  CHECK(families.front().rank_correlation == Approx(0.8));
  CHECK(families.front().best_gap == Approx(1));
  CHECK(summarise_steps(steps, StepFit::LeftOut).families.front().rank_correlation == Approx(1));
  steps.pop_back();
  CHECK(summarise_steps(steps, StepFit::Shipped).families.empty());
}

TEST_CASE("changes of a stack reach those that build on it", "[study][training]") {
  const auto stacks = io::changed_stacks({{"megatron-2021#/defaults/expert_imbalance", "1.25"},
                                          {"nemo-25", R"({"host": {"step": "7 ms"}})"}});
  CHECK(stacks.at("megatron-2021").options.expert_imbalance == 1.25);
  CHECK(stacks.at("nemo-24").options.expert_imbalance == 1.25);
  CHECK(to_seconds(stacks.at("nemo-25").step_host) == Approx(0.007));
  CHECK(stacks.at("nemo-24").step_host == catalogue().stacks.at("nemo-24").step_host);
  CHECK_THROWS_WITH(io::changed_stacks({{"abacus#/host/step", "1"}}),
                    "abacus#/host/step: there is no such stack");
  CHECK_THROWS_WITH(io::changed_stacks({{"nemo-25#/host/abacus", "1"}}),
                    Contains("the stack has no such value"));
  CHECK_THROWS_WITH(io::changed_stacks({{"nemo-25", "{"}}), Contains("is not JSON"));
}

TEST_CASE("left-out values belong to groups", "[study][training]") {
  const auto read = [](const std::string& rest) {
    return io::TrainingLeftOut(io::Document::parse(
        "l.json", R"({"format": "flyover-training-left-out-1", )" + rest + "}"));
  };
  const io::TrainingLeftOut left_out = read(
      R"("parameters": {"megatron-2021": ["/interference/straggling"], "nemo-25": ["/host/step"]},
         "groups": {"g": {"megatron-2021": [0.125], "nemo-25": ["9 ms"]}})");
  CHECK(left_out.knows("g"));
  CHECK_FALSE(left_out.knows("h"));
  const auto stacks = left_out.stacks("g");
  CHECK(stacks.at("megatron-2021").straggling == 0.125);
  CHECK(to_seconds(stacks.at("nemo-25").step_host) == Approx(0.009));
  CHECK_THROWS_WITH(
      read(R"("parameters": {"nemo-25": ["/host/step"]}, "groups": {"g": {"nemo-25": []}})"),
      Contains("/groups/g/nemo-25: expected 1 values, got 0"));
  CHECK_THROWS_WITH(read(R"("parameters": {"nemo-25": ["host"]}, "groups": {})"),
                    Contains("/parameters/nemo-25/0: expected a JSON pointer"));
  CHECK_THROWS_WITH(io::TrainingLeftOut(io::Document::parse("l.json", R"({"format": "x"})")),
                    Contains("expected \"flyover-training-left-out-1\""));
}

}  // namespace flyover
