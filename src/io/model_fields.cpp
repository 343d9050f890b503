#include "io/model_fields.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover::io {

std::string name_from_file(const Document& document) {
  const std::filesystem::path path(document.name());
  if (path.filename() == "config.json" && path.has_parent_path()) {
    return path.parent_path().filename().string();
  }
  return path.stem().string();
}

std::uint32_t kv_head_count(const Field& field, std::uint32_t heads) {
  const std::uint32_t kv_heads = field.count(1, heads);
  if (heads % kv_heads != 0) {
    field.fail(fmt::format("expected a divisor of the {} heads, got {}", heads, kv_heads));
  }
  return kv_heads;
}

std::uint32_t even_head_dim(const Field& field, std::uint32_t hidden, std::uint32_t heads) {
  if (hidden % heads != 0) {
    field.fail(fmt::format("{} heads do not divide the hidden size {}: expected \"head_dim\"",
                           heads, hidden));
  }
  return hidden / heads;
}

void read_expert_groups(const Field& groups, const Field& chosen, Experts& experts) {
  experts.groups = groups.count(1, experts.count);
  if (experts.count % experts.groups != 0) {
    groups.fail(
        fmt::format("expected a divisor of the {} experts, got {}", experts.count, experts.groups));
  }
  experts.groups_chosen = chosen.count(1, experts.groups);
  const std::uint32_t within_reach = experts.count / experts.groups * experts.groups_chosen;
  if (within_reach < experts.chosen) {
    chosen.fail(fmt::format("{} of {} groups have {} experts, fewer than the {} that a token uses",
                            experts.groups_chosen, experts.groups, within_reach, experts.chosen));
  }
}

void set_expert_layers(const Field& field, const std::vector<bool>& sparse, Experts& experts) {
  const auto first = std::ranges::find(sparse, true);
  require(first != sparse.end(), "set_expert_layers: a layer with experts");
  const auto second = std::find(first + 1, sparse.end(), true);
  experts.first_layer = static_cast<std::uint32_t>(first - sparse.begin());
  experts.every = static_cast<std::uint32_t>(second - first);
  for (std::uint32_t layer = experts.first_layer; layer < sparse.size(); ++layer) {
    if (sparse[layer] != ((layer - experts.first_layer) % experts.every == 0)) {
      field.fail(
          fmt::format("layers with experts must be evenly spaced, but layer {} is not", layer));
    }
  }
}

void set_window_layers(const Field& field, const std::vector<bool>& windowed,
                       Attention& attention) {
  attention.full_every = 0;
  const auto first_full = std::ranges::find(windowed, false);
  if (first_full == windowed.end()) return;
  if (std::ranges::find(windowed, true) == windowed.end()) {
    attention.window = 0;
    return;
  }
  const auto every = first_full - windowed.begin() + 1;
  for (std::uint32_t layer = 0; layer < windowed.size(); ++layer) {
    if (windowed[layer] != ((layer + 1) % every != 0)) {
      field.fail(
          fmt::format("each layer without a window must follow the same number with one: layer {} "
                      "does not fit",
                      layer));
    }
  }
  attention.full_every = static_cast<std::uint32_t>(every);
}

}  // namespace flyover::io
