#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/version.hpp"
#include "flyover/io/result_reader.hpp"
#include "flyover/report/summary.hpp"
#include "flyover/study/run_range.hpp"

namespace flyover::cli {

namespace {

class Compare final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("results", files_, "Two or more results of `flyover run --json`")
        ->required()
        ->type_name("RESULT");
    app.add_option("--json", json_, "Write every pair's difference")->type_name("FILE");
  }

  void run(const Terminal& terminal) override {
    if (files_.size() < 2) {
      throw InputError("flyover compare: expected two or more results, got one");
    }
    OutputFiles files;
    files.claim("--json", json_);
    std::vector<std::string> names;
    std::vector<Result> results;
    for (const std::string& file : files_) {
      results.push_back(io::read_result(io::Document::load(file)));
      names.push_back(std::filesystem::path(file).stem().string());
    }
    files.put("--json", [&] { return json(names, results); });
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(comparison(names, results, terminal.width));
    }
    files.commit();
  }

 private:
  [[nodiscard]] std::string json(const std::vector<std::string>& names,
                                 const std::vector<Result>& results) const {
    nlohmann::ordered_json out = {{"format", "flyover-comparison-1"}, {"flyover", version()}};
    out["results"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Result& result = results[i];
      out["results"].push_back({{"file", files_[i]},
                                {"name", names[i]},
                                {"time_us", to_microseconds(result.time)},
                                {"low_us", to_microseconds(result.low)},
                                {"high_us", to_microseconds(result.high)},
                                {"validity", result.validity}});
    }
    out["pairs"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < results.size(); ++i) {
      for (std::size_t j = i + 1; j < results.size(); ++j) {
        const Difference pair = difference(results[i], results[j]);
        out["pairs"].push_back({{"first", i},
                                {"second", j},
                                {"difference_us", to_microseconds(pair.time)},
                                {"margin_us", to_microseconds(pair.margin)},
                                {"within_error", pair.within_error}});
      }
    }
    return out.dump(2) + '\n';
  }

  std::string json_;
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace flyover::cli
