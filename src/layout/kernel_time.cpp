#include "flyover/layout/kernel_time.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

// Queries that one thread block takes; small groups of queries are padded to a matrix instruction.
constexpr double query_block = 128;
constexpr double least_rows = 64;
constexpr std::uint32_t splits[] = {1, 2, 4, 8};
// Shorter parts of k are padded to it: never worth while, and no step down where k grows.
constexpr std::uint64_t least_part = 256;

template <class T>
bool listed(const std::vector<T>& list, const T& item) {
  return list.empty() || std::ranges::find(list, item) != list.end();
}

bool matches(const KernelScope& where, const GpuModel& gpu) {
  return listed(where.architectures, gpu.architecture) && listed(where.gpus, gpu.name);
}

template <class Rule>
const Rule* last_of(const std::vector<Rule>& rules, const GpuModel& gpu, KernelType type) {
  const auto found = std::find_if(rules.rbegin(), rules.rend(), [&](const Rule& rule) {
    return matches(rule.where, gpu) && listed(rule.where.types, type);
  });
  return found == rules.rend() ? nullptr : &*found;
}

double as_double(std::uint64_t count) {
  return static_cast<double>(count);
}

std::uint64_t pieces(std::uint64_t whole, std::uint64_t part) {
  return (whole + part - 1) / part;
}

Bytes whole_bytes(double bytes) {
  return Bytes{std::llround(bytes)};
}

// Two activities at once, neither of which hides the other entirely: the p-norm.
double overlapped(double a, double b, double p) {
  const double longer = std::max(a, b);
  if (longer <= 0) return 0;
  return longer * std::pow(1 + std::pow(std::min(a, b) / longer, p), 1 / p);
}

KernelLimit limit_of(double math, double memory, double fixed) {
  if (fixed > std::max(math, memory)) return KernelLimit::Latency;
  return math >= memory ? KernelLimit::Math : KernelLimit::Memory;
}

KernelTime result(double math, double memory, Duration fixed, double overlap, double flops,
                  double bytes) {
  KernelTime time;
  time.math = from_seconds(math);
  time.memory = from_seconds(memory);
  time.fixed = fixed;
  time.total = fixed + from_seconds(overlapped(math, memory, overlap));
  time.flops = Flops{flops};
  time.bytes = whole_bytes(bytes);
  time.limit = limit_of(math, memory, to_seconds(fixed));
  return time;
}

double share_at(const std::vector<HeadPoint>& points, double head_dim) {
  const auto above = std::ranges::find_if(
      points, [&](const HeadPoint& point) { return point.head_dim >= head_dim; });
  if (above == points.begin()) return points.front().share;
  if (above == points.end()) return points.back().share;
  const HeadPoint& a = *(above - 1);
  const HeadPoint& b = *above;
  const double way = std::log(head_dim / a.head_dim) / std::log(b.head_dim / a.head_dim);
  return a.share + way * (b.share - a.share);
}

// Keys that a query meets on average: as the mask says, or as blocks of queries compute them.
double keys_met(const AttentionKernel& kernel, double block) {
  const double keys = as_double(kernel.kv_tokens);
  const double queries = as_double(kernel.tokens);
  double met = keys;
  if (kernel.causal) met = keys - queries + (queries + block) / 2;
  if (kernel.window > 0) met = std::min(met, as_double(kernel.window) + block - 1);
  return std::min(met, keys);
}

// Of fused kernels: multiply-adds per score, times two. Forward: Q K and P V. Backward: Q K again,
// dQ, dK over the head's dimension, dP and dV over the values'.
double flops_per_score(const AttentionKernel& kernel) {
  const double head = as_double(kernel.head_dim);
  const double value = as_double(kernel.value_dim);
  return 2 * (kernel.backward ? 3 * head + 2 * value : head + value);
}

