#include "flyover/io/training_reader.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/stack_reader.hpp"
#include "support/schema.hpp"

namespace flyover::io {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

// A workload with these members besides a model, a sequence and a batch.
std::string with(const std::string& members, const std::string& model = "\"llama3-8b\"",
                 const std::string& batch = "64") {
  return "{\"training\": {\"model\": " + model + ", \"seq\": 8192, \"global_batch\": " + batch +
         (members.empty() ? "" : ", " + members) + "}}";
}

TrainingWorkload read(const std::string& text, std::uint32_t gpus = 64) {
  const bool fits = test::Schema("workload.schema.json").accepts(text);
  CHECK(fits);
  return read_training(Document::parse("dir/w.json", text), gpus);
}

std::string problem(const std::string& text, std::uint32_t gpus = 64) {
  try {
    static_cast<void>(read_training(Document::parse("dir/w.json", text), gpus));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no problem";
}

}  // namespace

TEST_CASE("a training workload is a job and a layout", "[training]") {
  const TrainingWorkload workload = read(R"({"name": "step", "training": {
    "model": "mixtral-8x7b", "seq": 4096, "global_batch": 256, "micro_batch": 2,
    "precision": "mxfp8", "stack": "nemo-26",
    "layout": {"tp": 2, "pp": 2, "vp": 4, "cp": 2, "ep": 4, "etp": 2, "dp": 8, "zero": 2,
               "shard_group": 4, "sequence_parallel": true, "cp_exchange": "all-gather",
               "micro_batch_group": 4, "chunk_layers": [3, 4, 4, 4, 4, 4, 4, 5],
               "order": "tp-ep-cp-dp-pp", "vocabulary_multiple": 64},
    "schedule": "interleaved-1f1b", "recompute": ["norm", "moe"],
    "lora": {"rank": 8, "targets": ["attention", "ffn"]}, "optimizer": "momentum",
    "expert_imbalance": 1.2, "fp32_gradients": true, "bf16_moments": true, "cuda_graphs": false,
    "quantised_parameters": false, "dropout": true,
    "overlap": {"tensor": "none", "gradients": false, "experts": true, "dispatch": "all-gather",
                "bucket": "1 GiB"}}})");
  CHECK(workload.name == "step");
  const Layout& layout = workload.layout;
  CHECK(layout.tensor == 2);
  CHECK(layout.pipeline == 2);
  CHECK(layout.virtual_stages == 4);
  CHECK(layout.context == 2);
  CHECK(layout.expert == 4);
  CHECK(layout.expert_tensor == 2);
  CHECK(layout.data == 8);
  CHECK(layout.sharding == Sharding::Gradients);
  CHECK(layout.shard_group == 4);
  CHECK(layout.sequence_parallel);
  CHECK(layout.exchange == ContextExchange::AllGather);
  CHECK(layout.micro_batch_group == 4);
  CHECK(layout.chunk_layers == std::vector<std::uint32_t>{3, 4, 4, 4, 4, 4, 4, 5});
  CHECK(layout.order == std::array{Dimension::Tensor, Dimension::Expert, Dimension::Context,
                                   Dimension::Data, Dimension::Pipeline});
  CHECK(layout.vocabulary_multiple == 64);
  CHECK(layout.schedule == PipelineSchedule::Interleaved);
  CHECK(layout.recompute == Recompute::Selective);
  CHECK(layout.recompute_modules == std::vector<std::string>{"norm", "moe"});
  CHECK(layout.micro_batch == 2);
  CHECK(layout.global_batch == 256);
  const TrainingJob& job = workload.job;
  CHECK(job.model.name == "mixtral-8x7b");
  CHECK(job.sequence == 4096);
  CHECK(job.stack.name == "nemo-26");
  CHECK(job.options.compute == KernelType::Mxfp8);
  REQUIRE(job.options.lora);
  CHECK(job.options.lora->rank == 8);
  CHECK((job.options.lora->attention && job.options.lora->ffn));
  CHECK(job.options.optimizer == Optimizer::Momentum);
  CHECK(job.options.expert_imbalance == 1.2);
  CHECK(job.options.fp32_gradients);
  CHECK(job.options.bf16_moments);
  CHECK(job.options.dropout);
  CHECK_FALSE(job.options.cuda_graphs);
  CHECK_FALSE(job.options.quantised_parameters);
  CHECK(job.overlap.tensor == TensorOverlap::None);
  CHECK_FALSE(job.overlap.gradients);
  CHECK(job.overlap.experts);
  CHECK(job.overlap.dispatch == ExpertDispatch::AllGather);
  CHECK(job.overlap.bucket == Bytes{std::int64_t{1} << 30});
  CHECK(workload.assumptions.empty());
}

