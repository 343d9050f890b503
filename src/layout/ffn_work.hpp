#pragma once

#include <string_view>

#include "layout/work_writer.hpp"

namespace flyover {

// A feed-forward part of this inner width; `block` is its name among recompute modules.
void write_ffn_forward(WorkWriter& writer, Count width, std::string_view block);
void write_ffn_backward(WorkWriter& writer, Count width);

// The activation function between its matrices, for so many rows.
void add_activation(const WorkWriter& writer, KernelSum& sum, double rows, double width,
                    bool backward);

}  // namespace flyover
