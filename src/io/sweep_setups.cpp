#include "io/sweep_setups.hpp"

#include "flyover/base/error.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/training_step.hpp"

namespace flyover::io {

namespace {

template <class Check>
std::string problem_of(Check check) {
  try {
    (void)check();
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

ClusterSetup::ClusterSetup(const Topology& on, Library of)
    : topology(on),
      library(std::move(of)),
      router(topology, {.pxn = library.settings.pxn}),
      cost(topology, router, library) {}

const MessageTimes& ClusterSetup::times(const JobSetup& job) {
  return times_.get(job.serial, [&] { return std::make_unique<MessageTimes>(topology, cost); });
}

TopologySetup::TopologySetup(const Document& document)
    : topology(read_topology(document, FabricDetail::Trunks)),
      inventory(flyover::inventory(read_topology(document, FabricDetail::Cables))),
      unlike_(problem_of([&] { return &bought_gpu_model(topology); })),
      slow_(problem_of([&] { return &only_gpu_model(topology); })) {}

const JobSetup& JobSetups::get(const std::string& words, const TrainingJob& job,
                               const GpuModel& gpu, std::uint32_t domain) {
  return jobs_.get({words, gpu, domain}, [&] {
    TrainingJob suited = job;
    suit_gpu(suited.options, gpu);
    const KernelModel kernels = read_kernels(kernel_document(job.stack.kernels));
    return std::unique_ptr<JobSetup>(
        new JobSetup{made_++, StepParts(std::move(suited), kernels, gpu, domain)});
  });
}

}  // namespace flyover::io
