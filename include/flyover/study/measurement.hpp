#pragma once

// A measured table of one collective on one system, as docs/formats/measurement.md describes it.
// What a source does not state stays empty; nothing is filled in here.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/workload/collective_op.hpp"

namespace flyover {

enum class Health : std::uint8_t { Healthy, Degraded, Unknown };
[[nodiscard]] std::string_view to_string(Health health);  // "healthy", ...

struct MeasuredSystem {
  std::string gpu;  // As the source names it; "" when not stated.
  std::optional<std::uint32_t> gpus_per_node;
  std::optional<std::uint32_t> nodes;
  std::optional<std::uint32_t> nvlink_generation;
  std::string nic;                       // "8x400G ConnectX-7"
  std::optional<Bandwidth> nic_per_gpu;  // One direction.
  std::string fabric;                    // "RoCE", "NVL72 MNNVL"
};

struct MeasuredRow {
  std::optional<Bytes> bytes;
  std::optional<double> time_us;
  std::optional<double> algbw_GBps;  // NOLINT(readability-identifier-naming): as in the file.
  std::optional<double> busbw_GBps;  // NOLINT(readability-identifier-naming)
};

struct Measurement {
  std::string id;
  std::string source;
  std::string site;  // Records of one site share it.
  std::string date;
  MeasuredSystem system;
  std::uint32_t gpus = 0;   // That took part.
  std::string nccl;         // Version, with the library's name where it is not NCCL.
  std::string library;      // Whose kernels ran, when not NCCL's or RCCL's.
  std::string environment;  // "NCCL_ALGO=Ring NCCL_PROTO=LL128"
  std::string collective;   // Any word: what we do not know is skipped later.
  std::string dtype;
  Health health = Health::Unknown;
  std::string notes;
  double algbw_directions = 1;  // 2: bandwidths are the sum of both directions.
  std::vector<MeasuredRow> rows;
  std::vector<MeasuredRow> in_place;
};

// The rows to compare with: out of place, or in place when there are no others.
[[nodiscard]] const std::vector<MeasuredRow>& compared_rows(const Measurement& measurement);

// A bandwidth that is printed more coarsely than this says little about a time.
inline constexpr double coarsest_resolution = 0.025;

struct MeasuredTime {
  double us = 0;
  // Half of the last printed digit, as a share of the value: 0 for a stated time, large for
  // "0.01 GB/s".
  double resolution = 0;
};
// The row's time, else what its bandwidths imply. Nothing when they are missing or zero.
[[nodiscard]] std::optional<MeasuredTime> measured_time(const Measurement& measurement,
                                                        const MeasuredRow& row, CollectiveOp op);

}  // namespace flyover
