#pragma once

// The "exchanges" of a workload file: docs/formats/workload.md, Exchanges of experts.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover::io {

class Exchanges {
 public:
  // `file`: the workload's name; paths count from its folder.
  explicit Exchanges(std::string file) : file_(std::move(file)) {}

  // {"layer": {"mode": "normal", ...}}. Throws InputError, with the place, for whatever is missing,
  // unknown or impossible.
  void read(const Field& field);
  // What "exchange" of an operation names: its place. Throws InputError with the nearest name.
  [[nodiscard]] std::uint32_t find(const Field& name) const;

  [[nodiscard]] const ExpertExchange& operator[](std::uint32_t place) const {
    return exchanges_[place];
  }
  [[nodiscard]] std::vector<ExpertExchange> take() { return std::move(exchanges_); }

 private:
  std::string file_;
  std::vector<ExpertExchange> exchanges_;
};

}  // namespace flyover::io
