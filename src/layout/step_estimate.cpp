#include "flyover/layout/step_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "flyover/base/error.hpp"
#include "flyover/layout/fused_chunk.hpp"
#include "flyover/layout/schedule.hpp"
#include "layout/fused_segments.hpp"

namespace flyover {

namespace {

// Seconds by part of the step.
struct Ledger {
  std::array<double, step_parts> parts{};
  double memory_bound = 0;

  double& operator[](StepPart part) { return parts[static_cast<std::size_t>(part)]; }
  double operator[](StepPart part) const { return parts[static_cast<std::size_t>(part)]; }
  [[nodiscard]] double total() const { return std::accumulate(parts.begin(), parts.end(), 0.0); }
  Ledger& add(const Ledger& other, double times = 1) {
    for (std::size_t i = 0; i < step_parts; ++i) parts[i] += times * other.parts[i];
    memory_bound += times * other.memory_bound;
    return *this;
  }
};

// One micro-batch through a layer or a chunk.
struct Passes {
  Ledger forward;
  Ledger backward;             // All of it, what is repeated included.
  double weight_gradient = 0;  // Of the backward.

  Passes& add(const Passes& other, double times = 1) {
    forward.add(other.forward, times);
    backward.add(other.backward, times);
    weight_gradient += times * other.weight_gradient;
    return *this;
  }
};

// What a step asks of one layout, worked out once.
class Estimate {
 public:
  Estimate(const StepParts& parts, const MessageTimes* times, const Layout& layout)
      : parts_(parts),
        job_(parts.job()),
        times_(times),
        layout_(layout),
        shape_(pipeline_shape(layout)),
        micro_batches_(micro_batches(layout)),
        stage_(layout.pipeline),
        first_chunk_(layout.pipeline),
        saved_(layout.pipeline, 0),
        units_(layout.pipeline, 0) {}

  StepEstimate run() {
    chunks();
    const double pipeline = pipeline_time();
    std::uint32_t slowest = 0;
    for (std::uint32_t s = 1; s < layout_.pipeline; ++s) {
      if (body(s) > body(slowest)) slowest = s;
    }
    Ledger ledger;
    ledger.add(stage_[slowest].forward, micro_batches_);
    ledger.add(stage_[slowest].backward, micro_batches_);
    take_off(ledger, saved_[slowest]);
    hops_of_steady_state(ledger, slowest);
    ledger[StepPart::Bubble] += std::max(0.0, pipeline - ledger.total());
    states(ledger, slowest);
    ledger[StepPart::Host] += to_seconds(job_.stack.step_host);
    ledger[StepPart::Straggling] +=
        ledger.total() * job_.stack.straggling * std::log2(std::max(1U, ranks(layout_)));
    return result(ledger, slowest);
  }

  // Kernels of the fullest stage alone.
  double least() {
    chunks();
    double most = 0;
    for (const Passes& stage : stage_) {
      most = std::max(most, stage.forward.total() + stage.backward.total());
    }
    return most * micro_batches_;
  }

 private:
  // --- Messages ---

