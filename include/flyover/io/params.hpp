#pragma once

// Site parameters as files: docs/formats/params.md.

#include <string>
#include <vector>

#include "flyover/cost/library.hpp"
#include "flyover/io/document.hpp"
#include "flyover/study/calibrate.hpp"

namespace flyover::io {

struct ParamsFile {
  struct Log {
    std::string name;
    std::string collective;
    std::uint32_t ranks = 0;
    std::uint32_t rows = 0;
  };
  std::string library;  // What it was fitted with: "nccl",
  std::string version;  // "2.27".
  std::string topology;
  std::vector<Log> logs;
  Calibration calibration;
};

[[nodiscard]] std::string params_json(const ParamsFile& params);
// Throws InputError, with the place, for what is missing, unknown or impossible.
[[nodiscard]] ParamsFile read_params(const Document& document);

// The library with the site's parameters. They belong to the rules that they were fitted with:
// under another library or version a note of its settings says so.
void apply_params(Library& library, const ParamsFile& params, const std::string& name);

}  // namespace flyover::io