double attention_bytes(const AttentionKernel& kernel) {
  const double element = bytes_per_element(kernel.type);
  const double head = as_double(kernel.head_dim);
  const double value = as_double(kernel.value_dim);
  const double queries = as_double(kernel.sequences * kernel.tokens * kernel.heads);
  double seen = as_double(kernel.kv_tokens);
  if (kernel.window > 0) {
    seen = std::min(seen, as_double(kernel.window) + as_double(kernel.tokens) - 1);
  }
  const double keys = as_double(kernel.sequences * kernel.kv_heads) * seen;
  const double pair = kernel.shared_kv ? std::max(head, value) : head + value;
  if (!kernel.backward) return element * (queries * (head + value) + keys * pair);
  // Reads Q, K, V, O and dO; writes dK, dV and dQ, which is summed in fp32.
  return element * (queries * (2 * head + 2 * value) + 2 * keys * pair) + 8 * queries * head;
}

}  // namespace

std::string_view to_string(KernelLimit limit) {
  constexpr std::string_view names[] = {"math", "memory", "latency"};
  return names[static_cast<std::size_t>(limit)];
}

KernelTimer::KernelTimer(const KernelModel& model, const GpuModel& gpu)
    : gpu_(gpu.name),
      sms_(std::max<double>(gpu.sms, 1)),
      unfused_(model.unfused),
      default_generation_(model.other_attention),
      launch_(model.launch),
      graph_launch_(model.graph_launch) {
  const auto must = [&](const auto* found, std::string_view what) -> const auto& {
    if (found == nullptr) {
      throw InputError(fmt::format("the kernels \"{}\" have no {} for {} ({})", model.name, what,
                                   gpu.name, gpu.architecture));
    }
    return *found;
  };
  memory_ = must(last_of(model.memory, gpu, KernelType::Bf16), "memory rule");
  bandwidth_ = gpu.memory_bandwidth.per_second() * memory_.share;
  for (const KernelType type : all_kernel_types) {
    const auto peak = gpu.flops.find(std::string(peak_name(type)));
    if (peak == gpu.flops.end()) continue;
    Type& entry = types_[static_cast<std::size_t>(type)];
    entry.peak = peak->second.per_second();
    entry.rate = entry.peak * must(last_of(model.rates, gpu, type), "rate").share;
    entry.tiles = must(last_of(model.tiles, gpu, type), "tiles");
    if (const QuantiseRule* rule = last_of(model.quantise, gpu, type)) {
      entry.quantise_bytes = rule->bytes;
    }
  }
  for (const AttentionRule& rule : model.attention) {
    if (matches(rule.where, gpu)) attention_.push_back(rule);
  }
  for (const DefaultAttention& entry : model.default_attention) {
    if (entry.architecture == gpu.architecture) default_generation_ = entry.generation;
  }
}

bool KernelTimer::supports(KernelType type) const {
  return types_[static_cast<std::size_t>(type)].peak > 0;
}

const KernelTimer::Type& KernelTimer::of(KernelType type) const {
  const Type& entry = types_[static_cast<std::size_t>(type)];
  if (entry.peak <= 0) {
    throw InputError(fmt::format("{} has no {} rate, which {} kernels need", gpu_, peak_name(type),
                                 to_string(type)));
  }
  return entry;
}

struct KernelTimer::Cut {
  double math = 0;
  TileSize tile;
  std::uint32_t splits = 1;
  double wave_efficiency = 1;
};

KernelTimer::Cut KernelTimer::cut(const Type& type, std::uint64_t groups, std::uint64_t rows,
                                  std::uint64_t n, std::uint64_t k) const {
  // Some groups have one row more than the others.
  const std::uint64_t few = rows / groups;
  const std::uint64_t larger = rows % groups;
  const double sm_rate = type.rate / sms_;
  Cut best;
  best.math = -1;
  for (const TileSize& tile : type.tiles.tiles) {
    const std::uint64_t row_tiles =
        larger * pieces(few + 1, tile.rows) + (groups - larger) * pieces(few, tile.rows);
    const double tiles = as_double(row_tiles * pieces(n, tile.columns));
    const double area = static_cast<double>(tile.rows) * tile.columns;
    const double intensity = area / (static_cast<double>(tile.rows) + tile.columns);
    const double rate = sm_rate * intensity / (intensity + type.tiles.half_intensity);
    const double one = 2 * area * as_double(k) / rate + to_seconds(type.tiles.edge);
    const double even = std::max(1.0, tiles / sms_);
    const double waves = even + type.tiles.tail * (std::ceil(tiles / sms_) - even);
    if (best.math < 0 || waves * one < best.math) {
      best = {waves * one, tile, 1, tiles / sms_ / waves};
    }
  }
  return best;
}

