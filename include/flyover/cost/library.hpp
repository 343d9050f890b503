#pragma once

// A communication library as data: read from configs/libraries/*.json (io/library_reader.hpp), where
// every number stands beside its source, and steered by NCCL's own variables.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/collective.hpp"

namespace flyover {

enum class Protocol : std::uint8_t { LL, LL128, Simple };
[[nodiscard]] std::string_view to_string(Protocol protocol);  // "LL", "LL128", "Simple"
[[nodiscard]] std::optional<Protocol> protocol(std::string_view name);  // Case is ignored.

// NCCL_ALGO, NCCL_PROTO, NCCL_NVLS_ENABLE, NCCL_PXN_DISABLE, NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS,
// NCCL_CROSS_NIC ... as set by the user; empty means the library's default.
struct LibrarySettings {
  std::vector<AlgorithmId> algorithms;         // Allowed ones; empty: all.
  std::vector<AlgorithmId> forbidden_algorithms;  // "^Tree".
  std::vector<Protocol> protocols;             // Allowed ones; empty: all.
  std::vector<Protocol> forbidden_protocols;
  bool nvls = true;
  bool pxn = true;
  std::optional<std::uint32_t> min_channels;
  std::optional<std::uint32_t> max_channels;
};

// Reads one variable into the settings. Throws InputError for an unknown variable (with the nearest
// known name) or value.
void set_variable(LibrarySettings& settings, std::string_view name, std::string_view value);
[[nodiscard]] std::vector<std::string> known_variables();

}  // namespace flyover
