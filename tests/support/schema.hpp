#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace flyover::test {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// One of schemas/, as editors apply it.
class Schema {
 public:
  explicit Schema(const std::string& file)
      : text_(nlohmann::json::parse(
            text_of(std::filesystem::path(FLYOVER_SOURCE_DIR) / "schemas" / file))) {
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text_), schema_);
  }

  // What it finds wrong, a line each; "" when the text fits.
  [[nodiscard]] std::string problems(const std::string& text) const {
    const auto parsed = nlohmann::json::parse(text, nullptr, true, /*ignore_comments=*/true);
    valijson::ValidationResults results;
    valijson::Validator().validate(schema_, valijson::adapters::NlohmannJsonAdapter(parsed),
                                   &results);
    std::string out;
    for (valijson::ValidationResults::Error error; results.popError(error);) {
      for (const std::string& part : error.context) out += part;
      out += ": " + error.description + '\n';
    }
    return out;
  }
  [[nodiscard]] bool accepts(const std::string& text) const { return problems(text).empty(); }

 private:
  nlohmann::json text_;
  valijson::Schema schema_;
};

}  // namespace flyover::test
