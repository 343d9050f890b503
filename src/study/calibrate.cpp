#include "flyover/study/calibrate.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <unsupported/Eigen/NonLinearOptimization>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Width {
  std::string_view name;
  double width;
  std::string_view reason;
};

// Sites agree to 24 % (in the median) up to 1 MiB, 12 % up to 32 MiB, 1.5 % above, with tails of
// 150 %, 50 %, 14 %: the README of the shared measurements.
constexpr std::array widths = {
    Width{"launch", 5e-6, "5.5 us with a low-latency library to 13 us with NCCL on 8 x H100"},
    Width{"domain_latency", 0.5, "small calls differ by 24 % in the median, 2.5-fold in the tail"},
    Width{"network_latency", 0.5, "as inside a domain; switches, cables and proxies differ"},
    Width{"pipeline", 0.7, "calls of 1 to 32 MiB differ by 12 % in the median, 52 % in the tail"},
    Width{"pipeline_size", 0.7, "buffers, queue pairs and message sizes are settings"},
    Width{"domain_bandwidth", 0.08, "large calls differ by 1.5 % in the median, 14 % in the tail"},
    Width{"network_bandwidth", 0.08, "as inside a domain"},
    Width{"protocol_bandwidth", 0.3, "clocks, versions and channel counts differ"},
};
constexpr std::size_t parameters = widths.size();

// How far the model may stay from a site's times once it is calibrated, by size class. Set by hand.
constexpr std::array<double, 4> row_widths = {0.06, 0.06, 0.04, 0.01};

// Of the prior's width: above it the rows told little.
constexpr double determined_below = 0.7;
// Of the logarithm of a time, for one width of a parameter's prior.
constexpr double no_effect = 0.005;
constexpr double step = 1e-3;

const std::array<SitePrior, parameters>& priors() {
  static const auto table = [] {
    std::array<SitePrior, parameters> made;
    require(site_parameters().size() == parameters, "a prior for every site parameter");
    for (std::size_t i = 0; i < parameters; ++i) {
      require(site_parameters()[i].name == widths[i].name, "priors in the parameters' order");
      made[i] = {&site_parameters()[i], widths[i].width, widths[i].reason};
    }
    return made;
  }();
  return table;
}

// The square root of twice the soft L1 loss, with the residual's sign: least squares of it is a
// robust fit of the residual.
double softened(double residual) {
  return std::copysign(std::sqrt(2 * (std::sqrt(1 + residual * residual) - 1)), residual);
}

// The residuals over x: deviations from the prior's centre, in its widths, of those parameters that
// can matter. Borrows the model. The members that Eigen asks for have the names that it asks for.
class Residuals {
 public:
  using Scalar = double;
  using InputType = VectorXd;
  using ValueType = VectorXd;
  using JacobianType = MatrixXd;
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  Residuals(CostModel& model, std::span<const CalibrationTable> tables,
            std::vector<std::size_t> fitted)
      : model_(model),
        fitted_(std::move(fitted)) {
    for (const CalibrationTable& table : tables) {
      CollectiveCall call{table.op, {}, table.dtype, table.ranks, table.root};
      for (const CalibrationRow& row : table.rows) {
        require(row.us > 0 && row.bytes.count() > 0, "rows with a size and a time");
        call.bytes = row.bytes;
        const double width = std::hypot(row_widths.at(size_class(row.bytes)), row.resolution);
        rows_.push_back({call, std::log(row.us), width});
      }
    }
  }

  [[nodiscard]] Index inputs() const { return static_cast<Index>(fitted_.size()); }
  [[nodiscard]] Index rows() const { return static_cast<Index>(rows_.size()); }
  [[nodiscard]] Index values() const { return rows() + inputs(); }

  [[nodiscard]] SiteParameters site_at(const VectorXd& x) const {
    SiteParameters site;
    for (std::size_t i = 0; i < fitted_.size(); ++i) {
      const SitePrior& prior = priors()[fitted_[i]];
      const double moved = x[static_cast<Index>(i)] * prior.width;
      (site.*prior.parameter->member).value = prior.parameter->seconds ? moved : std::exp(moved);
    }
    return site;
  }

  // log(predicted / measured) of every row.
  [[nodiscard]] VectorXd misfits(const VectorXd& x) const {
    model_.set_site(site_at(x));
    VectorXd out(rows());
    for (Index i = 0; i < rows(); ++i) {
      const Row& row = rows_[static_cast<std::size_t>(i)];
      out[i] = std::log(to_microseconds(model_.choose(row.call).plan.alone)) - row.log_us;
    }
    return out;
  }

