#include "simulate/run.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/engine/event_queue.hpp"
#include "flyover/engine/fluid.hpp"
#include "simulate/call_planner.hpp"
#include "simulate/expert_stats.hpp"
#include "simulate/held_sms.hpp"
#include "simulate/kernels.hpp"
#include "simulate/ledger.hpp"
#include "simulate/messages.hpp"
#include "simulate/plans.hpp"
#include "simulate/program.hpp"
#include "simulate/recurrence.hpp"
#include "simulate/resources.hpp"
#include "simulate/state.hpp"
#include "simulate/statistics.hpp"
#include "simulate/timeline.hpp"

namespace flyover {

namespace {

enum EventKind : std::uint32_t { StreamEnds, Solve, BytesFlow, DelayEnds };

// Who owns a stream or event: the kind in the top byte, the number below.
enum class Actor : std::uint8_t {
  Operation,
  Call,
  Message,
  Holder  // Of SMs: the instance whose kernel does.
};
constexpr unsigned actor_shift = 56;

constexpr std::uint64_t owner(Actor actor, std::uint64_t number) {
  return static_cast<std::uint64_t>(actor) << actor_shift | number;
}
constexpr Actor actor_of(std::uint64_t owner) {
  return static_cast<Actor>(owner >> actor_shift);
}
constexpr std::uint64_t number_of(std::uint64_t owner) {
  return owner & ((std::uint64_t{1} << actor_shift) - 1);
}

std::vector<std::uint32_t> counts(const std::vector<Player>& players) {
  std::vector<std::uint32_t> out;
  for (const Player& player : players) out.push_back(player.count);
  return out;
}

// One run. Operations become ready, start, and when they end make others ready; nothing here
// depends on the order in which the workload lists ranks, groups or operations, since it was made
// canonical. Ranks here are players.
class Run {
 public:
  Run(const Topology& topology, const CostModel& cost, const CallPlanner& planner,
      const ClusterResources& resources, const Cast& cast, const ReplayOptions& options,
      OperationTimes* times)
      : topology_(topology),
        planner_(planner),
        resources_(resources),
        cast_(cast),
        workload_(cast.workload),
        programs_(cast.programs),
        messages_(cast.messages),
        times_(times),
        ranks_(workload_),
        calls_(workload_, programs_, ranks_),
        fluid_(queue_, StreamEnds, Solve),
        plans_(topology, cost, planner, resources, cast),
        kernels_(topology, resources, cast, ranks_.instances()),
        held_(fluid_, resources, cast, ranks_.instances()),
        ledger_(counts(cast.players), static_cast<std::uint32_t>(workload_.groups.size())) {
    add_resources();
    const auto latency = options.scale.find("latency");
    if (latency != options.scale.end()) latency_scale_ = latency->second;
    if (options.timeline) {
      timeline_.emplace(topology, cast, ranks_, options.timeline_ranks, resources_);
      fluid_.record_changes(true);
    }
    const auto left_out = [](const Section& section) { return section.elided > 0; };
    if (std::ranges::any_of(workload_.sections, left_out)) recurrence_.emplace(cast, ranks_);
    if (timeline_ || recurrence_ || times_ != nullptr) begun_.resize(ranks_.instances());
    if (times_ != nullptr) times_->ended.resize(ranks_.instances());
    name_steps_.resize(workload_.programs.size());
    state_.ops.assign(ranks_.instances(), OpState::Blocked);
    state_.calls.resize(calls_.size());
    state_.messages.resize(messages_.all.size());
    call_plans_.resize(calls_.size());
    message_plans_.resize(messages_.all.size());
    state_.remaining.reserve(ranks_.instances());
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_.program(rank) == absent) continue;
      const auto& waits = programs_[ranks_.program(rank)].waits;
      state_.remaining.insert(state_.remaining.end(), waits.begin(), waits.end());
    }
  }

