#include "flyover/layout/fused_chunk.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "layout/fused_order.hpp"

namespace flyover {

namespace {

constexpr std::size_t kernels = 0;
constexpr std::size_t messages = 1;
constexpr std::size_t none = static_cast<std::size_t>(-1);

// An operation of one of the two streams; it waits for the one before on its stream.
struct Part {
  std::string_view name;
  char way = 'F';
  std::size_t layer = 0;
  std::size_t stream = kernels;
  Duration time{};
  std::size_t after = none;  // One of the other stream.
};

// Segments that take no time are left out.
class PartList {
 public:
  explicit PartList(const FusedChunk& chunk) : chunk_(chunk) {
    in_fused_order(*this, chunk.forward.size(), chunk.backward.size());
  }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

  void attention(std::size_t i) { run("attention", 'F', i, chunk_.forward[i].attention); }
  void dispatch(std::size_t i) { send("dispatch", 'F', i, chunk_.forward[i].dispatch, forward_); }
  void experts(std::size_t i) { run("experts", 'F', i, chunk_.forward[i].experts, &forward_); }
  void combine(std::size_t i) { send("combine", 'F', i, chunk_.forward[i].combine, forward_); }
  void after(std::size_t i) { run("after", 'F', i, chunk_.forward[i].after, &forward_); }
  void before(std::size_t i) { run("before", 'B', i, chunk_.backward[i].before); }
  void combine_backward(std::size_t i) {
    send("combine", 'B', i, chunk_.backward[i].combine, backward_);
  }
  void experts_backward(std::size_t i) {
    run("experts", 'B', i, chunk_.backward[i].experts, &backward_);
  }
  void expert_weights(std::size_t i) {
    run("expert weights", 'B', i, chunk_.backward[i].expert_weights);
  }
  void dispatch_backward(std::size_t i) {
    send("dispatch", 'B', i, chunk_.backward[i].dispatch, backward_);
  }
  void attention_backward(std::size_t i) {
    run("attention", 'B', i, chunk_.backward[i].attention, &backward_);
  }
  void weights(std::size_t i) { run("weights", 'B', i, chunk_.backward[i].weights); }

 private:
  // Waits for the way's last message, if that has not been waited for yet.
  void run(std::string_view name, char way, std::size_t layer, Duration time,
           std::size_t* message = nullptr) {
    if (message != nullptr && *message != none) {
      // The stream of messages is in order: the later of two is enough.
      waits_ = waits_ == none ? *message : std::max(waits_, *message);
      *message = none;
    }
    if (time == Duration{}) return;
    parts_.push_back({name, way, layer, kernels, time, std::exchange(waits_, none)});
    last_kernel_ = parts_.size() - 1;
  }
  void send(std::string_view name, char way, std::size_t layer, Duration time,
            std::size_t& message) {
    if (time == Duration{}) return;
    parts_.push_back({name, way, layer, messages, time, last_kernel_});
    message = parts_.size() - 1;
  }

  const FusedChunk& chunk_;
  std::vector<Part> parts_;
  std::size_t last_kernel_ = none;
  std::size_t waits_ = none;
  std::size_t forward_ = none;
  std::size_t backward_ = none;
};

}  // namespace

FusedRun run_fused_chunk(const FusedChunk& chunk, double kernel_rate) {
  require(kernel_rate > 0 && kernel_rate <= 1, "run_fused_chunk: a rate of kernels up to 1");
  const PartList list(chunk);
  const std::vector<Part>& parts = list.parts();
  std::vector<bool> done(parts.size(), false);
  std::array<std::size_t, 2> next{};  // By stream, the part that runs or waits,
  std::array<double, 2> left{};       // and what is left of it, in picoseconds alone.
  const auto find_next = [&](std::size_t stream, std::size_t from) {
    while (from < parts.size() && parts[from].stream != stream) ++from;
    next[stream] = from;
    if (from < parts.size()) left[stream] = static_cast<double>(parts[from].time.count());
  };
  find_next(kernels, 0);
  find_next(messages, 0);
  const auto runs = [&](std::size_t stream) {
    const std::size_t part = next[stream];
    return part < parts.size() && (parts[part].after == none || done[parts[part].after]);
  };

  std::array<double, 2> busy{};
  double now = 0;
  double exposed = 0;
  while (next[kernels] < parts.size() || next[messages] < parts.size()) {
    const bool works = runs(kernels);
    const bool sends = runs(messages);
    require(works || sends, "run_fused_chunk: an order that ends");
    const double rate = sends ? kernel_rate : 1;
    double step = works ? left[kernels] / rate : left[messages];
    if (sends) step = std::min(step, left[messages]);
    now += step;
    if (works) busy[kernels] += step;
    if (sends) busy[messages] += step;
    if (sends && !works) exposed += step;
    // Which of them ended is decided before either moves on.
    const bool kernel_ends = works && left[kernels] / rate <= step;
    const bool message_ends = sends && left[messages] <= step;
    if (works) left[kernels] -= step * rate;
    if (sends) left[messages] -= step;
    if (kernel_ends) {
      done[next[kernels]] = true;
      find_next(kernels, next[kernels] + 1);
    }
    if (message_ends) {
      done[next[messages]] = true;
      find_next(messages, next[messages] + 1);
    }
  }
  const auto picoseconds = [](double value) { return Duration{std::llround(value)}; };
  return {picoseconds(now), picoseconds(busy[kernels]), picoseconds(busy[messages]),
          picoseconds(exposed)};
}

Workload fused_chunk_workload(const FusedChunk& chunk, std::string name, std::uint32_t ranks) {
  const PartList list(chunk);
  Workload workload;
  workload.name = std::move(name);
  workload.ranks = ranks;
  Program& program = workload.programs.emplace_back();
  program.name = "forward and backward";
  program.ranks.resize(ranks);
  std::iota(program.ranks.begin(), program.ranks.end(), 0U);
  for (const Part& part : list.parts()) {
    Operation& op = program.ops.emplace_back();
    op.id = fmt::format("{} {}{}", part.name, part.way, part.layer);
    op.name = op.id;
    op.kind = part.stream == kernels ? OpKind::Compute : OpKind::Delay;
    op.stream = part.stream == kernels ? "kernels" : "messages";
    op.duration = part.time;
    if (part.after != none) op.after.push_back(static_cast<std::uint32_t>(part.after));
  }
  return workload;
}

}  // namespace flyover
