#include "cli/training_inputs.hpp"

#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/io/stack_reader.hpp"
#include "flyover/io/training_step.hpp"

namespace flyover::cli {

namespace {

// Without --seq: what models are mostly trained on, or all that they can.
constexpr std::uint32_t usual_sequence = 8192;

KernelType read_precision(const std::string& word) {
  if (const auto type = kernel_type(word)) return *type;
  std::vector<std::string> names;
  for (const KernelType type : all_kernel_types) names.emplace_back(to_string(type));
  throw unknown_name("--precision: no precision", word, names);
}

Lora read_lora(const std::string& text) {
  const std::size_t comma = text.find(',');
  const std::string rank = text.substr(0, comma);
  const std::string modules = comma == std::string::npos ? "attention" : text.substr(comma + 1);
  Lora lora;
  const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), lora.rank);
  const bool whole = error == std::errc{} && end == rank.data() + rank.size() && lora.rank > 0;
  lora.attention = modules == "attention" || modules == "all";
  lora.ffn = modules == "ffn" || modules == "all";
  if (!whole || (!lora.attention && !lora.ffn)) {
    throw InputError(
        fmt::format("--lora: expected a rank, or a rank and \"attention\", \"ffn\" or "
                    "\"all\" such as 16,all; got \"{}\"",
                    text));
  }
  return lora;
}

std::uint32_t sequence_of(const Model& model, std::uint32_t stated) {
  if (stated != 0) return stated;
  std::uint32_t longest = usual_sequence;
  if (model.longest_sequence != 0) longest = std::min(longest, model.longest_sequence);
  if (model.positions != 0) longest = std::min(longest, model.positions);
  return longest;
}

}  // namespace

void add_job_options(CLI::App& app, JobOptions& options) {
  app.add_option("-m,--model", options.model,
                 "A shipped model (llama3-405b), a file, or a folder with a config.json")
      ->type_name("MODEL");
  app.add_option("--seq", options.sequence,
                 "Tokens of a sequence; default 8192, or the model's longest where that is shorter")
      ->check(CLI::PositiveNumber)
      ->type_name("S");
  app.add_option("--stack", options.stack, "The software that trains, such as nemo-25; or a file")
      ->type_name("STACK");
  app.add_option("--precision", options.precision,
                 "What matrix multiplications read: bf16, fp8, fp8-block, mxfp8, nvfp4, ...")
      ->type_name("TYPE");
  app.add_option("--lora", options.lora,
                 "Adapters of this rank instead of all parameters: 16, 16,ffn or 16,all")
      ->type_name("RANK");
}

TrainingInputs load_training(const JobOptions& options, const GpuModel& gpu) {
  TrainingInputs result;
  const auto digest = [&](const char* role, const std::string& name, const io::Document& document) {
    result.inputs.push_back({role, name, document.digest(), {}});
  };
  const io::Document model = io::model_document(options.model);
  result.job.model = io::read_model(model);
  digest("model", result.job.model.name, model);

  const io::Document stack = io::stack_document(
      options.stack.empty() ? io::default_stack(gpu.architecture) : options.stack);
  SoftwareStack& used = result.job.stack;
  used = io::read_stack(stack);
  digest("stack", used.name, stack);
  const io::Document kernels = io::kernel_document(used.kernels);
  result.kernels = io::read_kernels(kernels);
  digest("kernels", result.kernels.name, kernels);

  TrainingJob& job = result.job;
  job.sequence = sequence_of(job.model, options.sequence);
  job.options = used.options;
  job.overlap = used.overlap;
  if (!options.precision.empty()) job.options.compute = read_precision(options.precision);
  io::suit_gpu(job.options, gpu);
  if (!options.lora.empty()) job.options.lora = read_lora(options.lora);
  return result;
}

ClusterTimer::ClusterTimer(const Cluster& cluster, const TrainingJob& job,
                           const KernelModel& kernels)
    : router_(cluster.topology, {.pxn = cluster.library.settings.pxn}),
      cost_(cluster.topology, router_, cluster.library),
      parts_(job, kernels, io::only_gpu_model(cluster.topology),
             cluster.topology.nodes[NodeId{0}].gpus),
      times_(cluster.topology, cost_),
      estimator_(parts_, times_) {}

}  // namespace flyover::cli
