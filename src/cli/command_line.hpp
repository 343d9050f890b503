#pragma once

namespace flyover::cli {

// Reads the command line and runs the command it names. Throws what the command throws, and
// InputError for a command line that is wrong.
void run_command_line(int argc, char** argv);

}  // namespace flyover::cli
