#pragma once

// Models by name (configs/models/*.json, compiled in), in files of that format, or as Hugging Face
// describes them (config.json).

#include <string>
#include <string_view>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/layout/model.hpp"

namespace flyover::io {

struct ShippedModel {
  std::string name;
  std::vector<std::string> aliases;
};
// In alphabetical order.
[[nodiscard]] std::vector<ShippedModel> shipped_models();

// The text of a model: the shipped one of this name or alias (case and a hyphen between a letter
// and a digit do not matter: "Llama-3.1-70B" is "llama3.1-70b"), else the file, else config.json in
// the folder. "-" is standard input. Throws InputError with the nearest name when there is none.
[[nodiscard]] Document model_document(std::string_view name_or_path);

// Reads format "flyover-model-1", or a Hugging Face config, recognised by its "model_type" or
// "architectures". Of the latter only what the architecture needs is looked at; what they leave out
// gets the value that their implementation gives it. Throws InputError, with the place, for
// whatever is missing, impossible or not a known type.
[[nodiscard]] Model read_model(const Document& document);

// A model that stands inside another file, in the first of these formats; "model" unless it has a
// name.
[[nodiscard]] Model read_model(const Field& field);

// model_document and read_model in one.
[[nodiscard]] Model load_model(std::string_view name_or_path);

}  // namespace flyover::io
