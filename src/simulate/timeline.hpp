#pragma once

// Collects the slices of a timeline while a replay runs.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flyover/topology/topology.hpp"
#include "flyover/trace/record.hpp"
#include "simulate/plans.hpp"
#include "simulate/program.hpp"

namespace flyover {

class Timeline {
 public:
  // Records the first rank of every program, and others as ReplayOptions::timeline_ranks says.
  Timeline(const Topology& topology, const Cast& cast, const Ranks& ranks,
           std::optional<std::uint32_t> wanted, const ClusterResources& resources);

  [[nodiscard]] bool records(std::uint32_t rank) const { return first_track_[rank] != absent; }
  void slice(std::uint32_t rank, std::uint32_t stream, Time begin, Time end, std::string name,
             std::string category, std::string detail = {});
  // A stream that loads links changed its rate.
  void load(const std::vector<ClassLoad>& classes, double by, Time now);

  // Links go on later by so much, as they were, and do meanwhile what they did for a period.
  void skip(Time now, Duration period, Duration later);

  [[nodiscard]] Trace finish(Time end);

 private:
  struct ClassState {
    double used = 0;
    double capacity = 0;
    std::uint32_t track = absent;
    std::vector<LoadChange> changes;
  };
  [[nodiscard]] static std::vector<bool> choose(const Cast& cast, const Ranks& ranks,
                                                std::optional<std::uint32_t> wanted);
  void add_tracks(const Topology& topology, const Cast& cast, const Ranks& ranks,
                  const std::vector<bool>& recorded);

  Trace trace_;
  std::vector<std::uint32_t> first_track_;  // By rank; its streams' tracks follow each other.
  std::array<ClassState, link_classes> classes_;
};

}  // namespace flyover
