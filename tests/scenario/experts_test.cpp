// Exchanges of experts in whole runs: what their kernels hold, who is played, what results say.

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/topology_reader.hpp"
#include "support/cluster.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

constexpr const char* v3 = R"("routing": {"model": "deepseek-v3"})";

std::string workload(const std::string& exchange, const std::string& ops) {
  return fmt::format(
      R"({{"ranks": "all", "exchanges": {{"x": {{{}}}}}, "programs": [{{"ranks": "all", "ops": [{}]}}]}})",
      exchange, ops);
}
std::string ranks_of(const test::Cluster& cluster, std::string text) {
  return text.replace(text.find("\"all\""), 5, std::to_string(cluster.topology.gpus.size()));
}

const char* const halves =
    R"({"op": "moe_dispatch", "exchange": "x"}, {"op": "moe_combine", "exchange": "x"})";

const CollectiveStats& stats_of(const Result& result, std::string_view op) {
  const auto found = std::ranges::find(result.collectives, op, &CollectiveStats::op);
  REQUIRE(found != result.collectives.end());
  return *found;
}

}  // namespace

TEST_CASE("an exchange alone takes what its plan says", "[scenario][moe]") {
  const test::Cluster c(io::load_topology("hgx-h800:2"), test::library("nccl"));
  for (const char* mode : {"nccl", "normal", "low-latency", "direct"}) {
    CAPTURE(mode);
    const std::string exchange = fmt::format(R"("mode": "{}", "tokens": 512, {})", mode, v3);
    const Result result = c.run(ranks_of(c, workload(exchange, halves))).result;
    for (const char* op : {"moe_dispatch", "moe_combine"}) {
      const CollectiveStats& own = stats_of(result, op);
      CHECK(std::abs((own.mean - own.alone).count()) <= 2);
      REQUIRE(own.experts);
      CHECK(to_string(own.experts->mode) == mode);
      CHECK(own.experts->balanced);
      CHECK(own.experts->tokens == 512);
    }
    CHECK(result.classes < result.ranks);
  }
}

