#include "flyover/io/document.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/quantity.hpp"
#include "flyover/base/text.hpp"
#include "io/json.hpp"

namespace flyover::io {

namespace {

constexpr std::size_t max_text = std::size_t{1} << 30U;
constexpr std::size_t first_piece = std::size_t{64} << 10U;

[[noreturn]] void fail_in(std::string file, std::string_view problem) {
  throw InputError({std::move(file), 0, 0, {}}, problem);
}

// A slip in a file's name is a slip like any other.
std::string similar_file(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);  // The order of a directory is no order.
  return did_you_mean(path.filename().string(), names);
}

// Borrows nothing: closes what it opened, and leaves standard input open.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path)
      : name_(path == "-" ? "<stdin>" : path.string()),
        file_(path == "-" ? stdin : std::fopen(path.c_str(), "rb")) {
    if (file_ == nullptr) {
      const int error = errno;
      fail(error == ENOENT ? "there is no such file" + similar_file(path)
                           : "cannot be opened: " + std::generic_category().message(error));
    }
  }
  ~InputFile() {
    if (file_ != stdin) std::fclose(file_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Appends at most `size` bytes; less only at the end of the file.
  void read(std::string& text, std::size_t size) {
    const std::size_t before = text.size();
    text.resize(before + size);
    const std::size_t got = std::fread(text.data() + before, 1, size, file_);
    text.resize(before + got);
    if (std::ferror(file_) != 0) {
      fail("cannot be read: " + std::generic_category().message(errno));
    }
  }

  [[noreturn]] void fail(std::string_view problem) const { fail_in(name_, problem); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::FILE* file_;
};

[[noreturn]] void rethrow(const JsonError& error, const std::string& name, std::string_view text) {
  Place place{name, 0, 0, error.pointer};
  locate(text, error.offset, place);
  throw InputError(place, error.problem);
}

// The start of a large text, to refuse garbage without keeping it all.
void check_start(const std::string& name, std::string_view start) {
  if (start.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    fail_in(name, "expected JSON, got nothing but blanks");
  }
  try {
    (void)parse_json(start);
  } catch (const JsonError& error) {
    if (!error.at_end) rethrow(error, name, start);
  }
}

constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325;

void fnv_1a(std::uint64_t& hash, std::string_view text) {
  constexpr std::uint64_t prime = 0x100000001b3;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
}

// Where one setting put its value.
struct Applied {
  std::string place;    // "--set PATH"
  std::string pointer;  // Of the value that was set.
};

void mark(Json& value, std::uint32_t source) {
  value.source = source;
  if (auto* array = std::get_if<JsonArray>(&value.value)) {
    for (Json& element : *array) mark(element, source);
  } else if (auto* object = std::get_if<JsonObject>(&value.value)) {
    for (JsonMember& member : *object) mark(member.value, source);
  }
}

std::vector<std::string> split_path(const Setting& setting) {
  const bool pointer = setting.path.starts_with('/');
  const char separator = pointer ? '/' : '.';
  std::vector<std::string> steps(1);
  for (std::size_t i = pointer ? 1 : 0; i < setting.path.size(); ++i) {
    const char c = setting.path[i];
    const char next = i + 1 < setting.path.size() ? setting.path[i + 1] : '\0';
    if (c == separator) {
      steps.emplace_back();
    } else if (pointer && c == '~' && (next == '0' || next == '1')) {
      steps.back() += next == '0' ? '~' : '/';
      ++i;
    } else {
      steps.back() += c;
    }
  }
  if (!pointer && std::ranges::find(steps, "") != steps.end()) {
    fail_in("--set", fmt::format("expected a path such as \"fabric.oversubscription\" or "
                                 "\"nodes.0.count\", got \"{}\"",
                                 setting.path));
  }
  return steps;
}

Json setting_value(const Setting& setting, const std::string& place) {
  const std::size_t start = setting.value.find_first_not_of(" \t\r\n");
  try {
    return parse_json(setting.value);
  } catch (const JsonError& error) {
    // "800 Gb/s" is a string without its quotes; a broken object is a mistake.
    if (start != std::string::npos &&
        std::string_view("{[\"").find(setting.value[start]) != std::string_view::npos) {
      fail_in(place, fmt::format("at character {}: {}", error.offset + 1, error.problem));
    }
  }
  return Json{setting.value};
}

// "\"a\", \"b\" or \"c\"".
std::string quoted_list(const std::vector<std::string>& words, std::string_view last) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
    list += fmt::format("\"{}\"", words[i]);
  }
  return list;
}

// The child that a step of a path leads to; made if an object has none.
Json& step_into(Json& parent, const std::string& step, std::uint32_t source,
                const std::string& place, const std::string& pointer) {
  if (std::holds_alternative<std::monostate>(parent.value)) {
    parent.value = JsonObject{};
    parent.source = source;
  }
  if (auto* object = std::get_if<JsonObject>(&parent.value)) {
    const auto found = std::ranges::find(*object, step, &JsonMember::key);
    if (found != object->end()) return found->value;
    object->push_back({step, Json{{}, 0, source}, 0});
    return object->back().value;
  }
  const std::string where = pointer.empty() ? "the document" : pointer;
  auto* array = std::get_if<JsonArray>(&parent.value);
  if (array == nullptr) {
    fail_in(place,
            fmt::format("{} is {}, which has no member \"{}\"", where, describe(parent), step));
  }
  if (step == "-" || step == std::to_string(array->size())) {
    array->push_back(Json{{}, 0, source});
    return array->back();
  }
  for (std::size_t i = 0; i < array->size(); ++i) {
    if (step == std::to_string(i)) return (*array)[i];
  }
  fail_in(place, fmt::format("{} is an array of {}, which has no element \"{}\"", where,
                             array->size(), step));
}

}  // namespace

