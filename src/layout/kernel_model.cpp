#include "flyover/layout/kernel_model.hpp"

#include <algorithm>

namespace flyover {

namespace {

struct TypeInfo {
  KernelType type;
  std::string_view name;
  std::string_view peak;
  double bytes;
};

// Scales: fp32 per 128 elements, one byte per 32, one byte per 16.
constexpr TypeInfo types[] = {
    {KernelType::Bf16, "bf16", "bf16", 2},
    {KernelType::Fp16, "fp16", "fp16", 2},
    {KernelType::Tf32, "tf32", "tf32", 4},
    {KernelType::Fp8, "fp8", "fp8", 1},
    {KernelType::Fp8Block, "fp8-block", "fp8", 1 + 4.0 / 128},
    {KernelType::Mxfp8, "mxfp8", "fp8", 1 + 1.0 / 32},
    {KernelType::Nvfp4, "nvfp4", "fp4", 0.5 + 1.0 / 16},
};
static_assert(std::size(types) == all_kernel_types.size());

const TypeInfo& info(KernelType type) {
  return types[static_cast<std::size_t>(type)];
}

}  // namespace

std::string_view to_string(KernelType type) {
  return info(type).name;
}

std::optional<KernelType> kernel_type(std::string_view name) {
  const auto* const found = std::ranges::find(types, name, &TypeInfo::name);
  return found == std::end(types) ? std::nullopt : std::optional(found->type);
}

double bytes_per_element(KernelType type) {
  return info(type).bytes;
}

std::string_view peak_name(KernelType type) {
  return info(type).peak;
}

}  // namespace flyover
