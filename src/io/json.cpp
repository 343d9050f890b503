#include "io/json.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace flyover::io {

namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view digits = "0123456789";
constexpr std::string_view number_letters = "+-.0123456789eE";

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

// The number of bytes of the UTF-8 character at the front of `text`, or 0 if it is not valid
// (Unicode 15, table 3-7). `text` is not empty.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto within = [&](std::size_t i, unsigned low, unsigned high) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return within(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = within(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF);
    return second && within(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = within(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && within(2, 0x80, 0xBF) && within(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | code >> 6U);
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12U);
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | code >> 18U);
    put(0x80U | (code >> 12U & 0x3FU));
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  Json document() {
    skip_blanks();
    Json value = parse_value("a value");
    skip_blanks();
    if (!done()) fail_here("expected the end of the document");
    return value;
  }

 private:
  struct Step {
    const std::string* key;  // Null in an array.
    std::size_t index;
  };

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek() const { return done() ? '\0' : text_[at_]; }

  [[noreturn]] void fail(std::size_t offset, std::string problem, bool with_pointer = false) const {
    throw JsonError{offset, with_pointer ? pointer() : "", std::move(problem), done()};
  }
  [[noreturn]] void fail_here(std::string_view expectation) const {
    fail(at_, fmt::format("{}, got {}", expectation, next_token()));
  }

  [[nodiscard]] std::string pointer() const {
    std::string out;
    for (const Step& step : path_) {
      out += '/';
      out += step.key != nullptr ? escape_pointer(*step.key) : std::to_string(step.index);
    }
    return out;
  }

  // What stands where something else was expected.
  [[nodiscard]] std::string next_token() const {
    if (done()) return "the end of the text";
    const std::string_view rest = text_.substr(at_);
    if (rest[0] == '\'') return "\"'\" (strings are written in double quotes)";
    if (rest[0] == '"') return "a string";
    const auto word =
        static_cast<std::size_t>(std::ranges::find_if_not(rest, is_letter) - rest.begin());
    if (word > 0) return fmt::format("\"{}\"", rest.substr(0, std::min<std::size_t>(word, 40)));
    const std::size_t length = character_length(rest);
    if (length == 0 || static_cast<unsigned char>(rest[0]) < 0x20 || rest[0] == 0x7F) {
      return fmt::format("the byte 0x{:02X}", static_cast<unsigned char>(rest[0]));
    }
    return fmt::format("\"{}\"", rest.substr(0, length));
  }

  void skip_blanks() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (rest.starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
          const std::size_t start = at_;
          at_ = text_.size();
          fail(start, "the comment that starts here is not closed");
        }
        at_ = end + 2;
      } else if (rest == "/") {  // Half of a comment's start: more text may follow.
        const std::size_t start = at_++;
        fail(start, "expected a value or a comment, got \"/\"");
      } else {
        return;
      }
    }
  }

  Json parse_value(std::string_view expected) {
    const std::size_t offset = at_;
    switch (peek()) {
      case '{':
        return {parse_object(), offset};
      case '[':
        return {parse_array(), offset};
      case '"':
        return {parse_string(), offset};
      case 't':
        return keyword("true", true);
      case 'f':
        return keyword("false", false);
      case 'n':
        return keyword("null", std::monostate{});
      default:
        break;
    }
    if (!done() && number_letters.substr(0, 13).find(peek()) != std::string_view::npos) {
      return {parse_number(), offset};
    }
    fail_here(fmt::format("expected {}", expected));
  }

  template <class T>
  Json keyword(std::string_view word, T meaning) {
    const std::string_view rest = text_.substr(at_);
    if (rest.size() < word.size() && word.starts_with(rest)) {
      const std::size_t start = std::exchange(at_, text_.size());
      fail(start, fmt::format("expected \"{}\", got \"{}\"", word, rest));
    }
    if (!rest.starts_with(word) || (rest.size() > word.size() && is_letter(rest[word.size()]))) {
      fail_here("expected a value");
    }
    const std::size_t offset = at_;
    at_ += word.size();
    return {meaning, offset};
  }

  JsonNumber parse_number() {
    const std::size_t start = at_;
    at_ = std::min(text_.find_first_not_of(number_letters, at_), text_.size());
    while (!done() && is_letter(peek())) ++at_;  // "12abc" and "-Infinity" are one wrong word.
    const std::string_view word = text_.substr(start, at_ - start);

    const auto skip_digits = [&](std::size_t from) {
      return std::min(word.find_first_not_of(digits, from), word.size());
    };
    std::size_t end = word.starts_with('-') ? 1 : 0;
    const std::size_t whole = end;
    end = skip_digits(end);
    bool good = end > whole && (word[whole] != '0' || end == whole + 1);
    const auto part = [&](std::size_t from) {
      const std::size_t next = skip_digits(from);
      good = good && next > from;
      end = next;
    };
    if (end < word.size() && word[end] == '.') part(end + 1);
    if (end < word.size() && (word[end] == 'e' || word[end] == 'E')) {
      const bool sign = end + 1 < word.size() && (word[end + 1] == '-' || word[end + 1] == '+');
      part(end + (sign ? 2 : 1));
    }
    if (!good || end != word.size()) {
      fail(start, fmt::format("expected a number such as 12, -0.5 or 1e9, got \"{}\"",
                              word.substr(0, 40)));
    }
    double value = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} && magnitude(word) > 0) {
      fail(start, fmt::format("the number {} is too large", word.substr(0, 40)), true);
    }
    return {value, std::string(word)};
  }

  // The power of ten of the leading digit. std::from_chars has one error for numbers that are too
  // large and for those so small that they are zero.
  static int magnitude(std::string_view word) {
    const std::size_t e = std::min(word.find_first_of("eE"), word.size());
    const std::string_view mantissa = word.substr(0, e);
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    const std::size_t leading = std::min(mantissa.find_first_of("123456789"), mantissa.size());
    int exponent = 0;
    if (e < word.size()) {
      const std::string_view power = word.substr(e + (word[e + 1] == '+' ? 2 : 1));
      const auto result = std::from_chars(power.data(), power.data() + power.size(), exponent);
      if (result.ec != std::errc{}) return power.starts_with('-') ? -1 : 1;
    }
    return static_cast<int>(point) - static_cast<int>(leading) + exponent;
  }

  std::string parse_string() {
    const std::size_t start = at_++;
    std::string out;
    for (;;) {
      const std::size_t run = at_;
      while (!done() && static_cast<unsigned char>(peek()) >= 0x20 &&
             static_cast<unsigned char>(peek()) < 0x80 && peek() != '"' && peek() != '\\') {
        ++at_;
      }
      out.append(text_, run, at_ - run);
      if (done()) fail(start, "the string that starts here is not closed");
      const char c = peek();
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        parse_escape(out);
      } else if (c == '\n' || c == '\r') {
        fail(start, "the string that starts here is not closed on its line");
      } else if (static_cast<unsigned char>(c) < 0x20) {
        fail(at_, fmt::format("the byte 0x{0:02X} in a string must be written \\u{0:04x}",
                              static_cast<unsigned char>(c)));
      } else {
        const std::size_t length = character_length(text_.substr(at_));
        if (length == 0) fail_utf8();
        out.append(text_, at_, length);
        at_ += length;
      }
    }
  }

  [[noreturn]] void fail_utf8() {
    const std::size_t start = at_;
    const auto byte = static_cast<unsigned char>(peek());
    // A character that the end of the text cuts off may be good in a longer text.
    while (!done() && (at_ == start || (is_continuation(peek()) && at_ - start < 3))) ++at_;
    fail(start, fmt::format("the byte 0x{:02X} is not UTF-8 text", byte));
  }

  void parse_escape(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    const std::size_t start = at_++;
    if (done()) fail(start, "the string is not closed");
    const char letter = text_[at_++];
    if (const std::size_t which = letters.find(letter); which != std::string_view::npos) {
      out += meanings[which];
      return;
    }
    if (letter != 'u') {
      at_ = start + 1;
      fail(start, fmt::format("expected an escape such as \\n, \\\" or \\u00b5, got \\ before {}",
                              next_token()));
    }
    unsigned code = parse_hex(start);
    if (code >= 0xDC00 && code <= 0xDFFF) fail(start, "\\u escape of half a character");
    if (code >= 0xD800 && code <= 0xDBFF) {  // The first half of a surrogate pair.
      const std::string_view rest = text_.substr(at_, 2);
      if (rest != "\\u") {
        if (std::string_view("\\u").starts_with(rest)) at_ = text_.size();
        fail(start, "\\u escape of half a character");
      }
      at_ += 2;
      const unsigned low = parse_hex(start);
      if (low < 0xDC00 || low > 0xDFFF) fail(start, "\\u escape of half a character");
      code = 0x10000U + ((code - 0xD800U) << 10U) + (low - 0xDC00U);
    }
    append_utf8(out, code);
  }

  unsigned parse_hex(std::size_t start) {
    unsigned code = 0;
    const std::string_view four = text_.substr(at_, 4);
    const char* last = four.data() + four.size();
    const auto [end, error] = std::from_chars(four.data(), last, code, 16);
    if (end != last || four.size() < 4) {
      at_ += static_cast<std::size_t>(end - four.data());
      fail(start, "expected four hexadecimal digits after \\u");
    }
    at_ += 4;
    return code;
  }

  void enter() {
    if (++depth_ > max_json_depth) {
      fail(at_, fmt::format("nested more than {} deep", max_json_depth));
    }
    ++at_;
    skip_blanks();
  }

  JsonArray parse_array() {
    enter();
    JsonArray elements;
    path_.push_back({nullptr, 0});
    if (peek() != ']') {
      for (std::string_view expected = "a value or \"]\"";; expected = "a value after \",\"") {
        elements.push_back(parse_value(expected));
        ++path_.back().index;
        skip_blanks();
        if (peek() == ']') break;
        if (peek() != ',') fail_here("expected \",\" or \"]\"");
        ++at_;
        skip_blanks();
      }
    }
    leave();
    return elements;
  }

  JsonObject parse_object() {
    enter();
    JsonObject members;
    std::unordered_map<std::string, std::size_t>
        index;  // Only of objects too long to look through.
    if (peek() == '}') {
      path_.push_back({nullptr, 0});
      leave();
      return members;
    }
    path_.push_back({nullptr, 0});
    for (std::string_view expected = "a key in double quotes or \"}\"";;
         expected = "a key in double quotes after \",\"") {
      if (peek() != '"') fail_here(fmt::format("expected {}", expected));
      const std::size_t key_offset = at_;
      std::string key = parse_string();
      path_.back().key = &key;
      check_unique(members, index, key, key_offset);
      skip_blanks();
      if (peek() != ':') fail_here(fmt::format("expected \":\" after the key \"{}\"", key));
      ++at_;
      skip_blanks();
      Json value = parse_value("a value");
      members.push_back({std::move(key), std::move(value), key_offset});
      skip_blanks();
      if (peek() == '}') break;
      if (peek() != ',') fail_here("expected \",\" or \"}\"");
      ++at_;
      skip_blanks();
    }
    leave();
    return members;
  }

  void leave() {
    ++at_;
    --depth_;
    path_.pop_back();
  }

  void check_unique(const JsonObject& members, std::unordered_map<std::string, std::size_t>& index,
                    const std::string& key, std::size_t key_offset) const {
    constexpr std::size_t few = 32;
    std::size_t first = key_offset;
    if (members.size() < few) {
      if (const JsonMember* member = find_member(members, key)) first = member->key_offset;
    } else {
      if (index.empty()) {
        for (const JsonMember& member : members) index.emplace(member.key, member.key_offset);
      }
      first = index.emplace(key, key_offset).first->second;
    }
    if (first == key_offset) return;
    Place place;
    locate(text_, first, place);
    fail(key_offset,
         fmt::format("the key \"{}\" is given twice, first in line {}", key, place.line), true);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<Step> path_;
};

}  // namespace

