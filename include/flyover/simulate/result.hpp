#pragma once

// What a run tells: plain data that report tables, JSON and CSV are written from.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/collective.hpp"
#include "flyover/cost/library.hpp"
#include "flyover/layout/memory.hpp"
#include "flyover/moe/planner.hpp"

namespace flyover {

// How an average rank spends the run. At each instant a rank counts for the first of these that
// holds: a compute, copy or delay operation runs; a collective or message moves its bytes (exposed
// communication of its group family); one is starting up; it waits for the peer of a send or
// receive (bubble); otherwise idle, waiting for members of a collective included. The parts add up
// to the run.
struct Breakdown {
  double compute_us = 0;
  std::map<std::string, double> exposed_us;  // By group family; "p2p" for sends and receives.
  double startup_us = 0;
  double bubble_us = 0;
  double idle_us = 0;
};

struct AlternativeTime {
  AlgorithmId algorithm{};
  Protocol protocol{};
  std::uint32_t channels = 0;
  Duration time{};  // Alone.
};

struct ExpertAlternative {
  ExpertMode mode{};
  Duration time{};  // Alone.
};

// Of calls that exchange experts: what goes where, on the first group that called.
struct ExpertStats {
  std::string exchange;  // Its name in the workload.
  std::string library;   // Of kernels.
  ExpertMode mode{};
  bool balanced = false;  // Expected values that treat all ranks alike, else every rank for itself.
  double tokens = 0;      // Of a rank, on average.
  ExpertTraffic traffic;
  Duration kernel{};                           // Alone, counting before it left out.
  double bottleneck_GBps = 0;                  // DeepEP's definition,
  std::string bottleneck_side;                 // of "RDMA" or "NVLink".
  std::uint32_t sms = 0;                       // Held on every GPU from the start to the end.
  std::vector<ExpertAlternative> other_modes;  // Fastest first.
};

// All calls of one kind: same collective, group family, size, plan.
struct CollectiveStats {
  std::string op;     // "all_reduce", "send"
  std::string group;  // Family; "" for send.
  std::uint32_t ranks = 0;
  Bytes bytes;
  std::uint64_t count = 0;  // Calls, over all groups of the family.
  Duration mean{};          // From the last member's arrival to the end.
  Duration low{};           // The range of the mean; zeros until add_range (study) was here.
  Duration high{};
  Duration longest{};
  Duration alone{};       // Predicted without contention.
  Duration mean_wait{};   // From the first member's arrival to the last's.
  double algbw_GBps = 0;  // Of the mean.
  double busbw_GBps = 0;
  AlgorithmId algorithm{};
  Protocol protocol{};
  std::uint32_t channels = 0;
  std::string bottleneck;
  std::vector<AlternativeTime> alternatives;
  std::optional<ExpertStats> experts = {};  // Of exchanges of experts.
};

// A class of resources: links of one kind, SMs, HBM.
struct ResourceClassStats {
  std::string name;  // "nvlink", "host-leaf", "sm", "hbm"
  std::uint64_t count = 0;
  double capacity = 0;             // Of all, units per second: bytes, or SMs.
  double amount = 0;               // Units taken over the run, protocol overhead included.
  double mean_utilisation = 0;     // amount / (capacity x time)
  double peak_utilisation = 0;     // Of any one, at any instant.
  std::string busiest;             // The one that took most.
  double busiest_utilisation = 0;  // Mean over the run.
};

struct Sensitivity {
  std::string name;      // A class of resources, or "latency"
  double faster = 0.10;  // By this much,
  double gain = 0;       // the run would be shorter by this share.
};

// The communication of a run that shares its error: same links, algorithm and class of size.
struct RangePart {
  std::string links;  // "nvlink4", or "nvlink4 + ndr" across domains.
  std::string algorithm;
  std::string size;       // "up to 32 KiB"
  double exposed_us = 0;  // Of the run, start-up and waiting included.
  double low = 1;         // Measured times lie between these multiples of predicted ones.
  double high = 1;
  double correlation = 0;  // Share of the error's variance that one site's runs have in common.
};

struct InputDigest {
  std::string role;  // "topology", "workload", "library"
  std::string name;
  std::string digest;
  std::vector<std::string> overrides;  // "PATH=VALUE"
};

struct Result {
  std::vector<InputDigest> inputs;
  std::uint32_t ranks = 0;
  std::uint32_t classes = 0;     // Of ranks that behave alike and were simulated once.
  std::uint64_t operations = 0;  // Instances, of all ranks.
  std::uint64_t events = 0;
  Duration time{};
  Duration low{};  // The range of the time; zeros until add_range (study) was here.
  Duration high{};
  std::vector<RangePart> range;
  std::vector<std::string> validity;  // In what the run is outside of what was measured.
  Breakdown breakdown;
  std::vector<CollectiveStats> collectives;
  std::vector<ResourceClassStats> links;  // And SMs and HBM; in a fixed order of classes.
  std::string bottleneck;
  std::vector<Sensitivity> sensitivity;  // Largest gain first; empty when not asked for.
  std::optional<MemoryUse> memory;       // Of training steps.
  std::vector<std::string> warnings;
};

}  // namespace flyover
