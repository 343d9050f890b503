#pragma once

// What expert-parallel ranks exchange: which experts tokens go to, how they travel there and back,
// and what the kernels that carry them can do. Plain data; moe/ turns it into copies and plans.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/workload/collective_op.hpp"

namespace flyover {

enum class ExpertMode : std::uint8_t {
  Nccl,        // A plain all-to-all: one copy per token and expert, through the cost model.
  Normal,      // Two hops: one copy per node to the GPU of the same index there, which forwards one
               // copy per GPU over NVLink; back with a sum at each hop (DeepEP's normal kernels).
  Direct,      // One hop, one copy per GPU.
  LowLatency,  // One hop, one write per token and expert, no sums on the way (decoding).
  Fused        // Dispatch, both matrices and combine in one kernel, in waves of experts (MegaMoE).
};
[[nodiscard]] std::string_view to_string(ExpertMode mode);  // "nccl", "low-latency"

// How a token's experts are chosen.
enum class Gate : std::uint8_t {
  TopK,           // The k best of all.
  GroupSumOfTwo,  // The k best of the groups whose two best scores have the largest sums (V3).
  GroupMax,       // The k best of the groups with the best single scores (DeepEP's test).
  Hash            // k different ones by a hash of the token (V4's first layers).
};
[[nodiscard]] std::string_view to_string(Gate gate);  // "top-k", "group-sum-of-two"

// On which slots experts lie; slot s is on rank s / (slots / ranks).
enum class Placement : std::uint8_t {
  InOrder,       // Expert e in slot e; what slots there are more hold copies of the first experts.
  Hierarchical,  // EPLB: groups to nodes, copies inside nodes, slots to GPUs.
  Global         // EPLB: copies and slots without regard to nodes.
};
[[nodiscard]] std::string_view to_string(Placement placement);  // "in-order", "global"

struct ExpertRouting {
  std::uint32_t experts = 0;  // E
  std::uint32_t chosen = 0;   // k
  Gate gate = Gate::TopK;
  std::uint32_t groups = 0;         // Of experts, in order; 0: none. Hierarchical placement and
  std::uint32_t groups_chosen = 0;  // group gates need them.
  // How often experts are chosen, relative to each other, by expert; empty: equally. Scores are
  // then drawn so that the first choice has these odds (Gumbel; Plackett-Luce without groups).
  std::vector<double> popularity;
  std::uint32_t slots = 0;  // With redundant experts; 0: one per expert.
  Placement placement = Placement::InOrder;
  // Drawn token by token with the seed, or balanced: expected values, spread evenly over ranks that
  // lie alike, which keeps rank classes. Popularity that is not equal has expected values too.
  bool sampled = false;
  std::uint64_t seed = 1;
};

// Of a library's kernels, for one generation of NVLink or network: the share of the nominal
// bandwidth per direction that they reach with enough SMs.
struct ExpertLinkShare {
  std::string links;  // "nvlink4", "ndr"; "": any.
  double dispatch = 0;
  double combine = 0;
};

// What kernels do by themselves, whatever they carry: configs/moe/*.json, each value with its
// source there (io/expert_kernels_reader.hpp). Equations: docs/models/moe-kernels.md.
struct ExpertKernels {
  std::string name;  // "deepep-v1"
  std::string source;

  // Of a message, beside the payload (MOE.md 1.2, 2.2).
  std::uint32_t header = 0;          // Bytes, and so many per chosen expert, on the way
  std::uint32_t per_choice = 0;      // there (cached: none per expert)
  std::uint32_t combine_header = 0;  // and back,
  std::uint32_t combine_per_choice = 0;
  std::uint32_t alignment = 1;  // rounded up to a multiple.

  std::uint32_t most_ranks = 0;  // That the kernels are made for; 0: any number.
  // When the exchange does not say; 0: what their rates call for (src/moe/kernel_limits.hpp).
  std::uint32_t sms = 0;
  std::uint32_t sms_per_channel = 2;
  double sm_read_GBps = 0;  // Of one SM that copies.
  double sm_write_GBps = 0;
  std::vector<ExpertLinkShare> nvlink;
  std::vector<ExpertLinkShare> network;

  // A chunk of tokens is one write to the network; a channel posts the next when it has spent
  // this on the last.
  Duration post{};
  std::uint32_t ring_tokens = 0;  // Receive ring per channel and source node: the window.
  Duration poll{};                // Coordinators look so often.
  struct Chunks {                 // Up to so many ranks.
    std::uint32_t ranks = 0;
    std::uint32_t dispatch = 0;  // Tokens.
    std::uint32_t combine = 0;
  };
  std::vector<Chunks> chunks;  // Ascending; the last holds for all larger groups.

  Duration notify{};          // Counts and barrier before a dispatch that is not cached.
  Duration dispatch_start{};  // Before bytes flow, beside the latency of the links.
  Duration combine_start{};
  Duration mixed_start{};  // More of it where one-hop copies use both NVLink and the network.
  // Share of the HBM bandwidth at which what arrived is copied or summed by a kernel of its own
  // once all is there; 0: there is no such step.
  double epilogue = 0;
  // Fused: bytes of an element of the experts' matrices, scales included, and what a tile takes
  // beside its products, as so many channels more of depth (src/moe/fused.hpp).
  double weight_bytes = 0;
  double tile_extra = 0;
  double messages_per_second = 0;  // Of a GPU's NIC; 0: no limit known.

  // While compute kernels run beside them they reach this share of their rate alone.
  double overlapped_dispatch = 1;
  double overlapped_cached_dispatch = 1;
  double overlapped_combine = 1;
};

// One kind of exchange: all calls of it move the same amounts.
struct ExpertExchange {
  std::string name;
  ExpertMode mode = ExpertMode::Normal;
  ExpertRouting routing;
  std::uint32_t tokens = 0;                // Of each rank,
  std::vector<std::uint32_t> rank_tokens;  // or by position in the group; then `tokens` is 0.
  std::uint32_t hidden = 0;                // h
  std::uint32_t expert_hidden = 0;         // d: Fused only.
  // Payload of one copy of a token, scales included: FP8 with one FP32 scale per 128 values is
  // h (1 + 4/128).
  double dispatch_bytes = 0;
  double combine_bytes = 0;
  bool cached = false;    // The layout is known: no counting, no `notify`, no indices in messages.
  std::uint32_t sms = 0;  // That the kernels have; 0: what the library takes.
  std::uint32_t chunk = 0;  // Tokens per network write; 0: the library's.
  // Posts and returns: no SM is held while bytes fly (low-latency with a receive hook).
  bool hook = false;
  // With NVLink between GPUs of a node; without it everything is written through the NICs.
  bool nvlink = true;
  bool overlapped = false;  // Compute runs beside it: ExpertKernels::overlapped_*.
  // Fused: share of the peak of the matrix kernels' data type that they reach, and that type.
  double efficiency = 0;
  std::string dtype;
  std::shared_ptr<const ExpertKernels> kernels;  // Never null in a valid workload.
  // The library's for other modes, for results to tell what those would take.
  std::vector<std::pair<ExpertMode, std::shared_ptr<const ExpertKernels>>> other_kernels;
};

// Tokens of all ranks of a group of so many, and of one of them.
[[nodiscard]] std::uint64_t tokens_of(const ExpertExchange& exchange, std::uint32_t rank);
// What Operation::bytes says of a call on a group: payload of every (token, expert) pair of the
// rank with most tokens.
[[nodiscard]] Bytes pair_bytes(const ExpertExchange& exchange, CollectiveOp op);

}  // namespace flyover
