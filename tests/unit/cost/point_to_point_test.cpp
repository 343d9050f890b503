// How many channels a message inside a domain gets, and what that makes of its time.

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::cost_test {
namespace {

// As NCCL has it.
const PointToPointRule shipped{32, 16_MiB, {}};

Bytes plus_one(Bytes bytes) {
  return Bytes{bytes.count() + 1};
}

}  // namespace

TEST_CASE("channels of small messages are shared out over the members by powers of two",
          "[cost][point-to-point]") {
  const auto each = [](std::uint32_t members) { return channels_per_peer(shipped, members, 8_B); };
  CHECK(each(2) == 16);
  CHECK(each(3) == 8);
  CHECK(each(4) == 8);
  CHECK(each(5) == 4);
  CHECK(each(8) == 4);
  CHECK(each(32) == 1);
  CHECK(each(72) == 1);  // No message goes without.
  CHECK(channels_per_peer({1, 16_MiB, {}}, 8, 8_B) == 1);
}

TEST_CASE("a peer's channels double while each would carry more than a part",
          "[cost][point-to-point]") {
  const auto of = [](Bytes bytes) { return channels_per_peer(shipped, 8, bytes); };
  CHECK(of(64_MiB) == 4);
  CHECK(of(plus_one(64_MiB)) == 8);
  CHECK(of(128_MiB) == 8);
  CHECK(of(plus_one(128_MiB)) == 16);
  CHECK(of(plus_one(256_MiB)) == 32);
  CHECK(of(1024_GiB) == 32);  // Never more than there are.
  CHECK(channels_per_peer(shipped, 2, 256_MiB) == 16);
  CHECK(channels_per_peer(shipped, 2, plus_one(256_MiB)) == 32);
  // No member's share is beyond the channels, nor a power of two short of what a part asks for.
  for (std::uint32_t members = 2; members <= 80; ++members) {
    std::uint32_t before = 0;
    for (std::int64_t mebibytes = 1; mebibytes <= 4096; mebibytes *= 2) {
      const Bytes bytes{mebibytes << 20};
      const std::uint32_t channels = channels_per_peer(shipped, members, bytes);
      CAPTURE(members, mebibytes, channels);
      REQUIRE(channels >= before);
      REQUIRE(channels <= shipped.channels);
      REQUIRE((channels == shipped.channels || bytes.count() <= channels * shipped.part.count()));
      before = channels;
    }
  }
}

TEST_CASE("sendrecv among eight B200 takes the same time from 64 to 256 MiB",
          "[cost][point-to-point]") {
  const Bench eight(dgx_b200(), 1, "nccl");
  REQUIRE(eight.library.point_to_point);
  const auto plan = [&](Bytes bytes) { return eight.choose(CollectiveOp::SendRecv, bytes).plan; };
  const double four = to_seconds(plan(64_MiB).alone);
  CHECK(plan(64_MiB).channels == 4);
  CHECK(plan(64_MiB).bottleneck == "channels (4)");
  // b200-sendrecv-8gpu-vultr: 793, 798 and 810 us.
  for (const Bytes bytes : {128_MiB, 256_MiB}) {
    CAPTURE(bytes.count());
    CHECK(plan(bytes).channels == bytes.count() / (16_MiB).count());
    CHECK(to_seconds(plan(bytes).alone) == Approx(four).epsilon(0.05));
  }
  // With all channels the wires limit, and the time grows with the size: 859 us.
  const LinkClass nvlink{"nvlink5", "nvlink"};
  const double share =
      share_of(eight.library, {CollectiveOp::SendRecv, AlgorithmId::Direct, Protocol::Simple,
                               "blackwell", "blackwell", &nvlink, 1, 8});
  const CollectivePlan whole = plan(512_MiB);
  CHECK(whole.channels == 32);
  CHECK(to_seconds(whole.alone - whole.startup) ==
        Approx(512.0 * (1 << 20) / (share * 900e9)).epsilon(1e-6));
  CHECK(to_seconds(plan(1_GiB).alone) > 1.5 * four);
}

TEST_CASE("an exchange with all peers keeps their channels busy at every size",
          "[cost][point-to-point]") {
  const Bench eight(dgx_b200(), 1, "nccl");
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{16} << 30; bytes *= 4) {
    CAPTURE(bytes);
    // Four of the 32 are the rank's own, which has nothing to send to itself.
    CHECK(eight.choose(CollectiveOp::AllToAll, Bytes{bytes}).plan.channels >= 28);
  }
  // Their sum limits a transfer only as far as the wires would not.
  const CollectivePlan plan = eight.choose(CollectiveOp::AllToAll, 64_MiB).plan;
  const CollectivePlan message = eight.choose(CollectiveOp::SendRecv, 64_MiB).plan;
  CHECK(plan.alone < message.alone / 4);
}

TEST_CASE("messages across domains and of a library without the rule have all channels",
          "[cost][point-to-point]") {
  const Bench two(dgx_b200(), 2, "nccl");
  CHECK(two.choose(CollectiveOp::SendRecv, 1_MiB).plan.channels == 32);
  CHECK(two.model->point_to_point(0, 1, 1_MiB).channels == 16);
  CHECK(two.model->point_to_point(0, 8, 1_MiB).channels == 32);

  Library library = load("nccl");
  library.point_to_point.reset();
  const CostModel model(two.topology, *two.router, library);
  CHECK(model.point_to_point(0, 1, 1_MiB).channels == 32);
}

}  // namespace flyover::cost_test
