#include "flyover/report/range.hpp"

#include <catch2/catch.hpp>

using namespace flyover;

TEST_CASE("ranges are percentages of two digits", "[report]") {
  CHECK(range_text(0.917, 1.142) == "-8.3/+14%");
  CHECK(range_text(1, 1.006) == "-0.0/+0.6%");
  CHECK(range_text(0.9006, 1.0994) == "-9.9/+9.9%");
  CHECK(range_text(0.9004, 3.5) == "-10/+250%");
}
