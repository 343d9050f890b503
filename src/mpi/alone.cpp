// The World of a build without MPI.

#include <cstdlib>
#include <string>
#include <utility>

#include "flyover/base/error.hpp"
#include "mpi/world.hpp"

namespace flyover::mpi {

struct World::Impl {};

World::World() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    const char* processes = std::getenv(variable);
    if (has_launcher() && processes && std::string(processes) != "1") {
      throw InputError(
          std::string("this Flyover was built without MPI and cannot share work among ") +
          processes + " processes; start it alone, or build it with Open MPI (FLYOVER_MPI=ON)");
    }
  }
}

World::~World() = default;

int World::rank() const {
  return 0;
}
int World::size() const {
  return 1;
}
std::uint32_t World::threads(std::uint32_t jobs) const {
  return jobs;
}

std::unique_ptr<PointRunner> World::runner(const SweepPoints& points, MakeEvaluator make,
                                           std::uint32_t threads, const std::string& /*digest*/) {
  return std::make_unique<ThreadRunner>(points, std::move(make), threads);
}

void World::work(const SweepPoints& /*points*/, MakeEvaluator /*make*/, std::uint32_t /*threads*/,
                 const std::string& /*digest*/) {
  require(false, "a process that is alone leads");
}

void World::together(const std::function<void()>& body) {
  body();
}

}  // namespace flyover::mpi
