// What another program does with the library: how long does an all-reduce take on two DGX H100?

#include <cstdio>
#include <flyover/base/quantity.hpp>
#include <flyover/cost/cost_model.hpp>
#include <flyover/io/library_reader.hpp>
#include <flyover/io/topology_reader.hpp>
#include <numeric>

int main() {
  using namespace flyover;
  const Topology topology = io::load_topology("dgx-h100:2");
  const Library library = io::read_library(io::library_document(default_library(topology)));
  const Router router(topology, {.pxn = library.settings.pxn});
  const CostModel cost(topology, router, library);

  CollectiveCall call;
  call.bytes = parse_bytes("1 GiB");
  call.ranks.resize(topology.gpus.size());
  std::iota(call.ranks.begin(), call.ranks.end(), 0U);
  const Duration time = cost.choose(call).plan.alone;
  std::printf("%s\n", to_string(time).c_str());
  return time > Duration::zero() ? 0 : 1;
}
