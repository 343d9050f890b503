#pragma once

// The layouts that a planner compares: every way to cut a model over a number of GPUs that software
// can run, with the reasons against those that it cannot.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "flyover/layout/layout.hpp"
#include "flyover/layout/model.hpp"

namespace flyover {

// What may be chosen from; an empty list leaves the choice to the space.
struct LayoutChoices {
  std::vector<std::uint32_t> tensor;          // Divisors of the GPUs within a scale-up domain.
  std::vector<std::uint32_t> context;         // Those that leave a rank least_context_tokens.
  std::vector<std::uint32_t> pipeline;        // Whatever divides the GPUs.
  std::vector<std::uint32_t> virtual_stages;  // 2 to most_virtual_stages, chunks of unlike depth.
  std::vector<std::uint32_t> expert;          // Divisors of the number of experts.
  std::vector<std::uint32_t> expert_tensor;   // 1, and as many as tensor ranks.
  std::vector<std::uint32_t> micro_batch;     // 1, 2, 4, 8.
  std::vector<std::uint32_t> shard_group;     // 0 (all ranks), and those of one domain (HSDP).
  std::vector<PipelineSchedule> schedules;    // All but gpipe.
  std::vector<Sharding> sharding;
  std::vector<Recompute> recompute;
  std::vector<ContextExchange> exchanges;
  std::uint32_t most_context = 16;

  static constexpr std::uint32_t least_context_tokens = 2048;
  static constexpr std::uint32_t most_virtual_stages = 16;
};

struct LayoutSearch {
  Model model;
  std::uint32_t sequence = 0;
  std::uint32_t gpus = 0;
  std::uint32_t global_batch = 0;
  std::uint32_t domain = 1;       // GPUs of one scale-up domain.
  bool sequence_parallel = true;  // Where tensor is above 1; experts always need it.
  bool flash_attention = true;    // Decides what selective recomputation is about.
  LayoutChoices choices;
};

// "tp 8 cp 2 pp 16 vp 4 dp 64, interleaved-1f1b, zero-1, micro-batch 1": what is 1 or off is left
// out. `global_batch` adds the batch.
[[nodiscard]] std::string layout_words(const Layout& layout);

// Why layouts are impossible, by kind of reason: sentences that differ in numbers alone are one.
class Refusals {
 public:
  struct Kind {
    std::uint64_t layouts = 0;
    std::string example_reason;
    std::string example;  // In layout_words.
  };
  struct Single {
    std::string layout;  // Without what the reason does not depend on,
    std::string reason;
    std::uint64_t layouts = 0;  // that is so many layouts.
  };
  // With `all` every single one is kept.
  explicit Refusals(bool all = false) : keeps_all_(all) {}
  void add(const Layout& layout, const std::string& reason, std::uint64_t layouts);
  void add(Refusals&& other);

  [[nodiscard]] std::uint64_t layouts() const;
  [[nodiscard]] std::vector<Kind> kinds() const;  // Most layouts first.
  [[nodiscard]] const std::vector<Single>& all() const { return all_; }
  [[nodiscard]] bool keeps_all() const { return keeps_all_; }

 private:
  bool keeps_all_;
  std::map<std::string, Kind> kinds_;  // By the sentence without its numbers.
  std::vector<Single> all_;
};

// Deterministic: the same search gives the same layouts in the same order.
class LayoutSpace {
 public:
  // Throws InputError for choices that are 0.
  explicit LayoutSpace(LayoutSearch search);

  [[nodiscard]] const LayoutSearch& search() const { return search_; }

  // One layout for each choice of tensor, context, pipeline, expert and expert tensor sizes, data
  // being what they leave of the GPUs. Products that do not divide the GPUs, which only stated
  // choices can have, are refused.
  [[nodiscard]] std::vector<Layout> families(Refusals& refused) const;

  // Appends every layout of the family that has no problems: its schedules, micro-batches,
  // sharding, exchanges and recomputation. Each axis is checked once, not each combination.
  void variants(const Layout& family, std::vector<Layout>& layouts, Refusals& refused) const;

 private:
  struct Shards {
    Sharding sharding = Sharding::None;
    std::uint32_t group = 0;
    bool keep_gathered = false;
  };
  [[nodiscard]] std::vector<Layout> pipelines(const Layout& family) const;
  [[nodiscard]] std::vector<Shards> shards(const Layout& family) const;
  [[nodiscard]] std::vector<Recompute> recomputations() const;
  [[nodiscard]] std::vector<std::string> selective_modules() const;

  LayoutSearch search_;
};

}  // namespace flyover
