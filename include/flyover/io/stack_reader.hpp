#pragma once

// Software stacks as files: configs/stacks/*.json, compiled in, or one of the user's own.

#include <string>
#include <string_view>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/layout/stack.hpp"

namespace flyover::io {

// As kernel_document: a file when the name ends in ".json", else the shipped one; "extends" names
// another that it changes.
[[nodiscard]] Document stack_document(std::string_view name);
// In alphabetical order.
[[nodiscard]] std::vector<std::string> stack_names();
// Throws InputError, with the place, for whatever is missing, unknown or impossible.
[[nodiscard]] SoftwareStack read_stack(const Document& document);

// The two in one.
[[nodiscard]] SoftwareStack load_stack(std::string_view name);
// All that are compiled in, by name. At most one of them speaks_for a framework's version.
[[nodiscard]] std::vector<SoftwareStack> shipped_stacks();
// What a job runs on that names none: of the GPU's architecture ("cdna3"), or where there is none
// of its own, NVIDIA's.
[[nodiscard]] std::string default_stack(std::string_view architecture = {});

}  // namespace flyover::io
