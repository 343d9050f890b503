#pragma once

// Price lists: configs/prices.json, and files and settings that change it. docs/formats/prices.md.

#include <optional>
#include <span>
#include <string>

#include "flyover/io/document.hpp"
#include "flyover/study/cluster_cost.hpp"

namespace flyover::io {

// The shipped list.
[[nodiscard]] PriceList shipped_prices();

// What the document says in place of what `base` says; the rest stays. A number stands for all
// three quotes. Throws InputError, with the place, for what is unknown, misspelt or below zero:
// GPUs and networks must be those of presets, nodes and NICs may be a topology's own.
[[nodiscard]] PriceList read_prices(const Document& document, PriceList base);

// With settings of `prices` documents: {"gpu_hour", "2.1"}.
[[nodiscard]] PriceList changed_prices(PriceList base, std::span<const Setting> settings);

// Dollars of a GPU-hour, if that is known.
[[nodiscard]] std::optional<double> gpu_hour(const PriceList& prices, const std::string& gpu);
// "2.95 $ per GPU-hour of H100-SXM (typical, 2026-05, MERC; AIM; OCI)": for people.
[[nodiscard]] std::string gpu_hour_words(const PriceList& prices, const std::string& gpu);

}  // namespace flyover::io
