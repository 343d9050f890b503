#pragma once

// Kernels of one GPU as they run inside a step of a stack.

#include <array>
#include <cstdint>

#include "flyover/base/units.hpp"
#include "flyover/layout/kernel_time.hpp"
#include "flyover/layout/stack.hpp"

namespace flyover {

// Times of kernels alone times the slow-down that the stack's rules state for their kind and type,
// and what lies between two kernels.
class StepKernels {
 public:
  // Throws InputError when the stack has no slow-down for some kind of kernel.
  StepKernels(const KernelModel& kernels, const GpuModel& gpu, const SoftwareStack& stack,
              bool graphs);

  [[nodiscard]] const KernelTimer& timer() const { return timer_; }
  struct Slowed {
    KernelTime alone;
    Duration time{};  // In the step, with the launch.
  };
  [[nodiscard]] Slowed run(const AnyKernel& kernel) const;

 private:
  struct Factors {
    double gemm = 1, grouped_gemm = 1, attention = 1, elementwise = 1;
  };
  [[nodiscard]] double factor(const AnyKernel& kernel) const;

  KernelTimer timer_;
  std::array<Factors, all_kernel_types.size()> factors_;
  Duration launch_{};
};

// What several kernels, one after the other, take together.
struct KernelSum {
  Duration time{};
  Duration memory_bound{};
  Flops flops;
  Bytes bytes;
  std::uint32_t kernels = 0;

  void add(const StepKernels::Slowed& kernel, std::uint32_t times = 1);
};

}  // namespace flyover
