#include "flyover/workload/operation_graph.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

// Per operation the one before it on its stream, or `none`.
std::vector<std::uint32_t> stream_predecessors(const Program& program) {
  std::vector<std::uint32_t> before(program.ops.size(), none);
  std::unordered_map<std::string_view, std::uint32_t> last;
  for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
    const auto [place, first] = last.try_emplace(program.ops[op].stream, op);
    if (!first) before[op] = std::exchange(place->second, op);
  }
  return before;
}

// `circle`: each waits for the next, the last for the first.
[[noreturn]] void fail_circle(const Program& program, std::vector<std::uint32_t> circle) {
  constexpr std::size_t shown = 12;
  std::rotate(circle.begin(), std::ranges::min_element(circle), circle.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(circle.size(), shown); ++i) {
    text += program.ops[circle[i]].id + " -> ";
  }
  if (circle.size() > shown) text += fmt::format("({} more) -> ", circle.size() - shown);
  throw InputError("operations wait for each other: " + text + program.ops[circle.front()].id);
}

void check_rank(std::uint32_t rank, std::uint32_t ranks, std::string_view owner) {
  if (rank < ranks) return;
  throw InputError(
      fmt::format("{} names rank {}, but the ranks are 0 to {}", owner, rank, ranks - 1));
}

// Returns per rank the size of its group, 0 for a rank in none.
std::vector<std::uint32_t> check_family(const GroupFamily& family, std::uint32_t ranks) {
  std::vector<std::uint32_t> owner(ranks, none);
  std::vector<std::uint32_t> size(ranks, 0);
  for (std::uint32_t g = 0; g < family.groups.size(); ++g) {
    const std::string name = fmt::format("group {} of \"{}\"", g, family.name);
    if (family.groups[g].empty()) throw InputError(name + " has no ranks");
    for (const std::uint32_t rank : family.groups[g]) {
      check_rank(rank, ranks, name);
      const std::uint32_t other = std::exchange(owner[rank], g);
      if (other == g) throw InputError(fmt::format("{} names rank {} twice", name, rank));
      if (other != none) {
        throw InputError(fmt::format("rank {} is in two groups of \"{}\", {} and {}", rank,
                                     family.name, other, g));
      }
      size[rank] = static_cast<std::uint32_t>(family.groups[g].size());
    }
  }
  return size;
}

void check_exchanges(const Workload& workload) {
  std::unordered_set<std::string_view> names;
  for (const ExpertExchange& exchange : workload.exchanges) {
    const auto fail = [&](std::string_view problem) {
      throw InputError(fmt::format("exchange \"{}\" {}", exchange.name, problem));
    };
    if (!names.insert(exchange.name).second) fail("is there twice");
    if (!exchange.kernels) fail("has no kernels");
    const auto above_zero = [](double value) { return value > 0 && std::isfinite(value); };
    if (!above_zero(exchange.dispatch_bytes) || !above_zero(exchange.combine_bytes)) {
      fail("has tokens without bytes");
    }
    if (exchange.routing.experts == 0 || exchange.routing.chosen == 0) fail("chooses no experts");
    if (exchange.rank_tokens.empty() == (exchange.tokens == 0)) {
      fail("needs tokens, either of each rank or by position");
    }
  }
}

// What a program has to do with a family of groups: the first of its ranks that is in none of them,
// and the size of the smallest of its groups.
struct Membership {
  std::uint32_t outsider = none;
  std::uint32_t smallest = none;
};

class ProgramCheck {
 public:
  // Borrows all, which must outlive it. `group_size` is by family and rank.
  ProgramCheck(const Workload& workload, const Program& program,
               const std::vector<std::vector<std::uint32_t>>& group_size)
      : workload_(workload),
        program_(program),
        group_size_(group_size),
        memberships_(workload.groups.size()) {}

