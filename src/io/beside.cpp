#include "io/beside.hpp"

#include <filesystem>

namespace flyover::io {

std::string beside(const std::string& file, const std::string& name_or_path) {
  const bool is_path =
      name_or_path.ends_with(".json") || name_or_path.find('/') != std::string::npos;
  const std::filesystem::path path = std::filesystem::path(file).parent_path() / name_or_path;
  std::error_code error;
  return is_path && std::filesystem::exists(path, error) ? path.string() : name_or_path;
}

}  // namespace flyover::io
