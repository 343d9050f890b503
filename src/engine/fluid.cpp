#include "flyover/engine/fluid.hpp"

#include <algorithm>
#include <cmath>

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
  require(spec.work >= 0 && std::isfinite(spec.work), "start: finite work, not negative");
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
  s.work = s.left = spec.work;
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
    if (streams_[id].running && streams_[id].visit != visit_) {
      collect(id);
      fill();
      apply();
    }
  }
  started_.clear();
  for (const ResourceId rid : freed_) {
    const Resource& r = resources_[rid];
    if (r.residents.empty() || streams_[r.residents.front().stream].visit == visit_) continue;
    collect(r.residents.front().stream);
    fill();
    apply();
  }
  freed_.clear();
}

// Gathers the streams that share resources with the seed, directly or through others, in key order.
void FluidSystem::collect(StreamId seed) {
  component_.assign(1, seed);
  shared_.clear();
  streams_[seed].visit = visit_;
  for (std::size_t i = 0; i < component_.size(); ++i) {
    Stream& s = streams_[component_[i]];
    s.own_cap = s.rate_cap;
    for (const Load& load : s.loads) {
      Resource& r = resources_[load.resource];
      if (alone(r, load)) {
        s.own_cap = std::min(s.own_cap, r.capacity / load.weight);
      } else if (r.visit != visit_) {
        r.visit = visit_;
        shared_.push_back(load.resource);
        for (const Resident& resident : r.residents) {
          Stream& other = streams_[resident.stream];
          if (other.visit != visit_) {
            other.visit = visit_;
            component_.push_back(resident.stream);
          }
        }
      }
    }
  }
  std::ranges::sort(component_, {}, [&](StreamId id) { return streams_[id].key; });
}

// Rounds of fair shares. In each, a resource offers every open stream on it the same share per flow
// of what is left, and a stream's offer is the least of those of its resources and of its own cap.
// Streams that their cap holds take it. When there are none, all open streams grow in proportion to
// their offers until the first resources are full, which settles the streams on those: for unit
// weights that is at once, and the round is one of classical max-min filling.
void FluidSystem::fill() {
  if (shared_.empty()) {
    Stream& only = streams_[component_.front()];
    only.next_rate = only.own_cap;
    return;
  }
  for (const ResourceId rid : shared_) {
    Resource& r = resources_[rid];
    r.left = r.capacity;
    r.flows = 0;
  }
  open_.assign(component_.begin(), component_.end());
  for_open_loads(
      [](const Stream& s, const Load& load, Resource& r) { r.flows += flows_of(s.flows, load); });

  // The loops run over streams in key order, so that sums do not tell who came first.
  while (!open_.empty()) {
    bool capped = false;
    for (const StreamId id : open_) streams_[id].next_rate = streams_[id].own_cap;
    for_open_loads([](Stream& s, const Load& load, const Resource& r) {
      s.next_rate = std::min(s.next_rate, s.flows * r.left / (r.flows * load.weight));
    });
    for (const StreamId id : open_) {
      Stream& s = streams_[id];
      s.settled = s.next_rate == s.own_cap || s.next_rate == 0;
      capped = capped || s.settled;
    }
    if (!capped) grow();
    for_open_loads([](const Stream& s, const Load& load, Resource& r) {
      if (!s.settled) return;
      r.left = std::max(0.0, r.left - load.total() * s.next_rate);
      r.flows -= flows_of(s.flows, load);
    });
    std::erase_if(open_, [&](StreamId id) { return streams_[id].settled; });
  }
}

// Raises the rates of the open streams together until resources are full, and settles those there.
void FluidSystem::grow() {
  for (const ResourceId rid : shared_) resources_[rid].slope = 0;
  for_open_loads([](const Stream& s, const Load& load, Resource& r) {
    r.slope += load.total() * s.next_rate;
  });
  double growth = unlimited;
  for_open_loads([&](const Stream&, const Load&, const Resource& r) {
    growth = std::min(growth, r.left / r.slope);
  });
  for (const StreamId id : open_) {
    growth = std::min(growth, streams_[id].own_cap / streams_[id].next_rate);
  }
  // Offers that fill a resource but for the rounding of a sum are the rates, however many terms the
  // sum has.
  if (std::abs(growth - 1) <= rounding_of_sums) growth = 1;
  for_open_loads([&](Stream& s, const Load&, const Resource& r) {
    if (r.left / r.slope <= growth * same_level) s.settled = true;
  });
  for (const StreamId id : open_) {
    Stream& s = streams_[id];
    if (s.own_cap / s.next_rate <= growth * same_level) s.settled = true;
    s.next_rate = std::min(s.next_rate * growth, s.own_cap);
  }
}

// Calls visit(stream, load, resource) for the loads of open streams on shared resources.
template <class Visit>
void FluidSystem::for_open_loads(Visit visit) {
  for (const StreamId id : open_) {
    Stream& s = streams_[id];
    for (const Load& load : s.loads) {
      Resource& r = resources_[load.resource];
      if (!alone(r, load)) visit(s, load, r);
    }
  }
}

void FluidSystem::apply() {
  const Time now = queue_.now();
  for (const ResourceId rid : shared_) resources_[rid].used = 0;
  for (const StreamId id : component_) {
    Stream& s = streams_[id];
    // A rate that only rounding moved stays, and with it the end: rounding happens once a change.
    if (s.rate == 0 || !nearly_equal(s.next_rate, s.rate)) {
      if (s.rate > 0) s.left = std::max(0.0, s.left - s.rate * to_seconds(now - s.since));
      if (record_) changes_.push_back({s.payload, s.rate, s.next_rate});
      s.since = now;
      s.rate = s.next_rate;
      ++s.version;
      if (s.rate > 0) {
        queue_.schedule(time_after(now, time_for(s.left, s.rate)), Phase::Finish, end_kind_,
                        index(id), s.version);
      }
    }
    for (const Load& load : s.loads) {
      Resource& r = resources_[load.resource];
      const double used = load.total() * s.rate;
      if (alone(r, load)) {
        r.use.peak = std::max(r.use.peak, used / r.capacity);
      } else {
        r.used += used;
      }
    }
  }
  for (const ResourceId rid : shared_) {
    Resource& r = resources_[rid];
    r.use.peak = std::max(r.use.peak, r.used / r.capacity);
#if FLYOVER_CHECKED
    require(r.used <= r.capacity * (1 + 1e-9), "no resource is used beyond its capacity");
#endif
  }
}

}  // namespace flyover
