#include "layout/kernel_sum.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

template <class T>
bool listed(const std::vector<T>& list, const T& item) {
  return list.empty() || std::ranges::find(list, item) != list.end();
}

// 0 where no rule that matches states it.
double last_stated(const SoftwareStack& stack, const GpuModel& gpu, KernelType type,
                   double SlowdownRule::*value) {
  double found = 0;
  for (const SlowdownRule& rule : stack.slowdowns) {
    const bool matches = listed(rule.where.architectures, gpu.architecture) &&
                         listed(rule.where.gpus, gpu.name) && listed(rule.where.types, type);
    if (matches && rule.*value > 0) found = rule.*value;
  }
  return found;
}

double stated(const SoftwareStack& stack, const GpuModel& gpu, KernelType type,
              double SlowdownRule::*value, std::string_view what) {
  const double found = last_stated(stack, gpu, type, value);
  if (found <= 0) {
    throw InputError(fmt::format("the stack \"{}\" has no slowdown of {} for {} in {}", stack.name,
                                 what, gpu.name, to_string(type)));
  }
  return found;
}

Duration scaled(Duration time, double factor) {
  return Duration{std::llround(static_cast<double>(time.count()) * factor)};
}

}  // namespace

StepKernels::StepKernels(const KernelModel& kernels, const GpuModel& gpu,
                         const SoftwareStack& stack, bool graphs)
    : timer_(kernels, gpu),
      launch_(timer_.launch(graphs)) {
  for (const KernelType type : all_kernel_types) {
    if (!timer_.supports(type)) continue;
    const auto of = [&](double SlowdownRule::*value, std::string_view what) {
      return stated(stack, gpu, type, value, what);
    };
    const double gemm = of(&SlowdownRule::gemm, "gemm");
    const double grouped = last_stated(stack, gpu, type, &SlowdownRule::grouped_gemm);
    factors_[static_cast<std::size_t>(type)] = {gemm, grouped > 0 ? grouped : gemm,
                                                of(&SlowdownRule::attention, "attention"),
                                                of(&SlowdownRule::elementwise, "elementwise")};
  }
}

double StepKernels::factor(const AnyKernel& kernel) const {
  struct Ask {
    const std::array<Factors, all_kernel_types.size()>& factors;
    [[nodiscard]] const Factors& of(KernelType type) const {
      return factors[static_cast<std::size_t>(type)];
    }
    double operator()(const Gemm& k) const { return of(k.type).gemm; }
    double operator()(const GroupedGemm& k) const { return of(k.type).grouped_gemm; }
    double operator()(const AttentionKernel& k) const { return of(k.type).attention; }
    double operator()(const Elementwise&) const { return of(KernelType::Bf16).elementwise; }
    double operator()(const Quantise& k) const { return of(k.type).elementwise; }
  };
  return std::visit(Ask{factors_}, kernel);
}

StepKernels::Slowed StepKernels::run(const AnyKernel& kernel) const {
  const KernelTime alone = kernel_time(timer_, kernel);
  if (alone.total == Duration{}) return {alone, {}};
  return {alone, scaled(alone.total, factor(kernel)) + launch_};
}

void KernelSum::add(const StepKernels::Slowed& kernel, std::uint32_t times) {
  if (kernel.time == Duration{}) return;
  time += times * kernel.time;
  if (kernel.alone.limit != KernelLimit::Math) memory_bound += times * kernel.time;
  flops = Flops{flops.count() + times * kernel.alone.flops.count()};
  bytes += Bytes{kernel.alone.bytes.count() * times};
  kernels += times;
}

}  // namespace flyover
