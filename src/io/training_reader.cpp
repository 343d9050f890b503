#include "flyover/io/training_reader.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/io/stack_reader.hpp"
#include "io/beside.hpp"
#include "io/rule_fields.hpp"
#include "io/training_fields.hpp"

namespace flyover::io {

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t max_size = 1'000'000;  // Of a parallel dimension.

constexpr std::size_t most_files = 256;

template <class Thing, class Load>
const Thing& load_once(std::map<std::string, Thing>& known, const std::string& name, Load load) {
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  Thing thing = load(name);
  if (known.size() >= most_files) known.clear();
  return known.emplace(name, std::move(thing)).first->second;
}

Model read_job_model(const Field& field, const Document& document, TrainingFiles& files) {
  if (field.is_object()) return read_model(field);
  return field.parsed(
      [&](const std::string& name) { return files.model(beside(document.name(), name)); });
}

SoftwareStack read_job_stack(const Field& training, std::string_view architecture,
                             TrainingFiles& files) {
  if (!training.has("stack")) return files.stack(default_stack(architecture));
  return training["stack"].parsed([&](const std::string& name) { return files.stack(name); });
}

Lora read_lora(const Field& field) {
  field.allow_only({"rank", "targets"});
  Lora lora;
  if (field.has("rank")) lora.rank = field["rank"].count(1, 65536);
  if (!field.has("targets")) return lora;
  lora.attention = lora.ffn = false;
  for (const Field& target : field["targets"].elements()) {
    (target.one_of({"attention", "ffn"}) == "ffn" ? lora.ffn : lora.attention) = true;
  }
  if (!lora.attention && !lora.ffn) {
    field["targets"].fail("expected at least one of \"attention\" and \"ffn\"");
  }
  return lora;
}

// "tp-cp-ep-dp-pp", from neighbours outward.
std::array<Dimension, 5> read_order(const Field& field) {
  constexpr std::array<std::pair<std::string_view, Dimension>, 5> words = {
      {{"tp", Dimension::Tensor},
       {"cp", Dimension::Context},
       {"ep", Dimension::Expert},
       {"dp", Dimension::Data},
       {"pp", Dimension::Pipeline}}};
  const std::string text = field.text();
  const auto refuse = [&] {
    field.fail(fmt::format(
        "expected tp, cp, ep, dp and pp once each, from neighbouring ranks outward, such as "
        "\"tp-cp-ep-dp-pp\", got \"{}\"",
        text));
  };
  if (text.size() != 14) refuse();
  std::array<Dimension, 5> order{};
  std::array<bool, 5> seen{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string_view word = std::string_view(text).substr(3 * i, 2);
    const auto* const found =
        std::ranges::find(words, word, &std::pair<std::string_view, Dimension>::first);
    const bool parted = i + 1 == order.size() || text[3 * i + 2] == '-';
    if (found == words.end() || !parted) refuse();
    const auto index = static_cast<std::size_t>(found - words.begin());
    if (std::exchange(seen[index], true)) refuse();
    order[i] = found->second;
  }
  return order;
}

ContextExchange read_exchange(const Field& field) {
  const std::string word = field.one_of({"ring", "all-gather", "all-to-all"});
  if (word == to_string(ContextExchange::Ring)) return ContextExchange::Ring;
  return word == to_string(ContextExchange::AllGather) ? ContextExchange::AllGather
                                                       : ContextExchange::AllToAll;
}

PipelineSchedule read_schedule(const Field& field) {
  std::vector<std::string> names;
  for (const PipelineSchedule schedule : all_pipeline_schedules) {
    names.emplace_back(to_string(schedule));
  }
  return *pipeline_schedule(field.one_of(names));
}

// Reads the layout and notes what the stack decided.
class LayoutReader {
 public:
  LayoutReader(const Field& training, const SoftwareStack& stack, std::uint32_t gpus)
      : training_(training),
        stack_(stack),
        gpus_(gpus) {}

  Layout read() {
    layout_.global_batch = training_["global_batch"].count();
    if (training_.has("micro_batch")) layout_.micro_batch = training_["micro_batch"].count();
    layout_.vocabulary_multiple = stack_.vocabulary_multiple;
    if (training_.has("layout")) read_dimensions(training_["layout"]);
    if (!training_.has("layout") || !training_["layout"].has("dp")) layout_.data = rest();
    read_sharding();
    read_sequence_parallel();
    read_schedule_choice();
    read_recompute_choice();
    return std::move(layout_);
  }
  [[nodiscard]] std::vector<std::string> decided() && { return std::move(decided_); }

 private:
  void size(const Field& field, std::string_view key, std::uint32_t& value,
            std::uint32_t low = 1) const {
    if (field.has(key)) value = field[key].count(low, max_size);
  }

