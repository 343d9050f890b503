#pragma once

// How long one kernel takes alone on one GPU, from its shape, and what limits it. Equations,
// parameters, errors: docs/models/compute.md.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/layout/kernel_model.hpp"
#include "flyover/topology/hardware.hpp"

namespace flyover {

// [m x k] times [k x n], `batch` times with operands of their own.
struct Gemm {
  std::uint64_t m = 1, n = 1, k = 1, batch = 1;
  KernelType type = KernelType::Bf16;
  double output_bytes = 2;  // Per element of the result; 4 for fp32, 0 when what follows is fused.
};

// `rows` rows spread as evenly as can be over `groups` experts, each [n x k].
struct GroupedGemm {
  std::uint64_t groups = 1, rows = 1, n = 1, k = 1;
  KernelType type = KernelType::Bf16;
  double output_bytes = 2;
};

struct AttentionKernel {
  std::uint64_t sequences = 1;
  std::uint64_t tokens = 1;     // Queries of one sequence, its last ones.
  std::uint64_t kv_tokens = 1;  // Keys of one sequence; at least `tokens` when causal.
  std::uint64_t heads = 1, kv_heads = 1;
  std::uint64_t head_dim = 128, value_dim = 128;
  bool causal = true;
  std::uint64_t window = 0;  // Keys that a query sees; 0: all.
  bool shared_kv = false;    // Values are a part of the keys (absorbed MLA): read once.
  bool backward = false;
  KernelType type = KernelType::Bf16;
  std::string generation;  // "": the stack's own for the GPU.
};

struct Elementwise {
  Bytes read;
  Bytes written;
};

// Brings bf16 elements into a type with scales; Bf16 itself costs nothing.
struct Quantise {
  std::uint64_t elements = 0;
  KernelType type = KernelType::Fp8;
};

enum class KernelLimit : std::uint8_t { Math, Memory, Latency };
[[nodiscard]] std::string_view to_string(KernelLimit limit);  // "math", "memory", "latency"

struct KernelTime {
  Duration total{};                          // Without launch; see KernelTimer::launch.
  Duration math{};                           // Arithmetic, with tile and wave losses;
  Duration memory{};                         // traffic; these two overlap.
  Duration fixed{};                          // Start and drain.
  Flops flops;                               // Useful ones: masked halves and padding do not count.
  Bytes bytes;                               // Least traffic: every operand once.
  TileSize tile;                             // Of matrix multiplications: what was chosen,
  std::uint32_t splits = 1;                  // and over how many parts of k.
  double tile_efficiency = 1;                // Useful part of the tiles' area and time,
  double wave_efficiency = 1;                // useful part of the waves.
  KernelLimit limit = KernelLimit::Latency;  // The largest of math, memory and fixed.
};

// The kernels of one stack on one GPU, its rules looked up once. A question costs about a
// microsecond and allocates nothing. Copies what it needs of both.
class KernelTimer {
 public:
  // Throws InputError when no rule of the model speaks about the GPU.
  KernelTimer(const KernelModel& model, const GpuModel& gpu);

  // These require sizes of at least 1. They throw InputError when the GPU has no peak for the type.
  [[nodiscard]] KernelTime gemm(const Gemm& kernel) const;
  [[nodiscard]] KernelTime grouped_gemm(const GroupedGemm& kernel) const;
  // Throws InputError when the model has no such generation on this GPU.
  [[nodiscard]] KernelTime attention(const AttentionKernel& kernel) const;
  [[nodiscard]] KernelTime elementwise(const Elementwise& kernel) const;
  [[nodiscard]] KernelTime quantise(const Quantise& kernel) const;

  // From a kernel's end to the next one's start on the same stream.
  [[nodiscard]] Duration launch(bool graphs) const { return graphs ? graph_launch_ : launch_; }
  [[nodiscard]] bool supports(KernelType type) const;
  [[nodiscard]] const std::string& default_generation() const { return default_generation_; }

 private:
  struct Type {
    double peak = 0;  // Operations per second; 0: the GPU cannot.
    double rate = 0;  // Sustained by the inner loop.
    double quantise_bytes = 0;
    TileRule tiles;
  };
  struct Cut;
  [[nodiscard]] const Type& of(KernelType type) const;
  [[nodiscard]] Cut cut(const Type& type, std::uint64_t groups, std::uint64_t rows, std::uint64_t n,
                        std::uint64_t k) const;
  [[nodiscard]] KernelTime multiply(KernelType type, std::uint64_t groups, std::uint64_t rows,
                                    std::uint64_t n, std::uint64_t k, double output_bytes) const;
  [[nodiscard]] KernelTime unfused(const AttentionKernel& kernel) const;
  [[nodiscard]] const AttentionRule& rule(const AttentionKernel& kernel) const;

  std::string gpu_;
  double sms_ = 1;
  double bandwidth_ = 0;  // Bytes per second that a large kernel reaches.
  MemoryRule memory_;
  std::array<Type, all_kernel_types.size()> types_;
  std::vector<AttentionRule> attention_;
  UnfusedAttention unfused_;
  std::string default_generation_;
  Duration launch_{};
  Duration graph_launch_{};
};

using AnyKernel = std::variant<Gemm, GroupedGemm, AttentionKernel, Elementwise, Quantise>;
[[nodiscard]] KernelTime kernel_time(const KernelTimer& timer, const AnyKernel& kernel);

}  // namespace flyover
