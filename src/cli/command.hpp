#pragma once

// A command of the program. To add one: a file with its class, and a line in command_line.cpp.

#include <memory>

#include "cli/output.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace flyover::cli {

class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  // Declares the options, which are bound to members.
  virtual void add_options(CLI::App& app) = 0;
  // Does the work once the options are read. Errors are exceptions (flyover/base/error.hpp).
  virtual void run(const Terminal& terminal) = 0;
};

std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_calibrate();
std::unique_ptr<Command> make_compare();
std::unique_ptr<Command> make_list();
std::unique_ptr<Command> make_plan();
std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_sweep();
std::unique_ptr<Command> make_topo();
std::unique_ptr<Command> make_validate();

}  // namespace flyover::cli
