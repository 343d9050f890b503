#pragma once

// How far measurements are from predictions of their class, and what was measured at all. The
// classes are those of link generation x algorithm x size. docs/models/uncertainty.md explains.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/collective.hpp"
#include "flyover/study/group_links.hpp"
#include "flyover/study/validate.hpp"

namespace flyover {

// What the measurements of a class are in units of the prediction: 80 % lie between low and high.
struct Range {
  double low = 1;   // At most 1,
  double high = 1;  // at least 1: a range includes its prediction.
  std::size_t rows = 0;
  std::size_t sites = 0;
};

// `links` and `algorithm` are words that predictions carry ("nvlink4 + ndr", "ring"), or wider:
// links "any nvlink", "any + ib", "one domain", "several domains", "any"; algorithm "any".
struct ResidualClass {
  std::string links;
  std::string algorithm;
  std::size_t size = 0;  // Index into size_classes().
  Range range;
};

// What the measurements of links and an algorithm reach over.
struct FittedClass {
  std::string links;
  std::string algorithm;
  Bytes smallest;
  Bytes largest;
  std::uint32_t gpus = 0;     // Most in one measurement.
  std::uint32_t domains = 0;  // Likewise.
  std::vector<std::string> collectives;
  std::vector<std::string> libraries;  // "nccl", "rccl"
};

// Whether the predictions come from parameters that were fitted to the same measurements.
enum class ResidualOrigin : std::uint8_t { InSample, LeftOut };
[[nodiscard]] std::string_view to_string(ResidualOrigin origin);  // "in-sample", "left-out"

struct Residuals {
  ResidualOrigin origin = ResidualOrigin::InSample;
  std::size_t rows = 0;
  std::size_t sites = 0;
  // Share of the variance within a class that rows of one site have in common, by size class.
  std::vector<double> correlation;
  std::vector<std::string> gpus;       // Models that were measured, ascending.
  std::vector<ResidualClass> classes;  // That have enough rows and sites; ascending by name.
  std::vector<FittedClass> fitted;     // Likewise in order.
};

// From rows that count, of all sites but one if it is named. A class has 20 rows or more from 3
// sites or more. Quantiles are taken in log space, and every site weighs the same.
[[nodiscard]] Residuals collect_residuals(std::span<const ValidatedSet> sets, ResidualOrigin origin,
                                          std::string_view without_site = {});

// A prediction, as far as a range depends on it.
struct PredictedCall {
  GroupLinks group;
  std::uint32_t gpus = 0;
  std::string_view collective;
  std::string_view library;  // Its name, without version.
  AlgorithmId algorithm = AlgorithmId::Ring;
  Bytes bytes;
};

class ResidualRanges {
 public:
  ResidualRanges() = default;  // Knows nothing: every range is 1 to 1 from no rows.
  explicit ResidualRanges(Residuals residuals) : residuals_(std::move(residuals)) {}

  // Of the class, or of the next wider one that has enough rows: links of one make (of the network
  // where it takes part); of these any algorithm; any links of one domain or several; of these any
  // algorithm; any links at all. Within a factor of 4 around the boundary of two size classes
  // the range goes from one to the other, in proportion to the logarithm of the size.
  [[nodiscard]] Range range(const std::string& links, AlgorithmId algorithm, Bytes bytes) const;
  [[nodiscard]] double correlation(Bytes bytes) const;

  // In what respects the call is outside of what was measured, a sentence each. The text does not
  // depend on the call's own size, so that the calls of a table have few different ones.
  [[nodiscard]] std::vector<std::string> outside(const PredictedCall& call) const;

 private:
  [[nodiscard]] Range of_class(const std::string& links, AlgorithmId algorithm,
                               std::size_t size) const;

  Residuals residuals_;
};

void apply_ranges(std::vector<ValidatedSet>& sets, const ResidualRanges& ranges);
// Each set's ranges are those of `from` without the set's own site.
void apply_left_out_ranges(std::vector<ValidatedSet>& sets, std::span<const ValidatedSet> from);

}  // namespace flyover
