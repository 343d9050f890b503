#pragma once

// What nccl-tests and rccl-tests print (all_reduce_perf and its siblings), as people keep it: with
// or without its head, with mpirun's and srun's tags, NCCL_DEBUG lines in between (also within a
// row), several tables one after the other, the columns of any release.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/study/calibrate.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/collective_op.hpp"

namespace flyover::io {

struct NcclTestsTable {
  std::string name;  // "all_reduce.log", or "all_reduce.log:57" by its line when there are several.
  CollectiveOp op = CollectiveOp::AllReduce;
  std::string dtype;                  // "fp32"
  std::uint32_t root = 0;             // 0 where the collective has none.
  std::uint32_t ranks = 0;            // As the head lists them; 0: it is not there.
  std::vector<std::string> hosts;     // Of every rank in order; empty unless all are listed.
  std::string device;                 // "NVIDIA H100 80GB HBM3", of the first listed; may be "".
  std::vector<CalibrationRow> rows;   // Out of place, or whatever the first time column is.
  std::vector<std::string> warnings;  // Rows that were left out, and why.
};

// `collective` wins over what the log says. Throws InputError, with file and line, when there is no
// table, for columns that nccl-tests does not print, for rows that are not numbers, and when it
// cannot tell the collective; that message offers --collective.
[[nodiscard]] std::vector<NcclTestsTable> read_nccl_tests_log(
    const std::string& name, std::string_view text, std::optional<CollectiveOp> collective = {});
// The same for a file; "-" is standard input.
[[nodiscard]] std::vector<NcclTestsTable> load_nccl_tests_log(
    const std::filesystem::path& path, std::optional<CollectiveOp> collective = {});

// The GPUs that the ranks of the table ran on: the first of every node for a host each where there
// are as many nodes, else the first of the topology. `gpus` is for tables that do not list their
// ranks; without it they ran on all. Throws InputError when that contradicts the topology.
[[nodiscard]] CalibrationTable place_ranks(const NcclTestsTable& table, const Topology& topology,
                                           std::optional<std::uint32_t> gpus = {});

}  // namespace flyover::io