  void read_dimensions(const Field& field) {
    field.allow_only({"tp", "pp", "vp", "cp", "ep", "etp", "dp", "zero", "fsdp", "shard_group",
                      "keep_gathered", "sequence_parallel", "cp_exchange", "micro_batch_group",
                      "chunk_layers", "order", "vocabulary_multiple"});
    size(field, "tp", layout_.tensor);
    size(field, "pp", layout_.pipeline);
    size(field, "vp", layout_.virtual_stages);
    size(field, "cp", layout_.context);
    size(field, "ep", layout_.expert);
    size(field, "etp", layout_.expert_tensor);
    size(field, "micro_batch_group", layout_.micro_batch_group);
    size(field, "shard_group", layout_.shard_group);
    size(field, "vocabulary_multiple", layout_.vocabulary_multiple, 0);
    if (field.has("cp_exchange")) layout_.exchange = read_exchange(field["cp_exchange"]);
    if (field.has("order")) layout_.order = read_order(field["order"]);
    if (field.has("chunk_layers")) {
      for (const Field& layers : field["chunk_layers"].elements()) {
        layout_.chunk_layers.push_back(layers.count(0, max_size));
      }
    }
    if (!field.has("dp")) return;
    const Field data = field["dp"];
    if (data.is_string()) {
      if (data.text() != "auto") {
        data.fail(fmt::format("expected a number or \"auto\", got \"{}\"", data.text()));
      }
      layout_.data = rest();
    } else {
      layout_.data = data.count(1, max_size);
    }
  }

  // What tensor, context and pipeline leave of the GPUs. If they do not divide them, the layout's
  // problems say so.
  [[nodiscard]] std::uint32_t rest() const {
    const std::uint64_t sizes[] = {layout_.tensor, layout_.context, layout_.pipeline};
    std::uint64_t left = gpus_;
    for (const std::uint64_t part : sizes) left /= part;
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(left, 1));
  }

  [[nodiscard]] bool states(std::string_view key) const {
    return training_.has("layout") && training_["layout"].has(key);
  }

  void read_sharding() {
    layout_.sharding = stack_.sharding;
    if (states("zero")) {
      layout_.sharding = static_cast<Sharding>(training_["layout"]["zero"].count(0, 3));
    }
    if (states("fsdp")) {
      const Field fsdp = training_["layout"]["fsdp"];
      if (fsdp.boolean()) {
        if (states("zero") && layout_.sharding != Sharding::Parameters) {
          fsdp.fail("FSDP is \"zero\": 3, and another one is stated");
        }
        layout_.sharding = Sharding::Parameters;
      } else if (layout_.sharding == Sharding::Parameters) {
        fsdp.fail(states("zero") ? "FSDP is \"zero\": 3, which is stated"
                                 : fmt::format("{} shards parameters unless \"zero\" says 0, 1 or "
                                               "2",
                                               stack_.name));
      }
    } else if (!states("zero") && layout_.data * std::uint64_t{layout_.context} > 1) {
      decided_.push_back(layout_.sharding == Sharding::None
                             ? "no sharding"
                             : std::string(to_string(layout_.sharding)));
    }
    if (states("keep_gathered")) {
      layout_.keep_gathered = training_["layout"]["keep_gathered"].boolean();
    } else if (stack_.keep_gathered && layout_.pipeline > 1 &&
               layout_.sharding == Sharding::Parameters) {
      layout_.keep_gathered = true;
      decided_.emplace_back("parameters kept gathered");
    }
  }

  void read_sequence_parallel() {
    if (states("sequence_parallel")) {
      layout_.sequence_parallel = training_["layout"]["sequence_parallel"].boolean();
    } else if (layout_.tensor > 1) {
      layout_.sequence_parallel = stack_.sequence_parallel;
      decided_.emplace_back(stack_.sequence_parallel ? "sequence parallelism"
                                                     : "no sequence parallelism");
    }
  }

  void read_schedule_choice() {
    if (training_.has("schedule")) {
      layout_.schedule = read_schedule(training_["schedule"]);
    } else if (layout_.virtual_stages > 1) {
      layout_.schedule = PipelineSchedule::Interleaved;
    }
  }

  void read_recompute_choice() {
    RecomputeChoice choice{stack_.recompute, stack_.recompute_modules};
    if (training_.has("recompute")) {
      choice = read_recompute(training_["recompute"]);
    } else {
      decided_.push_back(choice.modules.empty()
                             ? fmt::format("recompute {}", to_string(choice.recompute))
                             : fmt::format("recompute of {}", fmt::join(choice.modules, ", ")));
    }
    layout_.recompute = choice.recompute;
    layout_.recompute_modules = std::move(choice.modules);
  }

  const Field& training_;
  const SoftwareStack& stack_;
  std::uint32_t gpus_;
  Layout layout_;
  std::vector<std::string> decided_;
};

std::string_view word(TensorOverlap overlap) {
  return overlap == TensorOverlap::None ? "tensor messages not pipelined"
                                        : "tensor messages pipelined";
}
std::string_view word(ExpertDispatch dispatch) {
  switch (dispatch) {
    case ExpertDispatch::AllToAll:
      return "dispatch all-to-all";
    case ExpertDispatch::Fused:
      return "dispatch fused";
    case ExpertDispatch::AllGather:
      return "dispatch all-gather";
  }
  require(false, "a kind of dispatch");
  return {};
}

