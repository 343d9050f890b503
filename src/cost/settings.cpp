#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/cost/library.hpp"

namespace flyover {

namespace {

constexpr std::uint32_t channel_limit = 64;  // MAXCHANNELS of NCCL.

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const AlgorithmId id :
       {AlgorithmId::Ring, AlgorithmId::Tree, AlgorithmId::Nvls, AlgorithmId::NvlsTree,
        AlgorithmId::CollnetDirect, AlgorithmId::CollnetChain, AlgorithmId::Pat,
        AlgorithmId::RecursiveDoubling, AlgorithmId::Direct, AlgorithmId::Pairwise,
        AlgorithmId::Hierarchical, AlgorithmId::AllPairs, AlgorithmId::OneShot}) {
    names.emplace_back(to_string(id));
  }
  return names;
}

std::vector<std::string> protocol_names() {
  std::vector<std::string> names;
  for (const Protocol id : all_protocols) names.emplace_back(to_string(id));
  return names;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// "Ring,Tree" into `allowed`, "^Ring" into `forbidden`; both are replaced.
template <class Id, class Parse>
void read_list(std::string_view variable, std::string_view value, Parse parse,
               const std::vector<std::string>& names, std::string_view kind,
               std::vector<Id>& allowed, std::vector<Id>& forbidden) {
  if (value.find_first_of(":;") != std::string_view::npos) {
    throw InputError(
        fmt::format("{}: lists per function (\"allreduce:tree\") are not supported, got \"{}\"",
                    variable, value));
  }
  std::string_view rest = trimmed(value);
  const bool exclude = rest.starts_with('^');
  if (exclude) rest.remove_prefix(1);

  std::vector<Id> read;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = trimmed(rest.substr(0, comma));
    const auto id = parse(word);
    if (!id) {
      throw InputError(fmt::format("{}: expected {} out of {}, got \"{}\"{}", variable, kind,
                                   fmt::join(names, ", "), word, did_you_mean(word, names)));
    }
    if (std::ranges::find(read, *id) == read.end()) read.push_back(*id);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  allowed = exclude ? std::vector<Id>{} : read;
  forbidden = exclude ? read : std::vector<Id>{};
}

std::int64_t whole_number(std::string_view variable, std::string_view value, std::int64_t low,
                          std::int64_t high) {
  const std::string_view text = trimmed(value);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || number < low ||
      number > high) {
    throw InputError(fmt::format("{}: expected a whole number from {} to {}, got \"{}\"", variable,
                                 low, high, value));
  }
  return number;
}

void read_channels(std::string_view variable, std::string_view value, bool minimum,
                   LibrarySettings& settings) {
  const auto count = static_cast<std::uint32_t>(whole_number(variable, value, 1, channel_limit));
  (minimum ? settings.min_channels : settings.max_channels) = count;
  if (settings.min_channels && settings.max_channels &&
      *settings.min_channels > *settings.max_channels) {
    throw InputError(fmt::format("{}: at least {} and at most {} channels exclude each other",
                                 variable, *settings.min_channels, *settings.max_channels));
  }
}

using Apply = void (*)(LibrarySettings&, std::string_view name, std::string_view value);
struct Variable {
  std::string_view name;
  Apply apply;
};

constexpr Variable variables[] = {
    {"NCCL_ALGO",
     [](LibrarySettings& settings, std::string_view name, std::string_view value) {
       read_list(name, value, algorithm_id, algorithm_names(), "an algorithm", settings.algorithms,
                 settings.forbidden_algorithms);
     }},
    {"NCCL_PROTO",
     [](LibrarySettings& settings, std::string_view name, std::string_view value) {
       read_list(name, value, protocol, protocol_names(), "a protocol", settings.protocols,
                 settings.forbidden_protocols);
     }},
    {"NCCL_COLLNET_ENABLE",
     [](LibrarySettings& settings, std::string_view name, std::string_view value) {
       settings.collnet = whole_number(name, value, 0, 1) != 0;
     }},
    // 2 leaves the decision to NCCL, which takes NVLS where it can.
    {"NCCL_NVLS_ENABLE",
     [](LibrarySettings& settings, std::string_view name, std::string_view value) {
       settings.nvls = whole_number(name, value, 0, 2) != 0;
     }},
    {"NCCL_PXN_DISABLE",
     [](LibrarySettings& settings, std::string_view name, std::string_view value) {
       settings.pxn = whole_number(name, value, 0, 1) == 0;
     }},
    {"NCCL_MIN_NCHANNELS",
     [](LibrarySettings& settings, std::string_view name, std::string_view value) {
       read_channels(name, value, true, settings);
     }},
    {"NCCL_MAX_NCHANNELS",
     [](LibrarySettings& settings, std::string_view name, std::string_view value) {
       read_channels(name, value, false, settings);
     }},
    {"NCCL_MIN_CTAS", [](LibrarySettings& settings, std::string_view name,
                         std::string_view value) { read_channels(name, value, true, settings); }},
    {"NCCL_MAX_CTAS", [](LibrarySettings& settings, std::string_view name,
                         std::string_view value) { read_channels(name, value, false, settings); }},
    {"NCCL_CROSS_NIC",
     [](LibrarySettings& settings, std::string_view name, std::string_view value) {
       settings.notes.push_back(fmt::format(
           "{}={} has no effect: rings and trees always enter and leave a node on one rail", name,
           whole_number(name, value, 0, 2)));
     }},
};

}  // namespace

void set_variable(LibrarySettings& settings, std::string_view name, std::string_view value) {
  for (const Variable& variable : variables) {
    if (variable.name == name) {
      variable.apply(settings, name, value);
      return;
    }
  }
  const std::vector<std::string> known = known_variables();
  throw InputError(fmt::format("{}: is not a variable that Flyover knows{}; known are {}", name,
                               did_you_mean(name, known), fmt::join(known, ", ")));
}

std::vector<std::string> known_variables() {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.emplace_back(variable.name);
  return names;
}

}  // namespace flyover
