#include <algorithm>

#include "flyover/cost/cost_model.hpp"

namespace flyover {

namespace {

std::string nccl_name(AlgorithmId algorithm) {
  switch (algorithm) {
    case AlgorithmId::Ring:
      return "Ring";
    case AlgorithmId::Tree:
      return "Tree";
    case AlgorithmId::Nvls:
      return "NVLS";
    case AlgorithmId::NvlsTree:
      return "NVLSTree";
    case AlgorithmId::CollnetDirect:
      return "CollnetDirect";
    case AlgorithmId::CollnetChain:
      return "CollnetChain";
    case AlgorithmId::Pat:
      return "PAT";
    default:
      return std::string(to_string(algorithm));
  }
}

}  // namespace

Library best_possible(Library library) {
  LibrarySettings& settings = library.settings;
  settings.algorithms.clear();
  settings.forbidden_algorithms.clear();
  settings.protocols.clear();
  settings.forbidden_protocols.clear();
  settings.nvls = true;
  library.choice = ChoiceRule::Fastest;
  return library;
}

std::vector<std::pair<std::string, std::string>> variables_for(const Library& library,
                                                               CollectiveOp op,
                                                               const CollectivePlan& plan) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (std::ranges::find(library.tuned, op) == library.tuned.end()) return variables;
  variables.emplace_back("NCCL_ALGO", nccl_name(plan.algorithm));
  variables.emplace_back("NCCL_PROTO", std::string(to_string(plan.protocol)));
  const bool nvls = plan.algorithm == AlgorithmId::Nvls || plan.algorithm == AlgorithmId::NvlsTree;
  if (nvls && !library.settings.nvls) variables.emplace_back("NCCL_NVLS_ENABLE", "1");
  if (plan.sharp && !library.settings.collnet) {
    variables.emplace_back("NCCL_COLLNET_ENABLE", "1");
  }
  return variables;
}

}  // namespace flyover
