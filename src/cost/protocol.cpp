#include "flyover/cost/protocol.hpp"

#include <algorithm>
#include <cctype>

namespace flyover {

std::string_view to_string(Protocol protocol) {
  switch (protocol) {
    case Protocol::LL:
      return "LL";
    case Protocol::LL128:
      return "LL128";
    case Protocol::Simple:
      return "Simple";
  }
  return "";
}

std::optional<Protocol> protocol(std::string_view name) {
  const auto same_letter = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (const Protocol candidate : all_protocols) {
    if (std::ranges::equal(name, to_string(candidate), same_letter)) return candidate;
  }
  return std::nullopt;
}

}  // namespace flyover
