// Reduced and full runs agree where there is something to reduce: most ranks of these jobs behave
// like others.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "support/regular_jobs.hpp"

using namespace flyover;

namespace {

struct Sweep {
  std::uint32_t cases = 0;
  std::uint32_t merged = 0;     // Cases in which ranks were alike.
  std::uint32_t large = 0;      // Of 64 GPUs or more.
  std::vector<double> factors;  // Ranks per class.
  std::map<std::string, std::uint32_t> traits;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Nothing when the drawn parts do not fit together. Its errors must not leave the messages of Catch
// behind, hence a function of its own.
std::optional<ReductionCheck> check_of(const test::RegularJob& job) {
  try {
    const test::Cluster& reduced = job.with_trunks ? *job.with_trunks : *job.cluster;
    return verify_reduction({job.cluster->topology, job.cluster->cost},
                            {reduced.topology, reduced.cost}, job.workload);
  } catch (const InputError&) {       // No algorithm of the library.
  } catch (const SimulationError&) {  // A fault cut the cluster in two.
  }
  return std::nullopt;
}

std::optional<test::RegularJob> job_of(std::uint64_t seed) {
  try {
    return test::regular_job(seed);
  } catch (const InputError&) {       // No such layout.
  } catch (const SimulationError&) {  // A fault cut the cluster in two.
  }
  return std::nullopt;
}

Sweep sweep(std::uint64_t first_seed, std::uint32_t cases) {
  Sweep sum;
  for (std::uint64_t seed = first_seed; sum.cases < cases; ++seed) {
    REQUIRE(seed < first_seed + 3 * cases);
    const std::optional<test::RegularJob> job = job_of(seed);
    if (!job) continue;
    const std::optional<ReductionCheck> check = check_of(*job);
    if (!check) continue;
    const std::uint32_t ranks = check->full.result.classes;
    const std::uint32_t classes = check->reduced.result.classes;
    INFO(job->description << "\n" << classes << " classes of " << ranks << " ranks");
    INFO(check->first);
    CHECK(check->differences == 0);
    CHECK(check->full.result.time == check->reduced.result.time);
    CHECK(check->operations > 0);
    ++sum.cases;
    sum.merged += classes < ranks;
    sum.large += job->cluster->topology.gpus.size() >= 64;
    sum.factors.push_back(double{1} * ranks / classes);
    for (const std::string& trait : std::set<std::string>(job->traits.begin(), job->traits.end())) {
      ++sum.traits[trait];
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("reduced and full runs agree in every start and end on regular jobs with faults",
          "[scenario][classes]") {
  Sweep sum = sweep(1, 240);
  std::string seen;
  for (const auto& [trait, count] : sum.traits) {
    if (count > 1) seen += trait + " " + std::to_string(count) + "; ";
  }
  INFO(seen);
  CAPTURE(sum.merged, sum.large, median(sum.factors));
  CHECK(sum.merged >= sum.cases * 8 / 10);
  CHECK(sum.large >= sum.cases / 2);
  CHECK(median(sum.factors) >= 8);
  for (const std::string trait : {"rail-optimized",
                                  "rail-optimized, three tiers",
                                  "fat-tree, two tiers",
                                  "fat-tree, three tiers",
                                  "leaf-spine",
                                  "multi-plane",
                                  "rail-only",
                                  "dragonfly",
                                  "torus",
                                  "single-switch",
                                  "adaptive",
                                  "ecmp",
                                  "switched",
                                  "mesh",
                                  "pcie-box",
                                  "nvl72",
                                  "NIC down",
                                  "NVLink degraded",
                                  "leaf-spine cable down",
                                  "spine degraded",
                                  "slow GPU",
                                  "slow node",
                                  "two node types",
                                  "trunks",
                                  "odd groups",
                                  "subset of ranks",
                                  "ring of messages",
                                  "training",
                                  "native",
                                  "experts",
                                  "experts, nccl",
                                  "experts, normal",
                                  "experts, direct",
                                  "experts, low-latency",
                                  "none",
                                  "zero-1",
                                  "zero-2",
                                  "zero-3",
                                  "gpipe",
                                  "1f1b",
                                  "interleaved-1f1b",
                                  "zb-h1",
                                  "zb-v"}) {
    CAPTURE(trait);
    CHECK(sum.traits[trait] >= 5);
  }
}

TEST_CASE("reduced and full runs agree on many more regular jobs",
          "[.][scenario][classes][large]") {
  sweep(100'000, 2'000);
}
