#include "flyover/base/error.hpp"

#include <fmt/format.h>

namespace flyover {

namespace {

std::string describe(const Place& place, std::string_view problem) {
  std::string text = place.file;
  if (place.line > 0) text += fmt::format(":{}", place.line);
  if (place.line > 0 && place.column > 0) text += fmt::format(":{}", place.column);
  if (!place.pointer.empty()) text += (text.empty() ? "" : ": ") + place.pointer;
  return text.empty() ? std::string(problem) : fmt::format("{}: {}", text, problem);
}

}  // namespace

InputError::InputError(Place place, std::string_view problem)
    : std::runtime_error(describe(place, problem)),
      place_(std::move(place)),
      problem_(problem) {}

InputError::InputError(std::string_view problem) : InputError(Place{}, problem) {}

}  // namespace flyover
