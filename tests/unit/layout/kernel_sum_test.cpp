// How a stack's rules slow kernels down, and how kernels add up.

#include "layout/kernel_sum.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "support/training.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

KernelModel kernel_model() {
  return io::read_kernels(io::kernel_document("2025"));
}

StepKernels kernels_of(const SoftwareStack& stack, const GpuModel& gpu = test::plain_gpu(),
                       bool graphs = false) {
  return {kernel_model(), gpu, stack, graphs};
}

// The factor that a kernel is slowed by.
double slowed(const SoftwareStack& stack, const AnyKernel& kernel,
              const GpuModel& gpu = test::plain_gpu()) {
  const StepKernels kernels = kernels_of(stack, gpu);
  const StepKernels::Slowed run = kernels.run(kernel);
  return to_seconds(run.time - kernels.timer().launch(false)) / to_seconds(run.alone.total);
}

const Gemm gemm{.m = 4096, .n = 4096, .k = 4096};
const GroupedGemm grouped{.groups = 4, .rows = 4096, .n = 4096, .k = 4096};
const AttentionKernel attention = [] {
  AttentionKernel kernel;
  kernel.tokens = kernel.kv_tokens = 4096;
  kernel.heads = kernel.kv_heads = 8;
  return kernel;
}();
const Elementwise elementwise{256_MiB, 256_MiB};

}  // namespace

TEST_CASE("of the rules that match, the last that states a value counts", "[kernel_sum]") {
  SoftwareStack stack = test::plain_stack();
  stack.slowdowns = {{{}, 1.1, 1.2, 1.3, 1.4}};
  CHECK(slowed(stack, gemm) == Approx(1.1));
  CHECK(slowed(stack, grouped) == Approx(1.2));
  CHECK(slowed(stack, attention) == Approx(1.3));
  CHECK(slowed(stack, elementwise) == Approx(1.4));
  // A later rule changes what it states and leaves the rest.
  SlowdownRule hopper;
  hopper.where.architectures = {"hopper"};
  hopper.gemm = 1.5;
  stack.slowdowns.push_back(hopper);
  CHECK(slowed(stack, gemm) == Approx(1.5));
  CHECK(slowed(stack, attention) == Approx(1.3));
  // One of other GPUs or types does not.
  SlowdownRule other = hopper;
  other.where.gpus = {"other"};
  other.gemm = 2;
  stack.slowdowns.push_back(other);
  other.where = {};
  other.where.types = {KernelType::Fp8};
  other.elementwise = 3;
  stack.slowdowns.push_back(other);
  CHECK(slowed(stack, gemm) == Approx(1.5));
  CHECK(slowed(stack, elementwise) == Approx(1.4));
  // What is brought into a type goes by its rules.
  GpuModel gpu = test::plain_gpu();
  gpu.flops["fp8"] = FlopRate{200e12};
  CHECK(slowed(stack, Quantise{1 << 28, KernelType::Fp8}, gpu) == Approx(3));
  Gemm narrow = gemm;
  narrow.type = KernelType::Fp8;
  CHECK(slowed(stack, narrow, gpu) == Approx(2));
}

TEST_CASE("grouped multiplications without a rule are slowed as others are", "[kernel_sum]") {
  SoftwareStack stack = test::plain_stack();
  stack.slowdowns = {{{}, 1.25, 0, 1, 1}};
  CHECK(slowed(stack, grouped) == Approx(1.25));
}

TEST_CASE("a slow-down that no rule states is refused by name", "[kernel_sum]") {
  SoftwareStack stack = test::plain_stack();
  const auto refused = [&](const char* what) {
    CHECK_THROWS_MATCHES(
        kernels_of(stack), InputError,
        Catch::Matchers::Message(std::string("the stack \"plain\" has no slowdown of ") + what +
                                 " for plain in bf16"));
  };
  stack.slowdowns = {{{}, 0, 1, 1, 1}};
  refused("gemm");
  stack.slowdowns = {{{}, 1, 1, 0, 1}};
  refused("attention");
  stack.slowdowns = {{{}, 1, 1, 1, 0}};
  refused("elementwise");
  // A type that the GPU cannot do needs none: plain_gpu() has bf16 alone.
  stack.slowdowns = {{{}, 1, 1, 1, 1}};
  stack.slowdowns[0].where.types = {KernelType::Bf16};
  CHECK_NOTHROW(kernels_of(stack));
}

TEST_CASE("kernels add up, with a launch each", "[kernel_sum]") {
  const SoftwareStack stack = test::plain_stack();
  const StepKernels kernels = kernels_of(stack);
  const StepKernels::Slowed multiply = kernels.run(gemm);
  const StepKernels::Slowed move = kernels.run(elementwise);
  CHECK(multiply.time == multiply.alone.total + kernels.timer().launch(false));
  KernelSum sum;
  sum.add(multiply);
  sum.add(move, 2);
  CHECK(sum.kernels == 3);
  CHECK(sum.time == multiply.time + 2 * move.time);
  CHECK(sum.memory_bound == 2 * move.time);
  CHECK(sum.flops.count() == 2.0 * 4096 * 4096 * 4096);
  CHECK(sum.bytes == Bytes{multiply.alone.bytes.count() + 2 * move.alone.bytes.count()});
  // Graphs launch faster, and what costs nothing is not launched.
  CHECK(kernels_of(stack, test::plain_gpu(), true).run(gemm).time < multiply.time);
  const StepKernels::Slowed nothing = kernels.run(Quantise{1024, KernelType::Bf16});
  CHECK(nothing.time == Duration{});
  sum.add(nothing);
  CHECK(sum.kernels == 3);
}