KernelTime KernelTimer::multiply(KernelType kernel_type, std::uint64_t groups, std::uint64_t rows,
                                 std::uint64_t n, std::uint64_t k, double output_bytes) const {
  require(groups >= 1 && rows >= 1 && n >= 1 && k >= 1, "matrices of at least one element");
  const Type& type = of(kernel_type);
  const double outputs = as_double(rows) * as_double(n);
  const double flops = 2 * outputs * as_double(k);
  const double weights = as_double(std::min(groups, rows)) * as_double(n);
  const double bytes = bytes_per_element(kernel_type) * (as_double(rows) + weights) * as_double(k) +
                       output_bytes * outputs;
  double best_total = -1;
  double best_memory = 0;
  Cut best;
  for (const std::uint32_t parts : splits) {
    // Every part is a tile of its own; partial sums are written and read in fp32.
    Cut trial = cut(type, groups * parts, rows * parts, n,
                    parts > 1 ? std::max(least_part, pieces(k, parts)) : k);
    trial.splits = parts;
    const double memory = (bytes + (parts > 1 ? 8.0 * parts * outputs : 0)) / bandwidth_;
    const double total = overlapped(trial.math, memory, type.tiles.overlap);
    if (best_total < 0 || total < best_total) {
      best_total = total;
      best_memory = memory;
      best = trial;
    }
  }
  KernelTime time = result(best.math, best_memory, memory_.gemm, type.tiles.overlap, flops, bytes);
  time.tile = best.tile;
  time.splits = best.splits;
  time.wave_efficiency = best.wave_efficiency;
  time.tile_efficiency = flops / (type.rate * best.math * best.wave_efficiency);
  return time;
}

KernelTime KernelTimer::gemm(const Gemm& kernel) const {
  return multiply(kernel.type, kernel.batch, kernel.m * kernel.batch, kernel.n, kernel.k,
                  kernel.output_bytes);
}

KernelTime KernelTimer::grouped_gemm(const GroupedGemm& kernel) const {
  return multiply(kernel.type, kernel.groups, kernel.rows, kernel.n, kernel.k, kernel.output_bytes);
}

const AttentionRule& KernelTimer::rule(const AttentionKernel& kernel) const {
  const std::string& wanted = kernel.generation.empty() ? default_generation_ : kernel.generation;
  const auto found = std::find_if(attention_.rbegin(), attention_.rend(), [&](const auto& rule) {
    return rule.generation == wanted && listed(rule.where.types, kernel.type);
  });
  if (found == attention_.rend()) {
    std::string known = "unfused";
    for (const AttentionRule& rule : attention_) known += ", " + rule.generation;
    throw InputError(fmt::format("there is no attention \"{}\" in {} on {}; there are {}", wanted,
                                 to_string(kernel.type), gpu_, known));
  }
  return *found;
}

KernelTime KernelTimer::unfused(const AttentionKernel& kernel) const {
  const std::uint64_t batch = kernel.sequences * kernel.heads;
  const Gemm scores{kernel.tokens, kernel.kv_tokens, kernel.head_dim, batch, kernel.type, 0};
  const Gemm values{kernel.tokens, kernel.value_dim, kernel.kv_tokens, batch, kernel.type, 2};
  const double count = as_double(batch) * as_double(kernel.tokens) * as_double(kernel.kv_tokens);
  const double forward = kernel.causal ? unfused_.masked_forward : unfused_.forward;
  const double backward = kernel.causal ? unfused_.masked_backward : unfused_.backward;
  const double bytes = count * (kernel.backward ? backward : forward);
  // The backward pass multiplies each way twice. Traffic of the scores is in `bytes`.
  const auto passes = kernel.backward ? 2 : 1;
  const Duration math = passes * (gemm(scores).math + gemm(values).math);
  const double useful = count / as_double(kernel.kv_tokens) * keys_met(kernel, 1);
  KernelTime time;
  time.math = math;
  time.memory = from_seconds(bytes / bandwidth_);
  time.fixed = (kernel.backward ? 5 : 3) * memory_.gemm;
  time.total = time.math + time.memory + time.fixed;  // One kernel after the other.
  time.flops = Flops{useful * passes * 2 * as_double(kernel.head_dim + kernel.value_dim)};
  time.bytes = whole_bytes(bytes);
  time.limit = limit_of(to_seconds(math), to_seconds(time.memory), to_seconds(time.fixed));
  return time;
}

