#include "flyover/study/layout_space.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

using Counts = std::vector<std::uint32_t>;

Counts divisors(std::uint32_t number, std::uint32_t most) {
  Counts found;
  for (std::uint32_t i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) found.push_back(i);
  }
  return found;
}

Counts without_repeats(Counts counts) {
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

void refuse_zero(std::string_view name, const Counts& choices) {
  if (std::ranges::find(choices, 0U) != choices.end()) {
    throw InputError(fmt::format("{}: sizes are 1 or more, got 0", name));
  }
}

// What chunks are called where they are not as even as can be.
std::string chunk_words(const Layout& layout) {
  if (layout.chunk_layers.empty()) return "";
  return fmt::format(" ({} layers on the first and {} on the last of {} chunks)",
                     layout.chunk_layers.front(), layout.chunk_layers.back(),
                     layout.chunk_layers.size());
}

std::string without_numbers(std::string_view sentence) {
  std::string kind;
  bool in_number = false;
  for (const char c : sentence) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) kind += c;
    if (digit && !in_number) kind += '#';
    in_number = digit;
  }
  return kind;
}

}  // namespace

std::string layout_words(const Layout& layout) {
  std::string words = fmt::format("tp {}", layout.tensor);
  const auto size = [&](const char* name, std::uint32_t value) {
    if (value != 1) words += fmt::format(" {} {}", name, value);
  };
  size("cp", layout.context);
  size("pp", layout.pipeline);
  size("vp", layout.virtual_stages);
  size("ep", layout.expert);
  size("etp", layout.expert_tensor);
  words += fmt::format(" dp {}", layout.data);
  if (layout.pipeline > 1) {
    words += fmt::format(", {}{}", to_string(layout.schedule), chunk_words(layout));
  }
  if (layout.context > 1) words += fmt::format(", cp {}", to_string(layout.exchange));
  if (layout.sharding != Sharding::None) words += fmt::format(", {}", to_string(layout.sharding));
  if (layout.shard_group != 0) words += fmt::format(" in groups of {}", layout.shard_group);
  if (layout.keep_gathered) words += " kept gathered";
  if (layout.tensor > 1 && !layout.sequence_parallel) words += ", no sequence parallelism";
  words += fmt::format(", micro-batch {}", layout.micro_batch);
  if (layout.recompute == Recompute::Full) words += ", full recompute";
  if (layout.recompute == Recompute::Selective) {
    words += layout.recompute_modules.empty()
                 ? ", selective recompute"
                 : fmt::format(", recompute of {}", fmt::join(layout.recompute_modules, "+"));
  }
  return words;
}

void Refusals::add(const Layout& layout, const std::string& reason, std::uint64_t layouts) {
  if (layouts == 0) return;
  auto [kind, is_new] = kinds_.try_emplace(without_numbers(reason));
  if (is_new) kind->second = {0, reason, layout_words(layout)};
  kind->second.layouts += layouts;
  if (keeps_all_) all_.push_back({layout_words(layout), reason, layouts});
}

void Refusals::add(Refusals&& other) {
  for (auto& [name, theirs] : other.kinds_) {
    auto [kind, is_new] = kinds_.try_emplace(name, theirs);
    if (!is_new) kind->second.layouts += theirs.layouts;
  }
  std::ranges::move(other.all_, std::back_inserter(all_));
}

std::uint64_t Refusals::layouts() const {
  std::uint64_t sum = 0;
  for (const auto& [name, kind] : kinds_) sum += kind.layouts;
  return sum;
}

std::vector<Refusals::Kind> Refusals::kinds() const {
  std::vector<Kind> sorted;
  sorted.reserve(kinds_.size());
  for (const auto& [name, kind] : kinds_) sorted.push_back(kind);
  std::ranges::stable_sort(sorted, std::ranges::greater(), &Kind::layouts);
  return sorted;
}

LayoutSpace::LayoutSpace(LayoutSearch search) : search_(std::move(search)) {
  require(search_.gpus > 0 && search_.sequence > 0 && search_.global_batch > 0,
          "LayoutSpace: GPUs, a sequence and a batch");
  LayoutChoices& choices = search_.choices;
  for (const auto& [name, counts] :
       {std::pair{"tensor", &choices.tensor}, std::pair{"context", &choices.context},
        std::pair{"pipeline", &choices.pipeline},
        std::pair{"virtual stages", &choices.virtual_stages}, std::pair{"expert", &choices.expert},
        std::pair{"expert tensor", &choices.expert_tensor},
        std::pair{"micro-batch", &choices.micro_batch}}) {
    refuse_zero(name, *counts);
    *counts = without_repeats(std::move(*counts));
  }
  choices.shard_group = without_repeats(std::move(choices.shard_group));
}

