#pragma once

// Writes the program of one pipeline stage: operations one after the other, and what runs beside
// them.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/layout/group_kind.hpp"
#include "flyover/layout/step_parts.hpp"
#include "flyover/workload/operation_graph.hpp"
#include "layout/expand_passes.hpp"

namespace flyover {

inline constexpr std::uint32_t no_family = std::numeric_limits<std::uint32_t>::max();

// What a writer needs of the workload around it.
struct WriterContext {
  std::array<std::uint32_t, group_kinds> family{};  // Or no_family: groups of one rank.
  std::array<double, group_kinds> slowdown{};
  std::uint32_t sms = 0;  // Of a GPU.
};

// Exchanges of a workload, as programs come upon them.
using ExchangeList = std::vector<std::shared_ptr<const ExpertExchange>>;

class ProgramWriter {
 public:
  using Ops = std::vector<std::uint32_t>;

  // Borrows the context and the list. With `counting`, operations are counted, not made.
  ProgramWriter(const WriterContext& context, ExchangeList& exchanges, bool counting);

  std::uint32_t stream(std::string name);
  // Names for what follows: "qkv, layer 3, forward 12".
  void label(std::string_view unit, std::string_view pass, std::uint32_t micro_batch);
  // What follows is of this copy of a section of the workload; no_section: of none.
  void mark(std::uint32_t section, std::uint32_t copy);

  // What comes next waits for these. Writes down kernels that were put off.
  [[nodiscard]] const Ops& front();
  void wait_for(const Ops& ops);

  // In the flow: what comes next waits for it.
  void item(const PassItem& item);
  void kernels(std::string_view name, Duration duration, Flops flops = {}, Bytes bytes = {},
               Duration memory_bound = {});
  // From here on messages hold so many SMs while they are under way, and kernels that are not
  // memory-bound take longer for it; 0: what kernels lose is not told by their SMs.
  void hold_sms(std::uint32_t held);
  void host(Duration duration);
  void exchange(std::string_view name, const Message& message);

  // Beside it, on the stream of its kind of groups: returns what has to be waited for, nothing
  // where groups have one rank.
  Ops beside(std::string_view name, const Message& message, const Ops& after);
  // The last one of all messages of this kind so far.
  [[nodiscard]] Ops latest(GroupKind kind) const;
  std::uint32_t send(std::uint32_t stream, std::int64_t offset, Bytes bytes, std::string tag,
                     std::string name);
  std::uint32_t receive(std::uint32_t stream, std::int64_t offset, Bytes bytes, std::string tag,
                        std::string name);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::vector<Operation> take() &&;

 private:
  template <class Fill>
  std::uint32_t emit(std::uint32_t stream, const Ops& after, Fill fill);
  void flush();
  [[nodiscard]] std::string named(std::string_view what) const;
  [[nodiscard]] std::uint32_t family(GroupKind kind) const {
    return context_.family[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] double slowdown(GroupKind kind) const {
    return context_.slowdown[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::uint32_t stream_of(GroupKind kind);
  [[nodiscard]] std::uint32_t index_of(const std::shared_ptr<const ExpertExchange>& exchange);
  std::uint32_t point_to_point(OpKind kind, std::uint32_t stream, const Ops& after,
                               std::int64_t offset, Bytes bytes, std::string tag, std::string name);

  const WriterContext& context_;
  ExchangeList& exchanges_;
  bool counting_;
  std::uint32_t count_ = 0;
  std::vector<Operation> ops_;
  std::vector<std::string> streams_;
  std::vector<std::uint32_t> last_on_stream_;
  std::array<std::uint32_t, group_kinds> kind_streams_;
  std::uint32_t compute_;
  Ops front_;
  // Kernels in a row become one operation.
  struct {
    std::string_view name;
    Duration longest{};
    Duration duration{};
    double flops = 0;
    Bytes bytes;
    Duration memory_bound{};
  } put_off_;
  std::uint32_t held_sms_ = 0;
  std::string_view unit_;
  std::string_view pass_;
  std::uint32_t micro_batch_ = 0;
  std::uint32_t section_ = no_section;
  std::uint32_t copy_ = 0;
  std::uint32_t sections_before_ = 0;
};

}  // namespace flyover
