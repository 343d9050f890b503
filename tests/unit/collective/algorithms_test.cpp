// Every algorithm on every shape of group: does its schedule keep the collective's promise, and
// does its summary tell the same as its schedule?

#include <map>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "unit/collective/shapes.hpp"

namespace flyover {
namespace {

using test::Order;
using test::Rails;

std::string describe(const Algorithm& algorithm, const CollectiveShape& shape) {
  return fmt::format("{} {}: domains {}, rails {}, {} channels, root {}", to_string(algorithm.op),
                     to_string(algorithm.id), shape.group.domain, shape.group.rail, shape.channels,
                     shape.root);
}

// What differs between the two, or "".
std::string difference(const Summary& direct, const Summary& derived) {
  if (direct.ranks != derived.ranks) return "ranks";
  if (direct.relays != derived.relays) return "relays";
  if (direct.relay_domain != derived.relay_domain) return "relay domains";
  if (direct.steps != derived.steps) return fmt::format("steps {} {}", direct.steps, derived.steps);
  if (direct.intra_hops != derived.intra_hops || direct.inter_hops != derived.inter_hops) {
    return fmt::format("hops {}+{} {}+{}", direct.intra_hops, direct.inter_hops, derived.intra_hops,
                       derived.inter_hops);
  }
  if (direct.edges.size() != derived.edges.size()) {
    return fmt::format("edges {} {}", direct.edges.size(), derived.edges.size());
  }
  for (std::size_t i = 0; i < direct.edges.size(); ++i) {
    const EdgeLoad& a = direct.edges[i];
    const EdgeLoad& b = derived.edges[i];
    if (a.from != b.from || a.to != b.to || a.channel != b.channel || a.messages != b.messages ||
        std::abs(a.fraction - b.fraction) > 1e-12) {
      return fmt::format("edge {}: {} -> {} on {}: {} x{}; {} -> {} on {}: {} x{}", i, a.from, a.to,
                         a.channel, a.fraction, a.messages, b.from, b.to, b.channel, b.fraction,
                         b.messages);
    }
  }
  return {};
}

// Bytes that every algorithm's blocks divide evenly.
Bytes even_bytes(const CollectiveShape& shape) {
  return Bytes{std::int64_t{shape.group.ranks()} * shape.channels * 64 * 3 * 5 * 7 * 11 * 13 * 240};
}

// The number of shapes that the algorithm could be tried on: 0 or 1.
int examine(const Algorithm& algorithm, const CollectiveShape& shape) {
  if (!algorithm.unsupported(shape).empty()) return 0;
  const Schedule schedule = algorithm.schedule(shape, even_bytes(shape));
  const std::string broken = check(schedule);
  if (!broken.empty()) FAIL(describe(algorithm, shape) << ": " << broken);
  std::string differing = difference(algorithm.summarise(shape), summarise(schedule, shape.group));
  if (!differing.empty()) FAIL(describe(algorithm, shape) << ": " << differing);
  return 1;
}

int examine_all(const GroupShape& group, std::uint32_t channels, std::uint32_t root,
                std::map<const Algorithm*, int>& tried) {
  int count = 0;
  for (const Algorithm& algorithm : algorithms()) {
    const int done = examine(algorithm, test::shape_of(algorithm.op, group, channels, root));
    tried[&algorithm] += done;
    count += done;
  }
  return count;
}

// Calls visit(sizes) for the ways to cut n ranks into domains: all, or those of falling size.
template <class Visit>
void each_cut(std::uint32_t n, bool falling, std::vector<std::uint32_t>& sizes, Visit& visit) {
  if (n == 0) return visit(sizes);
  const std::uint32_t most = falling && !sizes.empty() ? std::min(n, sizes.back()) : n;
  for (std::uint32_t size = 1; size <= most; ++size) {
    sizes.push_back(size);
    each_cut(n - size, falling, sizes, visit);
    sizes.pop_back();
  }
}

template <class Visit>
void each_cut(std::uint32_t n, bool falling, Visit visit) {
  std::vector<std::uint32_t> sizes;
  each_cut(n, falling, sizes, visit);
}

void require_all_tried(std::map<const Algorithm*, int>& tried, int least) {
  for (const Algorithm& algorithm : algorithms()) {
    INFO(to_string(algorithm.op) << ' ' << to_string(algorithm.id));
    CHECK(tried[&algorithm] >= least);
  }
}

constexpr std::uint32_t channel_counts[] = {1, 2, 3, 8};
constexpr Order orders[] = {Order::InOrder, Order::Interleaved, Order::Shuffled};
constexpr Rails rails[] = {Rails::OneEach, Rails::Shared, Rails::Apart, Rails::Single};

TEST_CASE("every algorithm is right on every group of up to 5 ranks", "[collective]") {
  std::map<const Algorithm*, int> tried;
  for (std::uint32_t n = 1; n <= 5; ++n) {
    each_cut(n, false, [&](const std::vector<std::uint32_t>& sizes) {
      for (const Order order : orders) {
        for (const std::uint32_t channels : channel_counts) {
          const Rails layout = rails[(n + channels) % std::size(rails)];
          for (std::uint32_t root = 0; root < n; root += 2) {
            examine_all(test::group(sizes, order, layout), channels, root, tried);
          }
        }
      }
    });
  }
  require_all_tried(tried, 20);
}

TEST_CASE("every algorithm is right on groups of 6 to 16 ranks in domains of any sizes",
          "[collective]") {
  std::map<const Algorithm*, int> tried;
  std::uint32_t turn = 0;
  for (std::uint32_t n = 6; n <= 16; ++n) {
    each_cut(n, true, [&](std::vector<std::uint32_t> sizes) {
      // Large domains first, last, or in between.
      ++turn;
      if (turn % 3 == 1) std::ranges::reverse(sizes);
      if (turn % 3 == 2) std::rotate(sizes.begin(), sizes.begin() + sizes.size() / 2, sizes.end());
      const std::uint32_t channels = turn % 29 == 0 ? 8 : 1 + turn % 7 / 3;
      examine_all(test::group(sizes, orders[turn / 2 % 3], rails[turn / 5 % 4]), channels,
                  turn * 5 % n, tried);
    });
  }
  require_all_tried(tried, 10);
}

TEST_CASE("every algorithm is right on one domain and on domains of one of up to 16 ranks",
          "[collective]") {
  std::map<const Algorithm*, int> tried;
  for (std::uint32_t n = 1; n <= 16; ++n) {
    for (const std::uint32_t size : {n, 1U}) {
      examine_all(test::group(test::domains_of(size, n), orders[n % 3]), channel_counts[n % 3],
                  n - 1, tried);
    }
  }
  require_all_tried(tried, 5);
}

TEST_CASE("every algorithm is right on larger groups", "[collective]") {
  const auto n = GENERATE(24U, 32U, 48U, 64U, 72U, 128U);
  CAPTURE(n);
  std::map<const Algorithm*, int> tried;
  examine_all(test::group(test::domains_of(8, n), orders[n / 8 % 3]), n < 64 ? 2 : 1, n / 3, tried);
  examine_all(test::group(test::domains_of(n < 72 ? 18 : 50, n), Order::InOrder, Rails::Shared), 1,
              n - 1, tried);
  if (n == 32) examine_all(test::group({n}), 3, 0, tried);
}

TEST_CASE("every algorithm is right on 250 ranks in domains of 8, and on 256 in domains of 32",
          "[collective]") {
  std::map<const Algorithm*, int> tried;
  examine_all(test::group(test::domains_of(8, 250), Order::Interleaved), 1, 249, tried);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.op == CollectiveOp::Broadcast || algorithm.op == CollectiveOp::Reduce) continue;
    examine(algorithm, test::shape_of(algorithm.op, test::group(test::domains_of(32, 256))));
  }
}