// Of what the file does not state, that which time depends on most.
void note_options(const Field& training, const TrainingJob& job, const Layout& layout,
                  std::vector<std::string>& decided) {
  const auto states = [&](std::string_view key) {
    return training.has("overlap") && training["overlap"].has(key);
  };
  if (layout.tensor > 1 && !states("tensor")) {
    decided.emplace_back(word(job.overlap.tensor));
  }
  if (layout.expert > 1 && !states("dispatch")) {
    decided.emplace_back(word(job.overlap.dispatch));
  }
  if (layout.expert > 1 && !states("experts")) {
    decided.emplace_back(job.overlap.experts ? "dispatch overlapped" : "dispatch not overlapped");
  }
  if (!training.has("fp32_gradients")) {
    decided.emplace_back(job.options.fp32_gradients ? "gradients in 32 bits"
                                                    : "gradients in 16 bits");
  }
  if (!training.has("cuda_graphs")) {
    decided.emplace_back(job.options.cuda_graphs ? "CUDA graphs" : "no CUDA graphs");
  }
}

}  // namespace

KernelType precision(const Field& field) {
  return read_kernel_type(field);
}

bool is_training(const Document& document) {
  const Field root = document.root();
  return root.has("training") && !root.has("collectives") && !root.has("programs");
}

const Model& TrainingFiles::model(const std::string& name) {
  return load_once(models_, name, [](const std::string& which) { return load_model(which); });
}

const SoftwareStack& TrainingFiles::stack(const std::string& name) {
  return load_once(stacks_, name, [](const std::string& which) { return load_stack(which); });
}

TrainingWorkload read_training(const Document& document, std::uint32_t gpus,
                               std::string_view architecture) {
  TrainingFiles files;
  return read_training(document, gpus, architecture, files);
}

TrainingWorkload read_training(const Document& document, std::uint32_t gpus,
                               std::string_view architecture, TrainingFiles& files) {
  require(gpus > 0, "read_training: a cluster with GPUs");
  const Field root = document.root();
  root.allow_only({"name", "training"});
  const Field training = root["training"];
  training.allow_only({"model",
                       "seq",
                       "global_batch",
                       "micro_batch",
                       "precision",
                       "stack",
                       "layout",
                       "schedule",
                       "recompute",
                       "lora",
                       "overlap",
                       "optimizer",
                       "expert_imbalance",
                       "fp32_gradients",
                       "fp32_master",
                       "bf16_moments",
                       "flash_attention",
                       "dropout",
                       "fused_loss",
                       "cuda_graphs",
                       "quantised_parameters",
                       "cached_quantised",
                       "transposed_quantised",
                       "compact_experts"});
  TrainingWorkload workload;
  workload.name =
      root.has("name") ? root["name"].text() : fs::path(document.name()).stem().string();
  TrainingJob& job = workload.job;
  job.model = read_job_model(training["model"], document, files);
  job.sequence = training["seq"].count();
  job.stack = read_job_stack(training, architecture, files);
  job.options = job.stack.options;
  job.overlap = job.stack.overlap;
  if (training.has("precision")) job.options.compute = precision(training["precision"]);
  read_options(training, job.options);
  if (training.has("lora")) job.options.lora = read_lora(training["lora"]);
  if (training.has("overlap")) {
    training["overlap"].allow_only({"tensor", "gradients", "parameters", "pipeline", "context",
                                    "experts", "dispatch", "mutual_slowdown", "kernels", "bucket",
                                    "scatter_boundary"});
    read_overlap(training["overlap"], job.overlap);
  }
  LayoutReader reader(training, job.stack, gpus);
  workload.layout = reader.read();
  const std::vector<std::string> reasons = problems(workload.layout, job.model, job.sequence, gpus);
  if (!reasons.empty()) {
    (training.has("layout") ? training["layout"] : training)
        .fail(
            fmt::format("{} cannot be laid out so: {}", job.model.name, fmt::join(reasons, "; ")));
  }

  std::vector<std::string> decided = std::move(reader).decided();
  note_options(training, job, workload.layout, decided);
  if (!training.has("stack")) {
    workload.assumptions.push_back(fmt::format("stack not stated: {}", job.stack.name));
  }
  if (!training.has("precision")) {
    workload.assumptions.push_back(
        fmt::format("precision not stated: {}", to_string(job.options.compute)));
  }
  if (!decided.empty()) {
    workload.assumptions.push_back(fmt::format("not stated, so the defaults of {}: {}",
                                               job.stack.name, fmt::join(decided, ", ")));
  }
  if (job.model.longest_sequence != 0 && job.sequence > job.model.longest_sequence) {
    workload.assumptions.push_back(
        fmt::format("seq {} is longer than the {} tokens that {} was published with", job.sequence,
                    job.model.longest_sequence, job.model.name));
  }
  return workload;
}

}  // namespace flyover::io
