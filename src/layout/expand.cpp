#include "flyover/layout/expand.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/layout/group_kind.hpp"
#include "flyover/layout/schedule.hpp"
#include "flyover/workload/repetition.hpp"
#include "layout/expand_fused.hpp"
#include "layout/expand_passes.hpp"
#include "layout/expand_units.hpp"
#include "layout/fused_segments.hpp"
#include "layout/place.hpp"
#include "layout/program_writer.hpp"

namespace flyover {

namespace {

// Of steps that are a single pass.
Pass pass_of(StepKind kind) {
  switch (kind) {
    case StepKind::Forward:
    case StepKind::ForwardBackward:
      return Pass::Forward;
    case StepKind::Backward:
      return Pass::Backward;
    case StepKind::InputGradient:
      return Pass::InputGradient;
    case StepKind::WeightGradient:
      return Pass::WeightGradient;
  }
  return Pass::Forward;
}

bool ends_gradients(Pass pass) {
  return pass == Pass::Backward || pass == Pass::WeightGradient;
}

// A micro-batch's way through one chunk of the stage, forward or back.
struct ChunkPass {
  std::uint32_t chunk = 0;
  Pass pass = Pass::Forward;
  std::uint32_t micro_batch = 0;
};
// The passes of a step, one or two.
std::vector<ChunkPass> passes_of(const PipelineStep& step) {
  std::vector<ChunkPass> passes{{step.chunk, pass_of(step.kind), step.micro_batch}};
  if (step.kind == StepKind::ForwardBackward) {
    passes.push_back({step.back_chunk, Pass::Backward, step.back_micro_batch});
  }
  return passes;
}

// The program of one stage.
class Stage {
 public:
  Stage(const StepParts& parts, const Layout& layout, const PipelineShape& shape, Passes& passes,
        const WriterContext& context, ExchangeList& exchanges, std::uint32_t stage, bool counting)
      : parts_(parts),
        layout_(layout),
        overlap_(parts.job().overlap),
        passes_(passes),
        stage_(stage),
        shape_(shape),
        steps_(stage_steps(shape_, stage)),
        chunks_(stage_chunks(parts, layout, stage)),
        last_backward_(chunks_.size()),
        boundary_(parts.boundary_bytes(layout)),
        writer_(context, exchanges, counting) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      for (const ChunkPass& pass : passes_of(steps_[i])) {
        if (ends_gradients(pass.pass)) last_backward_[pass.chunk] = i;
        if (std::ranges::find(order_, pass.chunk) == order_.end()) order_.push_back(pass.chunk);
      }
    }
    for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
      streams_.push_back({writer_.stream(fmt::format("pp-send-f{}", c)),
                          writer_.stream(fmt::format("pp-recv-f{}", c)),
                          writer_.stream(fmt::format("pp-send-b{}", c)),
                          writer_.stream(fmt::format("pp-recv-b{}", c))});
    }
    by_unit_ = layout.sharding == Sharding::Parameters;
    time_states();
    reduce_always_ =
        by_unit_ || (layout.sharding == Sharding::Gradients && shape_.micro_batches > 1);
  }

  // `repeats`: the sections of the stage's steps that repeat.
  ProgramWriter write(const std::vector<StepRepeat>& repeats) && {
    const std::vector<StepRepeat> plain = without_ends(repeats);
    if (by_unit_) {
      list_unit_gathers();
      if (overlap_.parameters) start_next_gather({});
    } else {
      gather_buckets();
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      mark(plain, i);
      step(i);
    }
    writer_.mark(no_section, 0);
    end();
    return std::move(writer_);
  }

 private:
  struct PipelineStreams {
    std::uint32_t send_forward, receive_forward, send_backward, receive_backward;
  };

  // --- Repetition ---

  // The first step of a chunk may wait for its parameters, the last ones have no next unit to
  // gather or reduce gradients: they are like no others.
  [[nodiscard]] std::vector<StepRepeat> without_ends(std::vector<StepRepeat> repeats) const {
    std::vector<bool> seen(chunks_.size(), false);
    std::size_t last_pass = 0;
    std::vector<std::size_t> special;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const PipelineStep& step = steps_[i];
      for (const ChunkPass& pass : passes_of(step)) {
        if (!seen[pass.chunk] || i == last_backward_[pass.chunk]) special.push_back(i);
        seen[pass.chunk] = true;
      }
      if (step.kind != StepKind::WeightGradient) last_pass = i;
    }
    special.push_back(last_pass);
    for (StepRepeat& repeat : repeats) {
      // The last pass gathers for one that is like none before.
      if (by_unit_ && overlap_.parameters) {
        while (repeat.end > repeat.begin && steps_[--repeat.end].kind == StepKind::WeightGradient) {
        }
      }
      for (const std::size_t i : special) {
        if (i < repeat.begin || i >= repeat.end) continue;
        // Whatever is longer stays.
        if (i - repeat.begin < repeat.end - i) {
          repeat.begin = i + 1;
        } else {
          repeat.end = i;
        }
      }
    }
    return repeats;
  }
  void mark(const std::vector<StepRepeat>& repeats, std::size_t index) {
    for (std::uint32_t section = 0; section < repeats.size(); ++section) {
      const StepRepeat& repeat = repeats[section];
      if (index < repeat.begin || index >= repeat.end) continue;
      writer_.mark(section, static_cast<std::uint32_t>((index - repeat.begin) / repeat.period));
      return;
    }
    writer_.mark(no_section, 0);
  }

  // --- Steps ---

  void step(std::size_t index) {
    const std::vector<ChunkPass> passes = passes_of(steps_[index]);
    if (passes.size() == 2 && fuses(parts_.job(), layout_)) {
      fused(passes.front(), passes.back());
      return;
    }
    for (const ChunkPass& pass : passes) this->pass(pass, index);
  }

  void pass(const ChunkPass& pass, std::size_t index) {
    const StageChunk& chunk = chunks_[pass.chunk];
    writer_.label({}, {}, 0);
    receive_input(pass);
    if (pass.pass != Pass::WeightGradient) wait_for_host();
    if (pass.pass == Pass::Forward) {
      for (const StageUnit& unit : chunk.units) this->unit(unit, pass, index);
    } else {
      for (auto unit = chunk.units.rbegin(); unit != chunk.units.rend(); ++unit) {
        this->unit(*unit, pass, index);
      }
    }
    send_output(pass);
  }

  // No states travel beside these: they are used before and reduced after them.
  void fused(const ChunkPass& forward, const ChunkPass& backward) {
    writer_.label({}, {}, 0);
    receive_input(forward);
    receive_input(backward);
    wait_for_host();
    wait_for_host();
    const std::uint32_t held = held_sms(parts_.job(), layout_);
    write_fused(writer_, passes_,
                {.forward = &chunks_[forward.chunk],
                 .forward_micro_batch = forward.micro_batch,
                 .backward = &chunks_[backward.chunk],
                 .backward_micro_batch = backward.micro_batch,
                 .forward_done = [&] { send_output(forward); },
                 .backward_done = [&] { send_output(backward); }},
                held, held == 0 && overlap_.mutual_slowdown);
  }

  void receive_input(const ChunkPass& pass) {
    const StageChunk& chunk = chunks_[pass.chunk];
    const PipelineStreams& streams = streams_[pass.chunk];
    if (pass.pass == Pass::Forward) {
      if (chunk.number > 0) receive(streams.receive_forward, chunk.number - 1, pass, 'f');
    } else if (pass.pass != Pass::WeightGradient && chunk.number < last_chunk()) {
      receive(streams.receive_backward, chunk.number + 1, pass, 'b');
    }
  }
  void send_output(const ChunkPass& pass) {
    const StageChunk& chunk = chunks_[pass.chunk];
    const PipelineStreams& streams = streams_[pass.chunk];
    if (pass.pass == Pass::Forward) {
      if (chunk.number < last_chunk()) send(streams.send_forward, chunk.number + 1, pass, 'f');
    } else if (pass.pass != Pass::WeightGradient && chunk.number > 0) {
      send(streams.send_backward, chunk.number - 1, pass, 'b');
    }
  }
  [[nodiscard]] std::uint32_t last_chunk() const { return model_chunks(shape_) - 1; }

  // A micro-batch's host code, in equal parts before its passes. With two ways through the pipeline
  // a micro-batch passes through one of the chunks.
  void wait_for_host() {
    if (parts_.job().options.cuda_graphs) return;
    const std::int64_t passes = 2 * std::int64_t{shape_.chunks} / streams(shape_);
    writer_.host(parts_.job().stack.micro_batch_host / passes);
  }

  void unit(const StageUnit& unit, const ChunkPass& step, std::size_t index) {
    const Pass pass = step.pass;
    writer_.label(unit.name, to_string(pass), step.micro_batch);
    if (by_unit_) {
      gather_unit(index, pass);
    } else if (pass == Pass::Forward && !gathered_.empty()) {
      writer_.wait_for(std::exchange(gathered_[step.chunk][unit.bucket], {}));
    }
    const PreparedPass& prepared = passes_.of(*unit.work, pass, unit.host);
    for (const PassItem& item : prepared.items) writer_.item(item);
    writer_.kernels("contention", passes_.contention(prepared.time, beside(unit, step, index)));
    writer_.host(prepared.host);
    if (ends_gradients(pass)) reduce_unit(unit, step.chunk, index);
  }

  // How long messages of states go on beside a pass.
  [[nodiscard]] Duration beside(const StageUnit& unit, const ChunkPass& step,
                                std::size_t index) const {
    Duration sum{};
    if (by_unit_ && overlap_.parameters && gathers_at_[index]) sum += unit.gathering;
    if (overlap_.gradients && ends_gradients(step.pass) && reduces_at(step.chunk, index)) {
      sum += unit.reducing;
    }
    return sum;
  }
  void time_states() {
    for (StageChunk& chunk : chunks_) {
      std::vector<std::int64_t> units(chunk.buckets.size());
      for (const StageUnit& unit : chunk.units) {
        if (!by_unit_) ++units[unit.bucket];
      }
      for (StageUnit& unit : chunk.units) {
        if (by_unit_) {
          unit.gathering = passes_.time(unit.states.gather);
          unit.reducing = passes_.time(unit.states.reduce);
        } else {
          unit.reducing =
              passes_.time(chunk.buckets[unit.bucket].states.reduce) / units[unit.bucket];
        }
      }
    }
  }

  // --- Between stages ---

  [[nodiscard]] std::int64_t offset(std::uint32_t stage) const {
    const std::int64_t apart = stride(layout_, dense_sizes(layout_), Dimension::Pipeline);
    return (std::int64_t{stage} - stage_) * apart;
  }
  // Tags name the chunk that a message is for, names the micro-batch too.
  static std::string tag(char direction, std::uint32_t chunk) {
    return fmt::format("{}{}", direction, chunk);
  }
  static std::string name(const std::string& tag, const ChunkPass& step) {
    return fmt::format("{}.{}", tag, step.micro_batch);
  }
  void receive(std::uint32_t stream, std::uint32_t from_chunk, const ChunkPass& step,
               char direction) {
    const std::uint32_t from = stage_of(shape_, from_chunk, step.micro_batch);
    if (from == stage_) return;
    const std::string own = tag(direction, chunks_[step.chunk].number);
    writer_.wait_for({writer_.receive(stream, offset(from), boundary_, own, name(own, step))});
  }
  void send(std::uint32_t stream, std::uint32_t to_chunk, const ChunkPass& step, char direction) {
    const std::uint32_t to = stage_of(shape_, to_chunk, step.micro_batch);
    if (to == stage_) return;
    const std::string theirs = tag(direction, to_chunk);
    const std::uint32_t sent =
        writer_.send(stream, offset(to), boundary_, theirs, name(theirs, step));
    if (!overlap_.pipeline) writer_.wait_for({sent});
  }

  // --- Parameters ---

  ProgramWriter::Ops gather(const StateMessages& states, const ProgramWriter::Ops& after) {
    return travel("gather", states.gather, after);
  }
  // Groups of different kinds do not wait for each other, but for replicas, which exchange what
  // the message before has summed up.
  ProgramWriter::Ops travel(std::string_view name, const std::vector<Message>& messages,
                            const ProgramWriter::Ops& after) {
    ProgramWriter::Ops done;
    for (const Message& message : messages) {
      const bool of_replicas =
          message.group == GroupKind::Replica || message.group == GroupKind::ExpertReplica;
      if (of_replicas && !done.empty()) {
        done.back() = writer_.beside(name, message, {done.back()}).front();
      } else {
        const ProgramWriter::Ops sent = writer_.beside(name, message, after);
        done.insert(done.end(), sent.begin(), sent.end());
      }
    }
    return done;
  }

  // ZeRO-1 and 2: the buckets of gradients, in order of their use.
  void gather_buckets() {
    if (layout_.sharding == Sharding::None) return;
    gathered_.resize(chunks_.size());
    for (const std::uint32_t c : order_) {
      const std::vector<StateBucket>& buckets = chunks_[c].buckets;
      gathered_[c].resize(buckets.size());
      for (std::size_t b = buckets.size(); b-- > 0;) {
        gathered_[c][b] = gather(buckets[b].states, {});
      }
    }
    if (overlap_.parameters) return;
    for (const auto& chunk : gathered_) {
      for (const ProgramWriter::Ops& ops : chunk) writer_.wait_for(ops);
    }
  }

  // ZeRO-3: a unit for each of its passes, or with keep_gathered for the first one.
  void list_unit_gathers() {
    std::vector<bool> seen(chunks_.size(), false);
    gathers_.reserve(steps_.size());
    gathers_at_.assign(steps_.size(), false);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const PipelineStep& step = steps_[i];
      const Pass pass = pass_of(step.kind);
      const bool again = !layout_.keep_gathered || !seen[step.chunk];
      if (pass == Pass::WeightGradient || !again) continue;
      seen[step.chunk] = true;
      gathers_at_[i] = true;
      const std::vector<StageUnit>& units = chunks_[step.chunk].units;
      for (std::size_t u = 0; u < units.size(); ++u) {
        gathers_.push_back(pass == Pass::Forward ? &units[u] : &units[units.size() - 1 - u]);
      }
    }
  }
  void start_next_gather(const ProgramWriter::Ops& after) {
    if (next_gather_ == gathers_.size()) return;
    next_gathered_ = gather(gathers_[next_gather_++]->states, after);
  }
  void gather_unit(std::size_t index, Pass pass) {
    if (!gathers_at_[index] || pass == Pass::WeightGradient) return;
    if (!overlap_.parameters) {
      start_next_gather(writer_.front());
      writer_.wait_for(next_gathered_);
      return;
    }
    // The next unit's starts with this one's work.
    writer_.wait_for(std::exchange(next_gathered_, {}));
    start_next_gather(writer_.front());
  }

  // --- Gradients ---

  void reduce(const StateMessages& states) {
    const ProgramWriter::Ops done = travel("reduce", states.reduce, writer_.front());
    if (!overlap_.gradients) writer_.wait_for(done);
  }
  // Whether gradients are reduced as they come.
  [[nodiscard]] bool reduces_at(std::uint32_t chunk, std::size_t index) const {
    const bool last = index == last_backward_[chunk];
    return reduce_always_ || (last && overlap_.gradients);
  }
  void reduce_unit(const StageUnit& unit, std::uint32_t own_chunk, std::size_t index) {
    if (by_unit_) {
      reduce(unit.states);
      return;
    }
    if (!reduces_at(own_chunk, index)) return;
    const StageChunk& chunk = chunks_[own_chunk];
    const StateBucket& bucket = chunk.buckets[unit.bucket];
    if (&unit == &chunk.units[bucket.first_unit]) reduce(bucket.states);
  }

  // --- End ---

  void end() {
    writer_.label({}, {}, 0);
    if (!reduce_always_ && !overlap_.gradients) {
      for (auto c = order_.rbegin(); c != order_.rend(); ++c) {
        for (const StateBucket& bucket : chunks_[*c].buckets) reduce(bucket.states);
      }
    }
    for (const GroupKind kind :
         {GroupKind::Shard, GroupKind::Replica, GroupKind::ExpertShard, GroupKind::ExpertReplica}) {
      writer_.wait_for(writer_.latest(kind));
    }
    const bool holds_ends = chunks_.front().number == 0 || chunks_.back().number == last_chunk();
    if (holds_ends) {
      writer_.exchange("tied embedding", {GroupKind::Embedding, CollectiveOp::AllReduce,
                                          embedding_gradient_bytes(parts_, layout_)});
    }
    writer_.exchange("norm of gradients", {GroupKind::Model, CollectiveOp::AllReduce, Bytes{4}});
    writer_.kernels("optimizer", parts_.optimizer(layout_, stage_));
    writer_.host(parts_.job().stack.step_host);
    static_cast<void>(writer_.front());
  }

  const StepParts& parts_;
  const Layout& layout_;
  const Overlap& overlap_;
  Passes& passes_;
  std::uint32_t stage_;
  PipelineShape shape_;
  std::vector<PipelineStep> steps_;
  std::vector<StageChunk> chunks_;
  std::vector<std::size_t> last_backward_;  // Per chunk, the step that ends its gradients.
  // Chunks by their first use, in which states travel: with dualpipe the mirror stage has the same
  // chunks the other way round, and takes part.
  std::vector<std::uint32_t> order_;
  Bytes boundary_;
  ProgramWriter writer_;
  std::vector<PipelineStreams> streams_;  // Per chunk.
  bool by_unit_ = false;
  bool reduce_always_ = false;  // Every micro-batch.
  std::vector<std::vector<ProgramWriter::Ops>>
      gathered_;                           // Per chunk and bucket; empty: waited for.
  std::vector<const StageUnit*> gathers_;  // ZeRO-3, in order of use.
  std::vector<bool> gathers_at_;           // Per step.
  std::size_t next_gather_ = 0;
  ProgramWriter::Ops next_gathered_;
};