KernelTime KernelTimer::attention(const AttentionKernel& kernel) const {
  require(kernel.sequences >= 1 && kernel.tokens >= 1 && kernel.kv_tokens >= 1,
          "attention over at least one token");
  require(kernel.kv_heads >= 1 && kernel.heads >= kernel.kv_heads, "no more kv heads than heads");
  require(!kernel.causal || kernel.kv_tokens >= kernel.tokens, "keys of all queries");
  if ((kernel.generation.empty() ? default_generation_ : kernel.generation) == "unfused") {
    return unfused(kernel);
  }
  const AttentionRule& implementation = rule(kernel);
  const Type& type = of(kernel.type);

  // Queries of the heads that share keys are packed into blocks; one block alone is padded to a
  // matrix instruction, and its keys are split over SMs.
  const double packed = as_double(kernel.tokens * kernel.heads) / as_double(kernel.kv_heads);
  const double blocks = std::ceil(packed / query_block);
  const bool decode = blocks <= 1;
  double rows = query_block;
  if (decode && packed <= least_rows) rows = least_rows;
  const double tiles = as_double(kernel.sequences * kernel.kv_heads) * blocks;

  const double head_dim = as_double(kernel.head_dim + kernel.value_dim) / 2;
  const double share =
      share_at(kernel.backward ? implementation.backward : implementation.forward, head_dim);
  const double per_score = flops_per_score(kernel);
  const double one = rows * (keys_met(kernel, decode ? 1 : query_block) + implementation.start) *
                     per_score / (type.peak * share / sms_);
  const double even = decode ? tiles / sms_ : std::max(1.0, tiles / sms_);
  const double waves = decode ? even : even + type.tiles.tail * (std::ceil(tiles / sms_) - even);

  const double scores =
      as_double(kernel.sequences * kernel.heads * kernel.tokens) * keys_met(kernel, 1);
  const double bytes = attention_bytes(kernel);
  KernelTime time = result(waves * one, bytes / bandwidth_, memory_.attention, type.tiles.overlap,
                           scores * per_score, bytes);
  time.wave_efficiency = tiles / sms_ / waves;
  time.tile_efficiency = time.flops.count() / (type.peak * share * tiles / sms_ * one);
  return time;
}

KernelTime KernelTimer::elementwise(const Elementwise& kernel) const {
  const double bytes = static_cast<double>((kernel.read + kernel.written).count());
  require(bytes >= 0, "bytes not below zero");
  double seconds = bytes / bandwidth_;
  // What a cache saves fades out until twice its size.
  if (const double cache = static_cast<double>(memory_.cache.count()); bytes < 2 * cache) {
    const double kept = std::min(1.0, 2 - bytes / cache);
    seconds *= 1 - kept * (1 - 1 / memory_.cache_gain);
  }
  return result(0, seconds, memory_.elementwise, 1, 0, bytes);
}

KernelTime KernelTimer::quantise(const Quantise& kernel) const {
  const double bytes =
      as_double(kernel.elements) * types_[static_cast<std::size_t>(kernel.type)].quantise_bytes;
  if (bytes <= 0) return {};
  return result(0, bytes / bandwidth_, memory_.elementwise, 1, 0, bytes);
}

KernelTime kernel_time(const KernelTimer& timer, const AnyKernel& kernel) {
  struct Ask {
    const KernelTimer& timer;
    KernelTime operator()(const Gemm& k) const { return timer.gemm(k); }
    KernelTime operator()(const GroupedGemm& k) const { return timer.grouped_gemm(k); }
    KernelTime operator()(const AttentionKernel& k) const { return timer.attention(k); }
    KernelTime operator()(const Elementwise& k) const { return timer.elementwise(k); }
    KernelTime operator()(const Quantise& k) const { return timer.quantise(k); }
  };
  return std::visit(Ask{timer}, kernel);
}

}  // namespace flyover
