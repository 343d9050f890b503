#include "io/json.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include <boost/iterator/iterator_adaptor.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace flyover::io {

namespace {

using nlohmann::json;

// What numbers and literals are made of, right and wrong ones.
constexpr std::string_view word_bytes =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_+-.'";
constexpr std::size_t longest_quote = 40;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// The text as nlohmann reads it, counting the bytes read: its parser tells no places.
class Tape : public boost::iterator_adaptor<Tape, const char*, char,
                                            boost::single_pass_traversal_tag, char> {
 public:
  Tape(const char* at, std::size_t* read) : iterator_adaptor_(at), read_(read) {}

 private:
  friend class boost::iterator_core_access;
  // To nlohmann a NUL is the end of the text, to us it is as wrong as any other control character.
  [[nodiscard]] char dereference() const { return *base() == '\0' ? '\1' : *base(); }
  void increment() {
    ++base_reference();
    ++*read_;
  }

  std::size_t* read_;
};

// What a message of nlohmann's begins or ends with, and what was expected; a value if it has none.
constexpr std::pair<std::string_view, std::string_view> expectations[] = {
    {"invalid BOM", "the whole byte order mark EF BB BF or none"},
    {"invalid comment", "\"/\" or \"*\" after \"/\""},
    {"invalid string: forbidden", "an escape such as \\n, \\\" or \\u00b5"},
    {"invalid string: '\\u'", "four hexadecimal digits after \\u"},
    {"invalid string: surrogate", "both halves of a character such as \\ud83d\\ude80"},
    {"invalid string: control", "control characters in strings to be escaped"},
    {"invalid string: ill-formed", "UTF-8 text"},
    {"; expected string literal", "a key in double quotes"},
    {"; expected ':'", "\":\" after the key"},
    {"; expected ']'", "\",\" or \"]\""},
    {"; expected '}'", "\",\" or \"}\""},
    {"; expected end of input", "the end of the document"},
};

// Builds the tree from what nlohmann reads, and its errors in our words. Borrows the text.
class Reader final : public nlohmann::json_sax<json> {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json read() {
    const Tape first(text_.data(), &read_);
    const Tape last(text_.data() + text_.size(), &read_);
    json::sax_parse(first, last, this, json::input_format_t::json, /*strict=*/true,
                    /*ignore_comments=*/true);
    return std::move(root_);
  }

  bool null() override { return add(std::monostate{}, read_ - 4); }
  bool boolean(bool value) override { return add(value, read_ - (value ? 4 : 5)); }
  bool number_integer(std::int64_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) override { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) override { return number(value); }
  bool string(std::string& value) override {
    return add(std::move(value), string_start(read_ - 1));
  }
  bool binary(json::binary_t&) override { return false; }  // Not in JSON text.
  bool start_object(std::size_t) override { return add(JsonObject{}, read_ - 1); }
  bool start_array(std::size_t) override { return add(JsonArray{}, read_ - 1); }
  bool key(std::string& name) override {
    last_end_ = read_;
    auto& members = std::get<JsonObject>(open_.back()->value);
    make_room(members);
    members.push_back({std::move(name), {}, string_start(read_ - 1)});
    return true;
  }
  bool end_array() override {
    usual_size() = std::get<JsonArray>(open_.back()->value).size();
    open_.pop_back();
    return true;
  }
  bool end_object() override {
    const auto& members = std::get<JsonObject>(open_.back()->value);
    usual_size() = members.size();
    open_.pop_back();
    check_unique(members);
    return true;
  }

  // `position` counts what was read up to the wrong byte, or to the last one of a wrong token.
  bool parse_error(std::size_t position, const std::string&,
                   const json::exception& error) override {
    const std::size_t at = std::min(position - 1, text_.size());
    const bool in_word = at < text_.size() && word_bytes.find(text_[at]) != std::string_view::npos;
    std::size_t start = word_start(at);
    constexpr int number_overflow = 406;
    if (error.id == number_overflow) {
      add(std::monostate{}, start);
      fail(start, fmt::format("the number {} is too large", word(start)), pointer());
    }

    std::string_view problem = error.what();
    problem.remove_prefix(problem.find(" - ") + 3);
    if (problem.starts_with("invalid comment; missing")) {
      fail(comment_start(), "the comment that starts here is not closed");
    }
    const bool in_string = problem.starts_with("invalid string");
    if (in_string && (at == text_.size() || text_[at] == '\n' || text_[at] == '\r')) {
      fail(string_start(at), "the string that starts here is not closed on its line");
    }
    const bool is_string = problem.starts_with("unexpected string");
    if (is_string) {
      start = string_start(at);
    } else if (in_string || problem.starts_with("unexpected end") || (start == last_ && !in_word)) {
      start = at;  // The word before is good.
    }
    std::string_view expected = "a value";
    const auto* known = std::ranges::find_if(expectations, [&](const auto& expectation) {
      return problem.starts_with(expectation.first) || problem.ends_with(expectation.first);
    });
    if (known != std::end(expectations) && start != last_) expected = known->second;
    const std::string got = is_string ? "a string" : token(start);
    if (expected == "a value" && got.find_first_of("+-.0123456789") == 1) {
      expected = "a number such as 12, -0.5 or 1e9";
    }
    fail(start, fmt::format("expected {}, got {}", expected, got));
  }

 private:
  [[noreturn]] void fail(std::size_t offset, std::string problem, std::string pointer = "") const {
    throw JsonError{offset, std::move(pointer), std::move(problem), read_ == text_.size()};
  }

