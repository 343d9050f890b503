#include "simulate/kernels.hpp"

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

FlopRate peak(const GpuModel& gpu, const Operation& op) {
  const auto rate = gpu.flops.find(op.dtype);
  if (rate != gpu.flops.end()) return rate->second;
  std::string known;
  for (const auto& [dtype, unused] : gpu.flops) known += (known.empty() ? "" : ", ") + dtype;
  throw InputError(
      fmt::format("operation \"{}\" computes in \"{}\", for which {} has no rate; it has {}", op.id,
                  op.dtype, gpu.name, known));
}

}  // namespace

Duration Kernels::duration(const Operation& op, std::uint32_t player) const {
  const double factor = gpu(player).compute_factor;
  if (op.kind == OpKind::Delay || factor == 1) return op.duration;
  return from_seconds(to_seconds(op.duration) / factor);
}

StreamSpec Kernels::begin(const Operation& op, std::uint32_t player, std::uint64_t instance) {
  const std::uint32_t number = cast_.players[player].rank;
  const GpuModel& model = gpu(player);
  const ResourceId sms = cast_.stand_in(resources_.sms(number));
  if (op.duration > Duration{}) {
    if (op.sms > model.sms) {
      throw InputError(fmt::format("operation \"{}\" keeps {} SMs busy, but {} has {}", op.id,
                                   op.sms, model.name, model.sms));
    }
    Loads& own = take(instance);
    own.add(sms, op.sms);
    return {.loads = std::span(own.loads).first(own.used),
            .work = to_seconds(duration(op, player)),
            .rate_cap = 1};
  }
  Loads& own = take(instance);
  if (op.flops.count() > 0) {
    const double seconds =
        op.flops.count() / (peak(model, op).per_second() * flop_share(model, op));
    own.add(sms, seconds * model.sms);
  }
  if (op.bytes.count() > 0) {
    // A copy reads and writes.
    const double passes = op.kind == OpKind::Copy ? 2 : 1;
    own.add(cast_.stand_in(resources_.hbm(number)),
            passes * static_cast<double>(op.bytes.count()) / memory_share(model, op));
  }
  return {.loads = std::span(own.loads).first(own.used), .work = 1};
}

double Kernels::flop_share(const GpuModel& model, const Operation& op) {
  if (op.efficiency > 0) return op.efficiency;
  assumed_flops_ = true;
  return model.flop_efficiency;
}

double Kernels::memory_share(const GpuModel& model, const Operation& op) {
  if (op.memory_efficiency > 0) return op.memory_efficiency;
  assumed_memory_ = true;
  return model.memory_efficiency;
}

Kernels::Loads& Kernels::take(std::uint64_t instance) {
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(loads_.size());
    loads_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slot_[instance] = slot;
  loads_[slot].used = 0;
  return loads_[slot];
}

std::vector<std::string> Kernels::warnings() const {
  std::vector<std::string> out;
  if (assumed_flops_) {
    out.emplace_back(
        "compute operations without \"efficiency\" reach the GPU's default share of peak");
  }
  if (assumed_memory_) {
    out.emplace_back(
        "operations without \"memory_efficiency\" reach the GPU's default share of HBM bandwidth");
  }
  return out;
}

}  // namespace flyover
