// Do rows come back as they went in, whatever their names and values?

#include "flyover/io/sweep_store.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/sweep_export.hpp"
#include "io/number_set.hpp"
#include "support/dice.hpp"
#include "support/folder.hpp"

using namespace flyover;
using namespace flyover::io;

namespace {

SweepIdentity identity(std::vector<std::string> inputs, std::vector<std::string> outputs) {
  return {.name = "it's a \"test\"",
          .digest = "sha256:1",
          .config = "{\n}",
          .version = "0.1.0",
          .seed = std::numeric_limits<std::uint64_t>::max(),
          .inputs = std::move(inputs),
          .outputs = std::move(outputs)};
}

PointResult row(std::uint64_t number, SweepValues inputs, SweepValues outputs,
                PointStatus status = PointStatus::Done, std::string reason = "") {
  return {.number = number,
          .status = status,
          .reason = std::move(reason),
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .seconds = 0.25};
}

}  // namespace

TEST_CASE("rows come back by number, with their values as they were", "[io][sweep]") {
  const test::Folder folder;
  const std::string file = folder.file("a.db");
  const std::string odd = std::string("nul\0 and \"quotes\", 'too'\n\xc3\xa4", 27);
  const std::vector<PointResult> rows = {
      row(0, {{"a", std::int64_t{-1}}, {"b", 0.1}}, {{"x", true}, {"y", 1e308}}),
      row(1, {{"a", std::numeric_limits<std::int64_t>::min()}, {"b", 2.0}},
          {{"x", false}, {"y", -std::numeric_limits<double>::infinity()}}),
      row(2, {{"b", 5e-324}}, {}, PointStatus::Refused, odd),
      row(3, {{"a", odd}, {"b", std::string()}}, {{"y", -0.0}}, PointStatus::Excluded, "no"),
      row(std::uint64_t{1} << 40U, {}, {}, PointStatus::Invalid, "x"),
      row((std::uint64_t{1} << 40U) + 1, {}, {}, PointStatus::Failed, "x")};
  {
    SweepStore store(file, identity({"b", "a"}, {"x", "y"}), StoreOpening::Create);
    for (const std::size_t i : {4U, 0U, 3U, 1U, 2U, 5U}) store.add(rows[i]);
    CHECK(store.rows() == 6);
    CHECK(store.has(3));
    CHECK_FALSE(store.has(4));
    CHECK(store.row(3)->inputs == rows[3].inputs);
    CHECK_FALSE(store.row(4).has_value());
    store.commit();
    CHECK(read_sweep(file).rows.size() == 6);  // While it is being written.
  }

  const StoredSweep sweep = read_sweep(file);

  CHECK(sweep.identity.name == "it's a \"test\"");
  CHECK(sweep.identity.config == "{\n}");
  CHECK(sweep.identity.seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(sweep.identity.inputs == std::vector<std::string>{"b", "a"});
  CHECK(sweep.identity.outputs == std::vector<std::string>{"x", "y"});
  REQUIRE(sweep.rows.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(sweep.rows[i].number == rows[i].number);
    CHECK(sweep.rows[i].status == rows[i].status);
    CHECK(sweep.rows[i].reason == rows[i].reason);
    CHECK(sweep.rows[i].inputs == rows[i].inputs);
    CHECK(sweep.rows[i].outputs == rows[i].outputs);
    CHECK(sweep.rows[i].seconds == 0.25);
  }
}

TEST_CASE("any name may be an input's or an output's", "[io][sweep]") {
  const test::Folder folder;
  const std::vector<std::string> inputs = {"seed", "TP",         "tp",     "a\"b];--",
                                           "",     "input_seed", "Number", "select"};
  const std::vector<std::string> outputs = {"tp", "status", "rowid", "input_tp", "select"};
  SweepValues in;
  SweepValues out;
  for (const std::string& name : inputs) in.emplace_back(name, "i" + name);
  for (const std::string& name : outputs) out.emplace_back(name, "o" + name);
  std::ranges::sort(in);
  std::ranges::sort(out);
  {
    SweepStore store(folder.file("a.db"), identity(inputs, outputs), StoreOpening::Create);
    store.add(row(0, in, out));
  }

  const StoredSweep sweep = read_sweep(folder.file("a.db"));

  CHECK(sweep.identity.inputs == inputs);
  CHECK(sweep.identity.outputs == outputs);
  CHECK(sweep.rows.at(0).inputs == in);
  CHECK(sweep.rows.at(0).outputs == out);
}

TEST_CASE("a resumed database knows its rows and takes others", "[io][sweep]") {
  const test::Folder folder;
  const std::string file = folder.file("a.db");
  const SweepIdentity id = identity({"a"}, {"x"});
  {
    SweepStore store(file, id, StoreOpening::Create);
    store.add(row(7, {{"a", true}}, {}));
  }

  SweepStore store(file, id, StoreOpening::Resume);

  CHECK(store.has(7));
  CHECK_FALSE(store.has(6));
  CHECK(store.row(7)->inputs == SweepValues{{"a", true}});
  store.add(row(6, {{"a", false}}, {}));
  CHECK_THROWS_AS(store.add(row(7, {}, {})), InternalError);
}

TEST_CASE("truths and whole numbers in one column are refused", "[io][sweep]") {
  const test::Folder folder;
  const std::string file = folder.file("a.db");
  SweepStore store(file, identity({"a"}, {}), StoreOpening::Create);
  store.add(row(0, {{"a", true}}, {}));
  store.add(row(1, {{"a", std::string("full")}}, {}));  // Texts are told apart.

  CHECK_THROWS_WITH(store.add(row(2, {{"a", std::int64_t{2}}}, {})),
                    file +
                        ": \"a\" is true or false in some points and a whole number in others, "
                        "which SQLite does not tell apart; use one kind");
}

TEST_CASE("a second writer is refused, in the same process too", "[io][sweep]") {
  const test::Folder folder;
  const std::string file = folder.file("a.db");
  const SweepIdentity id = identity({"a"}, {});
  SweepStore store(file, id, StoreOpening::Create);
  store.add(row(0, {}, {}));

  for (const StoreOpening opening : {StoreOpening::Create, StoreOpening::Resume}) {
    CHECK_THROWS_WITH(SweepStore(file, id, opening),
                      file + ": another process is writing it; wait for it or choose another file");
  }

  store.commit();
  CHECK(read_sweep(file).rows.size() == 1);
}

TEST_CASE("too many columns are refused before anything is written", "[io][sweep]") {
  const test::Folder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 2000; ++i) names.push_back("n" + std::to_string(i));

  CHECK_THROWS_AS(SweepStore(folder.file("a.db"), identity(names, {}), StoreOpening::Create),
                  InputError);

  CHECK_FALSE(std::filesystem::exists(folder.file("a.db")));
  CHECK_FALSE(std::filesystem::exists(folder.file("a.db.lock")));
}

