#pragma once

// What compute and copy operations load while they run.

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "flyover/engine/fluid.hpp"
#include "flyover/topology/topology.hpp"
#include "simulate/cast.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// A kernel is a stream over SMs and HBM whose progress runs from 0 to 1: alone it takes the longer
// of its two times (the roofline), beside others what they leave it. One with a recorded duration
// that says how many SMs it kept busy is a stream over those alone, whose progress is its own
// seconds: it moves at min(1, SMs left / SMs). Other recorded durations are no streams.
//
// Borrows all, which must outlive it.
class Kernels {
 public:
  Kernels(const Topology& topology, const ClusterResources& resources, const Cast& cast,
          std::uint64_t instances)
      : topology_(topology),
        resources_(resources),
        cast_(cast),
        slot_(instances) {}

  // Whether a compute or copy operation loads anything; else it takes duration().
  [[nodiscard]] static bool is_stream(const Operation& op) {
    return op.kind != OpKind::Delay && (op.duration == Duration{} || op.sms > 0);
  }
  // A recorded kernel does not say what bounded it. Slow GPUs are slow by their clock, which its
  // SMs and caches share; a delay is the host's.
  [[nodiscard]] Duration duration(const Operation& op, std::uint32_t player) const;
  // Without key and payload. Its loads last until ended(). Throws InputError for a data type that
  // the GPU has no rate for, and for more SMs than it has.
  [[nodiscard]] StreamSpec begin(const Operation& op, std::uint32_t player, std::uint64_t instance);
  void ended(std::uint64_t instance) { free_.push_back(slot_[instance]); }

  // Assumptions that were made.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  struct Loads {
    std::array<Load, 2> loads;
    std::uint32_t used = 0;

    void add(ResourceId r, double weight) { loads[used++] = {r, weight}; }
  };

  [[nodiscard]] const GpuModel& gpu(std::uint32_t player) const {
    return topology_.gpu_model(cast_.players[player].rank);
  }
  [[nodiscard]] double flop_share(const GpuModel& gpu, const Operation& op);
  [[nodiscard]] double memory_share(const GpuModel& gpu, const Operation& op);
  [[nodiscard]] Loads& take(std::uint64_t instance);

  const Topology& topology_;
  const ClusterResources& resources_;
  const Cast& cast_;
  // Streams borrow their loads: a deque never moves them, and slots are used again.
  std::deque<Loads> loads_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> slot_;  // By instance: its place in loads_ while it runs.
  bool assumed_flops_ = false;
  bool assumed_memory_ = false;
};

}  // namespace flyover
