#pragma once

// Configs that build on each other: a file with "extends": "NAME" states only what differs from
// another of its family (a merge patch, RFC 7386).

#include <string>
#include <string_view>
#include <vector>

#include "flyover/io/document.hpp"

namespace flyover::io {

struct ConfigFamily {
  std::string_view folder;  // Of configs/.
  std::string_view kind;    // As messages name one: "stack".
};

// The names of those compiled in, in alphabetical order.
[[nodiscard]] std::vector<std::string> config_names(const ConfigFamily& family);

// With all that it builds on: the file `name` when it ends in ".json", else the one compiled in.
// Throws InputError with the nearest name when there is none.
[[nodiscard]] Document config_document(const ConfigFamily& family, std::string_view name);

}  // namespace flyover::io
