#include "flyover/io/timeline_writer.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/base/version.hpp"

namespace flyover::io {

TEST_CASE("a timeline is processes, threads, slices and counters", "[timeline]") {
  Trace trace;
  trace.tracks = {{"rank \"0\" a", "compute", 0}, {"rank \"0\" a", "tp", 0}, {"links", "pcie"}};
  const auto at = [](std::int64_t ps) { return Time{Duration{ps}}; };
  trace.slices = {{0, at(0), at(1'500'000), "mlp", "compute", ""},
                  {1, at(1'500'000), at(1'500'001), "wait for x", "wait", ""},
                  {1, at(1'500'001), at(4'000'000), "x", "tp", "1 MiB"}};
  // What differs by less than is shown is no event.
  trace.loads = {{2, at(1'000'000), 0.12345}, {2, at(2'000'000), 0.123451}, {2, at(4'000'000), 0}};
  trace.notes = {"a note"};
  Result result;
  result.time = Duration{4'000'000};
  const std::vector<std::string> events{
      R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"rank \"0\" a"}},)",
      R"({"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},)",
      R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"compute"}},)",
      R"({"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"tp"}},)",
      R"({"ph":"M","pid":2,"name":"process_name","args":{"name":"links"}},)",
      R"({"ph":"M","pid":2,"name":"process_sort_index","args":{"sort_index":2}},)",
      R"({"ph":"X","pid":1,"tid":1,"ts":0,"dur":1.5,"name":"mlp"},)",
      R"({"ph":"X","pid":1,"tid":2,"ts":1.5,"dur":0.000001,"name":"wait for x","cat":"wait"},)",
      R"({"ph":"X","pid":1,"tid":2,"ts":1.500001,"dur":2.499999,"name":"x","args":{"detail":"1 MiB"}},)",
      R"({"ph":"C","pid":2,"ts":1,"name":"pcie","args":{"%":12.35}},)",
      R"({"ph":"C","pid":2,"ts":4,"name":"pcie","args":{"%":0}})"};
  std::string expected = R"({"displayTimeUnit":"ns","otherData":{"format":"flyover-timeline-2",)";
  expected += R"("flyover":")" + std::string(version());
  expected += R"(","time_us":4.0,"notes":["a note"]},"traceEvents":[)";
  for (const std::string& event : events) expected += '\n' + event;
  CHECK(timeline_json(trace, result) == expected + "\n]}\n");
}

}  // namespace flyover::io