TEST_CASE("exports quote what needs it and tell nothing from an empty text", "[io][sweep]") {
  StoredSweep sweep;
  sweep.identity = identity({"a", "seed"}, {"a"});
  sweep.identity.seed = 3;
  sweep.rows = {
      row(0, {{"a", std::string("x, \"y\"\nz")}, {"seed", std::int64_t{4}}}, {{"a", 0.1}}),
      row(1, {{"a", std::string()}}, {}, PointStatus::Refused, "a > 1"),
      row(2, {{"seed", 1e21}}, {{"a", true}})};

  CHECK(sweep_csv(sweep) ==
        "number,status,reason,a,input_seed,output_a\n"
        "0,done,,\"x, \"\"y\"\"\nz\",4,0.1\n"
        "1,refused,a > 1,\"\",,\n"
        "2,done,,,1e+21,true\n");
  CHECK(sweep_json(sweep) == R"({
 "format": "flyover-sweep-results-1",
 "flyover": "0.1.0",
 "name": "it's a \"test\"",
 "digest": "sha256:1",
 "seed": 3,
 "inputs": [
  "a",
  "seed"
 ],
 "outputs": [
  "a"
 ],
 "points": [
  {
   "number": 0,
   "status": "done",
   "inputs": {
    "a": "x, \"y\"\nz",
    "seed": 4
   },
   "outputs": {
    "a": 0.1
   }
  },
  {
   "number": 1,
   "status": "refused",
   "reason": "a > 1",
   "inputs": {
    "a": ""
   },
   "outputs": {}
  },
  {
   "number": 2,
   "status": "done",
   "inputs": {
    "seed": 1e+21
   },
   "outputs": {
    "a": true
   }
  }
 ]
}
)");
}

TEST_CASE("a set of numbers has those that were put in, in any order", "[io][sweep]") {
  test::Dice dice(5);
  for (int repeat = 0; repeat < 50; ++repeat) {
    NumberSet numbers;
    std::set<std::uint64_t> expected;
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t number = dice.below(100);
      if (expected.insert(number).second) numbers.insert(number);
    }
    CHECK(numbers.size() == expected.size());
    for (std::uint64_t number = 0; number < 102; ++number) {
      CHECK(numbers.contains(number) == expected.contains(number));
    }
  }
}
