#include <cstdio>
#include <exception>
#include <new>

#include "cli/command_line.hpp"
#include "cli/output.hpp"
#include "flyover/base/error.hpp"

namespace {

enum ExitStatus { Done = 0, CannotFinish = 1, BadInput = 2, OurBug = 70 };

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
    return Done;
  } catch (const InputError& error) {
    return fail(BadInput, "", error.what());
  } catch (const SimulationError& error) {
    return fail(CannotFinish, "", error.what());
  } catch (const std::bad_alloc&) {
    return fail(CannotFinish, "flyover: ", "the simulation needs more memory than there is");
  } catch (const std::exception& error) {
    return fail(OurBug, "flyover: this is a bug, please report it: ", error.what());
  }
}
