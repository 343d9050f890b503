#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/error.hpp"
#include "flyover/base/units.hpp"

namespace flyover::io {

class Field;
struct Json;

// One `--set PATH=VALUE`: a dotted path ("fabric.oversubscription", "nodes.0.count"; a JSON pointer
// works too) and a value, which is JSON if it parses as JSON and a string if not.
struct Setting {
  std::string path;
  std::string value;
};

// One input file: its text and its parsed JSON. Comments (// and /* */) are allowed; duplicate keys
// and numbers that are not finite are errors.
class Document {
 public:
  // Throws InputError if the file cannot be read (missing, a directory, no permission), is larger
  // than 1 GiB or is not JSON; "-" reads standard input. Text that is not JSON is refused at its
  // first wrong byte, before the whole of a large file is kept.
  static Document load(const std::filesystem::path& path);
  static Document parse(std::string name, std::string text);

  ~Document();
  // With the settings applied so far: cheaper than reading it again. Fields refer to the original.
  [[nodiscard]] Document copy() const;
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;

  // Overrides one value; intermediate objects are made where there are none, and "-" or the size of
  // an array appends to it. Errors in it are later reported with the place "--set PATH". Do not
  // keep Fields across it: they refer to what was there.
  void apply(const Setting& setting);

  [[nodiscard]] Field root() const;
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const std::string& text() const;  // As read, without settings.
  // FNV-1a 64 of the text and of every setting applied, as 16 hex digits: goes into results.
  [[nodiscard]] std::string digest() const;

 private:
  friend class Field;
  struct State;
  explicit Document(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A value inside a Document. It knows where it is, so every reader reports errors the same way:
//
//   for (const Field& link : root["links"].elements()) add_link(link["bandwidth"].bandwidth());
//
// Borrows from the Document, which must outlive it. All members throw InputError with the place.
class Field {
 public:
  // The member `key`, which must be there; names the nearest key if there is none.
  [[nodiscard]] Field operator[](std::string_view key) const;
  [[nodiscard]] Field operator[](std::size_t index) const;
  [[nodiscard]] bool has(std::string_view key) const;   // False when not an object.
  [[nodiscard]] std::size_t size() const;               // Of an array.
  [[nodiscard]] std::vector<Field> elements() const;    // Of an array.
  [[nodiscard]] std::vector<std::string> keys() const;  // Of an object, in order of the file.

  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_bool() const;

  [[nodiscard]] std::string text() const;  // A string.
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] double number() const;  // Any finite number.
  [[nodiscard]] double positive_number() const;
  [[nodiscard]] std::int64_t integer() const;
  // A whole number of at least `low` and at most `high`.
  [[nodiscard]] std::uint32_t count(std::uint32_t low = 1, std::uint32_t high = 100'000'000) const;
  [[nodiscard]] Bandwidth bandwidth() const;  // "50 GB/s"
  [[nodiscard]] Duration duration() const;    // "1.2 us"
  [[nodiscard]] Bytes bytes() const;          // "1 GiB"; above zero
  [[nodiscard]] FlopRate flop_rate() const;   // "989 TFLOPS"
  [[nodiscard]] Flops flops() const;          // "2.1 TFLOP"
  // One of `words`; otherwise an error that lists them or names the nearest.
  [[nodiscard]] std::string one_of(const std::vector<std::string>& words) const;

  // Rejects members that no reader knows: a misspelt option must not pass in silence. "$schema" and
  // "comment" are allowed everywhere.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] Place place() const;
  [[noreturn]] void fail(std::string_view problem) const;
  // Runs a parser that throws InputError without a place, adding this field's place.
  template <class Parse>
  auto parsed(Parse parse) const {  // NOLINT(modernize-use-nodiscard): it may return nothing
    try {
      return parse(text());
    } catch (const InputError& error) {
      if (error.place().file.empty()) fail(error.problem());
      throw;
    }
  }

 private:
  friend class Document;
  [[nodiscard]] std::string quantity() const;
  template <class Parse>
  auto parsed_quantity(Parse parse) const;
  Field(const Document& document, const Json& value, std::string pointer);
  [[noreturn]] void fail_at(std::size_t offset, std::string_view problem) const;
  [[nodiscard]] Place place_at(std::size_t offset) const;
  const Document* document_;
  const Json* value_;
  std::string pointer_;
};

}  // namespace flyover::io