  [[nodiscard]] double time(const Message& message) const {
    if (times_ == nullptr) return 0;
    return to_seconds(times_->time(layout_, message)) * slowdown_of(job_.stack, message);
  }
  [[nodiscard]] double slowdown(GroupKind kind) const {
    return job_.stack.message_slowdown[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] double time(const std::vector<Message>& messages) const {
    double sum = 0;
    for (const Message& message : messages) sum += time(message);
    return sum;
  }

  // --- Passes ---

  void add_item(Ledger& ledger, const WorkItem& item, StepPart kernels) const {
    const double compute = to_seconds(item.compute);
    ledger[kernels] += compute;
    ledger.memory_bound += to_seconds(item.memory_bound);
    if (!item.message || times_ == nullptr) return;
    const double message = time(*item.message);
    const double beside = item.hidden * message;
    const double slowed = compute + job_.stack.contention * std::min(compute, beside);
    ledger[exposed_part(item.message->group)] +=
        (message - beside) + std::max(slowed, beside) - compute;
  }

  [[nodiscard]] Passes passes(const LayerWork& work) const {
    Passes result;
    for (const WorkItem& item : work.forward) {
      add_item(result.forward, item, StepPart::Compute);
    }
    for (const WorkItem& item : work.recompute) {
      add_item(result.backward, item, StepPart::Recompute);
    }
    for (const WorkItem& item : work.backward) {
      const double before = item.weight_gradient ? result.backward.total() : 0;
      add_item(result.backward, item, StepPart::Compute);
      if (item.weight_gradient) result.weight_gradient += result.backward.total() - before;
    }
    return result;
  }

  // A layer with what its host code and, under ZeRO-3, its parameters cost.
  [[nodiscard]] Passes layer_passes(std::uint32_t layer) const {
    const LayerWork& work = parts_.layer(layout_, layer);
    Passes result = passes(work);
    const double host = to_seconds(parts_.host(layer));
    wait_for_host(result.forward, host);
    wait_for_host(result.backward, (layout_.recompute == Recompute::Full ? 3 : 2) * host);
    if (layout_.sharding == Sharding::Parameters && times_ != nullptr) {
      const StateMessages messages =
          parts_.state_messages(layout_, parts_.layer_parameters(layout_, layer));
      // Parameters that stay gathered come once: a part of that for each micro-batch.
      const double gather = time(messages.gather);
      const double reduce = time(messages.reduce);
      hide_states(result.forward, gather, layout_.keep_gathered ? 1 / micro_batches_ : 1);
      if (splits_gradients(shape_.schedule)) {
        hide_states(result.backward, layout_.keep_gathered ? 0 : gather, 1);
        const double before = result.backward.total();
        hide_states(result.backward, reduce, 1);
        result.weight_gradient += result.backward.total() - before;
      } else {
        hide_states(result.backward, (layout_.keep_gathered ? 0 : gather) + reduce, 1);
      }
    }
    return result;
  }
  static void wait_for_host(Ledger& pass, double host) {
    pass[StepPart::Host] += std::max(0.0, host - pass.total());
  }
  // The next unit's gathering and the last one's reduction go on beside a unit's kernels.
  void hide_states(Ledger& pass, double message, double times) const {
    const double kernels = pass.total();
    const double beside = job_.overlap.parameters ? message : 0;
    pass[StepPart::Data] += times * (message - beside + std::max(0.0, beside - kernels) +
                                     job_.stack.contention * std::min(kernels, beside));
  }

  void chunks() {
    const std::vector<std::uint32_t> layers = layers_of_chunks(layout_, job_.model);
    const auto count = static_cast<std::uint32_t>(layers.size());
    std::vector<Passes> of_kind(parts_.layer_kinds());
    std::vector<bool> known(parts_.layer_kinds(), false);
    std::vector<std::uint32_t> counts(parts_.layer_kinds());
    std::uint32_t layer = 0;
    for (std::uint32_t chunk = 0; chunk < count; ++chunk) {
      Passes sum;
      std::ranges::fill(counts, 0U);
      for (std::uint32_t i = 0; i < layers[chunk]; ++i, ++layer) {
        const std::uint32_t kind = parts_.layer_kind(layer);
        if (!known[kind]) of_kind[kind] = layer_passes(layer);
        known[kind] = true;
        ++counts[kind];
      }
      for (std::uint32_t kind = 0; kind < counts.size(); ++kind) {
        if (counts[kind] > 0) sum.add(of_kind[kind], counts[kind]);
      }
      if (chunk == 0) sum.add(passes(parts_.embedding(layout_)));
      if (chunk + 1 == count) sum.add(passes(parts_.head(layout_)));
      if (!job_.options.cuda_graphs) {
        const double host = to_seconds(job_.stack.micro_batch_host) / layout_.virtual_stages / 2;
        sum.forward[StepPart::Host] += host;
        sum.backward[StepPart::Host] += host;
      }
      // Of several ways through the pipeline each has its share of the micro-batches.
      for (std::uint32_t stream = 0; stream < streams(shape_); ++stream) {
        const std::uint32_t stage = stage_of(shape_, chunk, stream);
        if (chunk < layout_.pipeline) first_chunk_[stage] = sum;
        stage_[stage].add(sum, 1.0 / streams(shape_));
        units_[stage] += layers[chunk];
      }
      if (splits_gradients(shape_.schedule)) {
        chunk_times_.push_back({from_seconds(sum.forward.total()),
                                from_seconds(sum.backward.total() - sum.weight_gradient),
                                from_seconds(sum.weight_gradient)});
      }
    }
    if (times_ != nullptr && layout_.pipeline > 1) {
      const StageHop hop = times_->hop(layout_, parts_.boundary_bytes(layout_));
      hop_ = to_seconds(hop.mean) * slowdown(GroupKind::Pipeline);
    }
    if (times_ != nullptr && fuses(job_, layout_)) fuse(layers);
  }

  // --- Fused steps ---

  // Times of both pairs of every stage, and what they save.
  void fuse(const std::vector<std::uint32_t>& layers) {
    const std::vector<std::uint32_t> first = first_layers(layers);
    for (std::uint32_t stage = 0; stage < layout_.pipeline; ++stage) {
      for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
        const std::uint32_t forward = model_chunk(shape_, stage, chunk);
        const std::uint32_t backward = model_chunk(shape_, stage, 1 - chunk);
        pairs_.push_back(pair_time(units_of(forward, first), units_of(backward, first)));
        // Host code of the micro-batches, as in a pass of each.
        if (!job_.options.cuda_graphs) {
          pairs_.back() += job_.stack.micro_batch_host / layout_.virtual_stages;
        }
      }
    }
    for (std::uint32_t stage = 0; stage < layout_.pipeline; ++stage) {
      for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
        const ChunkTimes& forward = chunk_times_[model_chunk(shape_, stage, chunk)];
        const ChunkTimes& backward = chunk_times_[model_chunk(shape_, stage, 1 - chunk)];
        const Duration apart = forward.forward + backward.input_gradient + backward.weight_gradient;
        saved_[stage] += static_cast<double>(fused_steps(stage, chunk)) *
                         (to_seconds(apart) - to_seconds(pairs_[std::size_t{2} * stage + chunk]));
      }
    }
  }
  static std::vector<std::uint32_t> first_layers(const std::vector<std::uint32_t>& layers) {
    std::vector<std::uint32_t> first(layers.size() + 1, 0);
    std::partial_sum(layers.begin(), layers.end(), first.begin() + 1);
    return first;
  }
  struct Unit {
    const LayerWork* work = nullptr;
    Duration host{};
  };
  [[nodiscard]] std::vector<Unit> units_of(std::uint32_t chunk,
                                           const std::vector<std::uint32_t>& first) const {
    std::vector<Unit> units;
    if (chunk == 0) units.push_back({&parts_.embedding(layout_), {}});
    for (std::uint32_t layer = first[chunk]; layer < first[chunk + 1]; ++layer) {
      units.push_back({&parts_.layer(layout_, layer), parts_.host(layer)});
    }
    if (chunk + 2 == first.size()) units.push_back({&parts_.head(layout_), {}});
    return units;
  }
  // A forward through some units with a backward through others, and what their host code has the
  // GPU wait for beside: as expand_fused.cpp writes it.
  [[nodiscard]] Duration pair_time(const std::vector<Unit>& forward,
                                   const std::vector<Unit>& backward) {
    FusedChunk chunk;
    for (const Unit& unit : forward) chunk.forward.push_back(forward_segments(*unit.work));
    for (auto unit = backward.rbegin(); unit != backward.rend(); ++unit) {
      chunk.backward.push_back(backward_segments(*unit->work));
    }
    Duration time = run_fused_chunk(chunk, kernel_rate()).span;
    const std::int64_t share = layout_.recompute == Recompute::Full ? 3 : 2;
    for (std::size_t i = 0; i < forward.size() || i < backward.size(); ++i) {
      Duration idle{};
      if (i < forward.size()) {
        const ForwardSegments& f = chunk.forward[i];
        idle += forward[i].host - f.attention - f.experts - f.after;
      }
      if (i < backward.size()) {
        const BackwardSegments& b = chunk.backward[i];
        idle += backward[backward.size() - 1 - i].host * share - b.before - b.experts -
                b.expert_weights - b.attention - b.weights;
      }
      time += std::max(Duration{}, idle);
    }
    return time;
  }
  // Of kernels beside messages. Those that wait for memory do not miss the SMs that are held.
  [[nodiscard]] double kernel_rate() const {
    const std::uint32_t held = held_sms(job_, layout_);
    if (held == 0) return 1 / (1 + contention_of(job_));
    Ledger sum;
    for (const Passes& stage : stage_) sum.add(stage.forward).add(stage.backward);
    const double kernels = sum[StepPart::Compute] + sum[StepPart::Recompute];
    const double sms = parts_.gpu().sms;
    return (sms - held) / (sms - held * sum.memory_bound / kernels);
  }
  [[nodiscard]] const ForwardSegments& forward_segments(const LayerWork& work) {
    const auto [place, is_new] = forward_segments_.try_emplace(&work);
    ForwardSegments& made = place->second;
    if (!is_new) return made;
    const ForwardItems items = forward_items(work);
    made = {segment(items.attention), message(items.dispatch), segment(items.experts),
            message(items.combine), segment(items.after)};
    return made;
  }
  [[nodiscard]] const BackwardSegments& backward_segments(const LayerWork& work) {
    const auto [place, is_new] = backward_segments_.try_emplace(&work);
    BackwardSegments& made = place->second;
    if (!is_new) return made;
    const BackwardItems items = backward_items(work);
    made = {segment(items.before),         message(items.combine),  segment(items.experts),
            segment(items.expert_weights), message(items.dispatch), segment(items.attention),
            segment(items.weights)};
    return made;
  }
  [[nodiscard]] Duration segment(const std::vector<const WorkItem*>& items) const {
    Ledger ledger;
    for (const WorkItem* item : items) add_item(ledger, *item, StepPart::Compute);
    return from_seconds(ledger.total());
  }
  [[nodiscard]] Duration message(const WorkItem* item) const {
    return item == nullptr ? Duration{} : from_seconds(time(in_fused_step(*item->message)));
  }

