#include "flyover/study/residual_ranges.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/quantity.hpp"
#include "flyover/cost/library.hpp"
#include "flyover/study/statistics.hpp"

namespace flyover {

namespace {

constexpr double tail = 0.1;  // On each side of 80 %.
constexpr std::size_t enough_rows = 20;
constexpr std::size_t enough_sites = 3;
// Ranges from few sites are too narrow for the next one: of m sites the tails are m / (m + 4) of
// theirs. The 4 is where sites that are left out are covered as often as promised.
constexpr double missing_sites = 4;
constexpr double octaves_around_boundary = 2;

constexpr std::string_view one_domain = "one domain";
constexpr std::string_view several_domains = "several domains";
constexpr std::string_view any = "any";

constexpr std::string_view across = " + ";  // Scale-up + network.
constexpr std::array<std::string_view, 4> infiniband = {"edr", "hdr", "ndr", "xdr"};

struct Key {
  std::string links;
  std::string algorithm;
  std::size_t size = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Sample {
  std::string_view site;
  double residual = 0;  // ln(measured / predicted)
};
using Samples = std::map<Key, std::vector<Sample>>;

// "any nvlink", or "any + roce" across domains: what generations of one make have in common.
std::string family_of_links(const std::string& links) {
  const std::size_t plus = links.find(across);
  if (plus == std::string::npos) return "any " + link_family(links);
  const std::string network = links.substr(plus + across.size());
  const bool is_infiniband = std::ranges::find(infiniband, network) != infiniband.end();
  return "any + " + (is_infiniband ? "ib" : link_family(network));
}

std::array<Key, 6> widening(const std::string& links, std::string_view algorithm,
                            std::size_t size) {
  const std::string scope(links.find(across) == std::string::npos ? one_domain : several_domains);
  const std::string family = family_of_links(links);
  const std::string one(algorithm);
  const std::string all(any);
  return {Key{links, one, size}, Key{family, one, size}, Key{family, all, size},
          Key{scope, one, size}, Key{scope, all, size},  Key{all, all, size}};
}

Samples sample(std::span<const ValidatedSet> sets) {
  Samples out;
  for (const ValidatedSet& set : sets) {
    if (!counts(set)) continue;
    for (const PredictedRow& row : set.rows) {
      if (!row.counted) continue;
      const double residual = std::log(*row.measured_us / row.predicted_us);
      for (Key& key : widening(set.generation, to_string(row.algorithm), size_class(row.bytes))) {
        out[std::move(key)].push_back({set.site, residual});
      }
    }
  }
  return out;
}

std::map<std::string_view, std::size_t> rows_by_site(std::span<const Sample> samples,
                                                     std::string_view without) {
  std::map<std::string_view, std::size_t> rows;
  for (const Sample& sample : samples) {
    if (without.empty() || sample.site != without) ++rows[sample.site];
  }
  return rows;
}

// To the digits of the file, so that what is read back is what was computed.
double rounded(double value, double scale) {
  return std::round(value * scale) / scale;
}

// Nothing when there are too few.
std::optional<Range> range_of(std::span<const Sample> samples, std::string_view without) {
  const auto rows = rows_by_site(samples, without);
  Range range;
  range.sites = rows.size();
  std::vector<WeightedValue> values;
  for (const Sample& sample : samples) {
    const auto of_site = rows.find(sample.site);
    if (of_site == rows.end()) continue;
    values.push_back({sample.residual, 1 / static_cast<double>(of_site->second)});
  }
  range.rows = values.size();
  if (range.rows < enough_rows || range.sites < enough_sites) return std::nullopt;
  const double sites = static_cast<double>(range.sites);
  const double share = tail * sites / (sites + missing_sites);
  range.low = rounded(std::min(1.0, std::exp(weighted_quantile(values, share))), 1e4);
  range.high = rounded(std::max(1.0, std::exp(weighted_quantile(values, 1 - share))), 1e4);
  return range;
}

std::vector<ResidualClass> classes_of(const Samples& samples, std::string_view without) {
  std::vector<ResidualClass> classes;
  for (const auto& [key, list] : samples) {
    if (const auto range = range_of(list, without)) {
      classes.push_back({key.links, key.algorithm, key.size, *range});
    }
  }
  return classes;
}

bool is_narrow(const Key& key) {
  return key.links != one_domain && key.links != several_domains && !key.links.starts_with(any);
}

// The intraclass correlation of a one-way layout (sites within classes), all classes of a size
// together: between / (between + within), with the variances that the mean squares estimate.
double correlation_of(const Samples& samples, std::size_t size, std::string_view without) {
  double between_squares = 0;
  double within_squares = 0;
  double between_freedom = 0;
  double within_freedom = 0;
  double effective = 0;  // Rows per site, times the degrees of freedom.
  for (const auto& [key, list] : samples) {
    if (key.size != size || !is_narrow(key)) continue;
    std::map<std::string_view, std::vector<double>> by_site;
    for (const Sample& s : list) {
      if (without.empty() || s.site != without) by_site[s.site].push_back(s.residual);
    }
    if (by_site.size() < 2) continue;
    const auto mean = [](const std::vector<double>& values) {
      double sum = 0;
      for (const double value : values) sum += value;
      return sum / static_cast<double>(values.size());
    };
    double all = 0;
    double rows = 0;
    double row_squares = 0;
    for (const auto& [site, values] : by_site) {
      const double n = static_cast<double>(values.size());
      all += n * mean(values);
      rows += n;
      row_squares += n * n;
    }
    for (const auto& [site, values] : by_site) {
      const double own = mean(values);
      between_squares +=
          static_cast<double>(values.size()) * (own - all / rows) * (own - all / rows);
      for (const double value : values) within_squares += (value - own) * (value - own);
    }
    between_freedom += static_cast<double>(by_site.size() - 1);
    within_freedom += rows - static_cast<double>(by_site.size());
    effective += rows - row_squares / rows;
  }
  if (between_freedom == 0 || within_freedom == 0) return 0;
  const double within = within_squares / within_freedom;
  const double between =
      std::max(0.0, (between_squares / between_freedom - within) / (effective / between_freedom));
  return between == 0 ? 0 : rounded(between / (between + within), 100);
}

// "nccl-2.27" is of "nccl".
std::string without_version(const std::string& library) {
  return library.substr(0, library.find('-'));
}

std::vector<FittedClass> fitted_of(std::span<const ValidatedSet> sets, std::string_view without) {
  std::map<std::pair<std::string, std::string>, FittedClass> fitted;
  const auto note = [](std::vector<std::string>& words, const std::string& word) {
    const auto place = std::ranges::lower_bound(words, word);
    if (place == words.end() || *place != word) words.insert(place, word);
  };
  for (const ValidatedSet& set : sets) {
    if (!counts(set) || (!without.empty() && set.site == without)) continue;
    for (const PredictedRow& row : set.rows) {
      if (!row.counted) continue;
      const std::string algorithm(to_string(row.algorithm));
      const auto [entry, fresh] = fitted.try_emplace({set.generation, algorithm});
      FittedClass& c = entry->second;
      if (fresh) c = {set.generation, algorithm, row.bytes, row.bytes, 0, 0, {}, {}};
      c.smallest = std::min(c.smallest, row.bytes);
      c.largest = std::max(c.largest, row.bytes);
      c.gpus = std::max(c.gpus, set.gpus);
      c.domains = std::max(c.domains, set.domains);
      note(c.collectives, set.collective);
      note(c.libraries, without_version(set.library));
    }
  }
  std::vector<FittedClass> out;
  for (auto& [key, c] : fitted) out.push_back(std::move(c));
  return out;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

double between(double from, double to, double share) {
  return std::exp(std::lerp(std::log(from), std::log(to), share));
}

void apply(ValidatedSet& set, const ResidualRanges& ranges) {
  for (PredictedRow& row : set.rows) {
    const Range range = ranges.range(set.generation, row.algorithm, row.bytes);
    row.low_us = row.predicted_us * range.low;
    row.high_us = row.predicted_us * range.high;
  }
}

}  // namespace

std::string_view to_string(ResidualOrigin origin) {
  return origin == ResidualOrigin::InSample ? "in-sample" : "left-out";
}

Residuals collect_residuals(std::span<const ValidatedSet> sets, ResidualOrigin origin,
                            std::string_view without_site) {
  Residuals out;
  out.origin = origin;
  std::set<std::string_view> sites;
  std::set<std::string> gpus;
  for (const ValidatedSet& set : sets) {
    const auto rows =
        static_cast<std::size_t>(std::ranges::count(set.rows, true, &PredictedRow::counted));
    const bool left_out = !without_site.empty() && set.site == without_site;
    if (!counts(set) || rows == 0 || left_out) continue;
    out.rows += rows;
    sites.insert(set.site);
    gpus.insert(set.gpu_model);
  }
  out.sites = sites.size();
  out.gpus.assign(gpus.begin(), gpus.end());
  const Samples samples = sample(sets);
  for (std::size_t size = 0; size < size_classes().size(); ++size) {
    out.correlation.push_back(correlation_of(samples, size, without_site));
  }
  out.classes = classes_of(samples, without_site);
  out.fitted = fitted_of(sets, without_site);
  return out;
}

Range ResidualRanges::of_class(const std::string& links, AlgorithmId algorithm,
                               std::size_t size) const {
  for (const Key& key : widening(links, to_string(algorithm), size)) {
    const auto found = std::ranges::find_if(residuals_.classes, [&](const ResidualClass& c) {
      return c.size == key.size && c.links == key.links && c.algorithm == key.algorithm;
    });
    if (found != residuals_.classes.end()) return found->range;
  }
  return {};
}

Range ResidualRanges::range(const std::string& links, AlgorithmId algorithm, Bytes bytes) const {
  const std::size_t size = size_class(bytes);
  const auto octaves_above = [&](std::size_t boundary) {
    return std::log2(static_cast<double>(bytes.count()) /
                     static_cast<double>(size_classes()[boundary].last.count()));
  };
  std::size_t smaller = size;
  if (size > 0 && octaves_above(size - 1) < octaves_around_boundary) {
    smaller = size - 1;
  } else if (size + 1 == size_classes().size() || octaves_above(size) <= -octaves_around_boundary) {
    return of_class(links, algorithm, size);
  }
  const double share =
      (octaves_above(smaller) + octaves_around_boundary) / (2 * octaves_around_boundary);
  const Range a = of_class(links, algorithm, smaller);
  const Range b = of_class(links, algorithm, smaller + 1);
  return {between(a.low, b.low, share), between(a.high, b.high, share), std::min(a.rows, b.rows),
          std::min(a.sites, b.sites)};
}

double ResidualRanges::correlation(Bytes bytes) const {
  const std::size_t size = size_class(bytes);
  return size < residuals_.correlation.size() ? residuals_.correlation[size] : 0;
}

std::vector<std::string> ResidualRanges::outside(const PredictedCall& call) const {
  std::vector<std::string> out;
  if (!has(residuals_.gpus, call.group.gpu)) {
    out.push_back(fmt::format("no measurement on {} GPUs", call.group.gpu));
  }
  const std::string& links = call.group.links;
  if (std::ranges::find(residuals_.fitted, links, &FittedClass::links) == residuals_.fitted.end()) {
    out.push_back(fmt::format("no measurement over {}", links));
    return out;
  }
  const std::string_view algorithm = to_string(call.algorithm);
  const auto found = std::ranges::find_if(residuals_.fitted, [&](const FittedClass& c) {
    return c.links == links && c.algorithm == algorithm;
  });
  if (found == residuals_.fitted.end()) {
    out.push_back(fmt::format("no measurement of {} over {}", algorithm, links));
    return out;
  }
  const std::string of_class = fmt::format("{} over {}", algorithm, links);
  if (!has(found->libraries, call.library)) {
    out.push_back(fmt::format("no measurement of library {} for {}", call.library, of_class));
  }
  if (!has(found->collectives, call.collective)) {
    out.push_back(fmt::format("no measurement of {} by {}", call.collective, of_class));
  }
  if (call.gpus > found->gpus) {
    out.push_back(fmt::format("{} GPUs: the largest measured system of {} has {}", call.gpus,
                              of_class, found->gpus));
  } else if (call.group.domains > found->domains) {
    out.push_back(fmt::format("{} domains: the largest measured system of {} has {}",
                              call.group.domains, of_class, found->domains));
  }
  if (call.bytes < found->smallest) {
    out.push_back(fmt::format("sizes below {}, the smallest measured of {}",
                              to_string(found->smallest), of_class));
  }
  if (call.bytes > found->largest) {
    out.push_back(fmt::format("sizes above {}, the largest measured of {}",
                              to_string(found->largest), of_class));
  }
  return out;
}

void apply_ranges(std::vector<ValidatedSet>& sets, const ResidualRanges& ranges) {
  for (ValidatedSet& set : sets) apply(set, ranges);
}

void apply_left_out_ranges(std::vector<ValidatedSet>& sets, std::span<const ValidatedSet> from) {
  const Samples samples = sample(from);
  std::map<std::string, ResidualRanges> by_site;
  for (ValidatedSet& set : sets) {
    const auto [entry, fresh] = by_site.try_emplace(set.site);
    if (fresh) {
      Residuals residuals;
      residuals.classes = classes_of(samples, set.site);
      entry->second = ResidualRanges(std::move(residuals));
    }
    apply(set, entry->second);
  }
}

}  // namespace flyover