TEST_CASE("what a training workload leaves out is the stack's default, and said", "[training]") {
  const TrainingWorkload short_one = read(with(R"("layout": {"tp": 4})"));
  const SoftwareStack stack = load_stack(default_stack());
  CHECK(short_one.name == "w");
  CHECK(short_one.job.stack.name == stack.name);
  CHECK(short_one.layout.data == 16);
  CHECK(short_one.layout.sequence_parallel == stack.sequence_parallel);
  CHECK(short_one.layout.sharding == stack.sharding);
  CHECK(short_one.layout.recompute == stack.recompute);
  CHECK(short_one.layout.schedule == PipelineSchedule::OneForwardOneBackward);
  CHECK(short_one.job.options.compute == KernelType::Bf16);
  CHECK(short_one.job.overlap.tensor == stack.overlap.tensor);
  CHECK_FALSE(short_one.job.options.lora);
  CHECK(short_one.assumptions ==
        std::vector<std::string>{
            "stack not stated: nemo-25", "precision not stated: bf16",
            "not stated, so the defaults of nemo-25: zero-1, sequence parallelism, recompute none, "
            "tensor messages pipelined, gradients in 16 bits, no CUDA graphs"});

  const TrainingWorkload titan = read(with(R"("stack": "torchtitan", "layout": {"pp": 4})"));
  CHECK(titan.layout.sharding == Sharding::Parameters);
  CHECK(titan.layout.keep_gathered);
  CHECK(titan.layout.vocabulary_multiple == 1);
  CHECK(titan.layout.recompute_modules == load_stack("torchtitan").recompute_modules);
  CHECK(titan.assumptions.back() ==
        "not stated, so the defaults of torchtitan: zero-3, parameters kept gathered, recompute of "
        "norm, activation, second_matrices, gradients in 32 bits, no CUDA graphs");

  const TrainingWorkload old =
      read(with(R"("stack": "megatron-2021", "layout": {"tp": 2})", "\"llama2-7b\""));
  CHECK(old.assumptions.back() ==
        "seq 8192 is longer than the 4096 tokens that llama2-7b was published with");
}

TEST_CASE("an interleaved schedule is what virtual stages mean", "[training]") {
  CHECK(read(with(R"("layout": {"pp": 4, "vp": 2})")).layout.schedule ==
        PipelineSchedule::Interleaved);
  CHECK(read(with(R"("layout": {"pp": 4, "vp": 2}, "schedule": "zb-v")")).layout.schedule ==
        PipelineSchedule::ZeroBubbleV);
  CHECK(read(with(R"("layout": {"pp": 4}, "schedule": "gpipe")")).layout.schedule ==
        PipelineSchedule::GPipe);
}

TEST_CASE("data parallelism takes the GPUs that are left", "[training]") {
  CHECK(read(with("")).layout.data == 64);
  CHECK(read(with(R"("layout": {"tp": 2, "pp": 4, "dp": "auto"})")).layout.data == 8);
  CHECK(read(with(R"("layout": {"tp": 2, "pp": 4, "dp": 8})")).layout.data == 8);
}