struct Document::State {
  std::string name;
  std::string text;
  Json root;
  std::vector<Applied> applied;  // Json::source n is applied[n - 1].
  std::uint64_t hash = fnv_offset;
};

Document::Document(std::unique_ptr<State> state) : state_(std::move(state)) {}
Document::~Document() = default;
Document Document::copy() const {
  return Document(std::make_unique<State>(*state_));
}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;

Document Document::load(const std::filesystem::path& path) {
  if (std::error_code error; path != "-" && std::filesystem::is_directory(path, error)) {
    fail_in(path.string(), "is a directory, expected a file");
  }
  InputFile file(path);
  if (std::error_code error; path != "-" && std::filesystem::is_regular_file(path, error)) {
    if (std::filesystem::file_size(path, error) > max_text && !error) {
      file.fail("is larger than 1 GiB");
    }
  }
  std::string text;
  file.read(text, first_piece);
  if (text.empty()) file.fail("is empty, expected JSON");
  if (text.size() == first_piece) {
    check_start(file.name(), text);
    // Pipes do not tell their size.
    while (text.size() <= max_text) {
      const std::size_t before = text.size();
      file.read(text, before);
      if (text.size() < 2 * before) break;
    }
    if (text.size() > max_text) file.fail("is larger than 1 GiB");
  }
  return parse(file.name(), std::move(text));
}

Document Document::parse(std::string name, std::string text) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->text = std::move(text);
  try {
    state->root = parse_json(state->text);
  } catch (const JsonError& error) {
    rethrow(error, state->name, state->text);
  }
  fnv_1a(state->hash, state->text);
  return Document(std::move(state));
}

