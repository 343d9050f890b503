#include "flyover/study/cluster_cost.hpp"

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/price_reader.hpp"
#include "flyover/io/topology_reader.hpp"

using namespace flyover;
using Catch::Contains;
using Catch::Matchers::WithinRel;

namespace {

PriceList prices(const std::string& text) {
  return io::read_prices(io::Document::parse("prices.json", text), {});
}

ClusterInventory count(const std::string& topology) {
  return inventory(io::load_topology(topology));
}

}  // namespace

TEST_CASE("a cluster is counted from its graph", "[unit][study]") {
  const ClusterInventory two = count("dgx-h100:2");
  CHECK(two.gpus == std::map<std::string, std::uint64_t>{{"H100-SXM", 16}});
  CHECK(two.nodes == std::map<std::string, std::uint64_t>{{"dgx-h100", 2}});
  CHECK(two.nics.at("dgx-h100").at("ConnectX-7") == 16);
  CHECK(two.network == "ndr");
  const ClusterInventory pod = count("dgx-h100:128");
  CHECK(pod.switches == 48);
  CHECK(pod.links == 2048);
  CHECK(pod.switch_ports == 1024 + 2 * 1024);
}

TEST_CASE("trunks count as the cables that they stand for", "[unit][study]") {
  const Topology trunks = io::load_topology("dgx-h100:128", {}, io::FabricDetail::Trunks);
  CHECK(inventory(trunks).links == 2048);
}

TEST_CASE("the network of 1,024 H100 costs what the sheet says", "[unit][study]") {
  const ClusterCost cost = cluster_cost(count("dgx-h100:128"), io::shipped_prices());
  CHECK(*cost.network_capital == 4'349'440);
  CHECK(*cost.capital == 128 * 313'500 + 4'349'440);
  CHECK_THAT(*cost.per_hour, WithinRel(1024 * 2.95, 1e-12));
  CHECK_THAT(*cost.power_kW, WithinRel(128 * 10.2 + 48 * 1.72, 1e-12));
  CHECK(cost.missing.empty());
}

TEST_CASE("every price can be stated, and what includes what", "[unit][study]") {
  const PriceList list = prices(R"({
    "gpu_hours": {"h100": 2}, "nics": {"ConnectX-7": {"capital": 1000, "power_W": 20}},
    "nodes": {"dgx-h100": {"capital": 100000, "power_kW": 10, "includes_nics": false}},
    "networks": {"ndr": {"switch_capital": 30000, "switch_power_W": 1000, "link_capital": 500,
                         "transceiver_power_W": 10}}})");
  const ClusterInventory two = count("dgx-h100:2");
  const ClusterCost cost = cluster_cost(two, list);
  const auto switches = static_cast<double>(two.switches);
  const auto links = static_cast<double>(two.links);
  CHECK(*cost.per_hour == 32);
  CHECK(*cost.capital == 200'000 + 16'000 + 30'000 * switches + 500 * links);
  CHECK_THAT(*cost.power_kW,
             WithinRel(20 + 0.32 + switches + 0.01 * static_cast<double>(two.switch_ports), 1e-12));
}

TEST_CASE("a part without a price leaves its sum without a value", "[unit][study]") {
  const ClusterCost cost = cluster_cost(count("hgx-h800:2"), io::shipped_prices());
  CHECK_FALSE(cost.per_hour);
  CHECK_FALSE(cost.capital);
  CHECK(cost.network_capital);
  CHECK(cost.missing ==
        std::vector<std::string>{"the price of a GPU-hour of H800-SXM", "the price of hgx-h800"});
}

TEST_CASE("a quote that is not known is not taken for another", "[unit][study]") {
  const PriceRange low{.low = 2, .typical = {}, .high = {}, .source = {}, .date = {}};
  CHECK(low.at(PriceQuote::Low) == 2);
  CHECK_FALSE(low.at(PriceQuote::Typical));
  const PriceRange ends{.low = 2, .typical = {}, .high = 6, .source = {}, .date = {}};
  CHECK(ends.at(PriceQuote::Typical) == 4);
}

TEST_CASE("wrong prices are refused with their place", "[unit][io]") {
  const auto fails = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(prices(text), Contains(message));
  };
  fails(R"({"gpu_hours": {"H10": 2}})", "there is no GPU \"H10\"");
  fails(R"({"gpu_hour": -1})", "/gpu_hour: expected a number of 0 or more, got -1");
  fails(R"({"networks": {"ndx": {}}})", "there is no network \"ndx\"");
  fails(R"({"quote": "middle"})", "/quote");
  fails(R"({"nodes": {"dgx-h100": {"price": 2}}})", "/nodes/dgx-h100/price: is not a known option");
  fails(R"({"gpu_hours": {"H100-SXM": {"low": 3, "high": 2}}})",
        "expected \"low\" <= \"typical\" <= \"high\"");
}

TEST_CASE("a change leaves the rest of a list as it is", "[unit][io]") {
  const PriceList list = io::changed_prices(
      io::shipped_prices(), std::vector<io::Setting>{{"gpu_hours.H100-SXM.typical", "2.1"}});
  CHECK(io::gpu_hour(list, "H100-SXM") == 2.1);
  CHECK(io::gpu_hour(list, "B200-SXM") == 6.69);
  CHECK_THAT(io::gpu_hour_words(list, "B200-SXM"), Contains("typical price of 2026-08"));
}