TEST_CASE("bytes that do not divide go one by one to the first blocks", "[collective]") {
  const auto bytes = GENERATE(0, 1, 17, 1000003);
  for (const Algorithm& algorithm : algorithms()) {
    const auto shape = test::shape_of(algorithm.op, test::group({4}), 2, 1);
    if (!algorithm.unsupported(shape).empty()) continue;
    CAPTURE(to_string(algorithm.op), to_string(algorithm.id), bytes);
    const Schedule schedule = algorithm.schedule(shape, Bytes{bytes});
    CHECK(check(schedule).empty());

    std::int64_t sum = 0;
    for (const Bytes block : schedule.block_bytes) sum += block.count();
    const bool per_rank =
        algorithm.op == CollectiveOp::AllToAll || algorithm.op == CollectiveOp::SendRecv;
    CHECK(sum == (per_rank ? 4 : 1) * std::int64_t{bytes});
    const auto [least, most] = std::ranges::minmax(schedule.block_bytes);
    CHECK(most.count() - least.count() <= 1);
    if (!per_rank) CHECK(std::ranges::is_sorted(schedule.block_bytes, std::ranges::greater{}));
  }
}

TEST_CASE("a group of one rank has nothing to send", "[collective]") {
  for (const Algorithm& algorithm : algorithms()) {
    const auto shape = test::shape_of(algorithm.op, test::group({1}), 4);
    if (!algorithm.unsupported(shape).empty()) continue;
    CAPTURE(to_string(algorithm.op), to_string(algorithm.id));
    CHECK(algorithm.schedule(shape, Bytes{1024}).transfers.empty());
    CHECK(algorithm.summarise(shape).edges.empty());
    CHECK(algorithm.summarise(shape).steps == 0);
  }
}

