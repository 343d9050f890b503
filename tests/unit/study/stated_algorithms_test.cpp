// Records that say which algorithm ran, against what the library of that version chooses. The words
// are in the originals only, which are not part of the repository: without them the test says so
// and passes.

#include <optional>
#include <regex>

#include <catch2/catch.hpp>

#include "flyover/cost/cost_model.hpp"
#include "flyover/routing/router.hpp"
#include "records.hpp"
#include "support/shared.hpp"

namespace flyover::study_test {

namespace {

std::optional<AlgorithmId> stated_algorithm(const Measurement& measurement) {
  static const std::regex words(R"(algorithm chosen: (\w+)|\b(Ring|NVLSTree|NVLS) selected)");
  std::smatch found;
  const std::string text = measurement.environment + " " + measurement.notes;
  if (!std::regex_search(text, found, words)) return std::nullopt;
  return algorithm_id(found[1].matched ? found[1].str() : found[2].str());
}

AlgorithmId chosen(const Measurement& measurement, Bytes bytes) {
  const MeasuredCluster cluster = measured_cluster(measurement, catalogue());
  Library library = catalogue().libraries.at(cluster.library);
  for (const auto& [name, value] : cluster.variables) {
    if (name != "NCCL_ALGO") set_variable(library.settings, name, value);
  }
  const Topology topology = build_topology(cluster.cluster);
  const Router router(topology, {.pxn = library.settings.pxn});
  const CostModel model(topology, router, library);
  return model
      .choose({*collective_op(measurement.collective), bytes, measurement.dtype, cluster.ranks, 0})
      .plan.algorithm;
}

}  // namespace

TEST_CASE("at the largest size the library chooses the algorithm that a record says ran",
          "[study][measurements]") {
  const auto folder = test::shared_material("measurements/data");
  if (!folder) return;
  int compared = 0;
  for (const Measurement& measurement : io::load_measurements(*folder)) {
    const auto stated = stated_algorithm(measurement);
    if (!stated || measurement.health != Health::Healthy) continue;
    const Bytes bytes = compared_rows(measurement).back().bytes.value();
    CAPTURE(measurement.id, measurement.nccl, bytes.count(), to_string(*stated));
    CHECK(to_string(chosen(measurement, bytes)) == to_string(*stated));
    ++compared;
  }
  CHECK(compared >= 20);
}

}  // namespace flyover::study_test
