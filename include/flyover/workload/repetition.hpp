#pragma once

// Sections of programs that repeat: micro-batches, iterations. A workload writes down a few copies
// and says how many more it means (Section::elided), so that it is as small for a thousand
// micro-batches as for ten.
//
// Copies are counted from 0, and at least two are whole; the last one may break off. On each stream
// the operations of a section follow each other, copy by copy, `period` of them in a copy; what
// comes before and after belongs to the program once. Operations one period apart are alike: they
// differ in copy, in the number at the end of id and name, which advances by the same every time,
// and in `after`, which names operations one period apart. Copies wait for themselves and the copy
// before; only the first waits for what is outside the section, and not for what waits for it.
// Calls on one family, and messages to or from one peer with one tag, are on one stream.
//
// Copies are left out behind the first one. What waits from behind the section for a copy means the
// copies counted from the end.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/workload/operation_graph.hpp"

namespace flyover {

// Where a section is on a stream: places of operations on the stream, in order.
struct SectionRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t period = 0;  // Operations per copy; 0: none of the section is here.

  [[nodiscard]] bool holds(std::uint32_t place) const { return place >= begin && place < end; }
};

// The operations of a program by stream.
struct StreamOrder {
  std::vector<std::string_view> names;          // In order of first use; of the program's.
  std::vector<std::vector<std::uint32_t>> ops;  // By stream, in order.
  std::vector<std::uint32_t> stream;            // By operation,
  std::vector<std::uint32_t> place;             // and its place there.
};
[[nodiscard]] StreamOrder stream_order(const Program& program);

// By stream.
[[nodiscard]] std::vector<SectionRange> section_ranges(const Program& program,
                                                       const StreamOrder& order,
                                                       std::uint32_t section);

// By operation: whether it is behind the section, by its stream or by what it waits for.
[[nodiscard]] std::vector<bool> behind_section(const Program& program, const StreamOrder& order,
                                               std::uint32_t section);

// What is wrong with a section of a program; empty when it is as said above, or not there.
[[nodiscard]] std::string irregularity(const Program& program, std::uint32_t section);

// By how much the number at the end of names advances in a copy: 0 where there is none. Requires a
// regular section.
[[nodiscard]] std::int64_t name_step(const Program& program, std::uint32_t section);

// The text with the number at its end, if there is one, changed by so much: "forward 12".
[[nodiscard]] std::string advanced(std::string_view text, std::int64_t by);

inline constexpr std::uint64_t all_copies = std::numeric_limits<std::uint64_t>::max();

// The workload with up to `copies` more of those that each section leaves out written down.
// Requires regular sections.
[[nodiscard]] Workload unrolled(const Workload& workload, std::uint64_t copies = all_copies);

// Operations that one rank of the program means, those left out included.
[[nodiscard]] std::uint64_t meant_operations(const Workload& workload, const Program& program);

}  // namespace flyover
