#include "flyover/report/table.hpp"

#include <catch2/catch.hpp>

using namespace flyover;

namespace {

TextTable sizes() {
  return {{{"size"}, {"what", true}, {"time"}},
          {{"8", "ring", "10.5 us"}, {"1024", "tree", "9 µs"}}};
}

}  // namespace

TEST_CASE("words stand to the left, numbers to the right", "[report]") {
  CHECK(render(sizes(), 0) ==
        "size  what     time\n"
        "   8  ring  10.5 us\n"
        "1024  tree     9 µs\n");
}

TEST_CASE("columns that do not fit are left out by name", "[report]") {
  CHECK(render(sizes(), 15) ==
        "size  what\n"
        "   8  ring\n"
        "1024  tree\n"
        "(left out for lack of width: time)\n");
}

TEST_CASE("the first column stays however narrow the terminal is", "[report]") {
  CHECK(render(sizes(), 1) ==
        "size\n"
        "   8\n"
        "1024\n"
        "(left out for lack of width: what, time)\n");
}
