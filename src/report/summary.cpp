#include "flyover/report/summary.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "flyover/base/quantity.hpp"
#include "flyover/report/range.hpp"
#include "flyover/report/table.hpp"
#include "flyover/study/run_range.hpp"

namespace flyover {

namespace {

std::string microseconds(double us) {
  if (us >= 1e6) return fmt::format("{:.3f} s", us / 1e6);
  if (us >= 1e3) return fmt::format("{:.3f} ms", us / 1e3);
  return fmt::format("{:.3f} us", us);
}
std::string time_text(Duration d) {
  return microseconds(to_microseconds(d));
}
std::string range_of(Duration time, Duration low, Duration high) {
  const double us = to_microseconds(time);
  return us == 0 ? "-" : range_text(to_microseconds(low) / us, to_microseconds(high) / us);
}
std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes.count()) / double{1 << 30});
}

struct Part {
  std::string name;
  double us;
};

std::vector<Part> parts(const Breakdown& b) {
  std::vector<Part> out{{"compute", b.compute_us}};
  for (const auto& [family, us] : b.exposed_us) out.push_back({"exposed " + family, us});
  out.push_back({"start-up", b.startup_us});
  out.push_back({"bubble", b.bubble_us});
  out.push_back({"idle", b.idle_us});
  return out;
}

std::string breakdown_table(const Result& result, std::size_t width) {
  TextTable table{{{"part", true}, {"time", false}, {"share", false}}, {}};
  const double total = to_microseconds(result.time);
  for (const Part& part : parts(result.breakdown)) {
    table.rows.push_back(
        {part.name, microseconds(part.us), percent(total > 0 ? part.us / total : 0)});
  }
  return render(table, width);
}

std::string collective_table(const Result& result, std::size_t width) {
  TextTable table{{{"collective", true},
                   {"group", true},
                   {"ranks"},
                   {"size"},
                   {"count"},
                   {"time"},
                   {"range(80%)"},
                   {"algbw GB/s"},
                   {"busbw GB/s"},
                   {"alone"},
                   {"algorithm", true},
                   {"protocol", true},
                   {"channels"},
                   {"limited by", true}},
                  {}};
  for (const CollectiveStats& c : result.collectives) {
    table.rows.push_back({c.op, c.group, std::to_string(c.ranks), to_string(c.bytes),
                          std::to_string(c.count), time_text(c.mean),
                          range_of(c.mean, c.low, c.high), fmt::format("{:.2f}", c.algbw_GBps),
                          fmt::format("{:.2f}", c.busbw_GBps), time_text(c.alone),
                          std::string(to_string(c.algorithm)), std::string(to_string(c.protocol)),
                          std::to_string(c.channels), c.bottleneck});
  }
  return render(table, width);
}

std::string megabytes(double bytes) {
  return fmt::format("{:.2f}", bytes * 1e-6);
}

// What exchanges of experts move, by port of a GPU.
std::string expert_table(const Result& result, std::size_t width) {
  TextTable table{{{"experts", true},
                   {"exchange", true},
                   {"mode", true},
                   {"tokens"},
                   {"nodes/token"},
                   {"ranks/token"},
                   {"NIC MB"},
                   {"most"},
                   {"logical"},
                   {"NVLink MB"},
                   {"most"},
                   {"logical"},
                   {"kernel"},
                   {"GB/s"},
                   {"of", true},
                   {"SMs"},
                   {"traffic is", true},
                   {"other modes", true}},
                  {}};
  for (const CollectiveStats& c : result.collectives) {
    if (!c.experts) continue;
    const ExpertStats& e = *c.experts;
    std::string others;
    for (const ExpertAlternative& other : e.other_modes) {
      others += fmt::format("{}{} {}", others.empty() ? "" : ", ", to_string(other.mode),
                            time_text(other.time));
    }
    table.rows.push_back(
        {c.op, e.exchange, std::string(to_string(e.mode)), fmt::format("{:.6g}", e.tokens),
         fmt::format("{:.3f}", e.traffic.nodes_per_token),
         fmt::format("{:.3f}", e.traffic.ranks_per_token), megabytes(e.traffic.network.mean),
         megabytes(e.traffic.network.most), megabytes(e.traffic.logical_network.mean),
         megabytes(e.traffic.nvlink.mean), megabytes(e.traffic.nvlink.most),
         megabytes(e.traffic.logical_nvlink.mean), time_text(e.kernel),
         fmt::format("{:.1f}", e.bottleneck_GBps), e.bottleneck_side, std::to_string(e.sms),
         e.traffic.basis, std::move(others)});
  }
  return table.rows.empty() ? "" : '\n' + render(table, width);
}

std::string resource_table(const Result& result, std::size_t width) {
  TextTable table{
      {{"resource", true}, {"count"}, {"mean use"}, {"peak use"}, {"busiest"}, {"which", true}},
      {}};
  for (const ResourceClassStats& c : result.links) {
    if (c.amount == 0) continue;
    table.rows.push_back({c.name, std::to_string(c.count), percent(c.mean_utilisation),
                          percent(c.peak_utilisation), percent(c.busiest_utilisation), c.busiest});
  }
  return render(table, width);
}

