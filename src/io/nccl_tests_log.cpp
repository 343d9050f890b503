#include "flyover/io/nccl_tests_log.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"

namespace flyover::io {

namespace {

struct DataType {
  std::string_view name;  // As nccl-tests and rccl-tests print it.
  std::string_view ours;
  std::int64_t bytes;
};
constexpr std::array data_types = {
    DataType{"int8", "i8", 1},       DataType{"uint8", "u8", 1},     DataType{"int32", "i32", 4},
    DataType{"uint32", "u32", 4},    DataType{"int64", "i64", 8},    DataType{"uint64", "u64", 8},
    DataType{"half", "fp16", 2},     DataType{"float", "fp32", 4},   DataType{"double", "fp64", 8},
    DataType{"bfloat16", "bf16", 2}, DataType{"f8e4m3", "fp8", 1},   DataType{"f8e5m2", "fp8", 1},
    DataType{"fp8_e4m3", "fp8", 1},  DataType{"fp8_e5m2", "fp8", 1},
};

const std::vector<std::string> known_titles = {"size",  "count", "type",  "redop",    "root",
                                               "time",  "algbw", "busbw", "error",    "#wrong",
                                               "wrong", "min",   "max",   "timestamp"};

// With "_perf" behind.
constexpr std::array<std::string_view, 11> programs = {
    "all_reduce", "all_gather", "reduce_scatter", "alltoall", "alltoallv", "broadcast",
    "reduce",     "sendrecv",   "scatter",        "gather",   "hypercube"};

// No line of nccl-tests is longer, but there may be others in between.
constexpr std::size_t longest_line = 4096;

unsigned char to_byte(char c) {
  return static_cast<unsigned char>(c);
}

const DataType* data_type(std::string_view name) {
  const auto found = std::ranges::find(data_types, name, &DataType::name);
  return found == data_types.end() ? nullptr : &*found;
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

bool absent(std::string_view text) {
  return text == "N/A" || text == "-";
}

// Half of the last printed digit, as a share of the value: "12.3" is 12.3 +- 0.05.
double resolution(std::string_view text, double value) {
  const std::size_t dot = text.find('.');
  const std::size_t digits = dot == std::string_view::npos ? 0 : text.size() - dot - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(digits)) / value;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

// mpirun's tags may stand anywhere, srun's and "[0]" at the start or where a line was broken.
std::string without_tags(const std::string& line) {
  static const std::regex tags(
      R"(\[\d+,\d+\]<std(?:out|err)>:|(?:^|\s)\[\d+\](?=\s|$)|^\s*\d+:\s)");
  return line.find_first_of("[:") == std::string::npos ? line : std::regex_replace(line, tags, " ");
}

// The library's own talk, from "host:pid:tid" on, which may follow a value without a blank.
std::string without_debug(const std::string& line) {
  static const std::regex talk(
      R"((?:^\s*[\w.\-]+|[A-Za-z][\w.\-]*):\d+:\d+ .*NCCL (?:INFO|WARN|TRACE|VERSION).*)");
  return line.find("NCCL ") == std::string::npos ? line : std::regex_replace(line, talk, "");
}

// A run of a test program, as far as its head tells.
struct Head {
  std::string program;  // "all_reduce"
  std::uint32_t ranks = 0;
  std::map<std::uint32_t, std::string> hosts;  // By rank.
  std::string device;
};

class Reader {
 public:
  Reader(const std::string& name, std::optional<CollectiveOp> collective)
      : name_(name),
        collective_(collective) {}

  std::vector<NcclTestsTable> read(std::string_view text) {
    anywhere_ = program_in(text);  // Some keep the command after its output.
    std::istringstream stream{std::string(text)};
    for (std::string raw; std::getline(stream, raw);) {
      ++line_;
      if (raw.size() > longest_line) continue;
      if (!raw.empty() && raw.back() == '\r') raw.pop_back();
      read_line(without_debug(without_tags(raw)));
    }
    finish_table();
    if (tables_.empty()) {
      throw InputError(Place{name_, 0, 0, {}},
                       "has no table of nccl-tests: expected a line of titles such as \"# size "
                       "count type redop root time algbw busbw #wrong\"");
    }
    if (tables_.size() == 1) tables_.front().name = name_;
    return std::move(tables_);
  }

 private:
  struct Row {
    std::size_t line = 0;
    std::vector<std::string> words;
  };
  // Where the titles put what we read; the first of each kind is out of place.
  struct Columns {
    std::size_t line = 0;
    std::size_t size = 0;
    std::size_t count = 0;
    std::size_t type = 0;
    std::optional<std::size_t> redop;
    std::optional<std::size_t> root;
    std::size_t time = 0;
    std::optional<std::size_t> wrong;
    std::size_t all = 0;
  };

  [[noreturn]] void fail(std::size_t line, std::string_view problem) const {
    throw InputError(Place{name_, static_cast<int>(line), 0, {}}, problem);
  }

  // The first test program that the text names.
  static std::string program_in(std::string_view text) {
    constexpr std::string_view suffix = "_perf";
    for (std::size_t at = text.find(suffix); at != std::string_view::npos;
         at = text.find(suffix, at + 1)) {
      std::size_t begin = at;
      while (begin > 0 && (text[begin - 1] == '_' || std::islower(to_byte(text[begin - 1])) != 0)) {
        --begin;
      }
      const std::string_view word = text.substr(begin, at - begin);
      if (std::ranges::find(programs, word) != programs.end()) return std::string(word);
    }
    return "";
  }

  void read_line(const std::string& line) {
    if (const std::string program = program_in(line); !program.empty()) {
      head_.program = program;
    }
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) return;
    if (line[first] == '#') {
      read_comment(line.substr(first + 1));
    } else if (columns_) {
      read_words(words_of(line));
    }
  }

  void read_comment(const std::string& line) {
    static const std::regex device(
        R"(Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*))");
    std::smatch found;
    if (line.find("nThread") != std::string::npos ||
        line.find("Using devices") != std::string::npos) {
      finish_table();
      head_.ranks = 0;
      head_.hosts.clear();
      head_.device.clear();
    } else if (std::regex_search(line, found, device)) {
      // Ranks of other groups run the same on GPUs of their own.
      if (found[2].matched && found[2] != "0") return;
      const auto rank = static_cast<std::uint32_t>(whole(found[1].str()).value_or(0));
      head_.ranks = std::max(head_.ranks, rank + 1);
      head_.hosts[rank] = found[3];
      if (head_.device.empty()) head_.device = found[4];
    } else {
      const std::vector<std::string> titles = words_of(line);
      const auto has = [&](std::string_view title) {
        return std::ranges::find(titles, title) != titles.end();
      };
      if (has("size") && has("count") && has("time")) read_titles(titles);
      if (line.find("Out of bounds") != std::string::npos ||
          line.find("Avg bus bandwidth") != std::string::npos) {
        finish_table();
      }
    }
  }

  void read_titles(const std::vector<std::string>& titles) {
    finish_table();
    Columns columns;
    columns.line = line_;
    columns.all = titles.size();
    const auto at = [&](std::string_view title) -> std::optional<std::size_t> {
      const auto found = std::ranges::find(titles, title);
      if (found == titles.end()) return std::nullopt;
      return static_cast<std::size_t>(found - titles.begin());
    };
    for (const std::string& title : titles) {
      if (std::ranges::find(known_titles, title) != known_titles.end()) continue;
      fail(line_, fmt::format("nccl-tests prints no column \"{}\"{} It prints {}", title,
                              hint(title), fmt::join(known_titles, ", ")));
    }
    if (!at("type")) {
      fail(line_,
           fmt::format("expected a column \"type\" among the titles {}", fmt::join(titles, ", ")));
    }
    columns.size = *at("size");
    columns.count = *at("count");
    columns.type = *at("type");
    columns.redop = at("redop");
    columns.root = at("root");
    columns.time = *at("time");
    columns.wrong = at("#wrong") ? at("#wrong") : at("wrong");
    columns_ = columns;
  }

  static std::string hint(const std::string& title) {
    const std::string found = did_you_mean(title, known_titles);
    return found.empty() ? "." : found;
  }

  [[nodiscard]] bool starts_row(const std::vector<std::string>& words) const {
    const std::size_t last = std::max({columns_->size, columns_->count, columns_->type});
    return words.size() > last && whole(words[columns_->size]) && whole(words[columns_->count]) &&
           std::isalpha(to_byte(words[columns_->type].front())) != 0;
  }

  // A row may be broken by other lines: its head is printed before it is measured.
  void read_words(const std::vector<std::string>& words) {
    if (starts_row(words)) {
      rows_.push_back({line_, words});
      return;
    }
    const bool continues =
        !rows_.empty() && rows_.back().words.size() <= columns_->time &&
        std::ranges::all_of(words, [](const auto& w) { return number(w) || absent(w); });
    if (continues) {
      rows_.back().words.insert(rows_.back().words.end(), words.begin(), words.end());
    }
  }

  void finish_table() {
    if (!columns_) return;
    if (rows_.empty()) fail(columns_->line, "no rows follow these titles");
    NcclTestsTable table;
    table.name = fmt::format("{}:{}", name_, columns_->line);
    table.ranks = head_.ranks;
    table.device = head_.device;
    if (head_.hosts.size() == head_.ranks) {
      for (const auto& [rank, host] : head_.hosts) table.hosts.push_back(host);
    }
    const Row& first = rows_.front();
    const DataType& type = type_of(first);
    table.dtype = type.ours;
    const std::int64_t root = root_of(first);
    table.op = collective_ ? *collective_ : collective_of(rows_.back(), type, root);
    table.root = static_cast<std::uint32_t>(std::max<std::int64_t>(root, 0));
    for (const Row& row : rows_) read_row(row, table, root);
    if (table.rows.empty()) fail(columns_->line, "no row of this table has a size and a time");
    tables_.push_back(std::move(table));
    columns_.reset();
    rows_.clear();
  }

  [[nodiscard]] const DataType& type_of(const Row& row) const {
    const std::string& word = row.words[columns_->type];
    if (const DataType* type = data_type(word)) return *type;
    std::vector<std::string> names;
    for (const DataType& type : data_types) names.emplace_back(type.name);
    const std::string near = did_you_mean(word, names);
    fail(row.line, fmt::format("no data type \"{}\"{} There are {}", word,
                               near.empty() ? "." : near, fmt::join(names, ", ")));
  }

  [[nodiscard]] std::int64_t root_of(const Row& row) const {
    if (!columns_->root || row.words.size() <= *columns_->root) return -1;
    const auto root = whole(row.words[*columns_->root]);
    if (!root || *root < -1 || *root > 100'000'000) {
      fail(row.line, fmt::format("expected a root or -1, got \"{}\"", row.words[*columns_->root]));
    }
    return *root;
  }

  void read_row(const Row& row, NcclTestsTable& table, std::int64_t root) const {
    const Columns& at = *columns_;
    const auto left_out = [&](std::string_view why) {
      table.warnings.push_back(fmt::format("{}:{}: left out: {}", name_, row.line, why));
    };
    if (row.words.size() <= at.time) return left_out("the row ends before its time");
    if (row.words.size() > at.all + 1) {  // A time of day is two words.
      fail(row.line, fmt::format("expected {} values as the titles of line {} say, got {}", at.all,
                                 at.line, row.words.size()));
    }
    if (type_of(row).ours != table.dtype || root_of(row) != root) {
      return left_out("type and root are not those of the first row");
    }
    const std::string& time = row.words[at.time];
    if (absent(time)) return left_out("no time");
    const auto us = number(time);
    if (!us || *us < 0) {
      fail(row.line, fmt::format("expected a time in us, got \"{}\"", time));
    }
    const std::int64_t size = *whole(row.words[at.size]);
    if (size < 0) fail(row.line, fmt::format("expected a size in bytes, got {}", size));
    if (size == 0 || *us == 0) return;  // Too small for so many ranks: nothing was sent.
    if (at.wrong && row.words.size() > *at.wrong) {
      const auto wrong = number(row.words[*at.wrong]);
      if (wrong && *wrong > 0) {
        return left_out(fmt::format("{} wrong results", row.words[*at.wrong]));
      }
    }
    table.rows.push_back({Bytes{size}, *us, resolution(time, *us)});
  }

  // The program's name, or what its columns say.
  [[nodiscard]] CollectiveOp collective_of(const Row& row, const DataType& type,
                                           std::int64_t root) const {
    const std::string& program = head_.program.empty() ? anywhere_ : head_.program;
    if (!program.empty()) {
      if (const auto op = collective_op(program)) return *op;
      const auto names = collective_op_names();
      fail(columns_->line, fmt::format("{}_perf is not a collective that is modelled: there are {}",
                                       program, fmt::join(names, ", ")));
    }
    const bool reduces = columns_->redop && row.words.size() > *columns_->redop &&
                         row.words[*columns_->redop] != "none";
    // Of what ranks exchange in parts the count is that of a part.
    const bool whole_buffer =
        *whole(row.words[columns_->size]) / type.bytes == *whole(row.words[columns_->count]);
    if (reduces && root < 0) {
      return whole_buffer ? CollectiveOp::AllReduce : CollectiveOp::ReduceScatter;
    }
    if (reduces) return CollectiveOp::Reduce;
    if (whole_buffer) return root < 0 ? CollectiveOp::SendRecv : CollectiveOp::Broadcast;
    fail(columns_->line,
         fmt::format(
             "cannot tell the collective: the log names no program, and {} print such "
             "columns; say which with --collective",
             root < 0 ? "all_gather_perf and alltoall_perf" : "scatter_perf and gather_perf"));
  }

  const std::string& name_;
  std::optional<CollectiveOp> collective_;
  std::string anywhere_;
  std::size_t line_ = 0;
  Head head_;
  std::optional<Columns> columns_;
  std::vector<Row> rows_;
  std::vector<NcclTestsTable> tables_;
};

std::string text_of(const std::filesystem::path& path, const std::string& name) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InputError(Place{name, 0, 0, {}}, "is a directory, expected a log");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    const int reason = errno;
    throw InputError(Place{name, 0, 0, {}},
                     reason == ENOENT
                         ? std::string("there is no such file")
                         : "cannot be opened: " + std::generic_category().message(reason));
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

// GPU indices of every node.
std::vector<std::vector<std::uint32_t>> gpus_by_node(const Topology& topology) {
  std::map<std::size_t, std::vector<std::uint32_t>> nodes;
  for (std::uint32_t gpu = 0; gpu < topology.gpus.size(); ++gpu) {
    nodes[static_cast<std::size_t>(topology.node_of_rank(gpu))].push_back(gpu);
  }
  std::vector<std::vector<std::uint32_t>> out;
  for (auto& [node, gpus] : nodes) out.push_back(std::move(gpus));
  return out;
}

// A node per host, or nothing where they do not fit.
std::vector<std::uint32_t> on_their_hosts(const NcclTestsTable& table, const Topology& topology) {
  const auto nodes = gpus_by_node(topology);
  std::vector<std::string> hosts;
  std::vector<std::size_t> used(nodes.size(), 0);
  std::vector<std::uint32_t> ranks;
  for (const std::string& host : table.hosts) {
    auto found = std::ranges::find(hosts, host);
    if (found == hosts.end()) found = hosts.insert(hosts.end(), host);
    const auto node = static_cast<std::size_t>(found - hosts.begin());
    if (node >= nodes.size() || used[node] >= nodes[node].size()) return {};
    ranks.push_back(nodes[node][used[node]++]);
  }
  return ranks;
}

}  // namespace

std::vector<NcclTestsTable> read_nccl_tests_log(const std::string& name, std::string_view text,
                                                std::optional<CollectiveOp> collective) {
  return Reader(name, collective).read(text);
}

std::vector<NcclTestsTable> load_nccl_tests_log(const std::filesystem::path& path,
                                                std::optional<CollectiveOp> collective) {
  const std::string name = path == "-" ? "<stdin>" : path.string();
  return read_nccl_tests_log(name, text_of(path, name), collective);
}

CalibrationTable place_ranks(const NcclTestsTable& table, const Topology& topology,
                             std::optional<std::uint32_t> gpus) {
  const auto there = static_cast<std::uint32_t>(topology.gpus.size());
  const auto fail = [&](std::string_view problem) {
    throw InputError(Place{table.name, 0, 0, {}}, problem);
  };
  if (table.ranks > 0 && gpus && *gpus != table.ranks) {
    fail(fmt::format("lists {} ranks, but --gpus says {}", table.ranks, *gpus));
  }
  const std::uint32_t count = table.ranks > 0 ? table.ranks : gpus.value_or(there);
  if (count > there) {
    fail(fmt::format("ran on {} GPUs, but the topology has {}", count, there));
  }
  if (count < 2) fail("ran on a single GPU, which has nothing to send");
  if (table.root >= count) fail(fmt::format("has root {}, but {} ranks", table.root, count));
  CalibrationTable placed{table.name, table.op, table.dtype, {}, table.root, table.rows};
  std::ranges::stable_sort(placed.rows, {}, &CalibrationRow::bytes);
  placed.ranks = on_their_hosts(table, topology);
  if (placed.ranks.empty()) {
    for (std::uint32_t gpu = 0; gpu < count; ++gpu) placed.ranks.push_back(gpu);
  }
  return placed;
}

}  // namespace flyover::io
