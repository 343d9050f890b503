#pragma once

// Words for exchanges of experts, as workload files and the command line know them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/layout/model.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover::io {

// All of them, as to_string writes them, in the order of the enumeration.
[[nodiscard]] std::vector<std::string> expert_mode_words();
[[nodiscard]] std::vector<std::string> gate_words();
[[nodiscard]] std::vector<std::string> placement_words();
// Require one of the words.
[[nodiscard]] ExpertMode expert_mode_named(std::string_view word);
[[nodiscard]] Gate gate_named(std::string_view word);
[[nodiscard]] Placement placement_named(std::string_view word);

// The library that has the mode's kernels when an exchange does not name one.
[[nodiscard]] std::string default_expert_library(ExpertMode mode);
// Gives an exchange the kernels of a library, or of a file, for its mode, and those for the other
// modes that the library has, fused ones excepted. Throws as read_expert_kernels.
void take_kernels(ExpertExchange& exchange, const std::string& name_or_path);

// What a copy of a token may be sent as: "fp8", one FP32 scale per 128 values; "fp8-32", one scale
// of a byte per 32; "bf16".
[[nodiscard]] std::vector<std::string> payload_words();
// Of a copy, scales included. Requires one of the words.
[[nodiscard]] double payload_bytes(std::string_view word, std::uint32_t hidden);

// How a model with experts chooses them: of groups, where it has any to choose, with V3's gate.
// Throws InputError for a model without experts.
[[nodiscard]] ExpertRouting routing_of(const Model& model);

}  // namespace flyover::io