  void run() {
    std::unordered_map<std::string_view, std::uint32_t> ids;
    ids.reserve(program_.ops.size());
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const Operation& op = program_.ops[i];
      if (op.id.empty()) fail(fmt::format("operation {} has no id", i));
      if (!ids.emplace(op.id, i).second) fail(op, "another operation has the same id");
      if (op.stream.empty()) fail(op, "has no stream");
      for (const std::uint32_t other : op.after) {
        if (other >= program_.ops.size()) fail(op, "waits for an operation that is not there");
      }
      check(op);
    }
    try {
      check_order(program_);
    } catch (const InputError& error) {
      fail(error.problem());
    }
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    throw InputError(fmt::format("program \"{}\": {}", program_.name, problem));
  }
  [[noreturn]] void fail(const Operation& op, std::string_view problem) const {
    fail(fmt::format("operation \"{}\": {}", op.id, problem));
  }

  void check(const Operation& op) {
    if (op.bytes < Bytes{0}) fail(op, "has a negative size");
    if (!(op.slowdown > 0) || !std::isfinite(op.slowdown)) {
      fail(op, fmt::format("has a slow-down of {}, which is not above 0", op.slowdown));
    }
    switch (op.kind) {
      case OpKind::Compute:
        return check_compute(op);
      case OpKind::Collective:
        return check_collective(op);
      case OpKind::Send:
      case OpKind::Recv:
        return check_peer(op);
      case OpKind::Copy:
        if (op.bytes == Bytes{0}) fail(op, "copies no bytes");
        return;
      case OpKind::Delay:
        if (op.duration < Duration::zero()) fail(op, "has a negative duration");
        return;
    }
  }

  void check_compute(const Operation& op) const {
    if (!(op.flops.count() >= 0) || !std::isfinite(op.flops.count())) {
      fail(op, "has a number of operations that is negative or not finite");
    }
    if (op.duration < Duration::zero()) fail(op, "has a negative duration");
    if (op.flops == Flops{0} && op.bytes == Bytes{0} && op.duration == Duration::zero()) {
      fail(op, "has no work: neither operations nor bytes nor a duration");
    }
    if (op.sms > 0 && op.duration == Duration::zero()) {
      fail(op, "says how many SMs it takes, which goes with a duration only");
    }
    for (const double share : {op.efficiency, op.memory_efficiency}) {
      if (!(share >= 0 && share <= 1)) {
        fail(op, fmt::format("has an efficiency of {}, which is not from 0 to 1", share));
      }
    }
  }

  void check_collective(const Operation& op) {
    if (op.group >= workload_.groups.size()) fail(op, "names a group that is not there");
    const GroupFamily& family = workload_.groups[op.group];
    const Membership member = membership(op.group);
    if (member.outsider != none) {
      fail(op, fmt::format("rank {} is in no group of \"{}\"", member.outsider, family.name));
    }
    if (op.collective != CollectiveOp::Barrier && op.bytes == Bytes{0}) fail(op, "moves no bytes");
    check_exchange(op, family);
    if (rooted(op.collective) && op.root >= member.smallest) {
      fail(op, fmt::format("has its root at position {}, but a group of \"{}\" has only {} ranks",
                           op.root, family.name, member.smallest));
    }
  }

  void check_exchange(const Operation& op, const GroupFamily& family) const {
    if (!exchanges_experts(op.collective)) {
      if (op.exchange != no_exchange) fail(op, "exchanges no experts, but names an exchange");
      return;
    }
    if (op.exchange >= workload_.exchanges.size()) fail(op, "names an exchange that is not there");
    const ExpertExchange& exchange = workload_.exchanges[op.exchange];
    if ((op.collective == CollectiveOp::MoeFused) != (exchange.mode == ExpertMode::Fused)) {
      fail(op, fmt::format("{} cannot be of mode {}, as \"{}\" is", to_string(op.collective),
                           to_string(exchange.mode), exchange.name));
    }
    if (op.bytes != pair_bytes(exchange, op.collective)) {
      fail(op, fmt::format("moves {} B, but \"{}\" makes it {} B", op.bytes.count(), exchange.name,
                           pair_bytes(exchange, op.collective).count()));
    }
    const std::size_t stated = exchange.rank_tokens.size();
    if (stated == 0) return;
    for (const auto& group : family.groups) {
      if (group.size() == stated) continue;
      fail(op, fmt::format("\"{}\" states the tokens of {} ranks, but a group of \"{}\" has {}",
                           exchange.name, stated, family.name, group.size()));
    }
  }

  Membership membership(std::uint32_t family) {
    Membership& member = memberships_[family];
    if (member.smallest != none) return member;
    for (const std::uint32_t rank : program_.ranks) {
      const std::uint32_t size = group_size_[family][rank];
      if (size == 0 && member.outsider == none) member.outsider = rank;
      member.smallest = std::min(member.smallest, size);
    }
    return member;
  }

  void check_peer(const Operation& op) const {
    if (op.bytes == Bytes{0}) fail(op, "moves no bytes");
    if (!op.peer_relative && (op.peer < 0 || op.peer >= workload_.ranks)) {
      fail(op, fmt::format("has rank {} as its peer, but the ranks are 0 to {}", op.peer,
                           workload_.ranks - 1));
    }
    const std::uint32_t first = program_.ranks.front();
    if (op.peer_relative && peer_of(op, first, workload_.ranks) == first) {
      fail(op, fmt::format("rank {} is its own peer", first));
    }
    if (!op.peer_relative && std::ranges::binary_search(program_.ranks, op.peer)) {
      fail(op, fmt::format("rank {} is its own peer", op.peer));
    }
  }

  const Workload& workload_;
  const Program& program_;
  const std::vector<std::vector<std::uint32_t>>& group_size_;
  std::vector<Membership> memberships_;  // By family; smallest is none where not asked yet.
};

