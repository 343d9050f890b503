#pragma once

// The JSON that Document holds: RFC 8259 plus // and /* */ comments. Every value knows where in the
// text it was written, so that an error can name its place, and objects keep the order of their
// keys.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "flyover/base/error.hpp"

namespace flyover::io {

struct JsonMember;

// A finite number, and how it was written.
struct JsonNumber {
  double value;
  std::string text;
};

using JsonArray = std::vector<struct Json>;
using JsonObject = std::vector<JsonMember>;

struct Json {
  std::variant<std::monostate, bool, JsonNumber, std::string, JsonArray, JsonObject> value;
  std::size_t offset = 0;    // Of the first byte in the text it was read from.
  std::uint32_t source = 0;  // 0: the text of the document; n: its n-th setting.
};

struct JsonMember {
  std::string key;
  Json value;
  std::size_t key_offset = 0;
};

// Deeper nesting is refused: no input needs it, and reading it must not exhaust the stack.
constexpr std::size_t max_json_depth = 200;
// So are more values: a gibibyte of them would take twenty of memory.
constexpr std::size_t max_json_values = std::size_t{1} << 25U;

// Where and why a text is not JSON.
struct JsonError {
  std::size_t offset;
  std::string pointer;  // Of the value, if one is to blame; else "".
  std::string problem;
  bool at_end;  // All of the text was read: more of it might have made sense.
};

// Throws JsonError.
[[nodiscard]] Json parse_json(std::string_view text);

// The member with this key, or null.
[[nodiscard]] const JsonMember* find_member(const JsonObject& object, std::string_view key);

// The value as a message shows it: "\"abc\"", "8.5", "true", "null", "an object", "an array".
[[nodiscard]] std::string describe(const Json& value);

// A key as it stands in an RFC 6901 pointer.
[[nodiscard]] std::string escape_pointer(std::string_view key);

// Line and column of a byte of the text, both from 1; columns count characters.
void locate(std::string_view text, std::size_t offset, Place& place);

}  // namespace flyover::io
