#pragma once

#include "flyover/io/document.hpp"
#include "flyover/layout/model.hpp"

namespace flyover::io {

[[nodiscard]] bool is_hugging_face_config(const Field& root);
[[nodiscard]] Model read_hugging_face_config(const Document& document);

}  // namespace flyover::io