  bool add(decltype(Json::value) value, std::size_t offset) {
    Json* place = &root_;
    if (!open_.empty()) {
      auto* array = std::get_if<JsonArray>(&open_.back()->value);
      if (array != nullptr) {
        make_room(*array);
        place = &array->emplace_back();
      } else {
        place = &std::get<JsonObject>(open_.back()->value).back().value;
      }
    }
    if (++values_ > max_json_values) {
      fail(offset, fmt::format("more than {} values", max_json_values));
    }
    place->value = std::move(value);
    place->offset = last_ = offset;
    last_end_ = read_ - 1;
    if (std::holds_alternative<JsonArray>(place->value) ||
        std::holds_alternative<JsonObject>(place->value)) {
      if (open_.size() == max_json_depth) {
        fail(offset, fmt::format("nested more than {} deep", max_json_depth));
      }
      open_.push_back(place);
    }
    return true;
  }

  // Elements of the array or object of this depth that was closed last: long lists have elements
  // that look alike.
  std::size_t& usual_size() { return usual_sizes_[open_.size() - 1]; }
  template <class Items>
  void make_room(Items& items) {
    constexpr std::size_t most = 32;
    if (items.empty()) items.reserve(std::min(usual_size(), most));
  }

  bool number(double value) {
    // Only what follows a number ends it, so that one byte more is read, if there is one.
    const bool more = word_bytes.find(text_[read_ - 1]) == std::string_view::npos;
    const std::size_t end = more ? read_ - 1 : read_;
    const std::size_t start = word_start(end);
    return add(JsonNumber{value, std::string(text_.substr(start, end - start))}, start);
  }

  void check_unique(const JsonObject& members) {
    sorted_.clear();
    for (const JsonMember& member : members) sorted_.push_back(&member);
    std::ranges::sort(sorted_, {}, [](const JsonMember* member) {
      return std::pair(std::string_view(member->key), member->key_offset);
    });
    const auto twin = std::ranges::adjacent_find(
        sorted_, {}, [](const JsonMember* member) { return std::string_view(member->key); });
    if (twin == sorted_.end()) return;
    const JsonMember& again = **std::next(twin);
    Place first;
    locate(text_, (*twin)->key_offset, first);
    fail(again.key_offset,
         fmt::format("the key \"{}\" is given twice, first in line {}", again.key, first.line),
         pointer() + '/' + escape_pointer(again.key));
  }

  // Of the last value in what is open.
  [[nodiscard]] std::string pointer() const {
    std::string out;
    for (const Json* level : open_) {
      const auto* array = std::get_if<JsonArray>(&level->value);
      out +=
          '/' + (array != nullptr ? std::to_string(array->size() - 1)
                                  : escape_pointer(std::get<JsonObject>(level->value).back().key));
    }
    return out;
  }

  // Of the string that ends at `end`: every quote inside it is escaped.
  [[nodiscard]] std::size_t string_start(std::size_t end) const {
    std::size_t start = text_.rfind('"', end - 1);
    while (start > 0 && text_[start - 1] == '\\') start = text_.rfind('"', start - 1);
    return start;
  }

  // Of the comment that is not closed, behind all that was read.
  [[nodiscard]] std::size_t comment_start() const {
    std::size_t start = text_.find("/*", last_end_);
    for (std::size_t end = 0; (end = text_.find("*/", start + 2)) != std::string_view::npos;) {
      start = text_.find("/*", end + 2);
    }
    return start;
  }

  [[nodiscard]] std::size_t word_start(std::size_t end) const {
    return text_.substr(0, end).find_last_not_of(word_bytes) + 1;  // npos + 1 is 0.
  }
  [[nodiscard]] std::string_view word(std::size_t start) const {
    const std::string_view rest = text_.substr(start, longest_quote);
    return rest.substr(0, rest.find_first_not_of(word_bytes));
  }

  // What stands at `start`, as a message shows it.
  [[nodiscard]] std::string token(std::size_t start) const {
    if (start == text_.size()) return "the end of the text";
    std::string_view shown = word(start);
    if (shown.empty()) {  // One character.
      const auto* end = std::ranges::find_if_not(text_.substr(start + 1, 3), is_continuation);
      shown = text_.substr(start, static_cast<std::size_t>(end - &text_[start]));
    }
    std::string quoted =
        json(shown).dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
    const auto byte = static_cast<unsigned char>(shown[0]);
    if (std::iscntrl(byte) == 0 && quoted.find("\uFFFD") == std::string::npos) return quoted;
    return fmt::format("the byte 0x{:02X}", byte);
  }

  std::size_t values_ = 0;
  std::string_view text_;
  std::size_t read_ = 0;
  Json root_;
  std::array<std::size_t, max_json_depth> usual_sizes_{};
  std::vector<Json*> open_;                    // Only the last one grows, so the others stay.
  std::size_t last_ = std::string_view::npos;  // Offset of the value read last.
  std::size_t last_end_ = 0;  // Of the value or key read last, or a byte before it.
  std::vector<const JsonMember*> sorted_;
};

}  // namespace

Json parse_json(std::string_view text) {
  return Reader(text).read();
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
  std::string text(key);
  if (text.find_first_of("~/") == std::string::npos) return text;  // The quick and usual way.
  return (json::json_pointer() / std::move(text)).to_string().substr(1);
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
