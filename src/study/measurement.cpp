#include "flyover/study/measurement.hpp"

namespace flyover {

namespace {

// nccl-tests prints bandwidths with two decimals.
constexpr double half_of_last_digit = 0.005;

}  // namespace

std::string_view to_string(Health health) {
  switch (health) {
    case Health::Healthy:
      return "healthy";
    case Health::Degraded:
      return "degraded";
    case Health::Unknown:
      break;
  }
  return "unknown";
}

const std::vector<MeasuredRow>& compared_rows(const Measurement& measurement) {
  return measurement.rows.empty() ? measurement.in_place : measurement.rows;
}

std::optional<MeasuredTime> measured_time(const Measurement& measurement, const MeasuredRow& row,
                                          CollectiveOp op) {
  if (row.time_us && *row.time_us > 0) return MeasuredTime{*row.time_us, 0};
  if (!row.bytes) return std::nullopt;
  const auto from = [&](double stated, double factor) {
    const double algbw = stated / factor / measurement.algbw_directions;
    return MeasuredTime{static_cast<double>(row.bytes->count()) / algbw / 1e3,
                        half_of_last_digit / stated};
  };
  if (row.algbw_GBps && *row.algbw_GBps > 0) return from(*row.algbw_GBps, 1);
  if (row.busbw_GBps && *row.busbw_GBps > 0) {
    return from(*row.busbw_GBps, bus_factor(op, measurement.gpus));
  }
  return std::nullopt;
}

}  // namespace flyover
