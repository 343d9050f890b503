#pragma once

// What kernels cost, as files: those of configs/kernels/, compiled in, or one of the user's own;
// and measured kernels to hold them to.

#include <string>
#include <string_view>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/layout/kernel_time.hpp"
#include "flyover/topology/hardware.hpp"

namespace flyover::io {

// The text of a kernel model: the file `name` when it ends in ".json", else the shipped one of that
// name ("2025", "megatron-2021"). A file with "extends": "2025" states only what differs (a merge
// patch, RFC 7386). Throws InputError with the nearest name when there is none.
[[nodiscard]] Document kernel_document(std::string_view name);
// The names of shipped kernel models, in alphabetical order.
[[nodiscard]] std::vector<std::string> kernel_model_names();

// Throws InputError, with the place, for whatever is missing, unknown or impossible.
[[nodiscard]] KernelModel read_kernels(const Document& document);

// One kernel, or a few one after the other, as somebody measured them.
struct KernelMeasurement {
  std::string id;
  std::string operation;  // "gemm", "attention fwd", ...
  std::string source;     // A key of the file's sources.
  GpuModel gpu;
  std::vector<AnyKernel> kernels;
  double microseconds = 0;
  double weight = 1;  // Below 1: parts of the shape are assumed, or read from a chart.
};

// Reads "flyover-kernel-measurements-1": validation/kernels/measured.json.
[[nodiscard]] std::vector<KernelMeasurement> read_kernel_measurements(const Document& document);

// The model's time for all kernels of a measurement, without launches, which profilers leave out.
[[nodiscard]] double predicted_microseconds(const KernelModel& model,
                                            const KernelMeasurement& measurement);

}  // namespace flyover::io
