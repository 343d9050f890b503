#pragma once

// What every format of models shares: how large parts may be, and values that depend on each other.

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/layout/model.hpp"

namespace flyover::io {

// Together they keep the number of parameters below 2^63.
constexpr std::uint32_t max_layers = 1'000;
constexpr std::uint32_t max_hidden = 500'000;
constexpr std::uint32_t max_ffn = 1'000'000;
constexpr std::uint32_t max_experts = 5'000;
constexpr std::uint32_t max_heads = 10'000;
constexpr std::uint32_t max_head_dim = 10'000;

// What a model is called that does not say so: the file's name without its ending, or the folder's
// when the file is "config.json".
[[nodiscard]] std::string name_from_file(const Document& document);

// Heads of keys and values: a divisor of `heads`.
[[nodiscard]] std::uint32_t kv_head_count(const Field& field, std::uint32_t heads);

// hidden / heads; fails at `field` when there is a rest.
[[nodiscard]] std::uint32_t even_head_dim(const Field& field, std::uint32_t hidden,
                                          std::uint32_t heads);

// Groups of experts and how many of them a token may use. `experts` has count and chosen.
void read_expert_groups(const Field& groups, const Field& chosen, Experts& experts);

// Says by first_layer and every which layers have experts; fails at `field` when these two can't.
// `sparse` has at least one true element.
void set_expert_layers(const Field& field, const std::vector<bool>& sparse, Experts& experts);

// Says by full_every which layers have the window, which is 0 when none has; fails at `field` when
// it can't.
void set_window_layers(const Field& field, const std::vector<bool>& windowed, Attention& attention);

}  // namespace flyover::io
