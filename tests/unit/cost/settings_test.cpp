#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/cost/library.hpp"

namespace flyover {
namespace {

LibrarySettings with(std::string_view name, std::string_view value) {
  LibrarySettings settings;
  set_variable(settings, name, value);
  return settings;
}

std::string complaint(std::string_view name, std::string_view value) {
  try {
    with(name, value);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

}  // namespace

TEST_CASE("NCCL_ALGO allows the algorithms that it lists and no others", "[cost][settings]") {
  const LibrarySettings settings = with("NCCL_ALGO", "Ring, nvlstree");
  CHECK(settings.allows(AlgorithmId::Ring));
  CHECK(settings.allows(AlgorithmId::NvlsTree));
  CHECK_FALSE(settings.allows(AlgorithmId::Tree));
}

TEST_CASE("a caret leaves out what follows it", "[cost][settings]") {
  const LibrarySettings settings = with("NCCL_PROTO", "^LL,LL128");
  CHECK(settings.allows(Protocol::Simple));
  CHECK_FALSE(settings.allows(Protocol::LL));
  CHECK_FALSE(settings.allows(Protocol::LL128));
}

TEST_CASE("a list set twice is the last one", "[cost][settings]") {
  LibrarySettings settings = with("NCCL_ALGO", "Ring");
  set_variable(settings, "NCCL_ALGO", "^Ring");
  CHECK_FALSE(settings.allows(AlgorithmId::Ring));
  CHECK(settings.allows(AlgorithmId::Tree));
}

TEST_CASE("switches and counts are read", "[cost][settings]") {
  CHECK_FALSE(with("NCCL_NVLS_ENABLE", "0").nvls);
  CHECK(with("NCCL_NVLS_ENABLE", "2").nvls);
  CHECK_FALSE(with("NCCL_PXN_DISABLE", "1").pxn);
  CHECK(with("NCCL_PXN_DISABLE", "0").pxn);
  CHECK(with("NCCL_MIN_NCHANNELS", "4").min_channels == 4U);
  CHECK(with("NCCL_MIN_CTAS", "4").min_channels == 4U);
  CHECK(with("NCCL_MAX_NCHANNELS", "8").max_channels == 8U);
  CHECK(with("NCCL_MAX_CTAS", " 8 ").max_channels == 8U);
}

TEST_CASE("a variable without effect says so", "[cost][settings]") {
  const LibrarySettings settings = with("NCCL_CROSS_NIC", "1");
  REQUIRE(settings.notes.size() == 1);
  CHECK(
      settings.notes.front() ==
      "NCCL_CROSS_NIC=1 has no effect: rings and trees always enter and leave a node on one rail");
}

TEST_CASE("unknown variables and values are refused with what would be right", "[cost][settings]") {
  CHECK(complaint("NCCL_ALGOS", "Ring") ==
        "NCCL_ALGOS: is not a variable that Flyover knows, did you mean \"NCCL_ALGO\"?; known are "
        "NCCL_ALGO, NCCL_PROTO, NCCL_COLLNET_ENABLE, NCCL_NVLS_ENABLE, NCCL_PXN_DISABLE, "
        "NCCL_MIN_NCHANNELS, "
        "NCCL_MAX_NCHANNELS, NCCL_MIN_CTAS, NCCL_MAX_CTAS, NCCL_CROSS_NIC");
  CHECK(complaint("NCCL_ALGO", "Rign") ==
        "NCCL_ALGO: expected an algorithm out of ring, tree, nvls, nvls-tree, "
        "collnet-direct, collnet-chain, pat, "
        "recursive-doubling, direct, pairwise, hierarchical, all-pairs, one-shot, got \"Rign\", "
        "did you mean \"ring\"?");
  CHECK(complaint("NCCL_ALGO", "") ==
        "NCCL_ALGO: expected an algorithm out of ring, tree, nvls, nvls-tree, "
        "collnet-direct, collnet-chain, pat, "
        "recursive-doubling, direct, pairwise, hierarchical, all-pairs, one-shot, got \"\"");
  CHECK(complaint("NCCL_ALGO", "allreduce:tree") ==
        "NCCL_ALGO: lists per function (\"allreduce:tree\") are not supported, got "
        "\"allreduce:tree\"");
  CHECK(complaint("NCCL_PROTO", "LL,Simpel") ==
        "NCCL_PROTO: expected a protocol out of LL, LL128, Simple, got \"Simpel\", did you mean "
        "\"Simple\"?");
  CHECK(complaint("NCCL_PXN_DISABLE", "yes") ==
        "NCCL_PXN_DISABLE: expected a whole number from 0 to 1, got \"yes\"");
  CHECK(complaint("NCCL_MAX_NCHANNELS", "0") ==
        "NCCL_MAX_NCHANNELS: expected a whole number from 1 to 64, got \"0\"");
  CHECK(complaint("NCCL_MAX_NCHANNELS", "8x") ==
        "NCCL_MAX_NCHANNELS: expected a whole number from 1 to 64, got \"8x\"");
}

TEST_CASE("channel limits that exclude each other are refused", "[cost][settings]") {
  LibrarySettings settings = with("NCCL_MIN_NCHANNELS", "16");
  CHECK_THROWS_WITH(set_variable(settings, "NCCL_MAX_NCHANNELS", "8"),
                    "NCCL_MAX_NCHANNELS: at least 16 and at most 8 channels exclude each other");
}

TEST_CASE("protocols are read by name in any case", "[cost][settings]") {
  for (const Protocol known : all_protocols) CHECK(protocol(to_string(known)) == known);
  CHECK(protocol("simple") == Protocol::Simple);
  CHECK_FALSE(protocol("LL64"));
}

}  // namespace flyover
