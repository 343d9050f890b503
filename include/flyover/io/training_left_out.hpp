#pragma once

// The parameters of software stacks with some values changed: as fitted without the results of one
// group, which says how well the model predicts results that nobody has seen; or as a fit tries
// them. Written by scripts/fit; docs/models/fit.md.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/layout/stack.hpp"

namespace flyover::io {

// Changes of shipped stack files: "nemo-25#/slowdowns/2/gemm" (a JSON pointer into the file of that
// name) to the JSON text of a value, or "nemo-25" to a merge patch (RFC 7386). A stack that extends
// another has the other's changes too.
using StackChanges = std::vector<std::pair<std::string, std::string>>;

// Throws InputError for a file or place that is not there.
[[nodiscard]] std::map<std::string, SoftwareStack> changed_stacks(const StackChanges& changes);

// configs/training-left-out.json:
//
//   {"format": "flyover-training-left-out-1", "summary": "...",
//    "parameters": {"nemo-25": ["/slowdowns/2/gemm", ...], ...},
//    "groups": {"pretrain-llama3-8b-...": {"nemo-25": [1.21, ...]}, ...}}
//
// with the values of the stacks that a group's results ran on, in the order of the parameters.
class TrainingLeftOut {
 public:
  // Throws InputError for whatever is missing or does not fit together.
  explicit TrainingLeftOut(const Document& document);
  // The shipped one; nothing when none is shipped.
  [[nodiscard]] static std::optional<TrainingLeftOut> shipped();

  [[nodiscard]] bool knows(const std::string& group) const { return changes_.contains(group); }
  // All stacks, with the values that were fitted without the group. Requires a known group.
  [[nodiscard]] std::map<std::string, SoftwareStack> stacks(const std::string& group) const;

 private:
  std::map<std::string, StackChanges> changes_;  // By group.
};

}  // namespace flyover::io