std::uint32_t smallest(const std::vector<std::uint32_t>& ranks) {
  return ranks.empty() ? none : *std::ranges::min_element(ranks);
}

// Position of each element after sorting: old index to new index.
std::vector<std::uint32_t> ranking(const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  return place;
}

// Puts the element order[i] at place i.
template <class T>
void reorder(std::vector<T>& items, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (const std::uint32_t i : order) sorted.push_back(std::move(items[i]));
  items = std::move(sorted);
}

// Kahn's algorithm; of the operations that could come next, the one on the first stream by name. A
// stream offers one operation at a time, so the choice depends on nothing else.
std::vector<std::uint32_t> merged_streams(const Program& program) {
  const auto size = static_cast<std::uint32_t>(program.ops.size());
  const std::vector<std::uint32_t> before = stream_predecessors(program);
  std::map<std::string_view, std::uint32_t> streams;
  for (const Operation& op : program.ops) streams.emplace(op.stream, 0);
  std::uint32_t next = 0;
  for (auto& [name, number] : streams) number = next++;

  std::vector<std::uint32_t> waits(size, 0);
  std::vector<std::vector<std::uint32_t>> followers(size);
  std::vector<std::uint32_t> stream(size);
  for (std::uint32_t op = 0; op < size; ++op) {
    stream[op] = streams.at(program.ops[op].stream);
    const auto wait_for = [&](std::uint32_t other) {
      followers[other].push_back(op);
      ++waits[op];
    };
    for (const std::uint32_t other : program.ops[op].after) wait_for(other);
    if (before[op] != none) wait_for(before[op]);
  }

  using Ready = std::pair<std::uint32_t, std::uint32_t>;  // Stream, operation.
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::uint32_t op = 0; op < size; ++op) {
    if (waits[op] == 0) ready.emplace(stream[op], op);
  }
  std::vector<std::uint32_t> order;
  order.reserve(size);
  while (!ready.empty()) {
    const std::uint32_t op = ready.top().second;
    ready.pop();
    order.push_back(op);
    for (const std::uint32_t follower : followers[op]) {
      if (--waits[follower] == 0) ready.emplace(stream[follower], follower);
    }
  }
  require(order.size() == size, "canonical: operations that do not wait for each other");
  return order;
}

}  // namespace

std::uint32_t peer_of(const Operation& op, std::uint32_t rank, std::uint32_t ranks) {
  if (!op.peer_relative) return static_cast<std::uint32_t>(op.peer);
  const auto all = static_cast<std::int64_t>(ranks);
  return static_cast<std::uint32_t>(((rank + op.peer % all) % all + all) % all);
}

bool rooted(CollectiveOp op) {
  return op == CollectiveOp::Broadcast || op == CollectiveOp::Reduce ||
         op == CollectiveOp::Scatter || op == CollectiveOp::Gather;
}

