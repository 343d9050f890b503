#include "flyover/engine/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// Levels this close are one level: resources that are equal but for rounding must fill together, or
// symmetric streams would end picoseconds apart.
constexpr double same_level = 1 + 1e-10;

// Of the sum of some thousand terms.
constexpr double rounding_of_sums = 1e-12;

// Flows at one resource that a load stands for.
double flows_of(double flows_of_one, const Load& load) {
  return flows_of_one * (1.0 + load.twins);
}

constexpr double rounding = 1e-13;

bool nearly_equal(double a, double b) {
  return std::abs(a - b) <= rounding * std::abs(b);
}

// Rounded up to the next picosecond, but for what rounding may have added: where work over rate is
// a whole number of them, the order of sums must not decide.
Duration time_for(double work, double rate) {
  return from_seconds(work / rate * (1 - rounding));
}

}  // namespace

ResourceId FluidSystem::add_resource(double capacity) {
  require(capacity > 0 && std::isfinite(capacity), "add_resource: a finite capacity above zero");
  Resource resource;
  resource.capacity = capacity;
  return resources_.push_back(std::move(resource));
}

StreamId FluidSystem::start(const StreamSpec& spec) {
  require(spec.work >= 0, "start: work that is not negative");
  require(spec.rate_cap > 0 && spec.flows > 0, "start: a cap and flows above zero");
  StreamId id{};
  if (free_.empty()) {
    id = streams_.push_back({});
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Stream& s = streams_[id];
  s.loads = spec.loads;
  s.left = spec.work;
  s.work = std::isfinite(spec.work) ? spec.work : 0;
  s.rate = 0;
  s.rate_cap = spec.rate_cap;
  s.flows = spec.flows;
  s.since = queue_.now();
  s.key = spec.key;
  s.payload = spec.payload;
  s.running = true;
  ++s.version;

  if (spec.work == 0) {
    s.loads = {};
    s.seats.clear();
    queue_.schedule(queue_.now(), Phase::Finish, end_kind_, index(id), s.version);
    return id;
  }

  s.seats.resize(spec.loads.size());
  for (std::uint32_t i = 0; i < spec.loads.size(); ++i) {
    const Load& load = spec.loads[i];
    require(load.weight > 0 && std::isfinite(load.weight), "start: finite weights above zero");
    Resource& r = resources_[load.resource];
    s.seats[i] = static_cast<std::uint32_t>(r.residents.size());
    r.residents.push_back({id, i});
  }
  started_.push_back(id);
  request_solve();
  return id;
}

bool FluidSystem::ended(const Event& event) {
  const StreamId id{static_cast<std::uint32_t>(event.payload)};
  Stream& s = streams_[id];
  if (!s.running || s.version != event.stamp) return false;
  leave(id, s);
  return true;
}

void FluidSystem::stop(StreamId id) {
  Stream& s = streams_[id];
  require(s.running && !std::isfinite(s.left), "stop: a stream of infinite work that runs");
  go_on(s);
  leave(id, s);
}

// Brings the amount up to date.
void FluidSystem::go_on(Stream& s) const {
  const double progress = s.rate * to_seconds(queue_.now() - s.since);
  if (std::isfinite(s.left)) {
    s.left = std::max(0.0, s.left - progress);
  } else {
    s.work += progress;
  }
  s.since = queue_.now();
}

void FluidSystem::leave(StreamId id, Stream& s) {
  for (std::size_t i = 0; i < s.loads.size(); ++i) {
    const ResourceId rid = s.loads[i].resource;
    Resource& r = resources_[rid];
    r.use.amount += s.loads[i].total() * s.work;
    const Resident moved = r.residents.back();
    r.residents[s.seats[i]] = moved;
    streams_[moved.stream].seats[moved.position] = s.seats[i];
    r.residents.pop_back();
    if (!r.residents.empty()) freed_.push_back(rid);
  }
  if (record_ && s.rate > 0) changes_.push_back({s.payload, s.rate, 0});
  s.running = false;
  s.rate = 0;
  free_.push_back(id);
  if (!freed_.empty()) request_solve();
}

void FluidSystem::request_solve() {
  if (solve_requested_) return;
  solve_requested_ = true;
  queue_.schedule(queue_.now(), Phase::Solve, solve_kind_, 0);
}

void FluidSystem::solve() {
  solve_requested_ = false;
  ++visit_;
  for (const StreamId id : started_) {
    if (streams_[id].running && streams_[id].visit != visit_) solve_around(id);
  }
  started_.clear();
  for (const ResourceId rid : freed_) {
    const Resource& r = resources_[rid];
    if (r.residents.empty()) continue;
    const StreamId id = r.residents.front().stream;
    if (streams_[id].visit != visit_) solve_around(id);
  }
  freed_.clear();
}

void FluidSystem::solve_around(StreamId seed) {
  find_component(seed);
  gather();
  fill();
  apply();
}

// The streams that share resources with the seed, directly or through others, in key order.
void FluidSystem::find_component(StreamId seed) {
  component_.clear();
  spots_.clear();
  const auto reach = [this](StreamId id) {
    Stream& s = streams_[id];
    if (s.visit == visit_) return;
    s.visit = visit_;
    component_.push_back({s.key, id, s.rate_cap});
  };
  reach(seed);
  for (std::size_t i = 0; i < component_.size(); ++i) {
    double own_cap = component_[i].own_cap;
    for (const Load& load : streams_[component_[i].stream].loads) {
      Resource& r = resources_[load.resource];
      if (alone(r, load)) {
        own_cap = std::min(own_cap, r.capacity / load.weight);
      } else if (r.visit != visit_) {
        r.visit = visit_;
        r.spot = static_cast<std::uint32_t>(spots_.size());
        spots_.push_back({.resource = load.resource, .left = r.capacity});
        for (const Resident& resident : r.residents) reach(resident.stream);
      }
    }
    component_[i].own_cap = own_cap;
  }
  std::ranges::sort(component_, {}, &Found::key);
}

void FluidSystem::gather() {
  members_.clear();
  shared_loads_.clear();
  for (const Found& found : component_) {
    const Stream& s = streams_[found.stream];
    members_.push_back({.stream = found.stream,
                        .first_load = static_cast<std::uint32_t>(shared_loads_.size()),
                        .own_cap = found.own_cap,
                        .flows = s.flows});
    if (spots_.empty()) continue;
    for (const Load& load : s.loads) {
      const Resource& r = resources_[load.resource];
      if (r.visit != visit_) continue;
      const double flows = flows_of(s.flows, load);
      shared_loads_.push_back({r.spot, load.weight, load.total(), flows});
      spots_[r.spot].flows += flows;
    }
  }
  members_.push_back({.first_load = static_cast<std::uint32_t>(shared_loads_.size())});
}

// Rounds of fair shares. In each, a resource offers every open stream on it the same share per flow
// of what is left, and a stream's offer is the least of those of its resources and of its own cap.
// Streams that their cap holds take it. When there are none, all open streams grow in proportion to
// their offers until the first resources are full, which settles the streams on those: for unit
// weights that is at once, and the round is one of classical max-min filling.
void FluidSystem::fill() {
  open_.resize(component_.size());
  std::iota(open_.begin(), open_.end(), 0U);
  // The loops run over streams in key order, so that sums do not tell who came first.
  while (!open_.empty()) {
    bool capped = false;
    for (const std::uint32_t i : open_) {
      Member& m = members_[i];
      m.rate = m.own_cap;
      for (const SharedLoad& load : loads_of(i)) {
        const Spot& spot = spots_[load.spot];
        m.rate = std::min(m.rate, m.flows * spot.left / (spot.flows * load.weight));
      }
      m.settled = m.rate == m.own_cap || m.rate == 0;
      capped = capped || m.settled;
    }
    if (!capped) grow();
    for (const std::uint32_t i : open_) {
      const Member& m = members_[i];
      if (!m.settled) continue;
      for (const SharedLoad& load : loads_of(i)) {
        Spot& spot = spots_[load.spot];
        spot.left = std::max(0.0, spot.left - load.total * m.rate);
        spot.flows -= load.flows;
      }
    }
    std::erase_if(open_, [this](std::uint32_t i) { return members_[i].settled; });
  }
}

// Raises the rates of the open streams together until resources are full, and settles those there.
void FluidSystem::grow() {
  for (Spot& spot : spots_) spot.slope = 0;
  double growth = unlimited;
  for (const std::uint32_t i : open_) {
    const Member& m = members_[i];
    for (const SharedLoad& load : loads_of(i)) spots_[load.spot].slope += load.total * m.rate;
    growth = std::min(growth, m.own_cap / m.rate);
  }
  for (Spot& spot : spots_) {  // Without an open stream there is room without end.
    spot.room = spot.left / spot.slope;
    growth = std::min(growth, spot.room);
  }
  // Offers that fill a resource but for the rounding of a sum are the rates, however many terms the
  // sum has.
  if (std::abs(growth - 1) <= rounding_of_sums) growth = 1;
  const double full = growth * same_level;
  for (const std::uint32_t i : open_) {
    Member& m = members_[i];
    m.settled =
        m.own_cap / m.rate <= full || std::ranges::any_of(loads_of(i), [&](const SharedLoad& load) {
          return spots_[load.spot].room <= full;
        });
    m.rate = std::min(m.rate * growth, m.own_cap);
  }
}

void FluidSystem::apply() {
  for (Spot& spot : spots_) spot.slope = 0;
  for (std::size_t i = 0; i < component_.size(); ++i) {
    const Member& m = members_[i];
    Stream& s = streams_[m.stream];
    // A rate that only rounding moved stays, and with it the end: rounding happens once a change.
    if (s.rate == 0 || !nearly_equal(m.rate, s.rate)) change_rate(m.stream, s, m.rate);
    for (const SharedLoad& load : loads_of(i)) spots_[load.spot].slope += load.total * s.rate;
  }
  for (const Spot& spot : spots_) {
    Resource& r = resources_[spot.resource];
    r.use.peak = std::max(r.use.peak, spot.slope / r.capacity);
#if FLYOVER_CHECKED
    require(spot.slope <= r.capacity * (1 + 1e-9), "no resource is used beyond its capacity");
#endif
  }
}

void FluidSystem::change_rate(StreamId id, Stream& s, double rate) {
  go_on(s);
  if (record_) changes_.push_back({s.payload, s.rate, rate});
  s.rate = rate;
  ++s.version;
  if (rate == 0) return;
  if (std::isfinite(s.left)) {
    queue_.schedule(time_after(queue_.now(), time_for(s.left, rate)), Phase::Finish, end_kind_,
                    index(id), s.version);
  }
  // Of resources that it has to itself; the others' peaks follow from sums.
  for (const Load& load : s.loads) {
    Resource& r = resources_[load.resource];
    if (r.visit != visit_) r.use.peak = std::max(r.use.peak, load.total() * rate / r.capacity);
  }
}

}  // namespace flyover
