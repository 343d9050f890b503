#include "flyover/study/validate.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/cost/cost_model.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/study/calibrate.hpp"
#include "flyover/study/group_links.hpp"
#include "flyover/study/statistics.hpp"
#include "flyover/topology/builders.hpp"

namespace flyover {

namespace {

using namespace literals;

constexpr std::array classes = {
    SizeClass{"up to 32 KiB", 32_KiB},
    SizeClass{"up to 1 MiB", 1_MiB},
    SizeClass{"up to 32 MiB", 32_MiB},
    SizeClass{"larger", Bytes{std::int64_t{1} << 62}},
};

constexpr Bytes peak_from = 128_MiB;
// What a bare peak is taken to be measured at.
constexpr Bytes size_of_bare_peak = 16_GiB;

// nccl-tests' and PyTorch's names to ours; "" when it is not stated.
std::string short_dtype(const std::string& stated) {
  static const std::map<std::string, std::string> names = {
      {"float32", "fp32"}, {"float", "fp32"},   {"fp32", "fp32"},     {"float16", "fp16"},
      {"half", "fp16"},    {"fp16", "fp16"},    {"bfloat16", "bf16"}, {"bf16", "bf16"},
      {"float64", "fp64"}, {"double", "fp64"},  {"int8", "i8"},       {"uint8", "u8"},
      {"int32", "i32"},    {"uint32", "u32"},   {"int64", "i64"},     {"uint64", "u64"},
      {"fp8_e4m3", "fp8"}, {"fp8_e5m2", "fp8"}, {"f8e4m3", "fp8"},    {"f8e5m2", "fp8"},
      {"fp8", "fp8"},      {"fp8e4m3", "fp8"},  {"fp8e5m2", "fp8"}};
  const auto found = names.find(stated.substr(0, stated.find(' ')));
  return found == names.end() ? "" : found->second;
}

// A cluster with what it takes to time collectives on it; the parts refer to each other.
struct Bench {
  Bench(const MeasuredCluster& measured, const HardwareCatalogue& catalogue)
      : topology(build_topology(measured.cluster)),
        library(catalogue.libraries.at(measured.library)) {
    for (const auto& [name, value] : measured.variables) {
      set_variable(library.settings, name, value);
    }
    if (!measured.stack.empty()) set_stack(library, measured.stack);
    router.emplace(topology, RouterOptions{.pxn = library.settings.pxn});
    cost.emplace(topology, *router, library);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Topology topology;
  Library library;
  std::optional<Router> router;
  std::optional<CostModel> cost;
};

// Many records are of one kind of cluster.
class Benches {
 public:
  explicit Benches(const HardwareCatalogue& catalogue) : catalogue_(catalogue) {}

  Bench& of(const MeasuredCluster& measured) {
    std::unique_ptr<Bench>& bench = benches_[key(measured)];
    if (!bench) bench = std::make_unique<Bench>(measured, catalogue_);
    return *bench;
  }

 private:
  static std::string key(const MeasuredCluster& measured) {
    const NodeGroup& group = measured.cluster.nodes.front();
    const NodeSpec& node = group.spec;
    std::string key = fmt::format("{} {} {} {} {} {} {} {}", node.name, node.gpu.name, node.gpus,
                                  node.nics, node.nic_bandwidth.per_second(), group.count,
                                  measured.cluster.fabric.preset, measured.library);
    key += " " + measured.stack;
    for (const auto& [name, value] : measured.variables) key += fmt::format(" {}={}", name, value);
    return key;
  }

