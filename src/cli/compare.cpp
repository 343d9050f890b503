#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "flyover/base/error.hpp"
#include "flyover/io/result_reader.hpp"
#include "flyover/report/summary.hpp"

namespace flyover::cli {

namespace {

class Compare final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("results", files_, "Two or more results of `flyover run --json`")
        ->required()
        ->type_name("RESULT");
  }

  void run(const Terminal& terminal) override {
    if (files_.size() < 2) {
      throw InputError("flyover compare: expected two or more results, got one");
    }
    std::vector<std::string> names;
    std::vector<Result> results;
    for (const std::string& file : files_) {
      results.push_back(io::read_result(io::Document::load(file)));
      names.push_back(std::filesystem::path(file).stem().string());
    }
    if (!terminal.quiet) print(comparison(names, results, terminal.width));
  }

 private:
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace flyover::cli
