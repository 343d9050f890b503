#pragma once

// SMs that communication kernels hold.

#include <cstdint>
#include <vector>

#include "flyover/engine/fluid.hpp"
#include "simulate/cast.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// A kernel that moves data takes its SMs when it starts and gives them back when it ends, whatever
// rate it moves at: it is a stream over the SMs alone with the cap of what it holds and without an
// end. It was there first: compute beside it, and what comes later, shares what is left. Two that
// together want more than there is split it evenly; what they move does not depend on it.
//
// Borrows the fluid system, which must outlive it.
class HeldSms {
 public:
  HeldSms(FluidSystem& fluid, const ClusterResources& resources, const Cast& cast,
          std::uint64_t instances);

  // By the instance of an operation. `key`: StreamSpec's, and its payload.
  void hold(std::uint32_t player, std::uint64_t instance, std::uint32_t sms, std::uint64_t key);
  void give_back(std::uint64_t instance);

 private:
  FluidSystem& fluid_;
  std::vector<Load> loads_;        // By player.
  std::vector<StreamId> streams_;  // By instance; empty without exchanges of experts.
};

}  // namespace flyover