  const HardwareCatalogue& catalogue_;
  std::map<std::string, std::unique_ptr<Bench>> benches_;
};

std::optional<std::string> reason_apart(Health health, const std::string& not_comparable) {
  if (health == Health::Degraded) return "degraded";
  if (health == Health::Unknown) return "health is not known";
  if (!not_comparable.empty()) return not_comparable;
  return std::nullopt;
}

std::optional<Peak> peak_of(const ValidatedSet& set, CollectiveOp op) {
  std::optional<Peak> peak;
  const double factor = bus_factor(op, set.gpus);
  const bool reaches = std::ranges::any_of(
      set.rows, [](const PredictedRow& row) { return row.counted && row.bytes >= peak_from; });
  if (!reaches) return peak;
  for (const PredictedRow& row : set.rows) {
    if (!row.counted || row.bytes < peak_from) continue;
    if (!peak) peak.emplace();
    const double scale = static_cast<double>(row.bytes.count()) * factor / 1e3;
    peak->measured_GBps = std::max(peak->measured_GBps, scale / *row.measured_us);
    peak->predicted_GBps = std::max(peak->predicted_GBps, scale / row.predicted_us);
  }
  return peak;
}

// Fits the model to three rows of the record and names their sizes.
std::vector<Bytes> calibrate_to(const Measurement& record, const CollectiveCall& call,
                                CostModel& model) {
  const CalibrationTable table = calibration_table(record, call.op, call.dtype, call.ranks);
  const std::vector<std::size_t> rows = three_rows(table.rows.size());
  if (rows.size() == table.rows.size()) {
    throw InputError("no row is left when three are calibrated on");
  }
  std::vector<Bytes> used;
  for (const std::size_t row : rows) used.push_back(table.rows[row].bytes);
  static_cast<void>(calibrate_on_three_rows(model, table));
  return used;
}

void predict_rows(const Measurement& record, CollectiveOp op, const MeasuredCluster& measured,
                  Bench& bench, SiteFit fit, ValidatedSet& set) {
  CollectiveCall call;
  call.op = op;
  call.dtype = short_dtype(record.dtype);
  call.ranks = measured.ranks;
  std::vector<Bytes> used;
  bench.cost->set_site({});
  if (fit == SiteFit::ThreeRows) used = calibrate_to(record, call, *bench.cost);
  for (MeasuredRow row : compared_rows(record)) {
    if (!row.bytes && !row.time_us && (row.busbw_GBps || row.algbw_GBps)) {
      row.bytes = size_of_bare_peak;
      set.assumptions.emplace_back("a peak without a size is compared at 16 GiB");
    }
    if (!row.bytes || row.bytes->count() <= 0) continue;
    call.bytes = *row.bytes;
    const CollectivePlan plan = bench.cost->choose(call).plan;
    PredictedRow predicted;
    predicted.bytes = *row.bytes;
    if (const auto time = measured_time(record, row, op)) {
      predicted.measured_us = time->us;
      predicted.counted = time->resolution <= coarsest_resolution &&
                          std::ranges::find(used, *row.bytes) == used.end();
    }
    predicted.predicted_us = to_microseconds(plan.alone);
    predicted.low_us = predicted.predicted_us;
    predicted.high_us = predicted.predicted_us;
    predicted.algorithm = plan.algorithm;
    predicted.protocol = plan.protocol;
    predicted.channels = plan.channels;
    predicted.bottleneck = plan.bottleneck;
    set.rows.push_back(std::move(predicted));
  }
}

ValidatedSet predict_set(const Measurement& record, const HardwareCatalogue& catalogue, SiteFit fit,
                         Benches& benches) {
  ValidatedSet set;
  set.id = record.id;
  set.site = record.site;
  set.health = record.health;
  set.collective = record.collective;
  set.gpus = record.gpus;
  set.gpu = record.system.gpu;
  const auto op = collective_op(record.collective);
  if (!op || *op == CollectiveOp::Barrier) {
    set.skipped = fmt::format("\"{}\" is not a collective that is modelled", record.collective);
    return set;
  }
  set.collective = to_string(*op);
  if (record.gpus < 2) {
    set.skipped = "a single GPU has nothing to send";
    return set;
  }
  try {
    const MeasuredCluster measured = measured_cluster(record, catalogue);
    set.assumptions = measured.assumptions;
    set.library = measured.library;
    set.stack = benches.of(measured).library.stack;
    GroupLinks links = group_links(benches.of(measured).topology, measured.ranks);
    set.generation = std::move(links.links);
    set.gpu_model = std::move(links.gpu);
    set.domains = links.domains;
    predict_rows(record, *op, measured, benches.of(measured), fit, set);
    set.apart = reason_apart(record.health, measured.not_comparable);
  } catch (const InputError& error) {
    set.skipped = error.problem();
  } catch (const SimulationError& error) {
    set.skipped = error.what();
  }
  if (!set.skipped && set.rows.empty()) set.skipped = "no row has a size";
  if (set.skipped) {
    set.rows.clear();
    return set;
  }
  set.peak = peak_of(set, *op);
  return set;
}

double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

PeakSummary summarise_peaks(const std::vector<Peak>& peaks) {
  PeakSummary summary;
  summary.sets = peaks.size();
  if (peaks.empty()) return summary;
  std::vector<double> errors;
  std::vector<double> measured;
  std::vector<double> predicted;
  std::size_t close = 0;
  for (const Peak& peak : peaks) {
    errors.push_back(std::abs(peak.predicted_GBps / peak.measured_GBps - 1));
    close += errors.back() <= 0.05 ? 1U : 0U;
    measured.push_back(peak.measured_GBps);
    predicted.push_back(peak.predicted_GBps);
  }
  summary.median = quantile(errors, 0.5);
  summary.within_5_percent = static_cast<double>(close) / static_cast<double>(peaks.size());
  if (peaks.size() >= 3) summary.rank_correlation = rank_correlation(measured, predicted);
  return summary;
}

}  // namespace

std::span<const SizeClass> size_classes() {
  return classes;
}

std::size_t size_class(Bytes bytes) {
  std::size_t index = 0;
  while (bytes > classes[index].last) ++index;
  return index;
}

bool counts(const ValidatedSet& set) {
  return !set.skipped && !set.apart;
}

ErrorSummary summarise_errors(const std::vector<double>& relative_errors) {
  ErrorSummary summary;
  summary.rows = relative_errors.size();
  if (relative_errors.empty()) return summary;
  std::vector<double> sizes;
  sizes.reserve(relative_errors.size());
  for (const double error : relative_errors) sizes.push_back(std::abs(error));
  summary.median = quantile(sizes, 0.5);
  summary.percentile90 = quantile(sizes, 0.9);
  summary.signed_median = quantile(relative_errors, 0.5);
  return summary;
}

std::vector<double> all_errors(const ValidatedSet& set, std::optional<std::size_t> of_class) {
  std::vector<double> errors;
  for (const PredictedRow& row : set.rows) {
    if (!row.counted || (of_class && size_class(row.bytes) != *of_class)) continue;
    errors.push_back(row.predicted_us / *row.measured_us - 1);
  }
  return errors;
}

std::vector<double> counted_errors(const ValidatedSet& set, std::optional<std::size_t> of_class) {
  return counts(set) ? all_errors(set, of_class) : std::vector<double>();
}

std::vector<ValidatedSet> predict(std::span<const Measurement> records,
                                  const HardwareCatalogue& catalogue, SiteFit fit) {
  Benches benches(catalogue);
  std::vector<ValidatedSet> sets;
  sets.reserve(records.size());
  for (const Measurement& record : records) {
    sets.push_back(predict_set(record, catalogue, fit, benches));
  }
  return sets;
}

ValidationSummary summarise_validation(std::span<const ValidatedSet> sets) {
  ValidationSummary summary;
  std::vector<double> all;
  std::vector<std::vector<double>> by_size(classes.size());
  std::map<std::string, std::vector<std::vector<double>>> by_collective;
  std::vector<Peak> peaks;
  std::map<std::string, std::vector<Peak>> peaks_by_collective;
  std::vector<std::size_t> covered(classes.size());
  summary.sets = sets.size();
  for (const ValidatedSet& set : sets) {
    if (set.skipped) {
      ++summary.skipped;
    } else if (set.apart) {
      ++summary.apart;
    } else {
      ++summary.counted;
      auto& of_collective = by_collective[set.collective];
      of_collective.resize(classes.size());
      for (std::size_t size = 0; size < classes.size(); ++size) {
        const std::vector<double> errors = counted_errors(set, size);
        for (auto* list : {&all, &by_size[size], &of_collective[size]}) {
          list->insert(list->end(), errors.begin(), errors.end());
        }
      }
      for (const PredictedRow& row : set.rows) {
        const bool inside =
            row.counted && *row.measured_us >= row.low_us && *row.measured_us <= row.high_us;
        covered[size_class(row.bytes)] += inside ? 1U : 0U;
      }
      summary.uncounted_rows +=
          static_cast<std::size_t>(std::ranges::count(set.rows, false, &PredictedRow::counted));
      if (set.peak) {
        peaks.push_back(*set.peak);
        peaks_by_collective[set.collective].push_back(*set.peak);
      }
    }
  }
  summary.rows = all.size();
  summary.coverage =
      share(std::accumulate(covered.begin(), covered.end(), std::size_t{0}), all.size());
  for (std::size_t size = 0; size < classes.size(); ++size) {
    summary.coverage_by_size.push_back(share(covered[size], by_size[size].size()));
  }
  summary.overall = summarise_errors(all);
  for (const auto& errors : by_size) summary.by_size.push_back(summarise_errors(errors));
  for (const auto& [name, lists] : by_collective) {
    for (const auto& errors : lists) {
      summary.by_collective[name].push_back(summarise_errors(errors));
    }
  }
  summary.peaks = summarise_peaks(peaks);
  for (const auto& [name, list] : peaks_by_collective) {
    summary.peaks_by_collective[name] = summarise_peaks(list);
  }
  return summary;
}

}  // namespace flyover
