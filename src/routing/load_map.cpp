#include "flyover/routing/load_map.hpp"

#include <algorithm>

#include "flyover/routing/router.hpp"

namespace flyover {

std::vector<Hop> LoadMap::take() {
  if (!pending_.empty()) router_->settle(*this);
  std::ranges::sort(touched_);
  std::vector<Hop> loads;
  loads.reserve(touched_.size());
  for (const LinkId link : touched_) {
    if (load_[index(link)] != 0) loads.push_back({link, load_[index(link)]});
    load_[index(link)] = 0;
    seen_[index(link)] = 0;
  }
  touched_.clear();
  return loads;
}

}  // namespace flyover
