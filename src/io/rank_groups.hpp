#pragma once

// Ranks and groups as workload files write them: docs/formats/workload.md, Ranks and groups.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover::io {

using Ranks = std::vector<std::uint32_t>;

// "0-7", "all" or [0, 1, 2].
[[nodiscard]] Ranks read_ranks(const Field& field, std::uint32_t ranks);

// The groups of a workload, by name and as operations write them out.
class Groups {
 public:
  explicit Groups(std::uint32_t ranks);

  // "groups": {"tp": [[0, 1], [2, 3]], "dp": ["0,2", "1,3"]}
  void read(const Field& field);
  // What "group" of an operation means: a name, ranks, or several groups. Returns its family.
  std::uint32_t find(const Field& field);

  [[nodiscard]] const GroupFamily& operator[](std::uint32_t family) const {
    return families_[family];
  }
  [[nodiscard]] std::vector<GroupFamily> take() { return std::move(families_); }

 private:
  std::uint32_t add(std::string name, std::vector<Ranks> groups);
  [[nodiscard]] std::vector<Ranks> read_family(const Field& field) const;

  std::uint32_t ranks_;
  std::vector<GroupFamily> families_;
  std::map<std::string, std::uint32_t> index_;
};

}  // namespace flyover::io
