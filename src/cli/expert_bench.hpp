#pragma once

// `flyover bench moe_dispatch`, `moe_combine` and `moe_fused`: a table as DeepEP's tests print it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "flyover/moe/planner.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
}  // namespace CLI

namespace flyover::cli {

// What it shares with the other collectives' bench.
struct BenchInputs {
  std::string topology;
  std::string library;  // Of communication or of expert kernels.
  std::string params;
  std::vector<std::string> settings;
  std::string json;
};

class ExpertBench {
 public:
  void add_options(CLI::App& app);
  // The first of its options that was given, "" when none was.
  [[nodiscard]] std::string given() const;
  void run(CollectiveOp op, const BenchInputs& inputs, const Terminal& terminal);

 private:
  struct Row {
    std::uint32_t ep = 0;
    std::uint32_t nodes = 0;
    std::string limit;
    ExpertPlan plan;
    Duration kernel{};
    double bottleneck = 0;  // GB/s
    bool spans_nodes = false;
    std::string problem;  // Why there is no plan.
  };

  [[nodiscard]] ExpertExchange exchange(const std::string& library) const;
  [[nodiscard]] std::vector<std::uint32_t> group_sizes(std::uint32_t gpus) const;
  // The exchange on so many ranks, with a limit of groups.
  [[nodiscard]] ExpertExchange on(const ExpertExchange& base, std::uint32_t ep, std::uint32_t nodes,
                                  const std::string& limit) const;
  [[nodiscard]] std::string json(const std::vector<InputDigest>& inputs, const ExpertExchange& base,
                                 const std::vector<Row>& rows) const;
  [[nodiscard]] std::string text(std::size_t width, const std::string& topology,
                                 const ExpertExchange& base, const std::vector<Row>& rows) const;

  CollectiveOp op_{};
  std::vector<CLI::Option*> options_;
  std::string model_;
  std::optional<std::uint32_t> experts_;
  std::optional<std::uint32_t> chosen_;
  std::string gate_;
  std::string groups_;
  std::string mode_;
  std::optional<std::uint32_t> hidden_;
  std::optional<std::uint32_t> expert_hidden_;
  std::optional<double> efficiency_;
  std::string dispatch_ = "fp8";
  std::string combine_ = "bf16";
  std::uint32_t tokens_ = 0;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::string> limits_;
  std::optional<std::uint32_t> sms_;
  std::optional<std::uint32_t> slots_;
  bool sampled_ = false;
  bool cached_ = false;
  std::optional<std::uint64_t> seed_;
};

}  // namespace flyover::cli