  // Steps of a stage that go forward with this chunk and back with the other.
  [[nodiscard]] std::uint64_t fused_steps(std::uint32_t stage, std::uint32_t chunk) const {
    PipelineShape few = shape_;
    few.micro_batches = 2 * shape_.stages;
    std::uint64_t count = (shape_.micro_batches - few.micro_batches) / streams(shape_);
    for (const PipelineStep& step : stage_steps(few, stage)) {
      count += step.kind == StepKind::ForwardBackward && step.chunk == chunk ? 1U : 0U;
    }
    return count;
  }

  [[nodiscard]] double body(std::uint32_t stage) const {
    return micro_batches_ * (stage_[stage].forward.total() + stage_[stage].backward.total()) -
           saved_[stage];
  }

  // Messages that fused steps hide, and host code that is waited for once for both micro-batches.
  static void take_off(Ledger& ledger, double saved) {
    for (const StepPart part : {StepPart::Expert, StepPart::Host}) {
      const double less = std::clamp(saved, 0.0, ledger[part]);
      ledger[part] -= less;
      saved -= less;
    }
  }
  // Sends that nothing runs beside cost every stage their time.
  void hops_of_steady_state(Ledger& ledger, std::uint32_t stage) const {
    if (job_.overlap.pipeline || layout_.pipeline == 1) return;
    const bool ends = stage == 0 || stage + 1 == layout_.pipeline;
    const double sends = layout_.virtual_stages * 2.0 - (ends ? 1 : 0);
    ledger[StepPart::Pipeline] += micro_batches_ * sends * hop_;
  }