std::vector<Layout> LayoutSpace::families(Refusals& refused) const {
  const LayoutChoices& choices = search_.choices;
  const std::uint32_t n = search_.gpus;
  const Counts tensors =
      choices.tensor.empty() ? divisors(n, std::max(search_.domain, 1U)) : choices.tensor;
  Counts contexts = choices.context;
  if (contexts.empty()) {
    const std::uint32_t most = search_.sequence / LayoutChoices::least_context_tokens;
    contexts = divisors(n, std::clamp(most, 1U, choices.most_context));
  }
  std::vector<Layout> found;
  Layout layout;
  layout.global_batch = search_.global_batch;
  for (const std::uint32_t tensor : tensors) {
    for (const std::uint32_t context : contexts) {
      layout.tensor = tensor;
      layout.context = context;
      layout.sequence_parallel =
          tensor > 1 && (search_.sequence_parallel || search_.model.experts.has_value());
      const std::uint64_t stage = std::uint64_t{tensor} * context;
      Counts pipelines = choices.pipeline;
      if (pipelines.empty()) {
        const bool divides = n % stage == 0;
        const bool stated = !choices.tensor.empty() || !choices.context.empty();
        if (!divides && !stated) continue;
        pipelines = divides ? divisors(n / static_cast<std::uint32_t>(stage), n) : Counts{1};
      }
      for (const std::uint32_t pipeline : pipelines) {
        layout.pipeline = pipeline;
        layout.data = 1;
        layout.expert = layout.expert_tensor = 1;
        if (n % (stage * pipeline) != 0) {
          refused.add(layout,
                      fmt::format("tensor {} x context {} x pipeline {} = {} does not divide {} "
                                  "GPUs",
                                  tensor, context, pipeline, stage * pipeline, n),
                      1);
          continue;
        }
        layout.data = n / static_cast<std::uint32_t>(stage * pipeline);
        const std::uint32_t experts = search_.model.experts ? search_.model.experts->count : 1;
        const std::uint32_t ranks = n / pipeline;
        const Counts sizes = choices.expert.empty() ? divisors(experts, ranks) : choices.expert;
        const Counts parts = !choices.expert_tensor.empty() ? choices.expert_tensor
                             : search_.model.experts        ? without_repeats({1, tensor})
                                                            : Counts{1};
        for (const std::uint32_t expert : sizes) {
          for (const std::uint32_t expert_tensor : parts) {
            layout.expert = expert;
            layout.expert_tensor = expert_tensor;
            found.push_back(layout);
          }
        }
      }
    }
  }
  return found;
}

std::vector<Layout> LayoutSpace::pipelines(const Layout& family) const {
  const LayoutChoices& choices = search_.choices;
  const std::uint32_t p = family.pipeline;
  const std::uint32_t layers = search_.model.layers;
  std::vector<Layout> found;
  const auto add = [&](PipelineSchedule schedule, std::uint32_t v) {
    Layout layout = family;
    layout.schedule = schedule;
    layout.virtual_stages = v;
    found.push_back(layout);
    const std::uint64_t chunks = std::uint64_t{p} * v;
    // With a layer less on both ends, where embedding and head are, all chunks may be equal: how
    // Llama-3 405B has 126 layers.
    if (chunks > 2 && (layers + 2) % chunks == 0) {
      layout.chunk_layers.assign(chunks, static_cast<std::uint32_t>((layers + 2) / chunks));
      --layout.chunk_layers.front();
      --layout.chunk_layers.back();
      found.push_back(layout);
    }
  };
  // One stage has nothing to schedule.
  if (p == 1) {
    add(PipelineSchedule::OneForwardOneBackward, 1);
    return found;
  }
  std::vector<PipelineSchedule> schedules = choices.schedules;
  if (schedules.empty()) {
    using enum PipelineSchedule;
    schedules = {OneForwardOneBackward, Interleaved, ZeroBubbleH1, ZeroBubbleV};
  }
  for (const PipelineSchedule schedule : schedules) {
    if (schedule == PipelineSchedule::ZeroBubbleV || schedule == PipelineSchedule::DualPipeV) {
      add(schedule, 2);
    } else if (schedule != PipelineSchedule::Interleaved) {
      add(schedule, 1);
    } else if (!choices.virtual_stages.empty()) {
      for (const std::uint32_t v : choices.virtual_stages) add(schedule, v);
    } else {
      // Of those with equally deep chunks the most even one, which is the first; one at least, so
      // that a pipeline too long for any is refused in words.
      std::uint32_t depth = 0;
      for (std::uint32_t v = 2; v <= LayoutChoices::most_virtual_stages; ++v) {
        const std::uint64_t chunks = std::uint64_t{p} * v;
        if (v > 2 && chunks > layers + 2) break;
        const auto deepest = static_cast<std::uint32_t>((layers + chunks - 1) / chunks);
        if (deepest == depth) continue;
        depth = deepest;
        add(schedule, v);
      }
    }
  }
  return found;
}

