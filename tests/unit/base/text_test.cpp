#include "flyover/base/text.hpp"

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"

using namespace flyover;

namespace {

const std::vector<std::string> presets = {"dgx-a100", "dgx-h100", "hgx-h800",   "dgx-h200",
                                          "dgx-b200", "dgx-b300", "gb200-nvl72"};

std::string problem_of(std::string_view list, std::uint32_t limit) {
  try {
    (void)parse_index_list(list, limit);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the nearest word is the one that was meant", "[text]") {
  CHECK(nearest("dgx-h10", presets) == "dgx-h100");
  CHECK(nearest("dgx-h1000", presets) == "dgx-h100");
  CHECK(nearest("DGX-H100", presets) == "dgx-h100");
  CHECK(nearest("dxg-b200", presets) == "dgx-b200");  // A swap is one edit.
  CHECK(nearest("dgx-h300", presets) == "dgx-h100");  // Of equals, the one that begins alike.
  CHECK(nearest("h800", presets) == "hgx-h800");      // A part of the name.
  CHECK(nearest("gb200", presets) == "gb200-nvl72");
  CHECK(nearest("dgx-a100-80gb", presets) == "dgx-a100");
  CHECK(nearest("summit", presets).empty());
  CHECK(nearest("", presets).empty());
  CHECK(nearest("x", std::vector<std::string>{"y", "tp"}).empty());
  CHECK(nearest("td", std::vector<std::string>{"tp"}) == "tp");
  CHECK(nearest("anything", {}).empty());
}

TEST_CASE("a hint is a whole phrase or nothing", "[text]") {
  CHECK(did_you_mean("linsk", std::vector<std::string>{"nodes", "links"}) ==
        ", did you mean \"links\"?");
  CHECK(did_you_mean("weather", std::vector<std::string>{"nodes", "links"}).empty());
}

TEST_CASE("an index list keeps its order", "[text]") {
  using List = std::vector<std::uint32_t>;
  CHECK(parse_index_list("0-3,8,12-15", 16) == List{0, 1, 2, 3, 8, 12, 13, 14, 15});
  CHECK(parse_index_list("5, 3, 0 - 1", 8) == List{5, 3, 0, 1});
  CHECK(parse_index_list("7", 8) == List{7});
  CHECK(parse_index_list("2-2", 8) == List{2});
}

TEST_CASE("an index list that is none is refused", "[text]") {
  const std::string form = "expected a list of numbers such as \"0-3,8,12-15\", got ";
  for (const char* text : {"", "0-3,,8", ",", "a", "1-", "-1", "1-2-3", "0x1", "1.5", "1 2"}) {
    CHECK(problem_of(text, 16) == form + '"' + text + '"');
  }
  CHECK(problem_of("5-3", 8) == "the range 5-3 falls, write 3-5");
  CHECK(problem_of("0-3,2", 8) == "2 is named twice in \"0-3,2\"");
  CHECK(problem_of("0-8", 8) == "8 is out of range, expected 0 to 7");
  CHECK(problem_of("99999999999999999999", 8) ==
        "99999999999999999999 is out of range, expected 0 to 7");
  CHECK(problem_of("0", 0) == "0 is out of range: there are none to name");
}

TEST_CASE("an index list prints as it is written", "[text]") {
  for (const char* text : {"0-3,8,12-15", "7", "3,2,1,0", "0-1", "5,0-2"}) {
    CHECK(index_list(parse_index_list(text, 16)) == text);
  }
  CHECK(index_list({}).empty());
}
