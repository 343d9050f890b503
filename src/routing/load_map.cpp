#include "flyover/routing/load_map.hpp"

#include <algorithm>
#include <new>

#include "flyover/routing/router.hpp"

namespace flyover {

// Pages that calloc has from the system are zero without being touched: a map of millions of links
// costs those that are used.
LoadMap::LoadMap(std::size_t links)
    : load_(static_cast<double*>(std::calloc(std::max<std::size_t>(links, 1), sizeof(double)))) {
  if (!load_) throw std::bad_alloc();
}

std::vector<Hop> LoadMap::take() {
  if (!pending_.empty()) router_->settle(*this);
  std::ranges::sort(touched_);
  std::vector<Hop> loads;
  loads.reserve(touched_.size());
  for (const LinkId link : touched_) {
    if (load_[index(link)] != 0) loads.push_back({link, load_[index(link)]});
    load_[index(link)] = 0;
  }
  touched_.clear();
  return loads;
}

}  // namespace flyover
