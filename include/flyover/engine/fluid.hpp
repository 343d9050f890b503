#pragma once

// Streams over resources: the one mechanism behind links, switches, SMs and HBM.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/base/units.hpp"
#include "flyover/engine/event_queue.hpp"

namespace flyover {

// Units of a resource per unit of a stream's progress.
//
// A stream may stand for many that are alike: they start together, load resources alike and so end
// together. Then a resource, too, may stand for many, and `twins` of the others meet this one
// there, where they take `twin_weight` together. `weight` remains what one of them takes.
struct Load {
  Load() = default;
  Load(ResourceId r, double w) : resource(r), weight(w) {}
  Load(ResourceId r, double w, std::uint32_t others, double others_weight)
      : resource(r),
        twins(others),
        weight(w),
        twin_weight(others_weight) {}

  ResourceId resource{};
  std::uint32_t twins = 0;
  double weight = 0;
  double twin_weight = 0;

  [[nodiscard]] double total() const { return weight + twin_weight; }
};

struct StreamSpec {
  std::span<const Load> loads;  // Each resource once, weights above zero. Must outlive the stream.
  // Units of progress until it ends; zero ends at once, infinite goes on until stop().
  double work = 0;
  double rate_cap = std::numeric_limits<double>::infinity();  // Progress per second.
  double flows = 1;           // Claim on the most loaded resource, in flows: its share there is
                              // flows / (flows of all).
  std::uint64_t key = 0;      // Unique among streams that run together; orders arithmetic, so that
                              // results do not depend on the order of starting.
  std::uint64_t payload = 0;  // Handed back by payload().
};

// What a resource did so far.
struct ResourceUse {
  double amount = 0;  // Units that ended streams have taken.
  double peak = 0;    // Largest share of capacity in use at once, 0 to 1.
};

struct RateChange {
  std::uint64_t payload = 0;  // Of the stream.
  double before = 0;
  double after = 0;
};

// Every stream moves at its fair rate, kept up to date incrementally.
//
// Rates x, with capacities C(r), weights w(s,r), caps c(s) and flows n(s):
//
//   sum over s of w(s,r) x(s) <= C(r)          for every resource r
//   x(s) <= c(s)
//   every stream is at its cap, or meets a full resource where its share per flow, w(s,r) x(s) /
//   n(s), is no smaller than that of any other stream there
//
// so two streams that contend on one link split the link, whatever their weights and whatever else
// they use: bottleneck max fairness (Bonald & Roberts 2015). For unit weights it is classical
// max-min fairness, and the rounds below are progressive filling (Bertsekas & Gallager 6.5.2). With
// weights of which none fits all streams of a resource at once, a round grows the streams in
// proportion to their offers, which keeps every rate feasible and no resource idle for which a
// stream waits.
//
// A start or an end solves again only the streams that share a resource with it, directly or
// through others, once per picosecond, at a cost of their loads times the rounds (distinct
// bottlenecks). Amounts are brought up to date only when a rate changes.
//
// With twins the sums above are over all streams that are stood for: rates are those of the system
// in which each is there itself, since in that system streams that are alike are offered the same
// by resources that are alike, round by round.
//
// The owner of the queue runs the loop and passes on events of the kinds given to the constructor:
//
//   while (queue.pop(event)) {
//     if (event.kind == end_kind) { if (fluid.ended(event)) ...; }
//     else if (event.kind == solve_kind) fluid.solve();
//   }
//
// Borrows the queue, which must outlive it.
class FluidSystem {
 public:
  FluidSystem(EventQueue& queue, std::uint32_t end_kind, std::uint32_t solve_kind)
      : queue_(queue),
        end_kind_(end_kind),
        solve_kind_(solve_kind) {}
  FluidSystem(const FluidSystem&) = delete;
  FluidSystem& operator=(const FluidSystem&) = delete;

  // Requires capacity > 0, in units per second.
  ResourceId add_resource(double capacity);
  [[nodiscard]] std::size_t resources() const { return resources_.size(); }
  [[nodiscard]] double capacity(ResourceId r) const { return resources_[r].capacity; }
  [[nodiscard]] const ResourceUse& use(ResourceId r) const { return resources_[r].use; }

  // Starts a stream now. It gets its rate in this picosecond's Solve phase.
  StreamId start(const StreamSpec& spec);
  // For events of end_kind: true when the stream `StreamId(event.payload)` ends now. It is then
  // gone after the call, but payload() stays readable until the next start().
  bool ended(const Event& event);
  // Ends a stream of infinite work now; requires that it runs.
  void stop(StreamId s);
  // For events of solve_kind.
  void solve();

