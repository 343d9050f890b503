#pragma once

// The libraries' parameters as fitted without the measurements of one site: what they predict for
// that site says how well the model predicts a site that nobody has seen. Written by
// scripts/fit/fit.py; docs/models/fit.md.

#include <map>
#include <string>
#include <vector>

#include "flyover/cost/library.hpp"
#include "flyover/io/document.hpp"

namespace flyover::io {

class LeftOut {
 public:
  // Throws InputError for whatever is missing or does not fit together.
  explicit LeftOut(const Document& document);
  // The shipped ones.
  LeftOut();

  [[nodiscard]] bool knows(const std::string& site) const { return values_.contains(site); }
  // A shipped library ("nccl-2.27") with the parameters that were fitted without the site. Requires
  // a known site.
  [[nodiscard]] Library library(const std::string& stem, const std::string& site) const;

 private:
  struct Parameter {
    std::string library;
    std::string pointer;  // JSON pointer into the library's file.
  };
  std::vector<Parameter> parameters_;
  // By site: JSON texts, in the order of the parameters.
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace flyover::io
