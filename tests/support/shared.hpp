#pragma once

// The reference material beside the repository. It is not part of it: tests that read it say when
// it is absent, and pass.

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

namespace flyover::test {

// A file or folder below ../shared, or below the folder that FLYOVER_SHARED names; with a warning
// nothing, when it is not there.
inline std::optional<std::filesystem::path> shared_material(const std::string& below) {
  const char* named = std::getenv("FLYOVER_SHARED");
  const std::filesystem::path path =
      (named != nullptr ? std::filesystem::path(named)
                        : std::filesystem::path(FLYOVER_SOURCE_DIR).parent_path() / "shared") /
      below;
  if (std::filesystem::exists(path)) return path;
  WARN("SKIPPED: there is no " << path.string() << " (FLYOVER_SHARED names its folder)");
  return std::nullopt;
}

}  // namespace flyover::test
