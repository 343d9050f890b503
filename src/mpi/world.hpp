#pragma once

// The processes that work on one sweep: this one alone, or all that mpirun or srun started.
//
// A build without MPI has the same interface and is always alone.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "flyover/study/point_runner.hpp"

namespace flyover::mpi {

// Makes MPI ready if a launcher started this process, as its environment tells, and else does
// nothing, so that the plain program starts as fast as ever. One per process, for its main thread.
//
// The process of rank 0 leads: it reads and writes all files, and decides what is to be evaluated.
// The others work for it. A leader that has an error lets its World go, as unwinding does: the
// others end quietly, and there is one message. When a process dies its launcher ends all.
class World {
 public:
  // Throws InputError when a launcher started several processes of a build that has no MPI.
  World();
  // Ends the others, whatever they do, and MPI.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] bool leads() const { return rank() == 0; }

  // Threads for each process of this machine: `jobs`, or 0 for this process' share of the cores.
  [[nodiscard]] std::uint32_t threads(std::uint32_t jobs) const;

  // For the leader: evaluates on threads here and on everybody else's, who must have the same
  // `digest` of what they read. Keeps the others waiting between its runs, until it is destroyed.
  // Borrows points and world. An error in another process is thrown as it would be here, with the
  // rank in front.
  [[nodiscard]] std::unique_ptr<PointRunner> runner(const SweepPoints& points, MakeEvaluator make,
                                                    std::uint32_t threads,
                                                    const std::string& digest);

  // For the others: evaluates what the leader hands out, until it has no more. When the leader ends
  // early this ends the process without unwinding, as an evaluation may take long to come to its
  // end.
  void work(const SweepPoints& points, MakeEvaluator make, std::uint32_t threads,
            const std::string& digest);

  // Runs the body, which is all that the processes do together. An error of the leader's is thrown;
  // one of another process is sent to the leader, whose runner throws it, and this process ends.
  void together(const std::function<void()>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Did a launcher start this process? By its environment: OMPI_COMM_WORLD_SIZE, PMI_SIZE, PMIX_RANK,
// or SLURM_PROCID with PMI_RANK or PMI_FD.
[[nodiscard]] bool has_launcher();

}  // namespace flyover::mpi
