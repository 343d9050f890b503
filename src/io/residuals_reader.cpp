#include "flyover/io/residuals_reader.hpp"

#include <fmt/format.h>

#include "flyover/io/embedded.hpp"

namespace flyover::io {

namespace {

constexpr std::string_view format_name = "flyover-residuals-1";
constexpr std::string_view shipped_file = "residuals.json";  // Of configs/.

std::vector<std::string> texts(const Field& field) {
  std::vector<std::string> out;
  for (const Field& item : field.elements()) out.push_back(item.text());
  return out;
}

std::size_t read_size(const Field& field) {
  std::vector<std::string> names;
  for (const SizeClass& size : size_classes()) names.emplace_back(size.name);
  const std::string name = field.one_of(names);
  std::size_t index = 0;
  while (names[index] != name) ++index;
  return index;
}

Bytes read_bytes(const Field& field) {
  const std::int64_t bytes = field.integer();
  if (bytes < 0) field.fail(fmt::format("expected zero or more, got {}", bytes));
  return Bytes{bytes};
}

ResidualClass read_class(const Field& field) {
  field.allow_only({"links", "algorithm", "size", "low", "high", "rows", "sites"});
  ResidualClass out;
  out.links = field["links"].text();
  out.algorithm = field["algorithm"].text();
  out.size = read_size(field["size"]);
  out.range = {field["low"].positive_number(), field["high"].number(), field["rows"].count(),
               field["sites"].count()};
  if (out.range.low > 1) field["low"].fail("expected at most 1: a range has its prediction inside");
  if (out.range.high < 1) {
    field["high"].fail("expected at least 1: a range has its prediction inside");
  }
  return out;
}

FittedClass read_fitted(const Field& field) {
  field.allow_only({"links", "algorithm", "smallest_bytes", "largest_bytes", "gpus", "domains",
                    "collectives", "libraries"});
  FittedClass out;
  out.links = field["links"].text();
  out.algorithm = field["algorithm"].text();
  out.smallest = read_bytes(field["smallest_bytes"]);
  out.largest = read_bytes(field["largest_bytes"]);
  if (out.largest < out.smallest) field["largest_bytes"].fail("is less than smallest_bytes");
  out.gpus = field["gpus"].count();
  out.domains = field["domains"].count();
  out.collectives = texts(field["collectives"]);
  out.libraries = texts(field["libraries"]);
  return out;
}

}  // namespace

Residuals read_residuals(const Document& document) {
  const Field root = document.root();
  if (!root.has("format") || root["format"].text() != format_name) {
    root.fail(fmt::format(
        "expected residuals of `flyover validate --residuals` (\"format\": \"{}\")", format_name));
  }
  root.allow_only(
      {"format", "origin", "rows", "sites", "correlation", "gpus", "classes", "fitted"});
  Residuals out;
  out.origin = root["origin"].one_of({"in-sample", "left-out"}) == "in-sample"
                   ? ResidualOrigin::InSample
                   : ResidualOrigin::LeftOut;
  out.rows = root["rows"].count(0);
  out.sites = root["sites"].count(0);
  const Field correlation = root["correlation"];
  for (const SizeClass& size : size_classes()) {
    const Field value = correlation[size.name];
    if (value.number() < 0 || value.number() > 1) value.fail("expected a share from 0 to 1");
    out.correlation.push_back(value.number());
  }
  out.gpus = texts(root["gpus"]);
  for (const Field& item : root["classes"].elements()) out.classes.push_back(read_class(item));
  for (const Field& item : root["fitted"].elements()) out.fitted.push_back(read_fitted(item));
  return out;
}

ResidualRanges shipped_ranges() {
  return ResidualRanges(read_residuals(
      Document::parse(std::string(shipped_file), std::string(embedded_file(shipped_file)))));
}

}  // namespace flyover::io