// Depth-first search with a stack of its own: a chain may be longer than the thread's stack is
// deep.
void check_order(const Program& program) {
  const std::vector<std::uint32_t> before = stream_predecessors(program);
  enum class State : std::uint8_t { New, Open, Closed };
  std::vector<State> state(program.ops.size(), State::New);
  struct Visit {
    std::uint32_t op;
    std::size_t next;  // Of the operations it waits for: `after`, then the one before it.
  };
  std::vector<Visit> path;
  for (std::uint32_t start = 0; start < program.ops.size(); ++start) {
    if (state[start] != State::New) continue;
    path.push_back({start, 0});
    state[start] = State::Open;
    while (!path.empty()) {
      Visit& visit = path.back();
      const std::vector<std::uint32_t>& after = program.ops[visit.op].after;
      const std::size_t step = visit.next++;
      if (step > after.size()) {
        state[visit.op] = State::Closed;
        path.pop_back();
        continue;
      }
      const std::uint32_t other = step < after.size() ? after[step] : before[visit.op];
      if (other == none || state[other] == State::Closed) continue;
      if (state[other] == State::Open) {
        std::vector<std::uint32_t> circle;
        const auto entry = std::ranges::find(path, other, &Visit::op);
        for (auto at = entry; at != path.end(); ++at) circle.push_back(at->op);
        fail_circle(program, std::move(circle));
      }
      state[other] = State::Open;
      path.push_back({other, 0});
    }
  }
}

void validate(const Workload& workload) {
  if (workload.ranks == 0) throw InputError("the workload has no ranks");
  std::unordered_set<std::string_view> names;
  std::vector<std::vector<std::uint32_t>> group_size;
  for (const GroupFamily& family : workload.groups) {
    if (!names.insert(family.name).second) {
      throw InputError(fmt::format("two families of groups are named \"{}\"", family.name));
    }
    group_size.push_back(check_family(family, workload.ranks));
  }

  check_exchanges(workload);
  std::size_t operations = 0;
  std::vector<const Program*> owner(workload.ranks, nullptr);
  for (const Program& program : workload.programs) {
    const std::string name = fmt::format("program \"{}\"", program.name);
    if (program.ranks.empty()) throw InputError(name + " has no ranks");
    for (const std::uint32_t rank : program.ranks) {
      check_rank(rank, workload.ranks, name);
      const Program* other = std::exchange(owner[rank], &program);
      if (other == &program) throw InputError(fmt::format("{} names rank {} twice", name, rank));
      if (other != nullptr) {
        throw InputError(fmt::format("rank {} is in two programs, \"{}\" and \"{}\"", rank,
                                     other->name, program.name));
      }
    }
    if (!std::ranges::is_sorted(program.ranks)) {
      throw InputError(name + " has ranks that do not ascend");
    }
    operations += program.ops.size();
  }
  if (operations == 0) throw InputError("the workload is empty: it has no operations");
  for (const Program& program : workload.programs) {
    ProgramCheck(workload, program, group_size).run();
  }
}

Workload canonical(Workload workload) {
  std::vector<std::uint32_t> families(workload.groups.size());
  std::iota(families.begin(), families.end(), 0U);
  std::ranges::sort(families, {},
                    [&](std::uint32_t i) -> const std::string& { return workload.groups[i].name; });
  const std::vector<std::uint32_t> new_family = ranking(families);
  reorder(workload.groups, families);
  for (GroupFamily& family : workload.groups) std::ranges::sort(family.groups, {}, smallest);

  std::ranges::sort(workload.programs, {},
                    [](const Program& program) { return smallest(program.ranks); });
  for (Program& program : workload.programs) {
    std::ranges::sort(program.ranks);
    const std::vector<std::uint32_t> order = merged_streams(program);
    const std::vector<std::uint32_t> new_op = ranking(order);
    reorder(program.ops, order);
    for (Operation& op : program.ops) {
      if (op.kind == OpKind::Collective) op.group = new_family[op.group];
      for (std::uint32_t& other : op.after) other = new_op[other];
      std::ranges::sort(op.after);
      op.after.erase(std::unique(op.after.begin(), op.after.end()), op.after.end());
    }
  }
  return workload;
}

}  // namespace flyover
