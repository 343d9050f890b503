// Do ranges hold what they promise, and do they say where nothing was measured?

#include "flyover/study/residual_ranges.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "flyover/base/units.hpp"

namespace flyover::study_test {
namespace {

using namespace flyover::literals;

// `rows` rows whose measured time runs from `least` to `most` of the prediction, evenly in log
// space.
ValidatedSet set_of(const std::string& site, const std::string& links, Bytes bytes, int rows,
                    double least, double most) {
  ValidatedSet set;
  set.site = site;
  set.health = Health::Healthy;
  set.collective = "all_reduce";
  set.gpus = 16;
  set.gpu_model = "H100-SXM";
  set.domains = 2;
  set.generation = links;
  set.library = "nccl-2.27";
  for (int i = 0; i < rows; ++i) {
    const double share = rows == 1 ? 0.5 : i / (rows - 1.0);
    PredictedRow row;
    row.bytes = bytes;
    row.predicted_us = 100;
    row.measured_us = 100 * std::exp(std::lerp(std::log(least), std::log(most), share));
    row.counted = true;
    set.rows.push_back(row);
  }
  return set;
}

// Three sites of equal rows.
std::vector<ValidatedSet> three_sites(const std::string& links, Bytes bytes, int rows,
                                      double least = 0.8, double most = 1.25) {
  std::vector<ValidatedSet> sets;
  for (const char* site : {"a", "b", "c"}) {
    sets.push_back(set_of(site, links, bytes, rows, least, most));
  }
  return sets;
}

ResidualRanges ranges_of(const std::vector<ValidatedSet>& sets) {
  return ResidualRanges(collect_residuals(sets, ResidualOrigin::InSample));
}

}  // namespace

TEST_CASE("a range covers its share of the rows it rests on, more when sites are few", "[study]") {
  auto sets = three_sites("nvlink4 + ndr", 1_GiB, 101, 0.5, 3);
  apply_ranges(sets, ranges_of(sets));
  std::size_t inside = 0;
  for (const ValidatedSet& set : sets) {
    for (const PredictedRow& row : set.rows) {
      inside += *row.measured_us >= row.low_us && *row.measured_us <= row.high_us ? 1U : 0U;
    }
  }
  // Of three sites the tails are 3/7 of 10 %.
  CHECK(static_cast<double>(inside) / 303 == Approx(1 - 0.6 / 7).margin(0.015));

  std::vector<ValidatedSet> many;
  for (int i = 0; i < 300; ++i) {
    many.push_back(set_of("site " + std::to_string(i), "nvlink4", 1_GiB, 11, 0.5, 3));
  }
  CHECK(summarise_validation(many).coverage == 0);
  apply_ranges(many, ranges_of(many));
  CHECK(summarise_validation(many).coverage == Approx(0.8).margin(0.06));
  CHECK(summarise_validation(many).coverage_by_size[3] == summarise_validation(many).coverage);
}

TEST_CASE("a range is as asymmetric as its residuals and has the prediction inside", "[study]") {
  const auto slow = ranges_of(three_sites("nvlink4", 1_GiB, 50, 1.2, 2))
                        .range("nvlink4", AlgorithmId::Ring, 1_GiB);
  CHECK(slow.low == 1);
  CHECK(slow.high == Approx(1.2 * std::pow(2 / 1.2, 1 - 0.3 / 7)).epsilon(0.01));
  CHECK(slow.rows == 150);
  CHECK(slow.sites == 3);
  const auto fast = ranges_of(three_sites("nvlink4", 1_GiB, 50, 0.5, 0.9))
                        .range("nvlink4", AlgorithmId::Ring, 1_GiB);
  CHECK(fast.low < 0.6);
  CHECK(fast.high == 1);
}

TEST_CASE("a site of many rows weighs as much as one of few", "[study]") {
  auto sets = three_sites("nvlink4", 1_GiB, 8, 1, 1);
  sets.push_back(set_of("d", "nvlink4", 1_GiB, 1000, 2, 2));
  // A quarter of the weight is at 2, three quarters at 1.
  Residuals residuals = collect_residuals(sets, ResidualOrigin::InSample);
  CHECK(residuals.classes.front().range.low == 1);
  CHECK(residuals.classes.front().range.high == 2);
  sets.back() = set_of("d", "nvlink4", 1_GiB, 1, 2, 2);
  CHECK(ranges_of(sets).range("nvlink4", AlgorithmId::Ring, 1_GiB).high == 2);
}

TEST_CASE("classes of few rows or sites give way to wider ones", "[study]") {
  auto sets = three_sites("nvlink4 + ndr", 1_GiB, 10, 0.9, 1.1);
  // Too few rows, and enough of them from too few sites.
  for (const ValidatedSet& few : three_sites("nvlink5 + ndr", 1_GiB, 6, 0.5, 2)) {
    sets.push_back(few);
  }
  sets.push_back(set_of("d", "nvlink3 + hdr", 1_GiB, 100, 0.5, 2));
  sets.push_back(set_of("e", "nvlink3 + hdr", 1_GiB, 100, 0.5, 2));
  for (const ValidatedSet& roce : three_sites("nvlink4 + roce-400", 1_GiB, 7, 0.5, 2)) {
    sets.push_back(roce);
  }
  const ResidualRanges ranges = ranges_of(sets);
  const auto rows = [&](const char* links, AlgorithmId algorithm) {
    return ranges.range(links, algorithm, 1_GiB).rows;
  };
  CHECK(rows("nvlink4 + ndr", AlgorithmId::Ring) == 30);
  CHECK(rows("nvlink5 + ndr", AlgorithmId::Ring) == 248);  // Any InfiniBand.
  CHECK(rows("nvlink3 + hdr", AlgorithmId::Ring) == 248);
  CHECK(rows("nvlink4 + ndr", AlgorithmId::Tree) == 248);      // Any algorithm on it.
  CHECK(rows("nvlink5 + roce-800", AlgorithmId::Ring) == 21);  // Any RoCE.
  CHECK(rows("nvlink4 + efa-v2", AlgorithmId::Ring) == 269);   // Any links of several domains.
  CHECK(rows("nvlink4 + efa-v2", AlgorithmId::Tree) == 269);   // Any algorithm on these.
  CHECK(rows("nvlink4", AlgorithmId::Ring) == 269);            // Anything.
  CHECK(ranges.range("nvlink4", AlgorithmId::Ring, 1_KiB).rows == 0);
  CHECK(ResidualRanges().range("nvlink4", AlgorithmId::Ring, 1_GiB).high == 1);
}

TEST_CASE("ranges pass from one class of size to the next without a jump", "[study]") {
  auto sets = three_sites("nvlink4", 1_MiB, 20, 0.5, 2);
  for (const ValidatedSet& large : three_sites("nvlink4", 16_MiB, 20, 0.9, 1.1)) {
    sets.push_back(large);
  }
  const ResidualRanges ranges = ranges_of(sets);
  const auto high = [&](std::int64_t kib) {
    return ranges.range("nvlink4", AlgorithmId::Ring, Bytes{kib * 1024}).high;
  };
  CHECK(high(256) == Approx(high(128)));  // A factor of 4 below the boundary.
  CHECK(high(4096) == Approx(high(8192)));
  CHECK(high(1024) == Approx(std::sqrt(high(256) * high(4096))));
  CHECK(high(1024) ==
        Approx(ranges.range("nvlink4", AlgorithmId::Ring, Bytes{(1 << 20) + 1}).high));
  for (std::int64_t kib = 256; kib < 4096; kib *= 2) CHECK(high(kib) > high(2 * kib));
  CHECK(ranges.range("nvlink4", AlgorithmId::Ring, Bytes{0}).rows == 0);
}

TEST_CASE("rows that do not count and sites left out have no part in ranges", "[study]") {
  auto sets = three_sites("nvlink4", 1_GiB, 20);
  sets.push_back(set_of("d", "nvlink4", 1_GiB, 20, 5, 9));
  sets.back().apart = "degraded";
  sets.push_back(set_of("e", "nvlink4", 1_GiB, 20, 5, 9));
  for (PredictedRow& row : sets.back().rows) row.counted = false;
  const Residuals all = collect_residuals(sets, ResidualOrigin::LeftOut);
  CHECK(all.origin == ResidualOrigin::LeftOut);
  CHECK(all.rows == 60);
  CHECK(all.sites == 3);
  CHECK(all.gpus == std::vector<std::string>{"H100-SXM"});

  sets = three_sites("nvlink4", 1_GiB, 20);
  sets.push_back(set_of("d", "nvlink4", 1_GiB, 20, 5, 9));
  const Residuals others = collect_residuals(sets, ResidualOrigin::InSample, "d");
  CHECK(others.rows == 60);
  CHECK(others.classes.front().range.high < 1.3);
  apply_left_out_ranges(sets, std::vector<ValidatedSet>(sets));
  CHECK(sets[3].rows[0].high_us < 130);  // Its own rows are not among them.
  CHECK(sets[0].rows[0].high_us > 500);
}

TEST_CASE("the correlation tells what rows of a site have in common", "[study]") {
  const auto of = [](const std::vector<ValidatedSet>& sets) {
    return collect_residuals(sets, ResidualOrigin::InSample).correlation.at(3);
  };
  CHECK(of(three_sites("nvlink4", 1_GiB, 20)) == 0);  // Sites do not differ.
  std::vector<ValidatedSet> apart = {set_of("a", "nvlink4", 1_GiB, 20, 0.7, 0.7),
                                     set_of("b", "nvlink4", 1_GiB, 20, 1, 1),
                                     set_of("c", "nvlink4", 1_GiB, 20, 1.4, 1.4)};
  CHECK(of(apart) == 1);  // Nothing else differs.
  CHECK(ranges_of(apart).correlation(1_GiB) == 1);
  CHECK(ranges_of(apart).correlation(1_KiB) == 0);
}

TEST_CASE("what was not measured is told", "[study]") {
  auto sets = three_sites("nvlink4 + ndr", 1_GiB, 20);
  sets.push_back(set_of("a", "nvlink4 + ndr", 1_MiB, 1, 1, 1));
  sets.back().gpus = 1024;
  sets.back().domains = 128;
  const ResidualRanges ranges = ranges_of(sets);
  PredictedCall call{
      {"nvlink4 + ndr", "H100-SXM", 2}, 16, "all_reduce", "nccl", AlgorithmId::Ring, 1_GiB};
  CHECK(ranges.outside(call).empty());
  const auto only = [&](auto change) {
    PredictedCall changed = call;
    change(changed);
    const auto texts = ranges.outside(changed);
    REQUIRE(texts.size() == 1);
    return texts.front();
  };
  CHECK(only([](PredictedCall& c) { c.group.gpu = "VR200"; }) == "no measurement on VR200 GPUs");
  CHECK(only([](PredictedCall& c) { c.group.links = "nvlink6"; }) == "no measurement over nvlink6");
  CHECK(only([](PredictedCall& c) { c.algorithm = AlgorithmId::Tree; }) ==
        "no measurement of tree over nvlink4 + ndr");
  CHECK(only([](PredictedCall& c) { c.library = "ideal"; }) ==
        "no measurement of library ideal for ring over nvlink4 + ndr");
  CHECK(only([](PredictedCall& c) { c.collective = "all_gather"; }) ==
        "no measurement of all_gather by ring over nvlink4 + ndr");
  CHECK(only([](PredictedCall& c) { c.gpus = 2048; }) ==
        "2048 GPUs: the largest measured system of ring over nvlink4 + ndr has 1024");
  CHECK(only([](PredictedCall& c) { c.group.domains = 129; }) ==
        "129 domains: the largest measured system of ring over nvlink4 + ndr has 128");
  CHECK(only([](PredictedCall& c) { c.bytes = 8_B; }) ==
        "sizes below 1 MiB, the smallest measured of ring over nvlink4 + ndr");
  CHECK(only([](PredictedCall& c) { c.bytes = 2_GiB; }) ==
        "sizes above 1 GiB, the largest measured of ring over nvlink4 + ndr");
}

}  // namespace flyover::study_test
