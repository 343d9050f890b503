#include "flyover/moe/limits.hpp"

#include <algorithm>

#include "flyover/base/error.hpp"

namespace flyover {

double hidden_flops_per_byte(std::uint32_t d) {
  return 2.0 * d;
}

double hidden_flops_per_network_byte(std::uint32_t d, std::uint32_t chosen, double copies,
                                     std::uint32_t shared) {
  require(copies > 0, "a token that crosses the network");
  return (static_cast<double>(chosen) + shared) * 2.0 * d / copies;
}

LayerOverlap layer_overlap(double communication, std::uint32_t waves) {
  require(communication >= 0, "communication of zero or more");
  require(waves > 0, "at least one wave");
  constexpr double third = 1.0 / 3;
  LayerOverlap overlap;
  overlap.naive = 1 + communication;
  overlap.two_stage =
      std::max(third * communication, 2 * third) + std::max(third, 2 * third * communication);
  overlap.waves = std::max(1.0, communication) + communication / waves;
  return overlap;
}

DecodeLimit decode_limit(const DecodeShape& shape, Bandwidth rate) {
  const double bytes = shape.bytes * shape.tokens * shape.copies * shape.hidden;
  const double seconds = bytes / rate.per_second();
  const double per_token = 2 * seconds * shape.layers;
  return {from_seconds(seconds), from_seconds(per_token), 1 / per_token};
}

}  // namespace flyover
