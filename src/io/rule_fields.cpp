#include "io/rule_fields.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "io/fitted.hpp"

namespace flyover::io {

namespace {

std::vector<std::string> texts(const Field& parent, std::string_view key) {
  std::vector<std::string> out;
  if (!parent.has(key)) return out;
  for (const Field& item : parent[key].elements()) out.push_back(item.text());
  return out;
}

}  // namespace

void check_evidence(const Field& rule) {
  if (rule["source"].text().empty()) {
    rule["source"].fail("expected where the numbers come from");
  }
  check_fitted(rule);
}

KernelScope read_scope(const Field& rule) {
  KernelScope scope;
  if (!rule.has("where")) return scope;
  const Field where = rule["where"];
  where.allow_only({"architectures", "gpus", "types"});
  scope.architectures = texts(where, "architectures");
  scope.gpus = texts(where, "gpus");
  if (where.has("types")) {
    for (const Field& type : where["types"].elements()) {
      scope.types.push_back(read_kernel_type(type));
    }
  }
  return scope;
}

KernelType read_kernel_type(const Field& field) {
  std::vector<std::string> names;
  names.reserve(all_kernel_types.size());
  for (const KernelType type : all_kernel_types) names.emplace_back(to_string(type));
  return *kernel_type(field.one_of(names));
}

}  // namespace flyover::io
