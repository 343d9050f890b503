// The schema that editors check training results with, and the reader, are of one mind.

#include <filesystem>

#include <catch2/catch.hpp>

#include "support/schema.hpp"

namespace flyover::io {

namespace fs = std::filesystem;

TEST_CASE("all shipped training results fit the schema", "[training][schema]") {
  const test::Schema schema("training-results.schema.json");
  int count = 0;
  const fs::path folder = fs::path(FLYOVER_SOURCE_DIR) / "validation" / "training";
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    CAPTURE(file.path().filename().string());
    CHECK(schema.problems(test::text_of(file)).empty());
    ++count;
  }
  CHECK(count >= 10);
}

TEST_CASE("the schema refuses training results that the reader would", "[training][schema]") {
  const test::Schema schema("training-results.schema.json");
  const auto record = [](const std::string& layout) {
    return R"({"results": [{"id": "a", "model": {"name": "m"}, "hardware": {"gpu": "H100"},
              "precision": "bf16", "framework": {"name": "f"}, "layout": )" +
           layout + "}]}";
  };
  CHECK(schema.accepts(record(R"({"tp": 2, "own": true, "sp": null})")));
  CHECK_FALSE(schema.accepts(record(R"({"tp": "two"})")));
  CHECK_FALSE(schema.accepts(record(R"({"zero": 4})")));
  CHECK_FALSE(schema.accepts(R"([{"id": "a"}])"));
}

}  // namespace flyover::io
