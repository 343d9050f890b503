#pragma once

#include "flyover/layout/model.hpp"

namespace flyover::test {

// Llama 3 8B's sizes.
inline Model llama_8b() {
  Model model;
  model.layers = 32;
  model.hidden = 4096;
  model.attention.heads = 32;
  model.attention.kv_heads = 8;
  model.attention.head_dim = 128;
  model.ffn_hidden = 14336;
  model.vocabulary = 128256;
  return model;
}

}  // namespace flyover::test