std::vector<LayoutSpace::Shards> LayoutSpace::shards(const Layout& family) const {
  const LayoutChoices& choices = search_.choices;
  const std::uint32_t replicas = family.data * family.context;
  std::vector<Sharding> kinds = choices.sharding;
  if (kinds.empty()) {
    kinds = {Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters};
  }
  // Nothing to share the states with.
  if (replicas == 1) return {{}};
  Counts groups = choices.shard_group;
  if (groups.empty()) {
    groups = {0};
    const std::uint32_t near = search_.domain / family.tensor;
    if (near > 1 && near < replicas && replicas % near == 0) groups.push_back(near);
  }
  std::vector<Shards> found;
  for (const Sharding sharding : kinds) {
    if (sharding == Sharding::None) {
      found.push_back({sharding, 0, false});
      continue;
    }
    for (const std::uint32_t group : groups) {
      found.push_back({sharding, group, false});
      // Pipelines would gather and let go of every unit for every micro-batch.
      if (sharding == Sharding::Parameters && family.pipeline > 1) {
        found.push_back({sharding, group, true});
      }
    }
  }
  return found;
}

std::vector<Recompute> LayoutSpace::recomputations() const {
  if (!search_.choices.recompute.empty()) return search_.choices.recompute;
  return {Recompute::None, Recompute::Selective, Recompute::Full};
}

std::vector<std::string> LayoutSpace::selective_modules() const {
  // Fused attention keeps nothing worth recomputing; what is cheap to make again then are norms,
  // activation functions and latent attention's projections up.
  if (!search_.flash_attention) return {};
  std::vector<std::string> modules = {"norm", "activation"};
  if (search_.model.attention.latent) modules.emplace_back("mla_up_proj");
  return modules;
}

void LayoutSpace::variants(const Layout& family, std::vector<Layout>& layouts,
                           Refusals& refused) const {
  const LayoutChoices& choices = search_.choices;
  const auto reasons = [&](const Layout& layout) {
    return problems(layout, search_.model, search_.sequence, search_.gpus);
  };

  Counts micro_batches = choices.micro_batch;
  if (micro_batches.empty()) {
    const std::uint32_t share = search_.global_batch / family.data;
    for (std::uint32_t b = 1; b <= std::clamp(share, 1U, 8U); b *= 2) micro_batches.push_back(b);
  }
  const std::vector<Layout> schedules = pipelines(family);
  const std::vector<Shards> shardings = shards(family);
  std::vector<ContextExchange> exchanges = {ContextExchange::AllGather};
  if (family.context > 1) {
    exchanges = choices.exchanges;
    if (exchanges.empty()) {
      using enum ContextExchange;
      exchanges = {Ring, AllGather, AllToAll};
    }
  }
  const std::vector<Recompute> recomputed = recomputations();
  const std::size_t axes[] = {schedules.size() * micro_batches.size(), shardings.size(),
                              exchanges.size(), recomputed.size()};

  // The plainest layout of the family: what is wrong with it is wrong with all.
  Layout plain = family;
  plain.sharding = Sharding::None;
  plain.exchange = ContextExchange::AllGather;
  if (const auto found = reasons(plain); !found.empty()) {
    refused.add(plain, found.front(), std::uint64_t{axes[0]} * axes[1] * axes[2] * axes[3]);
    return;
  }
  std::vector<Shards> valid_shards;
  for (const Shards& shards : shardings) {
    Layout layout = plain;
    layout.sharding = shards.sharding;
    layout.shard_group = shards.group;
    layout.keep_gathered = shards.keep_gathered;
    if (const auto found = reasons(layout); !found.empty()) {
      refused.add(layout, found.front(), std::uint64_t{axes[0]} * axes[2] * axes[3]);
    } else {
      valid_shards.push_back(shards);
    }
  }
  std::vector<ContextExchange> valid_exchanges;
  for (const ContextExchange exchange : exchanges) {
    Layout layout = plain;
    layout.exchange = exchange;
    if (const auto found = reasons(layout); !found.empty()) {
      refused.add(layout, found.front(), std::uint64_t{axes[0]} * valid_shards.size() * axes[3]);
    } else {
      valid_exchanges.push_back(exchange);
    }
  }

  const std::vector<std::string> modules = selective_modules();
  for (const Layout& schedule : schedules) {
    for (const std::uint32_t micro_batch : micro_batches) {
      Layout layout = schedule;
      layout.sharding = Sharding::None;
      layout.exchange = ContextExchange::AllGather;
      layout.micro_batch = micro_batch;
      if (const auto found = reasons(layout); !found.empty()) {
        refused.add(layout, found.front(),
                    std::uint64_t{valid_shards.size()} * valid_exchanges.size() * axes[3]);
        continue;
      }
      for (const Shards& shards : valid_shards) {
        layout.sharding = shards.sharding;
        layout.shard_group = shards.group;
        layout.keep_gathered = shards.keep_gathered;
        for (const ContextExchange exchange : valid_exchanges) {
          layout.exchange = exchange;
          for (const Recompute recompute : recomputed) {
            layout.recompute = recompute;
            layout.recompute_modules.clear();
            if (recompute == Recompute::Selective) layout.recompute_modules = modules;
            layouts.push_back(layout);
          }
        }
      }
    }
  }
}

}  // namespace flyover
