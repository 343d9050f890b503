#pragma once

// Measured tables as files (docs/formats/measurement.md): one record, a list of records, or an
// object with "records".

#include <filesystem>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/study/measured_cluster.hpp"
#include "flyover/study/measurement.hpp"

namespace flyover::io {

// Throws InputError, with the place, for what is missing or of the wrong kind. Members that it does
// not know are left alone: folders of others have their own.
[[nodiscard]] std::vector<Measurement> read_measurements(const Document& document);

// All records of the *.json files in a folder and those below it, in order of path. Throws
// InputError when there is no such folder or nothing in it.
[[nodiscard]] std::vector<Measurement> load_measurements(const std::filesystem::path& folder);

// Those of validation/, compiled in.
[[nodiscard]] std::vector<Measurement> shipped_measurements();

// The shipped presets and libraries, to build measured systems from.
[[nodiscard]] HardwareCatalogue hardware_catalogue();

}  // namespace flyover::io
