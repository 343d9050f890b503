#include "layout/ffn_work.hpp"

#include <optional>

namespace flyover {

namespace {

Linear up(const WorkWriter& writer, Count width) {
  return {"up",
          "up backward",
          "up weights",
          Cut::Column,
          writer.model().hidden,
          writer.gates() * parts(width, writer.tensor_ranks()),
          writer.options().lora && writer.options().lora->ffn};
}
Linear down(const WorkWriter& writer, Count width) {
  return {"down",
          "down backward",
          "down weights",
          Cut::Row,
          parts(width, writer.tensor_ranks()),
          writer.model().hidden,
          writer.options().lora && writer.options().lora->ffn};
}

}  // namespace

void add_activation(const WorkWriter& writer, KernelSum& sum, double rows, double width,
                    bool backward) {
  const double row = rows * width * writer.wide();
  const double gates = writer.model().ffn_matrices - 1.0;
  writer.elementwise(sum, gates * row + (backward ? row : 0), backward ? gates * row : row);
}

void write_ffn_forward(WorkWriter& writer, Count width, std::string_view block) {
  writer.block(block);
  writer.linear_forward(up(writer, width), {});
  KernelSum activation;
  add_activation(writer, activation, static_cast<double>(writer.tokens()),
                 static_cast<double>(parts(width, writer.tensor_ranks())), false);
  writer.add_forward("activation", activation, "activation");
  writer.linear_forward(down(writer, width), {});
  writer.block({});
}

void write_ffn_backward(WorkWriter& writer, Count width) {
  writer.linear_backward(down(writer, width));
  KernelSum activation;
  add_activation(writer, activation, static_cast<double>(writer.tokens()),
                 static_cast<double>(parts(width, writer.tensor_ranks())), true);
  writer.add_backward("activation backward", activation);
  writer.linear_backward(up(writer, width));
}

}  // namespace flyover