  int operator()(const VectorXd& x, VectorXd& values) const {
    const VectorXd misfit = misfits(x);
    for (Index i = 0; i < rows(); ++i) {
      values[i] = softened(misfit[i] / rows_[static_cast<std::size_t>(i)].width);
    }
    values.tail(inputs()) = x;
    last_x_ = x;
    last_values_ = values;
    return 0;
  }

  int df(const VectorXd& x, MatrixXd& jacobian) const {
    VectorXd here(values());
    if (x == last_x_) {
      here = last_values_;
    } else {
      (*this)(x, here);
    }
    VectorXd there(values());
    for (Index column = 0; column < inputs(); ++column) {
      VectorXd moved = x;
      moved[column] += step;
      (*this)(moved, there);
      jacobian.col(column) = (there - here) / step;
    }
    return 0;
  }

  // Of every row: how much larger the squared residuals of its class of sizes are than expected, 1
  // or more.
  [[nodiscard]] VectorXd scatter(const VectorXd& x) const {
    VectorXd residuals(values());
    (*this)(x, residuals);
    std::vector<double> squares(size_classes().size(), 0);
    std::vector<double> counts(size_classes().size(), 0);
    for (Index i = 0; i < rows(); ++i) {
      const std::size_t size = size_class(rows_[static_cast<std::size_t>(i)].call.bytes);
      squares[size] += residuals[i] * residuals[i];
      counts[size] += 1;
    }
    // What the fitted parameters took away of the scatter.
    const double all = static_cast<double>(rows());
    const double left = all / std::max(1.0, all - static_cast<double>(inputs()));
    VectorXd out(rows());
    for (Index i = 0; i < rows(); ++i) {
      const std::size_t size = size_class(rows_[static_cast<std::size_t>(i)].call.bytes);
      out[i] = std::max(1.0, left * squares[size] / counts[size]);
    }
    return out;
  }

  [[nodiscard]] bool latency_bound() const {
    return std::ranges::all_of(rows_, [&](const Row& row) {
      return model_.choose(row.call).plan.bottleneck == "latency";
    });
  }
  [[nodiscard]] std::vector<ErrorSummary> errors(const VectorXd& x) const {
    const VectorXd misfit = misfits(x);
    std::vector<std::vector<double>> by_size(size_classes().size());
    for (Index i = 0; i < rows(); ++i) {
      const Row& row = rows_[static_cast<std::size_t>(i)];
      by_size[size_class(row.call.bytes)].push_back(std::expm1(misfit[i]));
    }
    std::vector<ErrorSummary> out;
    for (const auto& list : by_size) out.push_back(summarise_errors(list));
    return out;
  }

 private:
  struct Row {
    CollectiveCall call;
    double log_us;
    double width;
  };

  CostModel& model_;
  std::vector<std::size_t> fitted_;
  std::vector<Row> rows_;
  mutable VectorXd last_x_;
  mutable VectorXd last_values_;
};

// Which links the tables' groups use.
struct Reach {
  bool domain = false;   // Some group has two members in one domain.
  bool network = false;  // Some group has members in two.
};

Reach reach_of(const CostModel& model, std::span<const CalibrationTable> tables) {
  Reach reach;
  for (const CalibrationTable& table : tables) {
    std::vector<std::uint32_t> domains = model.shape(table.ranks).domain;
    std::ranges::sort(domains);
    reach.network |= domains.front() != domains.back();
    reach.domain |= std::ranges::adjacent_find(domains) != domains.end();
  }
  return reach;
}

std::string out_of_reach(std::string_view name, const Reach& reach) {
  if (name.starts_with("network_") && !reach.network) return "no call crosses the network";
  if (name.starts_with("domain_") && !reach.domain) return "no call has two GPUs in one domain";
  return "";
}

std::string without_effect(std::string_view name, bool latency_bound) {
  if (name == "domain_bandwidth" || name == "network_bandwidth") {
    return latency_bound ? "all rows are latency-bound" : "something else limits all rows";
  }
  if (name == "protocol_bandwidth") return "no row is limited by the LL or LL128 kernels";
  if (name.starts_with("pipeline")) return "no row takes long to fill a pipeline";
  return "all rows are bandwidth-bound";
}

}  // namespace

