#pragma once

#include <string>

namespace flyover::io {

// A path in a file counts from the folder that the file lies in, if it leads somewhere from there;
// what is no path (no ".json" at the end and no '/') stays a name.
[[nodiscard]] std::string beside(const std::string& file, const std::string& name_or_path);

}  // namespace flyover::io