// A line for each run of stages that need the same.
std::string memory_table(const MemoryUse& memory, std::size_t width) {
  TextTable table{{{"memory of stage", true},
                   {"needs", false},
                   {"share", false},
                   {"most of it", true},
                   {"micro-batches", false}},
                  {}};
  const double capacity = static_cast<double>(memory.capacity.count());
  for (std::size_t first = 0; first < memory.stages.size();) {
    const StageMemory& stage = memory.stages[first];
    std::size_t last = first;
    while (last + 1 < memory.stages.size() && memory.stages[last + 1].parts == stage.parts) ++last;
    const Bytes most = stage[stage.largest()];
    table.rows.push_back(
        {first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last),
         gibibytes(stage.total()), percent(static_cast<double>(stage.total().count()) / capacity),
         fmt::format("{} {}", gibibytes(most), to_string(stage.largest())),
         fmt::format("{:.3g}", stage.micro_batches_in_flight)});
    first = last + 1;
  }
  return render(table, width) +
         (memory.fits ? "fits\n" : fmt::format("does not fit: {}\n", memory.reason));
}

}  // namespace

std::string summary(const Result& result, std::size_t width) {
  std::string out = fmt::format("{} for {} operations on {} ranks\n", time_text(result.time),
                                result.operations, result.ranks);
  out += fmt::format("80 % range: {} to {}, compute as given\n{}\n\n", time_text(result.low),
                     time_text(result.high), result.bottleneck);
  out += breakdown_table(result, width);
  if (!result.collectives.empty()) out += '\n' + collective_table(result, width);
  out += expert_table(result, width);
  out += '\n' + resource_table(result, width);
  if (result.memory) out += '\n' + memory_table(*result.memory, width);
  if (!result.sensitivity.empty()) {
    TextTable table{{{"if this were 10 % faster", true}, {"the run would shorten by"}}, {}};
    for (const Sensitivity& s : result.sensitivity) {
      if (s.gain > 5e-5) table.rows.push_back({s.name, fmt::format("{:.2f} %", 100 * s.gain)});
    }
    if (!table.rows.empty()) out += '\n' + render(table, width);
  }
  if (!result.validity.empty()) out += "\noutside of what was measured:\n";
  for (const std::string& text : result.validity) out += "  " + text + '\n';
  if (!result.warnings.empty()) out += "\nassumed:\n";
  for (const std::string& warning : result.warnings) out += "  " + warning + '\n';
  return out;
}

std::string comparison(const std::vector<std::string>& names, const std::vector<Result>& results,
                       std::size_t width) {
  // Groups and resources that any of the runs has, in order of name.
  std::set<std::string> families;
  for (const Result& r : results) {
    for (const auto& [family, us] : r.breakdown.exposed_us) families.insert(family);
  }
  TextTable table{{{"", true}}, {}};
  for (const std::string& name : names) table.columns.push_back({name, false});
  const auto add = [&](const std::string& title, auto cell) {
    std::vector<std::string> row{title};
    for (const Result& r : results) row.push_back(cell(r));
    table.rows.push_back(std::move(row));
  };
  add("time", [](const Result& r) { return time_text(r.time); });
  add("against the first", [&](const Result& r) {
    const double first = to_seconds(results.front().time);
    return first == 0 ? "-" : fmt::format("{:+.2f} %", 100 * (to_seconds(r.time) / first - 1));
  });
  add("range(80%)", [](const Result& r) { return range_of(r.time, r.low, r.high); });
  add("difference", [&](const Result& r) {
    if (&r == &results.front()) return "-";
    return difference(results.front(), r).within_error ? "within error" : "clear";
  });
  add("ranks", [](const Result& r) { return std::to_string(r.ranks); });
  add("compute", [](const Result& r) { return microseconds(r.breakdown.compute_us); });
  for (const std::string& family : families) {
    add("exposed " + family, [&](const Result& r) {
      const auto found = r.breakdown.exposed_us.find(family);
      return found == r.breakdown.exposed_us.end() ? std::string("-") : microseconds(found->second);
    });
  }
  add("start-up", [](const Result& r) { return microseconds(r.breakdown.startup_us); });
  add("bubble", [](const Result& r) { return microseconds(r.breakdown.bubble_us); });
  add("idle", [](const Result& r) { return microseconds(r.breakdown.idle_us); });

  std::string out = render(table, width);
  out += '\n';
  for (std::size_t i = 0; i < results.size(); ++i) {
    out += fmt::format("{}: {}\n", names[i], results[i].bottleneck);
    for (const std::string& text : results[i].validity) {
      out += fmt::format("{}: outside of what was measured: {}\n", names[i], text);
    }
  }
  // The table has the pairs with the first.
  for (std::size_t i = 1; i < results.size(); ++i) {
    for (std::size_t j = i + 1; j < results.size(); ++j) {
      if (difference(results[i], results[j]).within_error) {
        out += fmt::format("{} and {} are within error\n", names[i], names[j]);
      }
    }
  }
  return out;
}

}  // namespace flyover