// Whether collectives of a step may name the kind.
bool has_family(const StepParts& parts, const Layout& layout, GroupKind kind) {
  switch (kind) {
    case GroupKind::Pipeline:
      return false;  // Sends and receives alone.
    case GroupKind::Expert:
    case GroupKind::ExpertTensor:
    case GroupKind::ExpertShard:
    case GroupKind::ExpertReplica:
      if (!parts.job().model.experts) return false;
      break;
    case GroupKind::Embedding:
      if (embedding_gradient_bytes(parts, layout) == Bytes{}) return false;
      break;
    default:
      break;
  }
  return group_size(layout, kind) > 1;
}

WriterContext context_of(const StepParts& parts, const Layout& layout) {
  WriterContext context;
  context.slowdown = parts.job().stack.message_slowdown;
  context.sms = parts.gpu().sms;
  std::uint32_t families = 0;
  for (std::size_t k = 0; k < group_kinds; ++k) {
    const bool has = has_family(parts, layout, static_cast<GroupKind>(k));
    context.family[k] = has ? families++ : no_family;
  }
  return context;
}

// The groups of several ranks.
GroupFamily family_of(const Layout& layout, GroupKind kind) {
  GroupFamily family;
  family.name = to_string(kind);
  std::vector<bool> taken(ranks(layout), false);
  for (std::uint32_t rank = 0; rank < ranks(layout); ++rank) {
    if (taken[rank]) continue;
    std::vector<std::uint32_t> group = group_of(layout, kind, rank);
    for (const std::uint32_t member : group) taken[member] = true;
    if (group.size() > 1) family.groups.push_back(std::move(group));
  }
  return family;
}