void Document::apply(const Setting& setting) {
  const std::vector<std::string> steps = split_path(setting);
  const std::string place = "--set " + setting.path;
  Json value = setting_value(setting, place);
  const auto source = static_cast<std::uint32_t>(state_->applied.size() + 1);
  mark(value, source);

  Json* target = &state_->root;
  std::string pointer;
  for (const std::string& step : steps) {
    const auto* array = std::get_if<JsonArray>(&target->value);
    const std::size_t end = array == nullptr ? 0 : array->size();
    target = &step_into(*target, step, source, place, pointer);
    pointer += '/' + (array != nullptr && step == "-" ? std::to_string(end) : escape_pointer(step));
  }
  *target = std::move(value);
  state_->applied.push_back({place, pointer});
  for (const std::string_view part : {setting.path, setting.value}) {
    fnv_1a(state_->hash, std::string_view("\0", 1));
    fnv_1a(state_->hash, part);
  }
}

Field Document::root() const {
  return {*this, state_->root, {}};
}
const std::string& Document::text() const {
  return state_->text;
}

const std::string& Document::name() const {
  return state_->name;
}
std::string Document::digest() const {
  return fmt::format("{:016x}", state_->hash);
}

Field::Field(const Document& document, const Json& value, std::string pointer)
    : document_(&document),
      value_(&value),
      pointer_(std::move(pointer)) {}

Place Field::place_at(std::size_t offset) const {
  const Document::State& state = *document_->state_;
  if (value_->source > 0) {
    const Applied& applied = state.applied[value_->source - 1];
    return {applied.place, 0, 0, applied.pointer == pointer_ ? "" : pointer_};
  }
  Place place{state.name, 0, 0, pointer_};
  locate(state.text, offset, place);
  return place;
}

Place Field::place() const {
  return place_at(value_->offset);
}
void Field::fail_at(std::size_t offset, std::string_view problem) const {
  throw InputError(place_at(offset), problem);
}
void Field::fail(std::string_view problem) const {
  fail_at(value_->offset, problem);
}

Field Field::operator[](std::string_view key) const {
  const auto* object = std::get_if<JsonObject>(&value_->value);
  if (object == nullptr) fail(fmt::format("expected an object, got {}", describe(*value_)));
  const JsonMember* member = find_member(*object, key);
  if (member == nullptr) {
    const std::string near = nearest(key, keys());
    fail(near.empty() ? fmt::format("\"{}\" is missing", key)
                      : fmt::format("\"{}\" is missing, is it \"{}\" misspelt?", key, near));
  }
  return {*document_, member->value, pointer_ + '/' + escape_pointer(key)};
}

Field Field::operator[](std::size_t index) const {
  if (index >= size()) fail(fmt::format("expected more than {} elements", index));
  return {*document_, std::get<JsonArray>(value_->value)[index],
          fmt::format("{}/{}", pointer_, index)};
}

bool Field::has(std::string_view key) const {
  const auto* object = std::get_if<JsonObject>(&value_->value);
  return object != nullptr && find_member(*object, key) != nullptr;
}

std::size_t Field::size() const {
  const auto* array = std::get_if<JsonArray>(&value_->value);
  if (array == nullptr) fail(fmt::format("expected an array, got {}", describe(*value_)));
  return array->size();
}

std::vector<Field> Field::elements() const {
  std::vector<Field> fields;
  fields.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) fields.push_back((*this)[i]);
  return fields;
}

std::vector<std::string> Field::keys() const {
  const auto* object = std::get_if<JsonObject>(&value_->value);
  if (object == nullptr) fail(fmt::format("expected an object, got {}", describe(*value_)));
  std::vector<std::string> keys;
  keys.reserve(object->size());
  for (const JsonMember& member : *object) keys.push_back(member.key);
  return keys;
}

bool Field::is_object() const {
  return std::holds_alternative<JsonObject>(value_->value);
}
bool Field::is_array() const {
  return std::holds_alternative<JsonArray>(value_->value);
}
bool Field::is_string() const {
  return std::holds_alternative<std::string>(value_->value);
}
bool Field::is_number() const {
  return std::holds_alternative<JsonNumber>(value_->value);
}
bool Field::is_bool() const {
  return std::holds_alternative<bool>(value_->value);
}

