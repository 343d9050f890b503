// Does every record come back once, with the right rows counted, and is the model as good as it
// was?

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "records.hpp"
#include "support/shared.hpp"

namespace flyover::study_test {
namespace {

std::vector<ValidatedSet> predicted(std::vector<Measurement> records) {
  return predict(records, catalogue());
}

std::vector<ValidatedSet> shipped() {
  return predicted(io::shipped_measurements());
}

}  // namespace

TEST_CASE("a time is stated, or follows from a bandwidth", "[study]") {
  Measurement record_of_8 = record("H100", 8, 1);
  const auto time = [&](const MeasuredRow& row, CollectiveOp op) {
    return measured_time(record_of_8, row, op);
  };
  CHECK(time({1_MiB, 12.5, 80.0, 1.0}, CollectiveOp::AllReduce)->us == 12.5);
  const Bytes gigabyte{1'000'000'000};
  CHECK(time({gigabyte, {}, 100.0, 1.0}, CollectiveOp::AllReduce)->us == Approx(10'000));
  CHECK(time({gigabyte, {}, {}, 175.0}, CollectiveOp::AllReduce)->us == Approx(10'000));
  CHECK(time({gigabyte, {}, {}, 87.5}, CollectiveOp::AllGather)->us == Approx(10'000));
  CHECK(time({gigabyte, {}, {}, 0.01}, CollectiveOp::SendRecv)->resolution == Approx(0.5));
  CHECK(!time({gigabyte, {}, 0.0, 0.0}, CollectiveOp::AllReduce));
  record_of_8.algbw_directions = 2;
  CHECK(time({gigabyte, {}, 100.0, {}}, CollectiveOp::SendRecv)->us == Approx(20'000));
}

TEST_CASE("rows without digits are predicted and not counted", "[study]") {
  Measurement coarse = record("H100", 8, 1);
  coarse.rows = {{8_B, {}, {}, 0.01}, {1_MiB, {}, {}, 50.0}, {2_MiB, {}, {}, {}}};
  const auto sets = predicted({coarse});
  REQUIRE(sets[0].rows.size() == 3);
  CHECK(sets[0].rows[0].measured_us);
  CHECK(!sets[0].rows[0].counted);
  CHECK(sets[0].rows[1].counted);
  CHECK(!sets[0].rows[2].measured_us);
  CHECK(counted_errors(sets[0]).size() == 1);
  CHECK(summarise_validation(sets).uncounted_rows == 2);
}

TEST_CASE("rows in place are compared when there are no others", "[study]") {
  Measurement in_place = record("H100", 8, 1);
  in_place.in_place = {{2_GiB, 1.0, {}, {}}};
  CHECK(predicted({in_place})[0].rows[0].bytes == 1_GiB);
  in_place.rows.clear();
  CHECK(predicted({in_place})[0].rows[0].bytes == 2_GiB);
}

TEST_CASE("a bare peak is compared at 16 GiB", "[study]") {
  Measurement peak = record("H800", 8, 1);
  peak.rows = {{{}, {}, {}, 215.0}};
  const auto sets = predicted({peak});
  CHECK(sets[0].rows[0].bytes == 16_GiB);
  REQUIRE(sets[0].peak);
  CHECK(sets[0].peak->measured_GBps == Approx(215));
  CHECK(sets[0].assumptions.back() == "a peak without a size is compared at 16 GiB");
}

TEST_CASE("sets that are not healthy, of other kernels or of unknown GPUs stand apart", "[study]") {
  std::vector<Measurement> records(7, record("H100", 8, 1));
  records[1].health = Health::Degraded;
  records[2].health = Health::Unknown;
  records[3].library = "PyTorch symm_mem";
  records[4].system.gpu = "MetaX C500";
  records[5].collective = "nccl_primitive";
  records[6].gpus = 1;
  const auto sets = predicted(records);
  CHECK(!sets[0].apart);
  CHECK(sets[1].apart == "degraded");
  CHECK(sets[2].apart == "health is not known");
  CHECK(sets[3].apart == "kernels of PyTorch symm_mem");
  CHECK(sets[4].skipped == "there are no hardware facts of the GPU \"MetaX C500\"");
  CHECK(sets[5].skipped == "\"nccl_primitive\" is not a collective that is modelled");
  CHECK(sets[5].rows.empty());
  CHECK(sets[6].skipped == "a single GPU has nothing to send");

  const ValidationSummary summary = summarise_validation(sets);
  CHECK(summary.sets == 7);
  CHECK(summary.counted == 1);
  CHECK(summary.apart == 3);
  CHECK(summary.skipped == 3);
  CHECK(summary.rows == 1);
}

namespace {

// A site whose calls take 5 us more and whose links are 6 % slower than the model has them.
Measurement slower_site(std::size_t rows) {
  Measurement site = record("H100", 8, 1);
  site.rows.clear();
  for (std::size_t i = 0; i < rows; ++i) {
    site.rows.push_back({Bytes{std::int64_t{1024} << (2 * i)}, {}, {}, {}});
  }
  const ValidatedSet set = predicted({site}).front();
  for (std::size_t i = 0; i < rows; ++i) {
    site.rows[i].time_us = 1.06 * set.rows[i].predicted_us + 5;
  }
  return site;
}

std::size_t counted_rows(const ValidatedSet& set) {
  return static_cast<std::size_t>(std::ranges::count(set.rows, true, &PredictedRow::counted));
}

}  // namespace

TEST_CASE("the three rows that a site is calibrated on do not count", "[study]") {
  const std::vector<Measurement> records = {slower_site(11)};
  const ValidatedSet plain = predict(records, catalogue()).front();
  const ValidatedSet fitted = predict(records, catalogue(), SiteFit::ThreeRows).front();
  CHECK(counted_rows(plain) == 11);
  REQUIRE(fitted.rows.size() == 11);
  for (std::size_t i = 0; i < 11; ++i) {
    CAPTURE(i);
    CHECK(fitted.rows[i].counted == (i != 0 && i != 5 && i != 10));
    CHECK(fitted.rows[i].measured_us == plain.rows[i].measured_us);
  }
  // All others come nearer.
  CHECK(summarise_errors(counted_errors(plain)).median > 0.05);
  CHECK(summarise_errors(counted_errors(fitted)).median < 0.02);
  CHECK(summarise_errors(counted_errors(fitted)).percentile90 < 0.06);
}

TEST_CASE("a set that is too short to calibrate on is skipped with the reason", "[study]") {
  for (const std::size_t rows : {1U, 2U, 3U}) {
    const std::vector<Measurement> records = {slower_site(rows)};
    const ValidatedSet set = predict(records, catalogue(), SiteFit::ThreeRows).front();
    CAPTURE(rows);
    CHECK(set.skipped == "no row is left when three are calibrated on");
    CHECK(set.rows.empty());
    CHECK(!predict(records, catalogue()).front().skipped);
  }
  const std::vector<Measurement> four = {slower_site(4)};
  CHECK(counted_rows(predict(four, catalogue(), SiteFit::ThreeRows).front()) == 1);
}

TEST_CASE("what one site is calibrated to does not reach the next", "[study]") {
  const Measurement slow = slower_site(8);
  Measurement usual = slow;
  for (MeasuredRow& row : usual.rows) *row.time_us *= 0.9;
  const std::vector<Measurement> both = {slow, usual};
  const std::vector<Measurement> one = {usual};
  const auto together = predict(both, catalogue(), SiteFit::ThreeRows);
  const auto alone = predict(one, catalogue(), SiteFit::ThreeRows);
  for (std::size_t i = 0; i < alone.front().rows.size(); ++i) {
    CHECK(together[1].rows[i].predicted_us == alone.front().rows[i].predicted_us);
  }
}

TEST_CASE("peaks are summarised by hand-made numbers", "[study]") {
  std::vector<ValidatedSet> sets(4);
  const double measured[] = {100, 200, 300, 400};
  const double predicted_peak[] = {104, 191, 330, 320};  // +4 %, -4.5 %, +10 %, -20 %.
  for (std::size_t i = 0; i < 4; ++i) {
    sets[i].collective = i < 2 ? "all_reduce" : "all_gather";
    sets[i].peak = Peak{measured[i], predicted_peak[i]};
  }
  const ValidationSummary summary = summarise_validation(sets);
  CHECK(summary.peaks.sets == 4);
  CHECK(summary.peaks.median == Approx(0.0725));
  CHECK(summary.peaks.within_5_percent == 0.5);
  CHECK(*summary.peaks.rank_correlation == Approx(0.8));
  CHECK(!summary.peaks_by_collective.at("all_reduce").rank_correlation);
}

TEST_CASE("shipped measurements come back once each and nearly all of them predicted", "[study]") {
  const auto records = io::shipped_measurements();
  const auto sets = predict(records, catalogue());
  REQUIRE(sets.size() == records.size());
  std::set<std::string> ids;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    CHECK(sets[i].id == records[i].id);
    ids.insert(sets[i].id);
    if (sets[i].skipped) continue;
    CAPTURE(sets[i].id);
    CHECK(sets[i].rows.size() == compared_rows(records[i]).size());
    for (const PredictedRow& row : sets[i].rows) CHECK(row.predicted_us > 0);
  }
  CHECK(ids.size() == sets.size());
  CHECK(summarise_validation(sets).skipped <= 5);
}

// What the model reached when this was written, with a margin of a fifth: better is welcome. How it
// does on sites that the fit has not seen is tests/cli/validate_test.py's question.
TEST_CASE("the model is no worse than it was", "[study][measurements]") {
  const ValidationSummary summary = summarise_validation(shipped());
  const double medians[] = {0.136, 0.209, 0.118, 0.024};
  for (std::size_t size = 0; size < size_classes().size(); ++size) {
    CAPTURE(size_classes()[size].name, summary.by_size[size].median);
    CHECK(summary.by_size[size].median <= medians[size]);
  }
  CHECK(summary.by_size[3].percentile90 <= 0.12);
  CHECK(summary.peaks.within_5_percent >= 0.86);
  CHECK(*summary.peaks.rank_correlation >= 0.97);
}

TEST_CASE("shared measurements give what their shipped copies give", "[study][measurements]") {
  const auto folder = test::shared_material("measurements/data");
  if (!folder) return;
  std::map<std::string, ValidatedSet> copies;
  for (ValidatedSet& set : shipped()) copies[set.id] = std::move(set);

  const auto originals = predicted(io::load_measurements(*folder));
  CHECK(originals.size() <= copies.size());  // A few come from shared/cases.
  for (const ValidatedSet& set : originals) {
    CAPTURE(set.id);
    REQUIRE(copies.contains(set.id));
    const ValidatedSet& copy = copies[set.id];
    CHECK(set.apart.has_value() == copy.apart.has_value());
    REQUIRE(set.rows.size() == copy.rows.size());
    for (std::size_t i = 0; i < set.rows.size(); ++i) {
      CHECK(set.rows[i].predicted_us == copy.rows[i].predicted_us);
      CHECK(set.rows[i].measured_us == copy.rows[i].measured_us);
    }
  }
  // Single links and primitives are no collectives: every one is skipped, none is an error.
  for (const ValidatedSet& set :
       predicted(io::load_measurements(folder->parent_path() / "point-to-point"))) {
    CHECK(set.skipped);
  }
}

}  // namespace flyover::study_test