std::vector<std::vector<std::uint32_t>> ranks_of_stages(const Layout& layout) {
  std::vector<std::vector<std::uint32_t>> stages(layout.pipeline);
  for (std::uint32_t rank = 0; rank < ranks(layout); ++rank) {
    stages[stage_of_rank(layout, rank)].push_back(rank);
  }
  return stages;
}

// The sections of a step: per stage as many, since their copies are left out together.
std::vector<Section> sections_of(const FoldedPipeline& folded) {
  std::vector<Section> sections;
  if (folded.elided == 0) return sections;
  for (std::size_t i = 0; i < folded.repeats.front().size(); ++i) {
    sections.push_back({folded.elided, "micro-batches", folded.period});
  }
  return sections;
}

FoldedPipeline fold(const Layout& layout, MicroBatches written) {
  const PipelineShape shape = pipeline_shape(layout);
  if (written == MicroBatches::Few) return folded_pipeline(shape);
  FoldedPipeline whole;
  whole.shape = shape;
  whole.repeats.resize(shape.stages);
  return whole;
}

Workload expand_folded(const StepParts& parts, const Layout& layout, const MessageTimes& times,
                       const FoldedPipeline& folded) {
  const WriterContext context = context_of(parts, layout);
  Passes passes(parts, layout, times);
  Workload workload;
  workload.name = parts.job().model.name;
  workload.ranks = ranks(layout);
  for (std::size_t k = 0; k < group_kinds; ++k) {
    if (context.family[k] == no_family) continue;
    workload.groups.push_back(family_of(layout, static_cast<GroupKind>(k)));
  }
  std::vector<std::vector<std::uint32_t>> stages = ranks_of_stages(layout);
  ExchangeList exchanges;
  for (std::uint32_t stage = 0; stage < layout.pipeline; ++stage) {
    Program& program = workload.programs.emplace_back();
    program.name = fmt::format("stage {}", stage);
    program.ranks = std::move(stages[stage]);
    program.ops = Stage(parts, layout, folded.shape, passes, context, exchanges, stage, false)
                      .write(folded.repeats[stage])
                      .take();
  }
  workload.sections = sections_of(folded);
  for (const auto& exchange : exchanges) {
    ExpertExchange& added = workload.exchanges.emplace_back(*exchange);
    // Blocks for multi-token prediction have their own.
    const auto same = std::ranges::count(workload.exchanges, added.name, &ExpertExchange::name);
    if (same > 1) added.name += fmt::format(" {}", same);
  }
  return workload;
}

}  // namespace

Workload expand(const StepParts& parts, const Layout& layout, const MessageTimes& times,
                MicroBatches written) {
  Workload workload = expand_folded(parts, layout, times, fold(layout, written));
  // Nothing depends on it but the size: what cannot be told by a few copies is told by all.
  for (std::uint32_t section = 0; section < workload.sections.size(); ++section) {
    for (const Program& program : workload.programs) {
      if (irregularity(program, section).empty()) continue;
      return expand_folded(parts, layout, times, fold(layout, MicroBatches::All));
    }
  }
  return workload;
}

std::uint64_t expanded_operations(const StepParts& parts, const Layout& layout,
                                  const MessageTimes& times) {
  const WriterContext context = context_of(parts, layout);
  const FoldedPipeline folded = fold(layout, MicroBatches::Few);
  Passes passes(parts, layout, times);
  ExchangeList exchanges;
  std::uint64_t sum = 0;
  for (std::uint32_t stage = 0; stage < layout.pipeline; ++stage) {
    sum += Stage(parts, layout, folded.shape, passes, context, exchanges, stage, true)
               .write(folded.repeats[stage])
               .count();
  }
  return sum * (ranks(layout) / layout.pipeline);
}

}  // namespace flyover