  [[nodiscard]] double rate(StreamId s) const { return streams_[s].rate; }
  [[nodiscard]] std::uint64_t payload(StreamId s) const { return streams_[s].payload; }

  // What the future of a running stream depends on, beside the others.
  struct Progress {
    double left = 0;  // Of its work, which may be infinite, at `since`; then it moves at `rate`.
    double rate = 0;
    Time since;
  };
  // Calls visit(payload, progress) for every running stream, in no order that means anything.
  template <class Visit>
  void for_running(Visit visit) const {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const Stream& s = streams_[StreamId{static_cast<std::uint32_t>(i)}];
      if (s.running) visit(s.payload, Progress{s.left, s.rate, s.since});
    }
  }

  // Rate changes since the last call, in the order of time and key; collected once this was called.
  void record_changes(bool on) { record_ = on; }
  [[nodiscard]] std::span<const RateChange> changes() const { return changes_; }
  void clear_changes() { changes_.clear(); }

 private:
  struct Resident {
    StreamId stream{};
    std::uint32_t position = 0;  // Of this resource in the stream's loads.
  };
  // Records of one and of two cache lines: a solve jumps from one to the next.
  struct alignas(64) Resource {
    double capacity = 0;
    std::vector<Resident> residents;
    ResourceUse use;
    std::uint64_t visit = 0;  // The solve that last found it shared, ...
    std::uint32_t spot = 0;   // ... and its place there.
  };
  struct alignas(64) Stream {
    std::span<const Load> loads;
    std::uint64_t visit = 0;
    std::uint64_t key = 0;
    double rate_cap = 0;
    double flows = 0;
    double rate = 0;
    double left = 0;
    Time since;
    std::uint32_t version = 0;  // Stamps end events; an older stamp is outdated.
    bool running = false;
    double work = 0;  // Where what is left is infinite: progress up to `since`.
    std::uint64_t payload = 0;
    std::vector<std::uint32_t> seats;  // Per load: the index in the resource's residents.
  };

  // What one solve needs of the streams and the shared resources of a component, side by side.
  struct Found {
    std::uint64_t key = 0;
    StreamId stream{};
    double own_cap = 0;  // By rate_cap and by resources that it has to itself.
  };
  struct Member {
    StreamId stream{};
    bool settled = false;
    std::uint32_t first_load = 0;  // In shared_loads_, up to the next member's.
    double own_cap = 0;
    double flows = 0;
    double rate = 0;  // The offer, then the answer.
  };
  struct SharedLoad {
    std::uint32_t spot = 0;
    double weight = 0;
    double total = 0;
    double flows = 0;  // Of the stream and its twins.
  };
  struct Spot {
    ResourceId resource{};
    double left = 0;   // Of the capacity, after streams whose rate is settled.
    double flows = 0;  // Of the open streams here.
    double slope = 0;  // What those take at their offers; in the end, what all take.
    double room = 0;   // How far those can grow, as a factor.
  };

  // Whether nobody else is on the resource of a load.
  static bool alone(const Resource& r, const Load& load) {
    return r.residents.size() == 1 && load.twins == 0;
  }
  void request_solve();
  void solve_around(StreamId seed);
  void find_component(StreamId seed);
  void gather();
  void fill();
  void grow();
  [[nodiscard]] std::span<const SharedLoad> loads_of(std::size_t member) const {
    const std::uint32_t first = members_[member].first_load;
    return std::span(shared_loads_).subspan(first, members_[member + 1].first_load - first);
  }
  void apply();
  void change_rate(StreamId id, Stream& stream, double rate);
  void go_on(Stream& stream) const;
  void leave(StreamId id, Stream& stream);

  EventQueue& queue_;
  std::uint32_t end_kind_;
  std::uint32_t solve_kind_;
  IdVector<ResourceId, Resource> resources_;
  IdVector<StreamId, Stream> streams_;
  std::vector<StreamId> free_;
  bool solve_requested_ = false;
  std::uint64_t visit_ = 0;
  std::vector<StreamId> started_;  // Since the last solve.
  std::vector<ResourceId> freed_;  // Resources with residents that a stream left since then.
  std::vector<Found> component_;
  std::vector<Member> members_;  // In key order, and one more that ends the last one's loads.
  std::vector<SharedLoad> shared_loads_;
  std::vector<Spot> spots_;          // Resources of the component that no stream has to itself.
  std::vector<std::uint32_t> open_;  // Members whose rate is not settled, in order.
  bool record_ = false;
  std::vector<RateChange> changes_;
};

}  // namespace flyover
