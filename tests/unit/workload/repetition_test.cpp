#include "flyover/workload/repetition.hpp"

#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace flyover;
using namespace flyover::literals;

namespace {

Operation operation(const std::string& stream, const std::string& name,
                    std::vector<std::uint32_t> after, std::uint32_t section = no_section,
                    std::uint32_t copy = 0) {
  Operation op;
  op.name = name;
  op.stream = stream;
  op.duration = 1us;
  op.after = std::move(after);
  op.section = section;
  op.copy = copy;
  return op;
}

// A start, `copies` of a pair of operations on two streams, the second after the first and the
// first of the next copy after both; then half a copy and an end.
Program program(std::uint32_t copies) {
  Program p{"p", {0}, {}};
  p.ops.push_back(operation("a", "start", {}));
  p.ops.push_back(operation("b", "start beside", {}));
  for (std::uint32_t c = 0; c <= copies; ++c) {
    const auto next = static_cast<std::uint32_t>(p.ops.size());
    std::vector<std::uint32_t> after{next - 1};
    if (c > 0) after.push_back(next - 2);
    p.ops.push_back(operation("a", fmt::format("forward {}", c), after, 0, c));
    if (c < copies) p.ops.push_back(operation("b", fmt::format("x.{}", c), {next}, 0, c));
  }
  const auto last = static_cast<std::uint32_t>(p.ops.size()) - 1;
  p.ops.push_back(operation("c", fmt::format("end of {}", copies), {last - 1, last}));
  p.ops.back().sections_before = 1;
  for (std::uint32_t i = 0; i < p.ops.size(); ++i) p.ops[i].id = std::to_string(i);
  return p;
}

Workload workload(std::uint32_t copies, std::uint64_t elided) {
  Workload w{"w", 1, {}, {program(copies)}};
  w.sections = {{elided, "micro-batches", 1}};
  return w;
}

}  // namespace

TEST_CASE("a section written out is what it would be without copies left out",
          "[workload][repetition]") {
  const std::uint32_t held = GENERATE(2U, 3U, 5U);
  const std::uint64_t elided = GENERATE(0U, 1U, 2U, 17U);
  CAPTURE(held, elided);
  REQUIRE(irregularity(program(held), 0).empty());

  const Workload whole = unrolled(workload(held, elided));

  const Program expected = program(held + static_cast<std::uint32_t>(elided));
  REQUIRE(whole.programs[0].ops.size() == expected.ops.size());
  CHECK(whole.sections[0].elided == 0);
  CHECK(meant_operations(workload(held, elided), program(held)) == expected.ops.size());
  for (std::size_t i = 0; i < expected.ops.size(); ++i) {
    CAPTURE(i);
    const Operation& found = whole.programs[0].ops[i];
    CHECK(found.id == expected.ops[i].id);
    CHECK(found.name == expected.ops[i].name);
    CHECK(found.stream == expected.ops[i].stream);
    CHECK(found.after == expected.ops[i].after);
    CHECK(found.section == expected.ops[i].section);
    CHECK(found.copy == expected.ops[i].copy);
  }
}

TEST_CASE("a section is written out step by step", "[workload][repetition]") {
  const Workload some = unrolled(workload(2, 9), 4);
  CHECK(some.sections[0].elided == 5);
  CHECK(some.programs[0].ops.size() == program(6).ops.size());
  CHECK(unrolled(some).programs[0].ops.size() == program(11).ops.size());
}

TEST_CASE("sections whose copies differ are irregular", "[workload][repetition]") {
  Program p = program(3);
  const auto problem = [&](auto change) {
    Program changed = p;
    change(changed.ops);
    return irregularity(changed, 0);
  };
  CHECK(problem([](auto&) {}).empty());
  CHECK(problem([](auto& ops) { ops[4].duration += 1_ps; }) ==
        "operation \"4\" that is not like the one a copy before");
  CHECK(problem([](auto& ops) { ops[6].name = "forward 7"; }) ==
        "operation \"6\" that is not like the one a copy before");
  CHECK(problem([](auto& ops) { ops[6].after.pop_back(); }) ==
        "operation \"6\" that is not like the one a copy before");
  CHECK(problem([](auto& ops) { ops[6].after.push_back(0); }) ==
        "operation \"6\" that waits for what is not of its copy or the one before");
  CHECK(problem([](auto& ops) { ops[4].copy = 0; }) ==
        "copies on stream \"a\" that are not in order and equally long");
}

TEST_CASE("numbers at the end of a text advance", "[workload][repetition]") {
  CHECK(advanced("mlp, layer 3, forward 9", 3) == "mlp, layer 3, forward 12");
  CHECK(advanced("b2.10", -1) == "b2.9");
  CHECK(advanced("optimizer", 5) == "optimizer");
  CHECK(advanced("", 5).empty());
}
