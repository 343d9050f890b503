#include "flyover/io/expert_kernels_reader.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/layered_config.hpp"

namespace flyover::io {

namespace {

constexpr std::string_view format_name = "flyover-expert-kernels-1";
constexpr ConfigFamily family = {"moe", "expert kernel library"};

constexpr ExpertMode modes[] = {ExpertMode::Normal, ExpertMode::Direct, ExpertMode::LowLatency,
                                ExpertMode::Fused};

// Every group of numbers says where it is from and, what is fitted, to what.
void check_origin(const Field& group) {
  if (group["source"].text().empty()) {
    group["source"].fail("expected where the numbers come from");
  }
  if (group.has("fitted")) static_cast<void>(group["fitted"].text());
}

double share(const Field& field) {
  const double value = field.positive_number();
  if (value > 1) field.fail(fmt::format("expected a share above 0 and at most 1, got {}", value));
  return value;
}

std::uint32_t count_or(const Field& group, std::string_view key, std::uint32_t otherwise) {
  return group.has(key) ? group[key].count(0) : otherwise;
}

Duration duration_or_zero(const Field& group, std::string_view key) {
  return group.has(key) ? group[key].duration() : Duration{};
}

void read_message(const Field& group, ExpertKernels& kernels) {
  group.allow_only({"dispatch", "dispatch_per_choice", "combine", "combine_per_choice", "alignment",
                    "source", "fitted"});
  check_origin(group);
  kernels.header = count_or(group, "dispatch", 0);
  kernels.per_choice = count_or(group, "dispatch_per_choice", 0);
  kernels.combine_header = count_or(group, "combine", 0);
  kernels.combine_per_choice = count_or(group, "combine_per_choice", 0);
  if (group.has("alignment")) kernels.alignment = group["alignment"].count(1, 4096);
}

void read_sms(const Field& group, ExpertKernels& kernels) {
  group.allow_only({"count", "per_channel", "read", "write", "source", "fitted"});
  check_origin(group);
  kernels.sms_per_channel = group.has("per_channel") ? group["per_channel"].count(1, 2) : 1;
  // Without a number the kernels take what their rates call for.
  if (group.has("count")) kernels.sms = group["count"].count();
  if (kernels.sms > 0 && !group.has("read") && !group.has("write")) return;
  if (kernels.sms == 0 && kernels.sms_per_channel > 1) static_cast<void>(group["count"].count());
  kernels.sm_read_GBps = group["read"].bandwidth().per_second() / 1e9;
  kernels.sm_write_GBps = group["write"].bandwidth().per_second() / 1e9;
}

std::vector<ExpertLinkShare> read_shares(const Field& list) {
  std::vector<ExpertLinkShare> shares;
  for (const Field& item : list.elements()) {
    item.allow_only({"links", "dispatch", "combine", "source", "fitted"});
    check_origin(item);
    ExpertLinkShare entry;
    if (item.has("links")) entry.links = item["links"].text();
    entry.dispatch = share(item["dispatch"]);
    entry.combine = share(item["combine"]);
    if (std::ranges::find(shares, entry.links, &ExpertLinkShare::links) != shares.end()) {
      item.fail(fmt::format("the links \"{}\" have a share already", entry.links));
    }
    shares.push_back(std::move(entry));
  }
  return shares;
}

void read_writes(const Field& group, ExpertKernels& kernels) {
  group.allow_only({"post", "poll", "ring_tokens", "chunks", "per_second", "source", "fitted"});
  check_origin(group);
  kernels.post = duration_or_zero(group, "post");
  kernels.poll = duration_or_zero(group, "poll");
  kernels.ring_tokens = count_or(group, "ring_tokens", 0);
  if (group.has("per_second")) kernels.messages_per_second = group["per_second"].positive_number();
  if (!group.has("chunks")) return;
  for (const Field& item : group["chunks"].elements()) {
    item.allow_only({"ranks", "dispatch", "combine"});
    const ExpertKernels::Chunks chunks{item["ranks"].count(), item["dispatch"].count(),
                                       item["combine"].count()};
    if (!kernels.chunks.empty() && chunks.ranks <= kernels.chunks.back().ranks) {
      item["ranks"].fail("expected more ranks than in the entry before");
    }
    kernels.chunks.push_back(chunks);
  }
}

void read_start(const Field& group, ExpertKernels& kernels) {
  group.allow_only({"notify", "dispatch", "combine", "mixed", "source", "fitted"});
  check_origin(group);
  kernels.notify = duration_or_zero(group, "notify");
  kernels.dispatch_start = duration_or_zero(group, "dispatch");
  kernels.combine_start = duration_or_zero(group, "combine");
  kernels.mixed_start = duration_or_zero(group, "mixed");
}

void read_overlapped(const Field& group, ExpertKernels& kernels) {
  group.allow_only({"dispatch", "cached_dispatch", "combine", "source", "fitted"});
  check_origin(group);
  kernels.overlapped_dispatch = share(group["dispatch"]);
  kernels.overlapped_cached_dispatch = share(group["cached_dispatch"]);
  kernels.overlapped_combine = share(group["combine"]);
}

void read_epilogue(const Field& group, ExpertKernels& kernels) {
  group.allow_only({"memory_share", "source", "fitted"});
  check_origin(group);
  kernels.epilogue = share(group["memory_share"]);
}

void read_tiles(const Field& group, ExpertKernels& kernels) {
  group.allow_only({"weight_bytes", "extra", "source", "fitted"});
  check_origin(group);
  kernels.weight_bytes = group["weight_bytes"].positive_number();
  if (group.has("extra")) kernels.tile_extra = group["extra"].positive_number();
}

ExpertKernels read_mode(const Field& field, ExpertMode mode) {
  field.allow_only({"most_ranks", "message", "sms", "nvlink", "network", "writes", "start",
                    "overlapped", "epilogue", "tiles"});
  ExpertKernels kernels;
  kernels.most_ranks = count_or(field, "most_ranks", 0);
  read_message(field["message"], kernels);
  if (mode != ExpertMode::Fused) read_sms(field["sms"], kernels);
  kernels.nvlink = read_shares(field["nvlink"]);
  if (field.has("network")) kernels.network = read_shares(field["network"]);
  if (field.has("writes")) read_writes(field["writes"], kernels);
  if (field.has("start")) read_start(field["start"], kernels);
  if (field.has("overlapped")) read_overlapped(field["overlapped"], kernels);
  if (field.has("epilogue")) read_epilogue(field["epilogue"], kernels);
  if (mode == ExpertMode::Fused) read_tiles(field["tiles"], kernels);
  return kernels;
}

}  // namespace

std::vector<std::string> expert_kernels_names() {
  return config_names(family);
}

Document expert_kernels_document(std::string_view name) {
  return config_document(family, name);
}

ExpertKernels read_expert_kernels(const Document& document, ExpertMode mode) {
  const Field root = document.root();
  root.allow_only({"format", "name", "summary", "source", "modes"});
  if (const std::string format = root["format"].text(); format != format_name) {
    root["format"].fail(fmt::format("expected \"{}\", got \"{}\"", format_name, format));
  }
  const Field all = root["modes"];
  all.allow_only({"normal", "direct", "low-latency", "fused"});
  ExpertKernels wanted;
  bool found = mode == ExpertMode::Nccl;
  std::vector<std::string_view> known;
  for (const ExpertMode own : modes) {
    if (!all.has(to_string(own))) continue;
    known.push_back(to_string(own));
    ExpertKernels kernels = read_mode(all[to_string(own)], own);
    if (own != mode) continue;
    wanted = std::move(kernels);
    found = true;
  }
  wanted.name = root["name"].text();
  wanted.source = root["source"].text();
  static_cast<void>(root["summary"].text());
  if (!found) {
    all.fail(fmt::format("{} has no {} kernels; it has {}", wanted.name, to_string(mode),
                         fmt::join(known, ", ")));
  }
  return wanted;
}

}  // namespace flyover::io