TEST_CASE("an algorithm says why it cannot run", "[collective]") {
  const auto reason = [](CollectiveOp op, AlgorithmId id, const std::vector<std::uint32_t>& sizes,
                         bool nvls, bool sharp = false) {
    auto shape = test::shape_of(op, test::group(sizes));
    shape.in_switch_reduction = nvls;
    shape.in_network_reduction = sharp;
    return find_algorithm(op, id)->unsupported(shape);
  };
  using enum CollectiveOp;
  CHECK(reason(AllReduce, AlgorithmId::Nvls, {8}, false) == "needs NVLS in the domain");
  CHECK(reason(AllReduce, AlgorithmId::Nvls, {8, 8}, true) ==
        "needs all ranks in one domain, or a network that reduces");
  CHECK(reason(AllReduce, AlgorithmId::Nvls, {8, 8}, true, true).empty());
  CHECK(reason(AllGather, AlgorithmId::Nvls, {8, 8}, true, true) ==
        "needs all ranks in one domain");
  for (const AlgorithmId id : {AlgorithmId::CollnetDirect, AlgorithmId::CollnetChain}) {
    CHECK(reason(AllReduce, id, {8}, false, true) == "needs more than one domain");
    CHECK(reason(AllReduce, id, {8, 8}, false) == "needs switches that reduce in the network");
    CHECK(reason(AllReduce, id, {8, 1}, false, true).empty());
  }
  for (const CollectiveOp op : {AllReduce, AllGather, ReduceScatter}) {
    CHECK(reason(op, AlgorithmId::AllPairs, {8, 4}, false) ==
          "needs as many ranks in every domain");
    CHECK(reason(op, AlgorithmId::AllPairs, {6}, false).empty());
    CHECK(reason(op, AlgorithmId::AllPairs, {6, 6, 6}, false).empty());
  }
  CHECK(reason(AllReduce, AlgorithmId::OneShot, {8, 1}, false).empty());
  CHECK(reason(AllReduce, AlgorithmId::Nvls, {8}, true).empty());
  CHECK(reason(AllReduce, AlgorithmId::NvlsTree, {8, 8}, false) == "needs NVLS in every domain");
  CHECK(reason(AllReduce, AlgorithmId::NvlsTree, {8}, true) == "needs more than one domain");
  CHECK(reason(AllReduce, AlgorithmId::NvlsTree, {8, 1}, true).empty());
  CHECK(reason(AllGather, AlgorithmId::RecursiveDoubling, {6}, true) ==
        "needs a power of two of ranks");
  CHECK(reason(ReduceScatter, AlgorithmId::RecursiveDoubling, {8}, true).empty());
  CHECK(reason(AllReduce, AlgorithmId::RecursiveDoubling, {6}, true).empty());
}

TEST_CASE("a shape that breaks the contract is refused", "[collective]") {
  const Algorithm& ring = *find_algorithm(CollectiveOp::AllReduce, AlgorithmId::Ring);
  auto shape = test::shape_of(CollectiveOp::AllReduce, test::group({4}));
  SECTION("of another collective") {
    shape.op = CollectiveOp::AllGather;
  }
  SECTION("without channels") {
    shape.channels = 0;
  }
  SECTION("with more channels than numbers") {
    shape.channels = 40000;
  }
  SECTION("with a root outside") {
    shape.root = 4;
  }
  SECTION("without rails") {
    shape.group.rail.clear();
  }
  SECTION("empty") {
    shape.group = {};
  }
  CHECK_THROWS_AS(ring.unsupported(shape), InternalError);
  CHECK_THROWS_AS(ring.summarise(shape), InternalError);
  CHECK_THROWS_AS(ring.schedule(shape, Bytes{4}), InternalError);
}

TEST_CASE("a schedule for a shape that its algorithm does not support is refused", "[collective]") {
  const Algorithm& nvls = *find_algorithm(CollectiveOp::AllReduce, AlgorithmId::Nvls);
  auto shape = test::shape_of(CollectiveOp::AllReduce, test::group({4, 4}));
  shape.in_network_reduction = false;
  CHECK_THROWS_AS(nvls.summarise(shape), InternalError);
  CHECK_THROWS_AS(nvls.schedule(shape, Bytes{4}), InternalError);
}

TEST_CASE("a schedule that is too long to be numbered is refused with advice", "[collective]") {
  const auto shape =
      test::shape_of(CollectiveOp::AllReduce, test::group(test::domains_of(8, 65536)));
  CHECK_THROWS_WITH(
      find_algorithm(CollectiveOp::AllReduce, AlgorithmId::Ring)->schedule(shape, Bytes{1 << 20}),
      "all_reduce over 65536 ranks takes 8589803520 transfers message by message, more than the "
      "4294967294 that can be replayed; replay it as a stream instead");
}

}  // namespace
}  // namespace flyover