TEST_CASE("sharding is written as ZeRO's stage or as FSDP", "[training]") {
  CHECK(read(with(R"("layout": {"zero": 0})")).layout.sharding == Sharding::None);
  CHECK(read(with(R"("layout": {"zero": 3})")).layout.sharding == Sharding::Parameters);
  CHECK(read(with(R"("layout": {"fsdp": true})")).layout.sharding == Sharding::Parameters);
  CHECK(read(with(R"("layout": {"fsdp": true, "zero": 3, "keep_gathered": true})"))
            .layout.keep_gathered);
  CHECK(read(with(R"("layout": {"fsdp": false})")).layout.sharding == Sharding::Optimizer);
  CHECK(read(with(R"("stack": "torchtitan", "layout": {"fsdp": false, "zero": 0})"))
            .layout.sharding == Sharding::None);
}

TEST_CASE("a model is named, a file beside the workload, or written out", "[training]") {
  const fs::path folder = fs::temp_directory_path() / "flyover_training_reader_test";
  fs::create_directories(folder);
  const std::string model = R"({"format": "flyover-model-1", "layers": 4, "hidden": 1024,
    "attention": {"heads": 8}, "ffn": {"hidden": 4096}, "vocabulary": 32000})";
  std::ofstream(folder / "mine.json") << model;
  std::ofstream(folder / "w.json") << with("", "\"mine.json\"");
  CHECK(read_training(Document::load(folder / "w.json"), 8).job.model.name == "mine");
  fs::remove_all(folder);

  const TrainingWorkload inlined = read(with("", model));
  CHECK(inlined.job.model.name == "model");
  CHECK(inlined.job.model.layers == 4);
  Document document = Document::parse("w.json", with("", model));
  document.apply({"training.model.layers", "6"});
  CHECK(read_training(document, 64).job.model.layers == 6);
  CHECK_THAT(problem(with("", R"({"format": "flyover-model-1", "layers": 0})")),
             Contains("/training/model/layers: expected"));
  CHECK_THAT(problem(with("", "\"llama3-80b\"")),
             Contains("/training/model: \"llama3-80b\" is neither a known model nor a file, did "
                      "you mean \"llama3-8b\"?"));
}

TEST_CASE("only a file with nothing but training is a training workload", "[training]") {
  CHECK(is_training(Document::parse("w.json", with(""))));
  CHECK_FALSE(is_training(Document::parse("w.json", R"({"training": {}, "programs": []})")));
  CHECK_FALSE(is_training(Document::parse("w.json", R"({"training": {}, "collectives": []})")));
  CHECK_FALSE(is_training(Document::parse("w.json", R"({"collectives": []})")));
}

TEST_CASE("an impossible layout is one error with every reason", "[training]") {
  CHECK(problem(R"({"training": {"model": "llama3-8b", "seq": 8192, "global_batch": 60,
    "layout": {"tp": 3, "pp": 2, "ep": 2}}})",
                64) ==
        "dir/w.json:2:15: /training/layout: llama3-8b cannot be laid out so: tensor 3 x context 1 "
        "x pipeline 2 x data 10 are 60 ranks, but there are 64 GPUs; tensor 3 does not divide the "
        "32 attention heads; tensor 3 neither divides the 8 key-value heads nor is a multiple of "
        "them; tensor 3 does not divide the feed-forward size 14336; sequence 8192 is not a "
        "multiple of tensor 3 x context 1 = 3, as sequence parallelism needs; expert is 2, but the "
        "model has no experts");
  // Without a layout, and with more ranks than there are numbers.
  CHECK_THAT(problem(with("", "\"llama3-8b\"", "63")),
             Contains("/training: llama3-8b cannot be laid out so: global batch 63 is not a "
                      "multiple of data 64"));
  CHECK_THAT(problem(with(R"("layout": {"tp": 1000000, "pp": 1000000})")),
             Contains("are more than 4294967295 ranks"));
  CHECK_THAT(problem(with(R"("layout": {"tp": 8, "dp": 9})")),
             Contains("are 72 ranks, but there are 64 GPUs; data 8 uses them all"));
}

