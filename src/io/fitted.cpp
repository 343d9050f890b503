#include "io/fitted.hpp"

#include <fmt/format.h>

namespace flyover::io {

void check_fitted(const Field& rule) {
  if (!rule.has("fitted")) return;
  const Field fitted = rule["fitted"];
  for (const std::string& value : fitted.keys()) {
    const Field entry = fitted[value];
    if (!rule.has(value)) entry.fail(fmt::format("the rule has no \"{}\"", value));
    entry.allow_only({"prior", "spread", "group", "uncertainty", "rows"});
    static_cast<void>(entry["spread"].positive_number());
  }
}

}  // namespace flyover::io
