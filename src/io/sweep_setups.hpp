#pragma once

// What points of a sweep have in common, remembered by what it depends on. One per thread.

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/io/document.hpp"
#include "flyover/io/training_reader.hpp"
#include "flyover/layout/message_times.hpp"
#include "flyover/layout/step_parts.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/study/cluster_cost.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::io {

// The things that were asked for last, at most so many. What was asked for very often is made anew,
// for such things remember what they are asked.
template <class Key, class Thing>
class Recent {
 public:
  explicit Recent(std::size_t most) : most_(most) {}

  // Makes it by `make`, which returns a unique_ptr, where there is none. The reference is good
  // until others have been asked for `most` times.
  template <class Make>
  Thing& get(const Key& key, Make make) {
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (!(at->key == key)) continue;
      entries_.splice(entries_.begin(), entries_, at);
      if (++at->uses > most_uses) {
        at->thing.reset();
        at->thing = make();
        at->uses = 0;
      }
      return *at->thing;
    }
    entries_.push_front({key, make(), 0});
    if (entries_.size() > most_) entries_.pop_back();
    return *entries_.front().thing;
  }

 private:
  static constexpr std::uint64_t most_uses = 50'000;
  struct Entry {
    Key key;
    std::unique_ptr<Thing> thing;
    std::uint64_t uses = 0;
  };
  std::size_t most_;
  std::list<Entry> entries_;
};

// A job on a kind of GPU. No two have the same serial number, ever.
struct JobSetup {
  std::uint64_t serial = 0;
  StepParts parts;
};

// A library on a topology. Borrows the topology.
struct ClusterSetup {
  ClusterSetup(const Topology& topology, Library of);
  ClusterSetup(const ClusterSetup&) = delete;
  ClusterSetup& operator=(const ClusterSetup&) = delete;

  // Messages of a job: answers go by addresses of its exchanges, so that they are for one job only.
  [[nodiscard]] const MessageTimes& times(const JobSetup& job);

  const Topology& topology;
  Library library;
  Router router;
  CostModel cost;

 private:
  Recent<std::uint64_t, MessageTimes> times_{4};
};

struct TopologySetup {
  explicit TopologySetup(const Document& document);
  TopologySetup(const TopologySetup&) = delete;
  TopologySetup& operator=(const TopologySetup&) = delete;

  // Why a training step cannot be worked out on these GPUs; "" if it can.
  [[nodiscard]] const std::string& unlike_gpus() const { return unlike_; }
  [[nodiscard]] const std::string& slow_gpus() const { return slow_; }

  Topology topology;           // As replays see it.
  ClusterInventory inventory;  // With every switch.
  Recent<std::string, ClusterSetup> clusters{4};

 private:
  std::string unlike_;
  std::string slow_;
};

// Jobs by their words and the GPU.
class JobSetups {
 public:
  // `words`: all that the job depends on besides the GPU and its domain.
  const JobSetup& get(const std::string& words, const TrainingJob& job, const GpuModel& gpu,
                      std::uint32_t domain);

 private:
  struct Key {
    std::string words;
    GpuModel gpu;
    std::uint32_t domain = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  Recent<Key, JobSetup> jobs_{8};
  std::uint64_t made_ = 0;
};

}  // namespace flyover::io