TEST_CASE("a kernel beside an exchange keeps the SMs that are left", "[scenario][moe]") {
  const test::Cluster c(io::load_topology("hgx-h800:2"), test::library("nccl"));
  const std::string exchange = fmt::format(R"("tokens": 16384, "sms": 32, {})", v3);
  const auto time_beside = [&](const char* kernel) {
    const std::string ops = fmt::format(
        R"({{"id": "k", "op": "compute", "duration": "1 ms"{}}}, {{"op": "moe_dispatch", "exchange": "x"}},
           {{"op": "delay", "duration": "0 s", "after": "k"}})",
        kernel);
    // The kernel ends before the dispatch does.
    const Replay run = c.run(ranks_of(c, workload(exchange, ops)));
    return Duration{static_cast<std::int64_t>(run.result.breakdown.compute_us * 1e6 + 0.5)};
  };
  // 132 SMs, of which 32 are held.
  CHECK(time_beside(R"(, "sms": 132)") == Duration{1'320'000'000});
  CHECK(time_beside(R"(, "sms": 110)") == Duration{1'100'000'000});
  CHECK(time_beside(R"(, "sms": 100)") == 1ms);
  CHECK(time_beside("") == 1ms);
}

TEST_CASE("a receive hook holds no SMs, and low-latency kernels without it nearly all",
          "[scenario][moe]") {
  const test::Cluster c(io::load_topology("hgx-h800:2"), test::library("nccl"));
  const auto beside = [&](const char* hook) {
    const std::string exchange =
        fmt::format(R"("mode": "low-latency", "tokens": 4096, "hook": {}, {})", hook, v3);
    const Result result =
        c.run(ranks_of(c, workload(exchange, R"({"op": "compute", "duration": "10 us", "sms": 132},
                                {"op": "moe_dispatch", "exchange": "x"})")))
            .result;
    return std::pair{result.breakdown.compute_us, stats_of(result, "moe_dispatch").experts->sms};
  };
  CHECK(beside("true") == std::pair{10.0, 0U});
  const auto [slow, sms] = beside("false");
  CHECK(sms == 128);
  CHECK(slow == Approx(10 * 132.0 / 4));
}

TEST_CASE("balanced exchanges keep rank classes, and times are those of a full run",
          "[scenario][moe]") {
  for (const char* name : {"hgx-h800:4", "dgx-h100:8", "gb200-nvl72"}) {
    const test::Cluster c(io::load_topology(name), test::library("nccl"));
    for (const char* mode : {"nccl", "normal", "low-latency", "direct"}) {
      CAPTURE(name, mode);
      const std::string routing =
          std::string(name) == "gb200-nvl72" ? R"("routing": {"experts": 288, "chosen": 8})" : v3;
      const std::string exchange =
          fmt::format(R"("mode": "{}", "tokens": 300, "hidden": 7168, {})", mode, routing);
      const Workload w = c.read(ranks_of(
          c,
          workload(exchange, std::string(R"({"op": "compute", "duration": "90 us", "sms": 120},)") +
                                 halves)));
      const ReductionCheck check = verify_reduction({c.topology, c.cost}, {c.topology, c.cost}, w);
      CHECK(check.differences == 0);
      CHECK(check.reduced.result.classes < check.full.result.ranks);
    }
  }
}

TEST_CASE("exchanges that treat ranks differently are played in full and say so",
          "[scenario][moe]") {
  const test::Cluster c(io::load_topology("hgx-h800:2"), test::library("nccl"));
  struct Case {
    std::string exchange;
    const char* basis;
  };
  std::string tokens = "[9";
  for (int r = 1; r < 16; ++r) tokens += fmt::format(", {}", 128 + r);
  for (const auto& [exchange, basis] :
       {Case{R"("tokens": 128, "routing": {"model": "deepseek-v3", "sampled": true, "seed": 7})",
             "sampled, seed 7"},
        Case{R"("tokens": 128, "routing": {"model": "deepseek-v3", "popularity": {"zipf": 1}})",
             "expected"},
        Case{fmt::format(R"("tokens": {}], {})", tokens, v3), "expected"}}) {
    CAPTURE(exchange);
    const Workload w = c.read(ranks_of(c, workload(exchange, halves)));
    const Result result = replay(c.topology, c.cost, w).result;
    CHECK(result.classes == 16);
    const ExpertStats& stats = *stats_of(result, "moe_dispatch").experts;
    CHECK_FALSE(stats.balanced);
    CHECK(stats.traffic.basis.starts_with(basis));
    CHECK(stats.traffic.network.most > stats.traffic.network.mean);
    const bool said = std::ranges::any_of(result.warnings, [&](const std::string& warning) {
      return warning.starts_with("exchange \"x\" treats ranks differently (" + stats.traffic.basis +
                                 ")");
    });
    CHECK(said);
    // Classes would be exact too, they are only not worth their cost.
    CHECK(verify_reduction({c.topology, c.cost}, {c.topology, c.cost}, w).differences == 0);
  }
}

TEST_CASE("layers that repeat cost no more and take as long", "[scenario][moe]") {
  const test::Cluster c(io::load_topology("hgx-h800:2"), test::library("nccl"));
  const std::string once =
      fmt::format(R"({{"op": "compute", "duration": "90 us", "sms": 120}}, {})", halves);
  std::string text = ranks_of(c, workload(fmt::format(R"("tokens": 300, {})", v3), once));
  text.replace(text.find("\"ops\""), 5, "\"repeat\": 40, \"ops\"");
  const Workload w = c.read(text);
  REQUIRE(w.sections.size() == 1);
  const ReductionCheck check = verify_reduction({c.topology, c.cost}, {c.topology, c.cost}, w);
  CHECK(check.differences == 0);
  CHECK(check.reduced.result.events < check.full.result.events / 20);
  const auto amount = [](const Result& result, std::string_view name) {
    return std::ranges::find(result.links, name, &ResourceClassStats::name)->amount;
  };
  for (const char* resource : {"sm", "hbm", "host-leaf"}) {
    CHECK(amount(check.reduced.result, resource) ==
          Approx(amount(check.full.result, resource)).epsilon(1e-9));
  }
}
