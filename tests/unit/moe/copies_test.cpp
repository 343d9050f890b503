#include "flyover/moe/copies.hpp"

#include <catch2/catch.hpp>

namespace {

using namespace flyover;
using Catch::Matchers::WithinAbs;

ExpertGroup nodes_of_8(std::uint32_t ranks) {
  std::vector<std::uint32_t> domain;
  for (std::uint32_t r = 0; r < ranks; ++r) domain.push_back(r / 8);
  return expert_group(domain);
}

ExpertExchange exchange_of(const ExpertRouting& routing, std::uint32_t tokens = 4096) {
  ExpertExchange made;
  made.name = "layer";
  made.routing = routing;
  made.tokens = tokens;
  return made;
}

double sum_of_row(const CopyTable& table, std::uint32_t row) {
  double sum = 0;
  for (std::uint32_t c = 0; c < table.columns; ++c) sum += table.at(row, c);
  return sum;
}

struct Case {
  const char* name;
  ExpertRouting routing;
  std::uint32_t ranks;
  double nodes;
  double gpus;
};

TEST_CASE("expected nodes and ranks of a token are those of MOE.md 1.6", "[moe]") {
  constexpr ExpertRouting* none = nullptr;
  static_cast<void>(none);
  const auto top = [](std::uint32_t e, std::uint32_t k) {
    ExpertRouting r;
    r.experts = e;
    r.chosen = k;
    return r;
  };
  const auto grouped = [](Gate gate, std::uint32_t groups, std::uint32_t kept) {
    ExpertRouting r;
    r.experts = 256;
    r.chosen = 8;
    r.gate = gate;
    r.groups = groups;
    r.groups_chosen = kept;
    return r;
  };
  const Case c =
      GENERATE_COPY(Case{"EP8", top(256, 8), 8, 1, 5.2947},
                    Case{"EP16 unrestricted", top(256, 8), 16, 1.9930, 6.5233},
                    Case{"EP32 unrestricted", top(256, 8), 32, 3.6142, 7.2668},
                    Case{"EP64 unrestricted", top(256, 8), 64, 5.2947, 7.6758},
                    Case{"EP16 max", grouped(Gate::GroupMax, 2, 2), 16, 1.9930, 6.5233},
                    Case{"EP32 max", grouped(Gate::GroupMax, 4, 4), 32, 3.6142, 7.2668},
                    Case{"EP64 max", grouped(Gate::GroupMax, 8, 4), 64, 3.9831, 7.4711},
                    Case{"EP128 max", grouped(Gate::GroupMax, 16, 4), 128, 3.9995, 7.6374},
                    Case{"EP16 V3", grouped(Gate::GroupSumOfTwo, 8, 4), 16, 1.9660, 5.7279},
                    Case{"EP32 V3", grouped(Gate::GroupSumOfTwo, 8, 4), 32, 3.1165, 6.8555},
                    Case{"EP64 V3", grouped(Gate::GroupSumOfTwo, 8, 4), 64, 3.9538, 7.4903},
                    Case{"Flash EP16", top(256, 6), 16, 1.9706, 5.1800},
                    Case{"Flash EP32", top(256, 6), 32, 3.3021, 5.6010},
                    Case{"Flash EP64", top(256, 6), 64, 4.4400, 5.8254},
                    Case{"Pro EP16", top(384, 6), 16, 1.9700, 5.1656},
                    Case{"Pro EP32", top(384, 6), 32, 3.2974, 5.5840},
                    Case{"Pro EP64", top(384, 6), 64, 4.4298, 5.8069});
  CAPTURE(c.name);

  const ExpertCopies copies = expert_copies(exchange_of(c.routing), nodes_of_8(c.ranks));

  const double within = c.routing.gate == Gate::GroupSumOfTwo ? 2e-3 : 6e-5;
  CHECK_THAT(sum_of_row(copies.to_node, 0) / 4096, WithinAbs(c.nodes, within));
  CHECK_THAT(sum_of_row(copies.to_rank, 0) / 4096, WithinAbs(c.gpus, within));
  CHECK(copies.balanced);
}

}  // namespace