  // From the first forward's start to the last backward's end: docs/models/step.md.
  [[nodiscard]] double pipeline_time() const {
    const std::uint32_t p = layout_.pipeline;
    const double m = micro_batches_;
    if (p == 1 && !has_fused_steps(shape_.schedule)) return body(0);
    switch (shape_.schedule) {
      case PipelineSchedule::ZeroBubbleV:
      case PipelineSchedule::ZeroBubbleH1:
        return zero_bubble();
      case PipelineSchedule::DualPipe:
      case PipelineSchedule::DualPipeV:
        return dual_pipe();
      case PipelineSchedule::GPipe:
      case PipelineSchedule::OneForwardOneBackward:
      case PipelineSchedule::Interleaved:
        break;
    }
    // The fullest stage, after the first micro-batch came to it and before the last one's backward
    // has gone back.
    double longest = 0;
    double before = 0;
    double wraps = 0;
    if (layout_.virtual_stages > 1) wraps = (layout_.virtual_stages - 1.0) * p * hop_;
    for (std::uint32_t s = 0; s < p; ++s) {
      longest = std::max(longest, before + body(s));
      before += first_chunk_[s].forward.total() + first_chunk_[s].backward.total() + 2 * hop_;
    }
    if (shape_.schedule == PipelineSchedule::OneForwardOneBackward && layout_.virtual_stages == 1) {
      longest = std::max(longest, round_trips(m));
    }
    return longest + wraps;
  }

