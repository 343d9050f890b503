// Are the figures those that a hand would get?

#include "flyover/study/statistics.hpp"

#include <array>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/study/validate.hpp"

namespace flyover::study_test {

TEST_CASE("quantiles lie on the line between neighbours", "[study]") {
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({4, 1, 2, 3}, 0.5) == 2.5);
  CHECK(quantile({0, 10}, 0.9) == Approx(9));
  CHECK(quantile({7}, 0.1) == 7);
  CHECK_THROWS_AS(quantile({}, 0.5), InternalError);
}

TEST_CASE("a weighted value stands at the middle of its weight", "[study]") {
  CHECK(weighted_quantile({{3, 1}, {1, 1}, {2, 1}}, 0.5) == 2);
  CHECK(weighted_quantile({{0, 1}, {10, 3}}, 0.125) == Approx(0));   // At an eighth,
  CHECK(weighted_quantile({{0, 1}, {10, 3}}, 0.375) == Approx(5));   // half-way,
  CHECK(weighted_quantile({{0, 1}, {10, 3}}, 0.625) == Approx(10));  // at five eighths.
  CHECK(weighted_quantile({{0, 1}, {10, 3}}, 0) == 0);
  CHECK(weighted_quantile({{0, 1}, {10, 3}}, 1) == 10);
  CHECK(weighted_quantile({{7, 2}}, 0.1) == 7);
  CHECK_THROWS_AS(weighted_quantile({}, 0.5), InternalError);
}

TEST_CASE("rank correlation sees order only, and ties share a rank", "[study]") {
  const std::array<double, 4> a = {1, 2, 3, 4};
  CHECK(rank_correlation(a, std::array<double, 4>{10, 20, 300, 4000}) == Approx(1));
  CHECK(rank_correlation(a, std::array<double, 4>{4, 3, 2, 1}) == Approx(-1));
  // Ranks 0 1 2 3 and 0.5 0.5 2 3: 4.5 / sqrt(5 x 4.5).
  CHECK(rank_correlation(a, std::array<double, 4>{1, 1, 5, 6}) == Approx(0.948683298));
  CHECK(rank_correlation(a, std::array<double, 4>{2, 2, 2, 2}) == 0);
}

TEST_CASE("an error summary has the size of errors and their sign", "[study]") {
  const ErrorSummary summary = summarise_errors({-0.5, 0.1, 0.2, -0.3, 0.0});
  CHECK(summary.rows == 5);
  CHECK(summary.median == Approx(0.2));
  CHECK(summary.percentile90 == Approx(0.42));  // Between 0.3 and 0.5.
  CHECK(summary.signed_median == Approx(0.0));
  CHECK(summarise_errors({}).rows == 0);
}

TEST_CASE("size classes end where the reports say", "[study]") {
  CHECK(size_class(Bytes{32 << 10}) == 0);
  CHECK(size_class(Bytes{(32 << 10) + 1}) == 1);
  CHECK(size_class(Bytes{1 << 20}) == 1);
  CHECK(size_class(Bytes{32 << 20}) == 2);
  CHECK(size_class(Bytes{(32 << 20) + 1}) == 3);
}

}  // namespace flyover::study_test
