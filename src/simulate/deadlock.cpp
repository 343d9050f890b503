#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "flyover/base/quantity.hpp"
#include "simulate/state.hpp"

namespace flyover {

namespace {

constexpr std::size_t most_lines = 20;
constexpr std::size_t most_ranks = 8;

class Report {
 public:
  Report(const Workload& workload, const std::vector<CompiledProgram>& programs, const Ranks& ranks,
         const Calls& calls, const Messages& messages, const ReplayState& state)
      : workload_(workload),
        programs_(programs),
        ranks_(ranks),
        calls_(calls),
        messages_(messages),
        state_(state) {}

  std::string write(Time now) {
    std::string text = fmt::format("deadlock at {}: {} of {} operations cannot run\n",
                                   to_string(now.time_since_epoch()),
                                   ranks_.instances() - state_.done, ranks_.instances());
    for (std::uint32_t call = 0; call < calls_.size(); ++call) describe_call(call);
    for (const MatchedMessage& message : messages_.all) describe_message(message);
    for (std::size_t i = 0; i < std::min(lines_.size(), most_lines); ++i) {
      text += "  " + lines_[i] + '\n';
    }
    if (lines_.size() > most_lines) {
      text += fmt::format("  ... and {} more\n", lines_.size() - most_lines);
    }
    text.pop_back();
    return text;
  }

 private:
  [[nodiscard]] const Operation& op(std::uint32_t rank, std::uint32_t number) const {
    return workload_.programs[ranks_.program(rank)].ops[number];
  }

  // What keeps a rank from an operation: the first one before it that has begun and not ended.
  [[nodiscard]] std::string blocked_in(std::uint32_t rank) const {
    if (ranks_.program(rank) == absent) return "has no program";
    const std::size_t ops = workload_.programs[ranks_.program(rank)].ops.size();
    for (std::uint32_t i = 0; i < ops; ++i) {
      if (state_.ops[ranks_.first(rank) + i] == OpState::Waiting) {
        return fmt::format("waits in \"{}\"", op(rank, i).id);
      }
    }
    return "has nothing left that can run";
  }

  void describe_call(std::uint32_t call) {
    const CallSite& site = calls_.site(call);
    const GroupFamily& family = workload_.groups[site.family];
    const auto& group = family.groups[site.group];
    if (state_.calls[call].arrived == 0 || state_.calls[call].arrived == group.size()) return;

    std::string name;
    std::vector<std::uint32_t> here;
    std::vector<std::string> missing;
    for (const std::uint32_t rank : group) {
      if (ranks_.program(rank) == absent) {
        missing.push_back(fmt::format("rank {}, which has no program", rank));
        continue;
      }
      const auto& calls = programs_[ranks_.program(rank)].calls[site.family];
      if (site.number >= calls.size()) {
        missing.push_back(
            fmt::format("rank {}, whose program has {} collectives on this group, not {}", rank,
                        calls.size(), site.number + 1));
      } else if (state_.ops[ranks_.first(rank) + calls[site.number]] == OpState::Waiting) {
        here.push_back(rank);
        if (name.empty()) name = op(rank, calls[site.number]).id;
      } else {
        missing.push_back(fmt::format("rank {}, which {}", rank, blocked_in(rank)));
      }
    }
    if (missing.size() > most_ranks) {
      const std::size_t more = missing.size() - most_ranks;
      missing.resize(most_ranks);
      missing.push_back(fmt::format("{} more", more));
    }
    if (here.size() > most_ranks) {
      const std::size_t more = here.size() - most_ranks;
      here.resize(most_ranks);
      lines_.push_back(fmt::format("\"{}\" on group \"{}\": ranks {} and {} more wait for {}", name,
                                   family.name, fmt::join(here, ", "), more,
                                   fmt::join(missing, "; ")));
      return;
    }
    lines_.push_back(fmt::format("\"{}\" on group \"{}\": rank{} {} wait{} for {}", name,
                                 family.name, here.size() == 1 ? "" : "s", fmt::join(here, ", "),
                                 here.size() == 1 ? "s" : "", fmt::join(missing, "; ")));
  }

  void describe_message(const MatchedMessage& message) {
    const auto waits = [&](std::uint64_t instance) {
      return instance != no_instance && state_.ops[instance] == OpState::Waiting;
    };
    const auto describe = [&](std::uint32_t waiting, std::uint64_t instance, std::uint32_t peer,
                              std::uint64_t other, const char* verb, const char* counterpart) {
      const std::string& id =
          op(waiting, static_cast<std::uint32_t>(instance - ranks_.first(waiting))).id;
      lines_.push_back(fmt::format("\"{}\": rank {} {} rank {}, which {}", id, waiting, verb, peer,
                                   other == no_instance
                                       ? fmt::format("has no matching {}", counterpart)
                                       : blocked_in(peer)));
    };
    if (waits(message.send)) {
      describe(message.from, message.send, message.to, message.receive, "sends to", "receive");
    } else if (waits(message.receive)) {
      describe(message.to, message.receive, message.from, message.send, "receives from", "send");
    }
  }

  const Workload& workload_;
  const std::vector<CompiledProgram>& programs_;
  const Ranks& ranks_;
  const Calls& calls_;
  const Messages& messages_;
  const ReplayState& state_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string deadlock_report(const Workload& workload, const std::vector<CompiledProgram>& programs,
                            const Ranks& ranks, const Calls& calls, const Messages& messages,
                            const ReplayState& state, Time now) {
  return Report(workload, programs, ranks, calls, messages, state).write(now);
}

}  // namespace flyover
