#include "cli/command_line.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "cli/command.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/base/version.hpp"

namespace flyover::cli {

namespace {

struct CommandInfo {
  const char* name;
  const char* summary;
  std::unique_ptr<Command> (*make)();  // nullptr: not part of this version.
};

constexpr std::array commands = {
    CommandInfo{"run", "how long a workload takes on a cluster, and what it waits for", make_run},
    CommandInfo{"bench", "a collective over a range of sizes, as nccl-tests prints it", make_bench},
    CommandInfo{"topo", "what a cluster is made of, and its picture", make_topo},
    CommandInfo{"plan", "the best layouts to train a model on a cluster, and why", make_plan},
    CommandInfo{"sweep", "all points of a design space: the best, and what matters", make_sweep},
    CommandInfo{"compare", "results, layouts or clusters side by side, with what is within error",
                make_compare},
    CommandInfo{"validate", "the model against public measurements, or your own", make_validate},
    CommandInfo{"calibrate", "what a site differs in, from its nccl-tests logs", make_calibrate},
    CommandInfo{"list", "the presets, models, algorithms, fabrics or formats there are", make_list},
    CommandInfo{"check", "", nullptr},
    CommandInfo{"explain", "", nullptr},
    CommandInfo{"import", "", nullptr},
};

struct GlobalOptions {
  bool quiet = false;
  bool verbose = false;
  std::string log_level;
};

const std::vector<std::string> log_levels = {"trace", "debug", "info", "warn", "error", "off"};

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.set_version_flag("--version", fmt::format("flyover {}", version()), "Print the version");
  app.add_flag("-q,--quiet", options.quiet, "Print errors and what '-' asks for, nothing else");
  app.add_flag("-v,--verbose", options.verbose, "Tell on standard error what is being done");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn, error or off")
      ->type_name("LEVEL");
}

// Talk to people goes to standard error; results never do.
void start_logging(const GlobalOptions& options) {
  std::string level = options.quiet ? "error" : options.verbose ? "info" : "warn";
  if (!options.log_level.empty()) level = options.log_level;
  if (std::ranges::find(log_levels, level) == log_levels.end()) {
    const std::string hint = did_you_mean(level, log_levels);
    throw InputError(fmt::format("--log-level: no level \"{}\"{} There are {}", level,
                                 hint.empty() ? "." : hint, fmt::join(log_levels, ", ")));
  }
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = no_color != nullptr && *no_color != '\0';
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_st>(
      plain ? spdlog::color_mode::never : spdlog::color_mode::automatic);
  auto logger = std::make_shared<spdlog::logger>("flyover", std::move(sink));
  logger->set_pattern("flyover: %^%l%$: %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

[[noreturn]] void refuse_command(const std::string& word) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) {
    if (command.make != nullptr) names.emplace_back(command.name);
    if (command.make == nullptr && word == command.name) {
      throw InputError(fmt::format("flyover {} is not part of this version", word));
    }
  }
  const std::string hint = did_you_mean(word, names);
  throw InputError(fmt::format("flyover: no command \"{}\"{} There are {}", word,
                               hint.empty() ? "." : hint, fmt::join(names, ", ")));
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// What CLI11 says of a wrong command line, with the nearest right word where there is one.
[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining(true);
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const auto unknown_option =
      std::ranges::find_if(rest, [](const auto& w) { return w.size() > 1 && w.front() == '-'; });

  if (chosen.empty()) {
    const auto word = std::ranges::find_if(rest, [](const auto& w) { return w.front() != '-'; });
    if (word != rest.end()) refuse_command(*word);
  }
  const std::string who = chosen.empty() ? "flyover" : "flyover " + chosen.front()->get_name();
  std::string problem = error.what();
  if (unknown_option != rest.end()) {
    std::vector<std::string> names = option_names(app);
    if (!chosen.empty())
      std::ranges::copy(option_names(*chosen.front()), std::back_inserter(names));
    const std::string name = unknown_option->substr(0, unknown_option->find('='));
    problem = fmt::format("no option \"{}\"{}", name, did_you_mean(name, names));
  } else if (!rest.empty()) {
    problem = fmt::format("does not know what to do with \"{}\"", fmt::join(rest, " "));
  } else if (chosen.empty()) {
    problem = "expected a command";
  }
  throw InputError(fmt::format("{}: {} (see {} --help)", who, problem, who));
}

}  // namespace

void run_command_line(int argc, char** argv) {
  CLI::App app{"Simulates communication in GPU clusters.", "flyover"};
  app.require_subcommand(1);
  GlobalOptions options;
  add_global_options(app, options);

  std::vector<std::unique_ptr<Command>> made;
  std::vector<CLI::App*> parsers;
  for (const CommandInfo& command : commands) {
    if (command.make == nullptr) continue;
    CLI::App& parser = *app.add_subcommand(command.name, command.summary);
    parser.fallthrough();  // So that --quiet may follow the command.
    made.push_back(command.make());
    made.back()->add_options(parser);
    parsers.push_back(&parser);
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    const bool asks_about_nothing = app.get_subcommands().empty() && !app.remaining().empty();
    if (asks_about_nothing) refuse(app, help);
    app.exit(help);
    return;
  } catch (const CLI::ParseError& error) {
    refuse(app, error);
  }

  start_logging(options);
  const Terminal terminal = detect_terminal(options.quiet);
  const auto chosen = std::ranges::find(parsers, app.get_subcommands().front());
  made[static_cast<std::size_t>(chosen - parsers.begin())]->run(terminal);
}

}  // namespace flyover::cli
