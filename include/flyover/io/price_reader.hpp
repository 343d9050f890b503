#pragma once

// Price lists: configs/prices.json, and files and settings that change it. docs/formats/prices.md.

#include "flyover/io/document.hpp"
#include "flyover/study/cluster_cost.hpp"

namespace flyover::io {

// The shipped list.
[[nodiscard]] PriceList shipped_prices();

// What the document says in place of what `base` says; the rest stays. A number stands for all
// three quotes. Throws InputError, with the place, for what is unknown, misspelt or below zero:
// GPUs and networks must be those of presets, nodes and NICs may be a topology's own.
[[nodiscard]] PriceList read_prices(const Document& document, PriceList base);

// "2.95 $ per GPU-hour of H100-SXM (typical, 2026-05, MERC; AIM; OCI)": for people.
[[nodiscard]] std::string gpu_hour_words(const PriceList& prices, const std::string& gpu);

}  // namespace flyover::io