  // 1F1B lets p - s micro-batches be under way from stage s on: what each of them takes there and
  // back over their number is the least time between two.
  [[nodiscard]] double round_trips(double m) const {
    const std::uint32_t p = layout_.pipeline;
    double trip = 0;
    double period = 0;
    for (std::uint32_t k = p; k-- > 0;) {
      trip += stage_[k].forward.total() + stage_[k].backward.total();
      if (k + 1 < p) trip += 2 * hop_;
      if (m > p - k) period = std::max(period, trip / (p - k));
    }
    return trip + (m - 1) * period;
  }

  // What weight gradients fill has no closed form where times differ: run as many micro-batches as
  // fill the pipeline.
  [[nodiscard]] double zero_bubble() const {
    PipelineShape shape = shape_;
    shape.micro_batches = std::min(shape.micro_batches, 2 * shape.stages);
    const PipelineRun run = run_pipeline(pipeline_program(shape), chunk_times_, from_seconds(hop_));
    double most = 0;
    for (std::uint32_t s = 0; s < layout_.pipeline; ++s) most = std::max(most, body(s));
    return to_seconds(run.makespan) +
           most * (1 - static_cast<double>(shape.micro_batches) / micro_batches_);
  }

  // The same with fused steps: fill and drain, and as many steady periods as are left.
  [[nodiscard]] double dual_pipe() const {
    const auto run = [&](std::uint32_t micro_batches) {
      PipelineShape shape = shape_;
      shape.micro_batches = micro_batches;
      PipelineProgram program = pipeline_program(shape);
      if (pairs_.empty()) program = without_fused_steps(std::move(program));
      return to_seconds(run_pipeline(program, chunk_times_, from_seconds(hop_), pairs_).makespan);
    };
    const std::uint32_t period = streams(shape_);
    const std::uint32_t few = 3 * shape_.stages + 2;
    const std::uint32_t start = few + few % period;
    if (shape_.micro_batches <= start + period) return run(shape_.micro_batches);
    const double fill = run(start);
    const double steady = run(start + period) - fill;
    return fill + steady * (shape_.micro_batches - start) / period;
  }

  // --- Gradients, parameters, optimizer ---

  struct Traffic {
    double gather = 0;
    double reduce = 0;
    double buckets = 1;
  };
  [[nodiscard]] Traffic traffic(const OwnParameters& own, double units) const {
    const StateMessages messages = parts_.state_messages(layout_, own);
    Traffic result;
    double bytes = 0;
    for (const Message& message : messages.reduce) {
      bytes = std::max(bytes, static_cast<double>(message.bytes.count()));
    }
    const auto bucket = static_cast<double>(job_.overlap.bucket.count());
    // Buckets are whole layers, and a stage's end.
    const double most = std::max(1.0, units);
    result.buckets = bucket > 0 ? std::clamp(std::floor(bytes / bucket), 1.0, most) : 1;
    result.gather = in_buckets(messages.gather, result.buckets);
    result.reduce = in_buckets(messages.reduce, result.buckets);
    return result;
  }
  [[nodiscard]] double in_buckets(const std::vector<Message>& messages, double buckets) const {
    double sum = 0;
    for (Message message : messages) {
      message.bytes = Bytes{std::llround(static_cast<double>(message.bytes.count()) / buckets)};
      sum += buckets * time(message);
    }
    return sum;
  }