std::string Field::text() const {
  const auto* text = std::get_if<std::string>(&value_->value);
  if (text == nullptr) fail(fmt::format("expected a string, got {}", describe(*value_)));
  return *text;
}

bool Field::boolean() const {
  const auto* truth = std::get_if<bool>(&value_->value);
  if (truth == nullptr) fail(fmt::format("expected true or false, got {}", describe(*value_)));
  return *truth;
}

double Field::number() const {
  const auto* number = std::get_if<JsonNumber>(&value_->value);
  if (number == nullptr) fail(fmt::format("expected a number, got {}", describe(*value_)));
  return number->value;
}

double Field::positive_number() const {
  if (!is_number() || number() <= 0) {
    fail(fmt::format("expected a number above zero, got {}", describe(*value_)));
  }
  return number();
}

std::int64_t Field::integer() const {
  constexpr double exact = 0x1p53;  // Up to here every whole double stands for itself only.
  if (const auto* number = std::get_if<JsonNumber>(&value_->value)) {
    std::int64_t value = 0;
    const char* last = number->text.data() + number->text.size();
    const auto [end, error] = std::from_chars(number->text.data(), last, value);
    if (error == std::errc{} && end == last) return value;
    if (std::trunc(number->value) == number->value && std::abs(number->value) <= exact) {
      return static_cast<std::int64_t>(number->value);  // "1e6"
    }
  }
  fail(fmt::format("expected a whole number, got {}", describe(*value_)));
}

std::uint32_t Field::count(std::uint32_t low, std::uint32_t high) const {
  const std::int64_t value = integer();
  if (value < low || value > high) {
    fail(fmt::format("expected a whole number from {} to {}, got {}", low, high, value));
  }
  return static_cast<std::uint32_t>(value);
}

// Numbers too: what is wrong with "bandwidth": 400 is that it has no unit.
std::string Field::quantity() const {
  const auto* number = std::get_if<JsonNumber>(&value_->value);
  return number == nullptr ? text() : number->text;
}

template <class Parse>
auto Field::parsed_quantity(Parse parse) const {
  const std::string written = quantity();
  try {
    return parse(written);
  } catch (const InputError& error) {
    fail(error.problem());
  }
}

Bandwidth Field::bandwidth() const {
  return parsed_quantity(parse_bandwidth);
}
Duration Field::duration() const {
  return parsed_quantity(parse_duration);
}
FlopRate Field::flop_rate() const {
  return parsed_quantity(parse_flop_rate);
}
Flops Field::flops() const {
  return parsed_quantity(parse_flops);
}

Bytes Field::bytes() const {
  const Bytes bytes = parsed_quantity(parse_bytes);
  if (bytes == Bytes{0}) {
    fail(fmt::format("expected a size above zero such as \"128 MiB\" or \"8 B\", got {}",
                     describe(*value_)));
  }
  return bytes;
}

std::string Field::one_of(const std::vector<std::string>& words) const {
  require(!words.empty(), "one_of: words to choose from");
  if (is_string() && std::ranges::find(words, text()) != words.end()) return text();
  fail(fmt::format("expected {}, got {}{}", quoted_list(words, "or"), describe(*value_),
                   is_string() ? did_you_mean(text(), words) : ""));
}

void Field::allow_only(std::initializer_list<std::string_view> keys) const {
  const auto* object = std::get_if<JsonObject>(&value_->value);
  if (object == nullptr) fail(fmt::format("expected an object, got {}", describe(*value_)));
  for (const JsonMember& member : *object) {
    if (member.key == "$schema" || member.key == "comment") continue;
    if (std::ranges::find(keys, member.key) != keys.end()) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    std::string hint = did_you_mean(member.key, known);
    if (hint.empty() && !known.empty()) hint = ", known are " + quoted_list(known, "and");
    const Field field(*document_, member.value, pointer_ + '/' + escape_pointer(member.key));
    field.fail_at(member.key_offset, "is not a known option" + hint);
  }
}

}  // namespace flyover::io