TEST_CASE("a wrong training workload is refused with the place and what would be right",
          "[training]") {
  const auto refused = [](const std::string& members, const std::string& message) {
    CAPTURE(members);
    CHECK_THAT(problem(with(members)), Contains(message));
    CHECK_FALSE(test::Schema("workload.schema.json").accepts(with(members)));
  };
  const auto impossible = [](const std::string& members, const std::string& message) {
    CAPTURE(members);
    CHECK_THAT(problem(with(members)), Contains(message));
  };
  CHECK_THAT(problem(R"({"training": {}})"), Contains("/training: \"model\" is missing"));
  CHECK_THAT(problem(R"({"training": {"model": "llama3-8b"}})"), Contains("\"seq\" is missing"));
  CHECK_THAT(problem(R"({"training": {"model": "llama3-8b", "seq": 1}})"),
             Contains("\"global_batch\" is missing"));
  CHECK_THAT(problem(R"({"training": {}, "ranks": 8})"), Contains("is not a known option"));
  refused(R"("sequence": 1)", "/training/sequence: is not a known option");
  refused(R"("micro_batch": 0)", "/training/micro_batch: expected");
  refused(R"("precision": "fp9")", "/training/precision: ");
  impossible(R"("stack": "nemo-52")",
             "/training/stack: no stack \"nemo-52\", did you mean \"nemo-");
  refused(R"("schedule": "1f2b")", "did you mean \"1f1b\"");
  refused(R"("recompute": "some")", "/training/recompute: ");
  refused(R"("recompute": ["norms"])", "did you mean \"norm\"");
  refused(R"("lora": {"ranks": 8})", "did you mean \"rank\"");
  refused(R"("lora": {"rank": 0})", "/training/lora/rank: expected");
  refused(R"("lora": {"targets": []})",
          "/training/lora/targets: expected at least one of \"attention\" and \"ffn\"");
  refused(R"("lora": {"targets": ["atention"]})", "did you mean \"attention\"");
  refused(R"("optimizer": "lion")", "/training/optimizer: ");
  refused(R"("fp32_gradients": 1)", "/training/fp32_gradients: ");
  refused(R"("expert_imbalance": 0.9)",
          "expected tokens of the fullest expert rank over the mean, 1 or more, got 0.9");
  refused(R"("overlap": {"tensors": "none"})", "did you mean \"tensor\"");
  refused(R"("overlap": {"tensor": true})", "/training/overlap/tensor: ");
  refused(R"("overlap": {"bucket": 25})", "/training/overlap/bucket: ");
  refused(R"("layout": {"tpp": 8})", "/training/layout/tpp: is not a known option, did you mean");
  refused(R"("layout": {"tp": 0})", "/training/layout/tp: expected");
  refused(R"("layout": {"dp": "all"})",
          "/training/layout/dp: expected a number or \"auto\", got \"all\"");
  refused(R"("layout": {"zero": 4})", "/training/layout/zero: expected");
  impossible(R"("layout": {"zero": 1, "fsdp": true})",
             "/training/layout/fsdp: FSDP is \"zero\": 3, and another one is stated");
  impossible(R"("layout": {"zero": 3, "fsdp": false})",
             "/training/layout/fsdp: FSDP is \"zero\": 3, which is stated");
  impossible(R"("stack": "torchtitan", "layout": {"fsdp": false})",
             "/training/layout/fsdp: torchtitan shards parameters unless \"zero\" says 0, 1 or 2");
  refused(R"("layout": {"cp_exchange": "rings"})", "did you mean \"ring\"");
  const std::string orders =
      "expected tp, cp, ep, dp and pp once each, from neighbouring ranks "
      "outward, such as \"tp-cp-ep-dp-pp\", got ";
  refused(R"("layout": {"order": "tp-cp"})", orders + "\"tp-cp\"");
  refused(R"("layout": {"order": "tp_cp_ep_dp_pp"})", orders + "\"tp_cp_ep_dp_pp\"");
  refused(R"("layout": {"order": "tp-cp-ep-dp-xx"})", orders + "\"tp-cp-ep-dp-xx\"");
  impossible(R"("layout": {"order": "tp-cp-ep-dp-dp"})", orders + "\"tp-cp-ep-dp-dp\"");
}

}  // namespace flyover::io
