#include <cstdlib>

#include "mpi/world.hpp"

namespace flyover::mpi {

namespace {

bool has(const char* variable) {
  return std::getenv(variable) != nullptr;
}

}  // namespace

bool has_launcher() {
  // Every step of a Slurm job has SLURM_PROCID, also one that srun did not start for MPI.
  return has("OMPI_COMM_WORLD_SIZE") || has("PMI_SIZE") || has("PMIX_RANK") ||
         (has("SLURM_PROCID") && (has("PMI_RANK") || has("PMI_FD")));
}

}  // namespace flyover::mpi