CalibrationTable calibration_table(const Measurement& record, CollectiveOp op, std::string dtype,
                                   std::vector<std::uint32_t> ranks) {
  CalibrationTable table{record.id, op, std::move(dtype), std::move(ranks), 0, {}};
  for (const MeasuredRow& row : compared_rows(record)) {
    if (!row.bytes || row.bytes->count() <= 0) continue;
    const auto time = measured_time(record, row, op);
    if (!time || time->resolution > coarsest_resolution) continue;
    table.rows.push_back({*row.bytes, time->us, time->resolution});
  }
  std::ranges::stable_sort(table.rows, {}, &CalibrationRow::bytes);
  return table;
}

std::span<const SitePrior> site_priors() {
  return priors();
}

Calibration calibrate(CostModel& model, std::span<const CalibrationTable> tables) {
  if (std::ranges::all_of(tables, [](const auto& table) { return table.rows.empty(); })) {
    throw InputError("there are no rows to calibrate on");
  }
  const Reach reach = reach_of(model, tables);
  Calibration result;
  std::vector<std::size_t> fitted;
  for (std::size_t i = 0; i < parameters; ++i) {
    SiteParameter& parameter = result.site.*priors()[i].parameter->member;
    parameter.uncertainty = priors()[i].width;
    parameter.reason = out_of_reach(widths[i].name, reach);
    if (parameter.reason.empty()) fitted.push_back(i);
  }

  const Residuals residuals(model, tables, fitted);
  VectorXd x = VectorXd::Zero(residuals.inputs());
  result.before = residuals.errors(x);
  Eigen::LevenbergMarquardt<const Residuals> solver(residuals);
  solver.parameters.ftol = 1e-5;
  solver.parameters.xtol = 1e-3;
  solver.parameters.maxfev = 25;  // Where plans take turns it may hop between two minima.
  solver.minimize(x);
  result.after = residuals.errors(x);

  // The posterior's covariance, in widths of the prior. Rows of a class of sizes that scatter more
  // than `row_widths` allows were given too much weight; the sandwich form counts that.
  MatrixXd jacobian(residuals.values(), residuals.inputs());
  residuals.df(x, jacobian);
  const VectorXd scatter = residuals.scatter(x);
  const MatrixXd told = jacobian.topRows(residuals.rows());
  const MatrixXd prior_told = MatrixXd::Identity(told.cols(), told.cols());
  const MatrixXd inverse = (told.transpose() * told + prior_told).inverse();
  const MatrixXd covariance =
      inverse * (told.transpose() * scatter.asDiagonal() * told + prior_told) * inverse;

  const SiteParameters at = residuals.site_at(x);
  const bool latency_bound = residuals.latency_bound();
  const VectorXd misfit = residuals.misfits(x);
  for (std::size_t i = 0; i < fitted.size(); ++i) {
    const auto column = static_cast<Index>(i);
    const SitePrior& prior = priors()[fitted[i]];
    SiteParameter& parameter = result.site.*prior.parameter->member;
    const double width = std::sqrt(covariance(column, column));
    parameter.value = (at.*prior.parameter->member).value;
    parameter.uncertainty = width * prior.width;
    parameter.determined = width <= determined_below;
    if (parameter.determined) continue;

    VectorXd moved = x;
    moved[column] += step;
    const double effect = (residuals.misfits(moved) - misfit).cwiseAbs().maxCoeff() / step;
    if (effect < no_effect) {
      parameter.reason = without_effect(prior.parameter->name, latency_bound);
      continue;
    }
    std::size_t partner = i;
    double strongest = 0.5;
    for (std::size_t other = 0; other < fitted.size(); ++other) {
      const auto k = static_cast<Index>(other);
      const double correlation =
          std::abs(covariance(column, k)) / (width * std::sqrt(covariance(k, k)));
      if (other != i && correlation > strongest) {
        strongest = correlation;
        partner = other;
      }
    }
    if (partner != i) {
      parameter.reason =
          fmt::format("cannot be told from {}", priors()[fitted[partner]].parameter->name);
    } else {
      parameter.reason = scatter.maxCoeff() > 1
                             ? "the rows are further from the model than it moves them"
                             : "the rows hardly depend on it";
    }
  }
  model.set_site(result.site);
  return result;
}

std::vector<std::size_t> three_rows(std::size_t rows) {
  if (rows == 0) return {};
  if (rows == 1) return {0};
  if (rows == 2) return {0, 1};
  return {0, rows / 2, rows - 1};
}

Calibration calibrate_on_three_rows(CostModel& model, const CalibrationTable& table) {
  CalibrationTable three = table;
  three.rows.clear();
  for (const std::size_t row : three_rows(table.rows.size())) {
    three.rows.push_back(table.rows[row]);
  }
  return calibrate(model, std::span(&three, 1));
}

}  // namespace flyover
