#include "flyover/io/timeline_writer.hpp"

#include <string>

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
  CHECK(timeline_json(trace, result) ==
        R"({"displayTimeUnit":"ns","otherData":{"format":"flyover-timeline-2","flyover":")" +
            std::string(version()) + R"(","time_us":4.0,"notes":["a note"]},"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"rank \"0\" a"
}
},
{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"compute"}},
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"tp"}},
{"ph":"M","pid":2,"name":"process_name","args":{"name":"links"}},
{"ph":"M","pid":2,"name":"process_sort_index","args":{"sort_index":2}},
{"ph":"X","pid":1,"tid":1,"ts":0,"dur":1.5,"name":"mlp"},
{"ph":"X","pid":1,"tid":2,"ts":1.5,"dur":0.000001,"name":"wait for x","cat":"wait"},
{"ph":"X","pid":1,"tid":2,"ts":1.500001,"dur":2.499999,"name":"x","args":{"detail":"1 MiB"}},
{"ph":"C","pid":2,"ts":1,"name":"pcie","args":{"%":12.35}},
{"ph":"C","pid":2,"ts":4,"name":"pcie","args":{"%":0}}
]
}
)");
}

}  // namespace flyover::io