Json parse_json(std::string_view text) {
  return Parser(text).document();
}

const JsonMember* find_member(const JsonObject& object, std::string_view key) {
  const auto found = std::ranges::find(object, key, &JsonMember::key);
  return found == object.end() ? nullptr : &*found;
}

std::string describe(const Json& value) {
  if (const auto* text = std::get_if<std::string>(&value.value)) {
    constexpr std::size_t longest = 60;
    if (text->size() <= longest) return fmt::format("\"{}\"", *text);
    std::size_t end = longest;
    while (is_continuation((*text)[end])) --end;
    return fmt::format("\"{}...\"", std::string_view(*text).substr(0, end));
  }
  if (const auto* number = std::get_if<JsonNumber>(&value.value)) return number->text;
  if (const auto* truth = std::get_if<bool>(&value.value)) return *truth ? "true" : "false";
  if (std::holds_alternative<JsonArray>(value.value)) return "an array";
  if (std::holds_alternative<JsonObject>(value.value)) return "an object";
  return "null";
}

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

void locate(std::string_view text, std::size_t offset, Place& place) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t newline = before.rfind('\n');
  std::string_view line = newline == std::string_view::npos ? before : before.substr(newline + 1);
  if (newline == std::string_view::npos && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  place.line = 1 + static_cast<int>(std::ranges::count(before, '\n'));
  place.column = 1 + static_cast<int>(line.size() - static_cast<std::size_t>(std::ranges::count_if(
                                                        line, is_continuation)));
}

}  // namespace flyover::io
