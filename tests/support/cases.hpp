#pragma once

// Public questions with known answers: ../shared/cases/cases.json.

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/shared.hpp"

namespace flyover::test {

// The answer of a case, or nothing when the file is not there.
inline std::optional<nlohmann::json> answer_of(const std::string& id) {
  const auto path = shared_material("cases/cases.json");
  if (!path) return std::nullopt;
  std::ifstream file(*path);
  const nlohmann::json cases = nlohmann::json::parse(file);
  const auto found =
      std::ranges::find_if(cases, [&](const auto& entry) { return entry["id"] == id; });
  REQUIRE(found != cases.end());
  return (*found)["answer"];
}

}  // namespace flyover::test
