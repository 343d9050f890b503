// Does the reader take what the format allows, and say what is wrong?

#include "flyover/io/measurement_reader.hpp"

#include <filesystem>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"

namespace flyover::study_test {
namespace {

std::vector<Measurement> read(const std::string& text) {
  return io::read_measurements(io::Document::parse("m.json", text));
}

const std::string least =
    R"({"id": "a", "system": {}, "n_gpus": 8, "collective": "all_reduce", "rows": []})";

}  // namespace

TEST_CASE("a record of the least that is needed leaves the rest open", "[study]") {
  const Measurement record = read(least).front();
  CHECK(record.gpus == 8);
  CHECK(record.health == Health::Unknown);
  CHECK(record.system.gpu.empty());
  CHECK(!record.system.nodes);
  CHECK(record.rows.empty());
}

TEST_CASE("a full record is read, nulls and members of others left alone", "[study]") {
  const Measurement record = read(R"({
    "id": "b", "source": "s", "site": "x", "date": "2026", "mood": 3,
    "system": {"gpu": "H100", "gpus_per_node": 8, "nodes": 2, "nvlink_gen": null,
               "nic": null, "nic_gbps_per_gpu": 12.5, "fabric": "RoCE"},
    "n_gpus": 16, "software": {"nccl": null, "lib": "pynccl", "env": {"NCCL_ALGO": "Ring", "NCCL_NVLS_ENABLE": 0}},
    "collective": "alltoall", "dtype": "half", "health": "degraded", "algbw_directions": 2,
    "rows": [{"bytes": 8, "time_us": null, "algbw_GBps": 1.5}, {"busbw_GBps": 3}],
    "in_place": [{"bytes": 16, "time_us": 2}]})")
                                 .front();
  CHECK(record.system.nic_per_gpu == Bandwidth{12.5e9 / 8});
  CHECK(!record.system.nvlink_generation);
  CHECK(record.environment == "NCCL_ALGO=Ring NCCL_NVLS_ENABLE=0");
  CHECK(record.library == "pynccl");
  CHECK(record.health == Health::Degraded);
  CHECK(record.algbw_directions == 2);
  REQUIRE(record.rows.size() == 2);
  CHECK(record.rows[0].bytes == Bytes{8});
  CHECK(!record.rows[0].time_us);
  CHECK(record.rows[0].algbw_GBps == 1.5);
  CHECK(!record.rows[1].bytes);
  CHECK(record.in_place[0].time_us == 2);
}

TEST_CASE("a file is one record, a list or an object of records", "[study]") {
  CHECK(read("[" + least + "," + least + "]").size() == 2);
  CHECK(read(R"({"records": [)" + least + "]}").size() == 1);
}

TEST_CASE("what is wrong in a record is told with its place", "[study]") {
  const auto message = [](const std::string& text) -> std::string {
    try {
      (void)read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("[3]") ==
        "m.json:1:2: /0: expected a record: an object with id, system, rows, ...");
  CHECK(message(R"({"id": "a", "system": {}, "n_gpus": 8, "collective": "x"})") ==
        "m.json:1:1: expected rows or in_place, the measured table");
  CHECK(
      message(
          R"({"id": "a", "system": {}, "n_gpus": 8, "collective": "x", "health": "fine", "rows": []})") ==
      "m.json:1:69: /health: expected \"healthy\", \"degraded\" or \"unknown\", got \"fine\"");
  CHECK(
      message(
          R"({"id": "a", "system": {}, "n_gpus": 8, "collective": "x", "rows": [{"bytes": -8}]})") ==
      "m.json:1:78: /rows/0/bytes: expected a number of bytes, not below zero");
}

TEST_CASE("a folder is there and has measurements", "[study]") {
  CHECK_THROWS_WITH(io::load_measurements("nowhere"),
                    "nowhere: expected a folder with measurements (*.json)");
  const auto empty = std::filesystem::temp_directory_path() / "flyover-no-measurements";
  std::filesystem::create_directory(empty);
  CHECK_THROWS_WITH(io::load_measurements(empty),
                    empty.string() + ": has no *.json files with measurements");
  std::filesystem::remove(empty);
}

}  // namespace flyover::study_test
