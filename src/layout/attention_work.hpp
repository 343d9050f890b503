#pragma once

#include <cstdint>

#include "layout/work_writer.hpp"

namespace flyover {

// Projections, attention's core with what context ranks exchange, and the output of one layer.
void write_attention_forward(WorkWriter& writer, std::uint32_t layer);
void write_attention_backward(WorkWriter& writer, std::uint32_t layer);

}  // namespace flyover