  void states(Ledger& ledger, std::uint32_t slowest) const {
    const bool fsdp = layout_.sharding == Sharding::Parameters;
    const std::vector<OwnParameters> own = parts_.stage_parameters(layout_);
    if (fsdp) {
      unhidden_units(ledger);
    } else {
      gradients(ledger, own);
    }
    if (job_.model.tied_embeddings && layout_.pipeline > 1) {
      const double bytes = parts_.embedding_parameters(layout_).trained_dense *
                           (job_.options.fp32_gradients ? 4 : 2);
      if (bytes > 0) {
        ledger[StepPart::Pipeline] += time(
            Message{GroupKind::Embedding, CollectiveOp::AllReduce, Bytes{std::llround(bytes)}});
      }
    }
    ledger[StepPart::Data] += time(Message{GroupKind::Model, CollectiveOp::AllReduce, Bytes{4}});
    double optimizer = 0;
    for (const std::uint32_t stage : {std::uint32_t{0}, slowest, layout_.pipeline - 1}) {
      optimizer = std::max(optimizer, to_seconds(parts_.optimizer(layout_, own[stage])));
    }
    ledger[StepPart::Optimizer] += optimizer;
  }

  // The first unit's gathering has nothing before it to hide behind, the last one's reduction
  // nothing after it. Without overlap the ends' are exposed in every pass.
  void unhidden_units(Ledger& ledger) const {
    const StateMessages first =
        parts_.state_messages(layout_, parts_.embedding_parameters(layout_));
    const StateMessages head = parts_.state_messages(layout_, parts_.head_parameters(layout_));
    if (job_.overlap.parameters) {
      ledger[StepPart::Data] += time(first.gather) + time(first.reduce);
      return;
    }
    const double gathers = layout_.keep_gathered ? 1 : 2 * micro_batches_;
    ledger[StepPart::Data] += gathers * std::max(time(first.gather), time(head.gather)) +
                              micro_batches_ * std::max(time(first.reduce), time(head.reduce));
    if (layout_.pipeline == 1) {
      ledger[StepPart::Data] += gathers * std::min(time(first.gather), time(head.gather)) +
                                micro_batches_ * std::min(time(first.reduce), time(head.reduce));
    }
  }

  void gradients(Ledger& ledger, const std::vector<OwnParameters>& own) const {
    double reduce_after = 0;
    double gather_before = 0;
    double earlier = 0;  // How long before stage 0 a stage has ended its backwards.
    double later = 0;    // How long after stage 0 it starts.
    double each_micro_batch = 0;
    for (std::uint32_t s = 0; s < layout_.pipeline; ++s) {
      const Traffic stage = traffic(own[s], units_[s]);
      // The last passes of both ways through the pipeline.
      const double backward = streams(shape_) * stage_[s].backward.total();
      const double forward = streams(shape_) * stage_[s].forward.total();
      const double last = 1 / stage.buckets;
      double exposed = stage.reduce;
      if (job_.overlap.gradients) {
        exposed = std::max(stage.reduce * last, stage.reduce - backward * (1 - last));
        exposed += job_.stack.contention * std::min(backward, stage.reduce - exposed);
      }
      reduce_after = std::max(reduce_after, exposed - earlier);
      double waits = stage.gather;
      if (job_.overlap.parameters) {
        waits = std::max(stage.gather * last, stage.gather - forward * (1 - last));
      }
      gather_before = std::max(gather_before, waits - (job_.overlap.parameters ? later : 0));
      if (layout_.sharding == Sharding::Gradients && micro_batches_ > 1) {
        // Every micro-batch's gradients are reduced: beside its backward and the next forward.
        const double hides = job_.overlap.gradients ? backward + forward : 0;
        each_micro_batch =
            std::max(each_micro_batch, std::max(0.0, stage.reduce - hides) +
                                           job_.stack.contention * std::min(hides, stage.reduce));
      }
      // With micro-batches from both ends no stage has long to wait for the first one.
      if (streams(shape_) > 1) continue;
      earlier += first_chunk_[s].backward.total() + hop_;
      later += first_chunk_[s].forward.total() + hop_;
    }
    ledger[StepPart::Data] +=
        reduce_after + gather_before + (micro_batches_ - 1) * each_micro_batch;
  }

