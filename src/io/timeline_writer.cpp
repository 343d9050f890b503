#include "flyover/io/timeline_writer.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/version.hpp"

namespace flyover::io {

namespace {

using nlohmann::ordered_json;

// Hundreds of thousands of events: each is formatted into one buffer.
class TimelineWriter {
 public:
  TimelineWriter(const Trace& trace, const Result& result) : trace_(trace), result_(result) {}

  std::string write() {
    put("{\"displayTimeUnit\":\"ns\",\"otherData\":");
    put(other_data().dump());
    put(",\"traceEvents\":[");
    write_tracks();
    for (const Slice& slice : trace_.slices) write_slice(slice);
    for (const LoadChange& change : trace_.loads) write_load(change);
    put("\n]}\n");
    return fmt::to_string(out_);
  }

 private:
  [[nodiscard]] ordered_json other_data() const {
    ordered_json other = {{"format", "flyover-timeline-2"},
                          {"flyover", version()},
                          {"time_us", to_microseconds(result_.time)},
                          {"notes", trace_.notes}};
    for (const InputDigest& input : result_.inputs) {
      other[input.role] = input.name + ' ' + input.digest;
    }
    return other;
  }

  // One process per rank and one for links. A stream is a thread of its process; a counter names
  // itself.
  void write_tracks() {
    process_.resize(trace_.tracks.size());
    std::uint32_t processes = 0;
    for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
      const Track& track = trace_.tracks[t];
      if (t == 0 || track.process != trace_.tracks[t - 1].process) {
        ++processes;
        write_metadata("process_name", processes, {}, track.process);
        next_event();
        format(
            "\"ph\":\"M\",\"pid\":{0},\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{0}"
            "}}}}",
            processes);
      }
      process_[t] = processes;
      if (track.rank != no_rank) write_metadata("thread_name", processes, thread(t), track.name);
    }
  }

  // From 1: Perfetto takes thread 0 for the idle one.
  [[nodiscard]] static std::size_t thread(std::size_t track) { return track + 1; }

  void write_metadata(std::string_view what, std::uint32_t process,
                      std::optional<std::size_t> thread, std::string_view name) {
    next_event();
    format("\"ph\":\"M\",\"pid\":{},", process);
    if (thread) format("\"tid\":{},", *thread);
    format("\"name\":\"{}\",\"args\":{{\"name\":", what);
    put_text(name);
    put("}}");
  }

  void write_slice(const Slice& slice) {
    next_event();
    format("\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":", process_[slice.track],
           thread(slice.track));
    put_microseconds(slice.begin.time_since_epoch());
    put(",\"dur\":");
    put_microseconds(slice.end - slice.begin);
    put(",\"name\":");
    put_text(slice.name);
    // A stream of its own says what its slices are.
    if (slice.category != trace_.tracks[slice.track].name) {
      put(",\"cat\":");
      put_text(slice.category);
    }
    if (!slice.detail.empty()) {
      put(",\"args\":{\"detail\":");
      put_text(slice.detail);
      put("}");
    }
    put("}");
  }

  // To a hundredth of a per cent: what nobody can see is no event.
  void write_load(const LoadChange& change) {
    const auto shown = static_cast<std::uint32_t>(change.share * 10'000 + 0.5);
    if (change.track == last_counter_ && shown == last_shown_) return;
    last_counter_ = change.track;
    last_shown_ = shown;
    next_event();
    format("\"ph\":\"C\",\"pid\":{},\"ts\":", process_[change.track]);
    put_microseconds(change.at.time_since_epoch());
    put(",\"name\":");
    put_text(trace_.tracks[change.track].name);
    put(",\"args\":{\"%\":");
    put_decimal(shown, 100, 2);
    put("}}");
  }

  void next_event() {
    put(first_ ? "\n{" : ",\n{");
    first_ = false;
  }

  // Exact: microseconds with up to six decimals are picoseconds.
  void put_microseconds(Duration d) {
    put_decimal(static_cast<std::uint64_t>(d.count()), 1'000'000, 6);
  }

  // amount / unit, a power of ten with so many decimals, without zeros at the end.
  void put_decimal(std::uint64_t amount, std::uint64_t unit, int decimals) {
    format("{}", amount / unit);
    std::uint64_t rest = amount % unit;
    if (rest == 0) return;
    for (; rest % 10 == 0; rest /= 10) --decimals;
    format(".{:0{}}", rest, decimals);
  }

  void put_text(std::string_view text) {
    const bool plain = std::ranges::all_of(
        text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
    if (!plain) return put(ordered_json(text).dump());
    put("\"");
    put(text);
    put("\"");
  }

  void put(std::string_view text) { out_.append(text.data(), text.data() + text.size()); }
  template <class... Args>
  void format(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  static constexpr std::uint32_t no_rank = 0xffffffffU;  // As Track has it.
  const Trace& trace_;
  const Result& result_;
  fmt::memory_buffer out_;
  std::vector<std::uint32_t> process_;  // By track.
  bool first_ = true;
  std::uint32_t last_counter_ = no_rank;
  std::uint32_t last_shown_ = 0;
};

}  // namespace

std::string timeline_json(const Trace& trace, const Result& result) {
  return TimelineWriter(trace, result).write();
}

}  // namespace flyover::io
