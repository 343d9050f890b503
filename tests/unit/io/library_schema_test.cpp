// The schema that editors check a library with, and the reader, are of one mind about structure.

#include <filesystem>

#include <catch2/catch.hpp>

#include "support/schema.hpp"

namespace flyover::io {

namespace fs = std::filesystem;

TEST_CASE("every shipped library fits the schema, versions that only differ too",
          "[library][schema]") {
  const test::Schema schema("library.schema.json");
  int count = 0;
  const fs::path folder = fs::path(FLYOVER_SOURCE_DIR) / "configs" / "libraries";
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    CAPTURE(file.path().filename().string());
    CHECK(schema.problems(test::text_of(file)).empty());
    ++count;
  }
  CHECK(count >= 12);
}

TEST_CASE("the schema refuses libraries that the reader would", "[library][schema]") {
  const test::Schema schema("library.schema.json");
  CHECK(schema.accepts(R"({ "extends": "nccl-2.27", "algorithms": { "all_reduce": ["ring"] } })"));
  CHECK_FALSE(schema.accepts(R"({ "name": "half a library" })"));
  CHECK_FALSE(schema.accepts(R"({ "extends": "nccl-2.27", "latency": [] })"));
  CHECK_FALSE(
      schema.accepts(R"({ "extends": "nccl-2.27", "algorithms": { "all_reduce": ["rign"] } })"));
  CHECK_FALSE(schema.accepts(R"({ "extends": "nccl-2.27", "caps": [ { "total": "1 GB/s" } ] })"));
  CHECK_FALSE(
      schema.accepts(R"({ "extends": "nccl-2.27", "tuning": { "shares": { "pat": 2 } } })"));
}

}  // namespace flyover::io
