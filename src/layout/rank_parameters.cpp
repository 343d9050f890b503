#include "flyover/layout/rank_parameters.hpp"

namespace flyover {

namespace {

double attention_parameters(const Model& model, const Layout& layout, double all) {
  const Attention& attention = model.attention;
  const double t = layout.tensor;
  const double h = model.hidden;
  if (attention.latent) {
    const LatentAttention& latent = *attention.latent;
    const double down = h * (latent.query_rank + latent.kv_rank + latent.rope_dim);
    return down + (all - down) / t;
  }
  if (layout.tensor <= attention.kv_heads) return all / t;
  const double kv_head = 2 * (h + (attention.bias ? 1 : 0)) * attention.head_dim;
  return (all - kv_head * attention.kv_heads) / t + kv_head;
}

}  // namespace

RankParameters rank_parameters(const Model& model, const Layout& layout, std::uint32_t layer) {
  const ParameterCounts counts = layer_parameters(model, layer);
  RankParameters own;
  own.matrices = attention_parameters(model, layout, static_cast<double>(counts.attention)) +
                 static_cast<double>(counts.dense_ffn + counts.shared_experts) / layout.tensor;
  own.experts = static_cast<double>(counts.experts) / (1.0 * layout.expert * layout.expert_tensor);
  own.others = static_cast<double>(counts.norms + counts.router);
  return own;
}

}  // namespace flyover
