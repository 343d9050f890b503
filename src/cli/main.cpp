#include <cstdio>
#include <exception>
#include <new>

#include "cli/command_line.hpp"
#include "cli/output.hpp"
#include "flyover/base/error.hpp"

namespace {

enum ExitStatus { done = 0, cannot_finish = 1, bad_input = 2, our_bug = 70 };

ExitStatus fail(ExitStatus status, const char* before, const char* message) {
  std::fprintf(stderr, "%s%s\n", before, message);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace flyover;
  try {
    cli::run_command_line(argc, argv);
    cli::finish_standard_output();
    return done;
  } catch (const InputError& error) {
    return fail(bad_input, "", error.what());
  } catch (const SimulationError& error) {
    return fail(cannot_finish, "", error.what());
  } catch (const std::bad_alloc&) {
    return fail(cannot_finish, "flyover: ", "the simulation needs more memory than there is");
  } catch (const std::exception& error) {
    return fail(our_bug, "flyover: this is a bug, please report it: ", error.what());
  }
}
