#pragma once

// How often experts were chosen in a measured run: docs/formats/expert-load.md.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "flyover/io/document.hpp"

namespace flyover::io {

struct ExpertLoad {
  struct Layer {
    std::optional<std::uint32_t> layer;  // None: the list is of all layers.
    std::vector<double> load;            // By expert: (token, expert) pairs, in any unit.
  };
  std::string name;
  std::string source;
  std::uint32_t experts = 0;
  std::vector<Layer> layers;  // In order of the file, or one without a number.
};

// Throws InputError, with the place, for what does not follow the format.
[[nodiscard]] ExpertLoad read_expert_load(const Document& document);

// The loads of a layer. Not yet ExpertRouting::popularity, which is of a token's first choice:
// popularity_of_loads (moe/popularity.hpp) makes that. A file with one list for all layers has it
// for every `layer`; one with lists by layer needs one of its layers. Throws InputError.
[[nodiscard]] std::vector<double> read_expert_load(const std::filesystem::path& path,
                                                   std::optional<std::uint32_t> layer);

}  // namespace flyover::io