  // --- Result ---

  [[nodiscard]] StepEstimate result(const Ledger& ledger, std::uint32_t slowest) const {
    StepEstimate estimate;
    for (std::size_t i = 0; i < step_parts; ++i) {
      estimate.parts[i] = from_seconds(std::max(0.0, ledger.parts[i]));
      estimate.time += estimate.parts[i];
    }
    estimate.slowest_stage = slowest;
    const double seconds = to_seconds(estimate.time);
    const double tokens = static_cast<double>(layout_.global_batch) * job_.sequence;
    const double gpus = ranks(layout_);
    estimate.tokens_per_second_per_gpu = tokens / seconds / gpus;
    estimate.mfu = model_flops_utilisation(parts_, layout_, seconds);
    const double kernels = ledger[StepPart::Compute] + ledger[StepPart::Recompute];
    estimate.memory_bound = kernels > 0 ? ledger.memory_bound / kernels : 0;
    return estimate;
  }

  const StepParts& parts_;
  const TrainingJob& job_;
  const MessageTimes* times_;  // Null: messages cost nothing.
  const Layout& layout_;
  PipelineShape shape_;
  double micro_batches_;
  std::vector<Passes> stage_;
  std::vector<Passes> first_chunk_;
  std::vector<double> saved_;    // Seconds of a step that fused steps take less than their passes.
  std::vector<double> units_;    // Layers.
  std::vector<Duration> pairs_;  // run_pipeline's; empty where steps are not fused.
  std::map<const LayerWork*, ForwardSegments> forward_segments_;
  std::map<const LayerWork*, BackwardSegments> backward_segments_;
  std::vector<ChunkTimes> chunk_times_;
  double hop_ = 0;
};

}  // namespace

std::string_view to_string(StepPart part) {
  constexpr std::string_view names[] = {"compute",    "recompute",  "host",       "exposed tp",
                                        "exposed cp", "exposed ep", "exposed pp", "exposed dp",
                                        "bubble",     "optimizer",  "straggling"};
  return names[static_cast<std::size_t>(part)];
}

StepPart exposed_part(GroupKind kind) {
  switch (kind) {
    case GroupKind::Tensor:
      return StepPart::Tensor;
    case GroupKind::Context:
      return StepPart::Context;
    case GroupKind::Expert:
    case GroupKind::ExpertTensor:
      return StepPart::Expert;
    case GroupKind::Pipeline:
    case GroupKind::Embedding:
      return StepPart::Pipeline;
    case GroupKind::Shard:
    case GroupKind::Replica:
    case GroupKind::ExpertShard:
    case GroupKind::ExpertReplica:
    case GroupKind::Model:
      return StepPart::Data;
  }
  return StepPart::Data;
}

double model_flops_utilisation(const StepParts& parts, const Layout& layout, double step_seconds) {
  const TrainingJob& job = parts.job();
  const double tokens = static_cast<double>(layout.global_batch) * job.sequence;
  const double gpus = ranks(layout);
  // Frozen parameters have no weight gradients.
  const double passes = job.options.lora ? 2 : 3;
  const double flops = passes * forward_flops(job.model, job.sequence, true).total() * tokens;
  const auto peak = parts.gpu().flops.find(std::string(peak_name(job.options.compute)));
  require(peak != parts.gpu().flops.end(), "a GPU with a peak for the job's type");
  return flops / (step_seconds * gpus * peak->second.per_second());
}

std::string_view StepEstimate::limit() const {
  const auto largest = std::ranges::max_element(parts);
  const auto part = static_cast<StepPart>(largest - parts.begin());
  if (part != StepPart::Compute) return to_string(part);
  return memory_bound > 0.5 ? "memory bandwidth" : "matrix multiplications";
}

StepEstimator::StepEstimator(const StepParts& parts, const MessageTimes& times)
    : parts_(&parts),
      times_(&times) {}

StepEstimate StepEstimator::estimate(const Layout& layout) const {
  return Estimate(*parts_, times_, layout).run();
}

Duration StepEstimator::bound(const Layout& layout) const {
  return from_seconds(Estimate(*parts_, nullptr, layout).least());
}

}  // namespace flyover
