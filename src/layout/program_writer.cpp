#include "layout/program_writer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace flyover {

namespace {

constexpr std::uint32_t no_index = std::numeric_limits<std::uint32_t>::max();

}  // namespace

ProgramWriter::ProgramWriter(const WriterContext& context, ExchangeList& exchanges, bool counting)
    : context_(context),
      exchanges_(exchanges),
      counting_(counting),
      compute_(stream("compute")) {
  kind_streams_.fill(no_index);
}

std::uint32_t ProgramWriter::stream(std::string name) {
  streams_.push_back(std::move(name));
  last_on_stream_.push_back(no_index);
  return static_cast<std::uint32_t>(streams_.size() - 1);
}

std::uint32_t ProgramWriter::stream_of(GroupKind kind) {
  std::uint32_t& known = kind_streams_[static_cast<std::size_t>(kind)];
  if (known == no_index) known = stream(std::string(to_string(kind)));
  return known;
}

void ProgramWriter::label(std::string_view unit, std::string_view pass, std::uint32_t micro_batch) {
  flush();
  unit_ = unit;
  pass_ = pass;
  micro_batch_ = micro_batch;
}

void ProgramWriter::mark(std::uint32_t section, std::uint32_t copy) {
  flush();
  if (section_ != no_section && section != section_) sections_before_ = section_ + 1;
  section_ = section;
  copy_ = copy;
}

std::string ProgramWriter::named(std::string_view what) const {
  if (unit_.empty()) return std::string(what);
  return fmt::format("{}, {}, {} {}", what, unit_, pass_, micro_batch_);
}

template <class Fill>
std::uint32_t ProgramWriter::emit(std::uint32_t stream, const Ops& after, Fill fill) {
  const std::uint32_t index = count_++;
  if (counting_) return index;
  Operation& op = ops_.emplace_back();
  op.id = std::to_string(index);
  op.stream = streams_[stream];
  op.section = section_;
  op.copy = copy_;
  op.sections_before = sections_before_;
  const std::uint32_t last = std::exchange(last_on_stream_[stream], index);
  for (const std::uint32_t other : after) {
    if (other != last) op.after.push_back(other);  // The stream's order is enough.
  }
  fill(op);
  return index;
}

void ProgramWriter::flush() {
  if (put_off_.duration == Duration{}) return;
  front_ = {emit(compute_, front_, [&](Operation& op) {
    op.kind = OpKind::Compute;
    op.name = named(put_off_.name);
    op.duration = put_off_.duration;
    op.flops = Flops{put_off_.flops};
    op.bytes = put_off_.bytes;
    if (held_sms_ > 0) {
      // So many that, with `held_sms_` gone, only what waits for SMs takes longer.
      const double waits = to_seconds(put_off_.memory_bound) / to_seconds(put_off_.duration);
      op.sms = context_.sms - static_cast<std::uint32_t>(std::lround(held_sms_ * waits));
    }
  })};
  put_off_ = {};
}

const ProgramWriter::Ops& ProgramWriter::front() {
  flush();
  return front_;
}

void ProgramWriter::wait_for(const Ops& ops) {
  flush();
  for (const std::uint32_t op : ops) {
    if (std::ranges::find(front_, op) == front_.end()) front_.push_back(op);
  }
}

void ProgramWriter::item(const PassItem& item) {
  if (item.message_first) exchange(item.name, item.exposed);
  if (item.hidden.bytes > Bytes{}) {
    const Ops hidden = beside(item.name, item.hidden, front());
    kernels(item.name, item.compute, item.flops, item.bytes, item.memory_bound);
    wait_for(hidden);
  } else {
    kernels(item.name, item.compute, item.flops, item.bytes, item.memory_bound);
  }
  if (!item.message_first) exchange(item.name, item.exposed);
}

void ProgramWriter::hold_sms(std::uint32_t held) {
  flush();
  held_sms_ = held;
}

std::uint32_t ProgramWriter::index_of(const std::shared_ptr<const ExpertExchange>& exchange) {
  const auto found = std::ranges::find(exchanges_, exchange);
  const auto index = static_cast<std::uint32_t>(found - exchanges_.begin());
  if (found == exchanges_.end()) exchanges_.push_back(exchange);
  return index;
}

void ProgramWriter::kernels(std::string_view name, Duration duration, Flops flops, Bytes bytes,
                            Duration memory_bound) {
  if (duration > put_off_.longest) {
    put_off_.longest = duration;
    put_off_.name = name;
  }
  put_off_.duration += duration;
  put_off_.flops += flops.count();
  put_off_.bytes += bytes;
  put_off_.memory_bound += memory_bound;
}

void ProgramWriter::host(Duration duration) {
  if (duration == Duration{}) return;
  front_ = {emit(compute_, front(), [&](Operation& op) {
    op.kind = OpKind::Delay;
    op.name = "host";
    op.duration = duration;
  })};
}

void ProgramWriter::exchange(std::string_view name, const Message& message) {
  if (message.bytes == Bytes{}) return;
  Ops done = beside(name, message, front());
  if (!done.empty()) front_ = std::move(done);
}

ProgramWriter::Ops ProgramWriter::beside(std::string_view name, const Message& message,
                                         const Ops& after) {
  if (family(message.group) == no_family) return {};
  const std::uint32_t stream = stream_of(message.group);
  const Ops nothing;
  std::uint32_t last = no_index;
  for (std::uint32_t i = 0; i < message.count; ++i) {
    last = emit(stream, i == 0 ? after : nothing, [&](Operation& op) {
      op.kind = OpKind::Collective;
      op.collective = message.op;
      op.name = named(name);
      op.bytes = message.bytes;
      op.group = family(message.group);
      op.slowdown = message.exchange ? 1 : slowdown(message.group);
      if (message.exchange) op.exchange = index_of(message.exchange);
    });
  }
  return {last};
}

ProgramWriter::Ops ProgramWriter::latest(GroupKind kind) const {
  const std::uint32_t stream = kind_streams_[static_cast<std::size_t>(kind)];
  if (stream == no_index || last_on_stream_[stream] == no_index) return {};
  return {last_on_stream_[stream]};
}

std::uint32_t ProgramWriter::send(std::uint32_t stream, std::int64_t offset, Bytes bytes,
                                  std::string tag, std::string name) {
  return point_to_point(OpKind::Send, stream, front(), offset, bytes, std::move(tag),
                        std::move(name));
}

std::uint32_t ProgramWriter::receive(std::uint32_t stream, std::int64_t offset, Bytes bytes,
                                     std::string tag, std::string name) {
  return point_to_point(OpKind::Recv, stream, {}, offset, bytes, std::move(tag), std::move(name));
}

std::uint32_t ProgramWriter::point_to_point(OpKind kind, std::uint32_t stream, const Ops& after,
                                            std::int64_t offset, Bytes bytes, std::string tag,
                                            std::string name) {
  return emit(stream, after, [&](Operation& op) {
    op.kind = kind;
    op.name = std::move(name);
    op.bytes = bytes;
    op.peer = offset;
    op.peer_relative = true;
    op.tag = std::move(tag);
    op.slowdown = slowdown(GroupKind::Pipeline);
  });
}

std::vector<Operation> ProgramWriter::take() && {
  flush();
  return std::move(ops_);
}

}  // namespace flyover
