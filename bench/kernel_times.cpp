// Measured kernels beside the times of one or more kernel models, as tab-separated lines. What
// scripts/fit/kernels.py asks, so that no equation is written twice.
//
//   flyover_kernel_times validation/kernels/measured.json 2025 other.json ...

#include <cstdio>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "flyover/io/kernel_reader.hpp"

int main(int count, char** arguments) {
  using namespace flyover;
  if (count < 3) {
    std::fputs("usage: flyover_kernel_times MEASURED MODEL...\n", stderr);
    return 2;
  }
  try {
    const io::Document measured = io::Document::load(arguments[1]);
    std::vector<KernelModel> models;
    for (int i = 2; i < count; ++i) {
      models.push_back(io::read_kernels(io::kernel_document(arguments[i])));
    }
    for (const io::KernelMeasurement& record : io::read_kernel_measurements(measured)) {
      fmt::print("{}\t{}\t{}\t{}\t{}\t{}", record.id, record.operation, record.gpu.name,
                 record.source, record.weight, record.microseconds);
      for (const KernelModel& model : models) {
        fmt::print("\t{}", io::predicted_microseconds(model, record));
      }
      fmt::print("\n");
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