  RunEnd go() {
    start_roots();
    Event event;
    while (queue_.pop(event)) {
      if (recurrence_) {
        if (recurrence_->failed()) return RunEnd::Unsteady;
        // The picosecond before is over: what happens in it has happened.
        if (recurrence_->due() && event.when > settled_) look_back();
        settled_ = event.when;
      }
      ++events_;
      handle(event);
      if (timeline_) record_loads();
    }
    if (state_.done < ranks_.instances()) return RunEnd::Stuck;
    if (recurrence_ && (recurrence_->active() || recurrence_->failed())) return RunEnd::Unsteady;
    if (times_ != nullptr) times_->begun = begun_;
    return RunEnd::Finished;
  }

  [[nodiscard]] std::string deadlock() const {
    return deadlock_report(workload_, programs_, ranks_, calls_, messages_, state_, now());
  }

  Replay take() {
    Replay out;
    const Time end = now();
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      out.result.ranks += cast_.players[rank].count;
      if (ranks_.program(rank) == absent) continue;
      const Program& own = workload_.programs[ranks_.program(rank)];
      out.result.operations += meant_operations(workload_, own) * cast_.players[rank].count;
    }
    out.result.classes = workload_.ranks;
    out.result.events = events_;
    out.result.time = end.time_since_epoch();
    out.result.breakdown = ledger_.close(workload_.groups, end);
    out.result.collectives = statistics_.take();
    out.result.links = resources_.statistics(
        cast_.resources,
        [&](ResourceId r) {
          ResourceUse use = fluid_.use(r);
          if (!more_amounts_.empty()) use.amount += more_amounts_[index(r)];
          return use;
        },
        out.result.time);
    out.result.warnings = warnings();
    out.result.bottleneck = describe_bottleneck(out.result);
    if (timeline_) out.trace = timeline_->finish(end);
    return out;
  }

 private:
  // The engine's time, later by what was left out.
  [[nodiscard]] Time now() const { return queue_.now() + later_; }

  // --- Repetition ---

  void look_back() {
    Moment moment = present(settled_ + later_);
    const std::optional<std::uint32_t> section = recurrence_->observe(moment);
    if (section) repeat(*section, recurrence_->earlier(), moment);
  }

  [[nodiscard]] Moment present(Time when) const {
    Moment moment;
    moment.when = when;
    moment.slots.resize(recurrence_->slots());
    recurrence_->for_slots(
        [&](std::uint32_t rank, std::uint32_t slot, std::uint32_t done, std::uint32_t next) {
          SlotState& state = moment.slots[slot];
          state.done = done;
          if (next == absent) return;
          const std::uint64_t instance = ranks_.first(rank) + next;
          state.next = state_.ops[instance];
          if (state.next != OpState::Blocked) state.begun = when - begun_[instance];
        });
    fluid_.for_running([&](std::uint64_t who, const FluidSystem::Progress& progress) {
      // That SMs are held follows from what calls do.
      if (actor_of(who) == Actor::Holder) return;
      SlotState& state = moment.slots[slot_of(who)];
      state.flows = true;
      state.left = progress.left;
      state.rate = progress.rate;
      state.since = when - (progress.since + later_);
    });
    moment.activities = ledger_.totals(when);
    moment.calls = statistics_.totals();
    moment.amounts.reserve(fluid_.resources());
    for (std::uint32_t r = 0; r < fluid_.resources(); ++r) {
      moment.amounts.push_back(fluid_.use(ResourceId{r}).amount);
    }
    return moment;
  }

  // Of the first of those that a stream of the engine belongs to.
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t who) const {
    std::uint64_t instance = number_of(who);
    std::uint32_t rank = 0;
    if (actor_of(who) == Actor::Operation) {
      rank = ranks_.rank_of(instance);
    } else if (actor_of(who) == Actor::Message) {
      rank = messages_.all[number_of(who)].from;
      instance = messages_.all[number_of(who)].send;
    } else {
      const CallSite& site = calls_.site(static_cast<std::uint32_t>(number_of(who)));
      rank = workload_.groups[site.family].groups[site.group].front();
      instance = ranks_.first(rank) + program(rank).calls[site.family][site.number];
    }
    return recurrence_->slot(rank, static_cast<std::uint32_t>(instance - ranks_.first(rank)));
  }

  // Goes on behind the copies of a section that are left out: they do what happened between the two
  // moments (recurrence.hpp).
  void repeat(std::uint32_t number, const Moment& before, const Moment& after) {
    const Section& section = workload_.sections[number];
    const Duration period = after.when - before.when;
    const Duration later = times_as_long(period, section.elided);

    ledger_.repeat(before.activities, after.activities, section.elided, later);
    statistics_.repeat(before.calls, section.elided);
    more_amounts_.resize(fluid_.resources());
    for (std::size_t r = 0; r < more_amounts_.size(); ++r) {
      more_amounts_[r] +=
          static_cast<double>(section.elided) * (after.amounts[r] - before.amounts[r]);
    }
    for (std::uint32_t p = 0; p < name_steps_.size(); ++p) {
      name_steps_[p] +=
          static_cast<std::int64_t>(section.elided) * name_step(workload_.programs[p], number);
    }
    if (times_ != nullptr) {
      std::vector<std::uint32_t> done;
      for (const SlotState& slot : after.slots) done.push_back(slot.done);
      times_->left_out.push_back({number, section.elided, period, std::move(done)});
    }
    const std::string name =
        fmt::format("{} more {}", section.elided * section.units, section.unit);
    if (timeline_) timeline_->skip(after.when, period, later);
    put_off(number, after, later, name);
    later_ += later;
  }

  // Refuses what time cannot hold.
  [[nodiscard]] Duration times_as_long(Duration period, std::uint64_t times) const {
    const std::int64_t most = Duration::max().count() / std::max<std::int64_t>(period.count(), 1);
    const bool fits = times <= static_cast<std::uint64_t>(most);
    const Duration later = fits ? period * static_cast<std::int64_t>(times) : Duration::max();
    return time_after(now(), later) - now();
  }

  // What of the section goes on is of the last copies: it has begun later.
  void put_off(std::uint32_t section, const Moment& at, Duration later, const std::string& name) {
    std::vector<std::uint32_t> calls;
    std::vector<std::uint32_t> messages;
    recurrence_->for_slots(
        [&](std::uint32_t rank, std::uint32_t slot, std::uint32_t, std::uint32_t next) {
          if (!recurrence_->repeats(rank, slot, section)) return;
          const std::uint64_t instance = ranks_.first(rank) + next;
          const bool begun = at.slots[slot].next != OpState::Blocked;
          if (timeline_ && timeline_->records(rank)) {
            const Time from = begun ? begun_[instance] : at.when;
            timeline_->slice(rank, stream_of(rank, instance), from, from + later, name, "elided");
          }
          if (!begun) return;
          begun_[instance] += later;
          const Operation& op = operation(rank, instance);
          if (op.kind == OpKind::Collective) {
            calls.push_back(
                calls_.number(op.group, ranks_.group(op.group, rank), program(rank).call_of[next]));
          } else if (op.kind == OpKind::Send || op.kind == OpKind::Recv) {
            messages.push_back(messages_.of(instance));
          }
        });
    for (std::vector<std::uint32_t>* list : {&calls, &messages}) {
      std::ranges::sort(*list);
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    for (const std::uint32_t call : calls) {
      state_.calls[call].first_arrival += later;
      state_.calls[call].last_arrival += later;
    }
    for (const std::uint32_t message : messages) state_.messages[message].last_arrival += later;
  }

  // As people see it: numbers of what was left out are passed over.
  [[nodiscard]] std::string shown(std::uint32_t rank, const Operation& op) const {
    return advanced(op.name, name_steps_[ranks_.program(rank)]);
  }

  // --- Events ---

  void add_resources() {
    for (const StandIn& own : cast_.resources) {
      fluid_.add_resource(resources_.capacity(own.first));
    }
  }

  [[nodiscard]] const CompiledProgram& program(std::uint32_t rank) const {
    return programs_[ranks_.program(rank)];
  }
  [[nodiscard]] const Operation& operation(std::uint32_t rank, std::uint64_t instance) const {
    return workload_.programs[ranks_.program(rank)].ops[instance - ranks_.first(rank)];
  }

  void start_roots() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_.program(rank) == absent) continue;
      const auto& waits = program(rank).waits;
      for (std::uint32_t op = 0; op < waits.size(); ++op) {
        if (waits[op] == 0) ready_.emplace_back(rank, ranks_.first(rank) + op);
      }
    }
    start_ready();
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Solve:
        fluid_.solve();
        return;
      case BytesFlow:
        begin_bytes(event.payload);
        return;
      case DelayEnds:
        end_operation(event.payload);
        break;
      case StreamEnds:
        if (!fluid_.ended(event)) return;
        end_stream(fluid_.payload(StreamId{static_cast<std::uint32_t>(event.payload)}));
        break;
      default:
        require(false, "a known kind of event");
    }
    start_ready();
  }

  // Iterative, since an operation may end when it starts and so make the next one ready.
  void start_ready() {
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      const auto [rank, instance] = ready_[i];
      start(rank, instance);
    }
    ready_.clear();
  }

  void start(std::uint32_t rank, std::uint64_t instance) {
    const Operation& op = operation(rank, instance);
    if (!begun_.empty()) begun_[instance] = now();
    switch (op.kind) {
      case OpKind::Compute:
      case OpKind::Copy:
      case OpKind::Delay:
        start_local(rank, instance, op);
        break;
      case OpKind::Collective:
        arrive_at_call(rank, instance, op);
        break;
      case OpKind::Send:
      case OpKind::Recv:
        arrive_at_message(rank, instance);
        break;
    }
  }

  void start_local(std::uint32_t rank, std::uint64_t instance, const Operation& op) {
    state_.ops[instance] = OpState::Running;
    ledger_.begin(rank, Ledger::Activity::Compute, 0, now());
    if (!Kernels::is_stream(op)) {
      queue_.schedule(time_after(queue_.now(), kernels_.duration(op, rank)), Phase::Finish,
                      DelayEnds, instance);
      return;
    }
    StreamSpec spec = kernels_.begin(op, rank, instance);
    spec.key = spec.payload = owner(Actor::Operation, instance);
    fluid_.start(spec);
  }

  void arrive_at_call(std::uint32_t rank, std::uint64_t instance, const Operation& op) {
    state_.ops[instance] = OpState::Waiting;
    const auto number = program(rank).call_of[instance - ranks_.first(rank)];
    const std::uint32_t g = ranks_.group(op.group, rank);
    const std::uint32_t call = calls_.number(op.group, g, number);
    const auto& group = workload_.groups[op.group].groups[g];
    CallState& state = state_.calls[call];
    if (state.arrived++ == 0) state.first_arrival = now();
    if (state.arrived < group.size()) return;

    state.last_arrival = now();
    const PreparedCall* plan = nullptr;
    if (cast_.groups[op.group][g].ranks.size() > 1) plan = &plans_.collective(op, g);
    call_plans_[call] = plan;
    const std::uint32_t sms = held_by(plan);
    for_members(call, [&](std::uint32_t member, std::uint64_t theirs) {
      state_.ops[theirs] = OpState::Running;
      ledger_.begin(member, Ledger::Activity::Starting, 0, now());
      if (sms > 0) held_.hold(member, theirs, sms, owner(Actor::Holder, theirs));
    });
    begin_later(owner(Actor::Call, call), plan);
  }

  // SMs of every member of a call, from its last arrival to its end.
  [[nodiscard]] static std::uint32_t held_by(const PreparedCall* plan) {
    return plan == nullptr || plan->experts == nullptr ? 0 : plan->experts->sms;
  }

  void arrive_at_message(std::uint32_t rank, std::uint64_t instance) {
    state_.ops[instance] = OpState::Waiting;
    const std::uint32_t id = messages_.of(instance);
    const MatchedMessage& message = messages_.all[id];
    MessageState& state = state_.messages[id];
    if (++state.arrived == 1) {
      ledger_.begin(rank, Ledger::Activity::PeerWait, 0, now());
      return;
    }
    const std::uint32_t other = rank == message.from ? message.to : message.from;
    ledger_.end(other, Ledger::Activity::PeerWait, 0, now());
    state.last_arrival = now();
    for (const auto& [end, theirs] :
         {std::pair{message.from, message.send}, std::pair{message.to, message.receive}}) {
      state_.ops[theirs] = OpState::Running;
      ledger_.begin(end, Ledger::Activity::Starting, 0, now());
    }
    message_plans_[id] = &plans_.message(message);
    begin_later(owner(Actor::Message, id), message_plans_[id]);
  }

  // A group of one has no plan: its call ends as it starts.
  void begin_later(std::uint64_t who, const PreparedCall* plan) {
    const Duration startup = plan == nullptr ? Duration{} : plan->plan.startup;
    const double slowdown = slowdown_of(who);
    const Duration scaled = slowdown == latency_scale_
                                ? startup
                                : from_seconds(to_seconds(startup) * slowdown / latency_scale_);
    queue_.schedule(time_after(queue_.now(), scaled), Phase::Start, BytesFlow, who);
  }

  void begin_bytes(std::uint64_t who) {
    const bool is_call = actor_of(who) == Actor::Call;
    const PreparedCall* plan =
        is_call ? call_plans_[number_of(who)] : message_plans_[number_of(who)];
    for_parties(who, [&](std::uint32_t rank, std::uint64_t) {
      ledger_.begin(rank, Ledger::Activity::Moving, family_of(who), now());
      ledger_.end(rank, Ledger::Activity::Starting, 0, now());
    });
    StreamSpec spec{.loads = {}, .work = 0, .key = who, .payload = who};
    if (plan != nullptr) {
      spec.loads = plan->set->loads;
      spec.work = static_cast<double>(bytes_of(who).count()) * slowdown_of(who);
      spec.rate_cap = plan->plan.rate_cap;
    }
    fluid_.start(spec);
  }

  void end_stream(std::uint64_t who) {
    if (actor_of(who) == Actor::Operation) {
      end_operation(number_of(who));
      return;
    }
    const bool is_call = actor_of(who) == Actor::Call;
    const Time arrived = is_call ? state_.calls[number_of(who)].last_arrival
                                 : state_.messages[number_of(who)].last_arrival;
    const PreparedCall* plan =
        is_call ? call_plans_[number_of(who)] : message_plans_[number_of(who)];
    if (plan != nullptr) count(who, *plan, arrived);
    const bool holds = held_by(plan) > 0;
    for_parties(who, [&](std::uint32_t rank, std::uint64_t instance) {
      ledger_.end(rank, Ledger::Activity::Moving, family_of(who), now());
      if (holds) held_.give_back(instance);
      if (timeline_ && timeline_->records(rank)) record_call(rank, instance, who, plan, arrived);
      release(rank, instance);
    });
  }

  void end_operation(std::uint64_t instance) {
    const std::uint32_t rank = ranks_.rank_of(instance);
    const Operation& op = operation(rank, instance);
    ledger_.end(rank, Ledger::Activity::Compute, 0, now());
    if (Kernels::is_stream(op)) kernels_.ended(instance);
    if (timeline_ && timeline_->records(rank)) {
      timeline_->slice(rank, stream_of(rank, instance), begun_[instance], now(), shown(rank, op),
                       op.kind == OpKind::Delay ? "delay" : "compute");
    }
    release(rank, instance);
  }

  void release(std::uint32_t rank, std::uint64_t instance) {
    state_.ops[instance] = OpState::Done;
    ++state_.done;
    if (times_ != nullptr) times_->ended[instance] = now();
    const std::uint64_t first = ranks_.first(rank);
    if (recurrence_ && recurrence_->active()) {
      recurrence_->count(rank, static_cast<std::uint32_t>(instance - first));
    }
    for (const std::uint32_t next :
         program(rank).successors(static_cast<std::uint32_t>(instance - first))) {
      if (--state_.remaining[first + next] == 0) ready_.emplace_back(rank, first + next);
    }
  }

  // Calls visit(rank, instance) for all members of a call, in group order.
  template <class Visit>
  void for_members(std::uint64_t call, Visit visit) const {
    const CallSite& site = calls_.site(static_cast<std::uint32_t>(call));
    for (const std::uint32_t rank : workload_.groups[site.family].groups[site.group]) {
      visit(rank, ranks_.first(rank) + program(rank).calls[site.family][site.number]);
    }
  }
  template <class Visit>
  void for_parties(std::uint64_t who, Visit visit) const {
    if (actor_of(who) == Actor::Call) {
      for_members(number_of(who), visit);
    } else {
      const MatchedMessage& message = messages_.all[number_of(who)];
      visit(message.from, message.send);
      visit(message.to, message.receive);
    }
  }

  [[nodiscard]] const Operation& call_operation(std::uint64_t call) const {
    const CallSite& site = calls_.site(static_cast<std::uint32_t>(call));
    const std::uint32_t rank = workload_.groups[site.family].groups[site.group].front();
    return operation(rank, ranks_.first(rank) + program(rank).calls[site.family][site.number]);
  }
  [[nodiscard]] std::uint32_t family_of(std::uint64_t who) const {
    return actor_of(who) == Actor::Call
               ? calls_.site(static_cast<std::uint32_t>(number_of(who))).family
               : static_cast<std::uint32_t>(workload_.groups.size());
  }
  [[nodiscard]] Bytes bytes_of(std::uint64_t who) const {
    return actor_of(who) == Actor::Call ? call_operation(number_of(who)).bytes
                                        : messages_.all[number_of(who)].bytes;
  }
  [[nodiscard]] double slowdown_of(std::uint64_t who) const {
    return actor_of(who) == Actor::Call ? call_operation(number_of(who)).slowdown
                                        : messages_.all[number_of(who)].slowdown;
  }
  [[nodiscard]] std::uint32_t stream_of(std::uint32_t rank, std::uint64_t instance) const {
    return program(rank).stream[instance - ranks_.first(rank)];
  }

  void count(std::uint64_t who, const PreparedCall& plan, Time arrived) {
    const Duration taken = now() - arrived;
    if (actor_of(who) == Actor::Message) {
      const MatchedMessage& message = messages_.all[number_of(who)];
      statistics_.add_message(message.bytes, plan.plan, taken, message.count);
      return;
    }
    const CallSite& site = calls_.site(static_cast<std::uint32_t>(number_of(who)));
    const CallState& state = state_.calls[number_of(who)];
    const PlayedGroup& played = cast_.groups[site.family][site.group];
    const Operation& op = call_operation(number_of(who));
    const std::string exchange = op.exchange == no_exchange ? "" : planner_.exchange(op).name;
    CollectiveStats* fresh =
        statistics_.add_call(op, workload_.groups[site.family].name, exchange,
                             static_cast<std::uint32_t>(played.ranks.size()), plan.plan, taken,
                             state.last_arrival - state.first_arrival, played.count);
    if (fresh == nullptr) return;
    if (plan.experts != nullptr) {
      fresh->experts = expert_stats(planner_.exchange(op), *plan.experts,
                                    static_cast<std::uint32_t>(played.ranks.size()));
      fresh->experts->other_modes = plans_.other_modes(op, site.group);
      return;
    }
    for (const CollectivePlan& other : plans_.alternatives(op, site.group)) {
      fresh->alternatives.push_back({other.algorithm, other.protocol, other.channels, other.alone});
    }
  }

  void record_call(std::uint32_t rank, std::uint64_t instance, std::uint64_t who,
                   const PreparedCall* plan, Time arrived) {
    const Operation& op = operation(rank, instance);
    const std::uint32_t stream = stream_of(rank, instance);
    const bool is_call = actor_of(who) == Actor::Call;
    const std::string category = is_call ? workload_.groups[family_of(who)].name : "p2p";
    timeline_->slice(rank, stream, begun_[instance], arrived, "wait for " + shown(rank, op),
                     "wait");
    std::string detail = to_string(op.bytes);
    if (plan != nullptr && is_call) {
      const CollectivePlan& p = plan->plan;
      detail = fmt::format("{} of {}: {}, {}, {} channels, limited by {}", to_string(op.collective),
                           to_string(op.bytes), to_string(p.algorithm), to_string(p.protocol),
                           p.channels, p.bottleneck);
    }
    timeline_->slice(rank, stream, arrived, now(), shown(rank, op), category, std::move(detail));
  }

  void record_loads() {
    for (const RateChange& change : fluid_.changes()) {
      const std::uint64_t who = change.payload;
      if (actor_of(who) == Actor::Operation || actor_of(who) == Actor::Holder) continue;
      const PreparedCall* plan = actor_of(who) == Actor::Call ? call_plans_[number_of(who)]
                                                              : message_plans_[number_of(who)];
      if (plan != nullptr) {
        timeline_->load(plan->set->classes, change.after - change.before, now());
      }
    }
    fluid_.clear_changes();
  }

  [[nodiscard]] std::vector<std::string> warnings() const {
    std::vector<std::string> out = topology_.notes;
    std::ranges::move(kernels_.warnings(), std::back_inserter(out));
    return out;
  }

  const Topology& topology_;
  const CallPlanner& planner_;
  const ClusterResources& resources_;
  const Cast& cast_;
  const Workload& workload_;
  const std::vector<CompiledProgram>& programs_;
  const Messages& messages_;
  OperationTimes* times_;
  Ranks ranks_;
  Calls calls_;
  EventQueue queue_;
  FluidSystem fluid_;
  PlanCache plans_;
  Kernels kernels_;
  HeldSms held_;
  Ledger ledger_;
  CallStatistics statistics_;
  ReplayState state_;
  std::vector<const PreparedCall*> call_plans_;
  std::vector<const PreparedCall*> message_plans_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> ready_;
  std::optional<Timeline> timeline_;
  std::vector<Time> begun_;  // By instance, when somebody asks.
  std::optional<Recurrence> recurrence_;
  Time settled_;                          // Of the engine: when the last event was.
  Duration later_{};                      // What was left out has taken so long.
  std::vector<std::int64_t> name_steps_;  // By program: of numbers at the end of names.
  std::vector<double> more_amounts_;      // By resource of the engine: taken while left out.
  std::uint64_t events_ = 0;
  double latency_scale_ = 1;
};

}  // namespace

Played run(const Topology& topology, const CostModel& cost, const CallPlanner& planner,
           const ClusterResources& resources, const Cast& cast, const ReplayOptions& options,
           OperationTimes* times) {
  Run run(topology, cost, planner, resources, cast, options, times);
  const RunEnd end = run.go();
  if (end != RunEnd::Finished) return {end, std::nullopt};
  return {end, run.take()};
}

Replay run_full(const Topology& topology, const CostModel& cost, const CallPlanner& planner,
                const ClusterResources& resources, const Cast& cast, const ReplayOptions& options,
                OperationTimes* times) {
  Run run(topology, cost, planner, resources, cast, options, times);
  const RunEnd end = run.go();
  require(end != RunEnd::Unsteady, "a full run has all copies of sections");
  if (end == RunEnd::Stuck) throw SimulationError(run.deadlock());
  return run.take();
}

}  // namespace flyover
