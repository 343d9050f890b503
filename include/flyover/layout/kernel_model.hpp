#pragma once

// What a software stack's kernels cost, as data: configs/kernels/*.json (io/kernel_reader.hpp),
// each value with its source. Nothing here knows a product by name. Equations:
// docs/models/compute.md.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"

namespace flyover {

// What a kernel multiplies. The fp8 recipes differ in their scales: one per tensor, one per block
// of 128 (DeepSeek), one per 32 elements (mxfp8); nvfp4 has one per 16.
enum class KernelType : std::uint8_t { Bf16, Fp16, Tf32, Fp8, Fp8Block, Mxfp8, Nvfp4 };
inline constexpr std::array all_kernel_types = {
    KernelType::Bf16,     KernelType::Fp16,  KernelType::Tf32, KernelType::Fp8,
    KernelType::Fp8Block, KernelType::Mxfp8, KernelType::Nvfp4};
[[nodiscard]] std::string_view to_string(KernelType type);  // "bf16", ..., "fp8-block", "nvfp4"
[[nodiscard]] std::optional<KernelType> kernel_type(std::string_view name);
[[nodiscard]] double bytes_per_element(KernelType type);  // With the scales of its blocks.
// The member of GpuModel::flops that says its peak: "fp8" for all fp8 recipes.
[[nodiscard]] std::string_view peak_name(KernelType type);

// Which GPUs and types a rule speaks about; empty lists: all. Of the rules that match, the last
// counts.
struct KernelScope {
  std::vector<std::string> architectures;
  std::vector<std::string> gpus;  // GpuModel::name.
  std::vector<KernelType> types;
};

// The part of peak that the inner loop of large tiles sustains, at the clocks that the power limit
// leaves.
struct RateRule {
  KernelScope where;
  double share = 1;
};

struct TileSize {
  std::uint32_t rows = 128, columns = 128;
};

// How a matrix multiplication is cut over SMs.
struct TileRule {
  KernelScope where;
  std::vector<TileSize> tiles;  // What the library chooses from.
  // Tiles of intensity i = rows columns / (rows + columns) keep i / (i + half_intensity) of the
  // rate.
  double half_intensity = 0;
  Duration edge{};     // Prologue and epilogue of a tile that its inner loop does not hide.
  double tail = 1;     // 1: the last wave costs a whole one; 0: work spreads perfectly.
  double overlap = 4;  // Exponent p: time is the p-norm of arithmetic and memory.
};

struct MemoryRule {
  KernelScope where;
  double share = 1;  // Of memory bandwidth that a large kernel reaches.
  // What a kernel takes before and after its steady state, by kind.
  Duration gemm{};
  Duration attention{};
  Duration elementwise{};
  Bytes cache{};          // Elementwise kernels that touch no more run from cache; 0: none,
  double cache_gain = 1;  // so many times as fast as from memory.
};

// The part of peak by head dimension, between points linear in its logarithm.
struct HeadPoint {
  double head_dim = 128;
  double share = 1;
};

// One implementation of fused attention on some GPUs.
struct AttentionRule {
  KernelScope where;
  std::string generation;  // "fa2", "fa3", "cudnn", ...
  std::vector<HeadPoint> forward;
  std::vector<HeadPoint> backward;
  double start = 0;  // A block of queries costs as much as so many keys more than it meets.
};

// Scores written to memory between two matrix multiplications ("unfused"): bytes per score.
struct UnfusedAttention {
  double forward = 0;
  double masked_forward = 0;  // With a causal mask, which nothing skips.
  double backward = 0;
  double masked_backward = 0;
};

// Bytes of memory traffic per element that is brought into a type with scales.
struct QuantiseRule {
  KernelScope where;
  double bytes = 0;
};

struct DefaultAttention {
  std::string architecture;
  std::string generation;
};

struct KernelModel {
  std::string name;
  std::string summary;
  std::vector<RateRule> rates;
  std::vector<TileRule> tiles;
  std::vector<MemoryRule> memory;
  std::vector<AttentionRule> attention;
  UnfusedAttention unfused;
  std::vector<QuantiseRule> quantise;
  std::vector<DefaultAttention> default_attention;
  std::string other_attention;  // For architectures without a default: "unfused", "fa2", ...
  // Between a kernel and the next on its stream, as the host launches them or as a graph does.
  Duration launch{};
  Duration graph_launch{};
};

}  // namespace flyover
