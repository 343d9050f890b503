// A sweep of a made-up space, for the tests of everything around the evaluation: threads,
// processes, database, interruptions. tests/cli/sweep_runs_test.py starts it.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/sweep_export.hpp"
#include "flyover/io/sweep_store.hpp"
#include "flyover/study/adaptive.hpp"
#include "flyover/study/point_runner.hpp"
#include "mpi/world.hpp"
#include "support/made_up_points.hpp"

namespace {

using namespace flyover;

struct Arguments {
  std::string file;
  std::uint64_t points = 1000;
  std::uint32_t threads = 1;
  std::int64_t delay_us = 0;
  std::string digest = "sha256:0";
  io::StoreOpening opening = io::StoreOpening::Create;
  bool adaptive = false;
  std::string print;             // "csv", "json": of what is there; nothing is run.
  std::int64_t throw_at = -1;    // This point's evaluation is broken.
  std::int64_t other_rank = -1;  // This rank reads another configuration.
  bool bad_rank = false;         // All ranks but the first cannot read theirs.
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      require(i + 1 < argc, "a value for every option");
      return std::string(argv[++i]);
    };
    if (word == "--points") {
      arguments.points = std::stoull(value());
    } else if (word == "--threads") {
      arguments.threads = static_cast<std::uint32_t>(std::stoul(value()));
    } else if (word == "--delay-us") {
      arguments.delay_us = std::stoll(value());
    } else if (word == "--digest") {
      arguments.digest = value();
    } else if (word == "--resume") {
      arguments.opening = io::StoreOpening::Resume;
    } else if (word == "--adaptive") {
      arguments.adaptive = true;
    } else if (word == "--print") {
      arguments.print = value();
    } else if (word == "--throw-at") {
      arguments.throw_at = std::stoll(value());
    } else if (word == "--other-rank") {
      arguments.other_rank = std::stoll(value());
    } else if (word == "--bad-rank") {
      arguments.bad_rank = true;
    } else {
      arguments.file = word;
    }
  }
  return arguments;
}

void print(const Arguments& arguments) {
  const io::StoredSweep sweep = io::read_sweep(arguments.file);
  std::fputs((arguments.print == "csv" ? io::sweep_csv(sweep) : io::sweep_json(sweep)).c_str(),
             stdout);
}

void run(const Arguments& arguments, mpi::World& world) {
  if (arguments.bad_rank && !world.leads()) throw InputError("sweep.json: cannot be read");
  const std::string digest =
      world.rank() == arguments.other_rank ? "sha256:other" : arguments.digest;
  const SweepSpace space = test::made_up_space(arguments.points);
  const SweepPoints points(space);
  const MakeEvaluator make = [&] {
    return std::make_unique<test::MadeUpEvaluator>(std::chrono::microseconds(arguments.delay_us),
                                                   arguments.throw_at);
  };
  const std::uint32_t threads = world.threads(arguments.threads);
  if (!world.leads()) {
    world.work(points, make, threads, digest);
    return;
  }
  io::SweepStore store(arguments.file,
                       {.name = "made up",
                        .digest = digest,
                        .config = "{}",
                        .version = "0.1.0",
                        .seed = 1,
                        .inputs = {"large", "small", "word"},
                        .outputs = {"cost", "fits"}},
                       arguments.opening);
  const std::unique_ptr<PointRunner> runner = world.runner(points, make, threads, digest);
  const ResultSink sink = [&](const PointResult& result) { store.add(result); };
  if (arguments.adaptive) {
    const AdaptiveCounts counts =
        run_adaptive(points, *runner, sink, test::made_up_objective(10),
                     {.fidelity = Fidelity::Replay,
                      .round = 32,
                      .recall = [&](std::uint64_t number) { return store.row(number); },
                      .on_progress = {}});
    fmt::print("{} points, {} possible, {} estimates, {} replays\n", counts.points, counts.possible,
               counts.estimates, counts.replays);
  } else {
    run_sweep(points, *runner, sink,
              {.threads = threads,
               .fidelity = Fidelity::Replay,
               .finished = [&](std::uint64_t number) { return store.has(number); },
               .on_progress = {}});
  }
  store.commit();
}

int fail(int status, const char* message) {
  std::fprintf(stderr, "%s\n", message);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse(argc, argv);
    if (!arguments.print.empty()) {
      print(arguments);
      return 0;
    }
    mpi::World world;
    world.together([&] { run(arguments, world); });
    return 0;
  } catch (const InputError& error) {
    return fail(2, error.what());
  } catch (const SimulationError& error) {
    return fail(1, error.what());
  } catch (const std::exception& error) {
    return fail(70, error.what());
  }
}
