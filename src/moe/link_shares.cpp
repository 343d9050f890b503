#include "moe/link_shares.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

// The entry of the generation, else the one for any; 0 without either.
double share_of(const std::vector<ExpertLinkShare>& entries, const LinkClass& link, bool combine) {
  for (const std::string_view wanted : {std::string_view(link.name), std::string_view()}) {
    const auto found = std::ranges::find(entries, wanted, &ExpertLinkShare::links);
    if (found != entries.end()) return combine ? found->combine : found->dispatch;
  }
  return 0;
}

}  // namespace

LinkFamily family_of(const LinkClass& link) {
  if (link.family == "network") return LinkFamily::Network;
  if (link.family == "pcie" || link.family == "cpu") return LinkFamily::Other;
  return LinkFamily::Nvlink;
}

LinkShares::LinkShares(const LinkClasses& classes, const ExpertKernels& kernels, bool combine)
    : classes_(classes),
      kernels_(kernels) {
  for (const LinkClass& link : classes.all()) {
    const LinkFamily family = family_of(link);
    shares_.push_back(
        family == LinkFamily::Other
            ? 1
            : share_of(family == LinkFamily::Network ? kernels.network : kernels.nvlink, link,
                       combine));
  }
}

double LinkShares::of(LinkId link) const {
  const std::size_t c = classes_.of(link);
  if (shares_[c] > 0) return shares_[c];
  throw InputError(fmt::format("{} says nothing of the bandwidth that it reaches on {} links",
                               kernels_.name, classes_.all()[c].name));
}

}  // namespace flyover
