// The shipped kernel models on shipped GPUs: laws that hold for every shape, published anchors, and
// the errors on measured kernels, which docs/models/compute.md tells.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/presets.hpp"
#include "support/schema.hpp"

namespace flyover {

namespace {

namespace fs = std::filesystem;

const fs::path source_dir = FLYOVER_SOURCE_DIR;

KernelTimer timer_of(std::string_view gpu, std::string_view model = "2025") {
  return {io::read_kernels(io::kernel_document(model)), io::Presets().gpu(gpu)};
}

double teraflops(const KernelTime& time) {
  return time.flops.count() / to_seconds(time.total) / 1e12;
}

std::vector<io::KernelMeasurement> measured() {
  return io::read_kernel_measurements(
      io::Document::load(source_dir / "validation" / "kernels" / "measured.json"));
}

bool in_data_centre(const io::KernelMeasurement& record) {
  return !record.gpu.name.starts_with("RTX");
}

double median(std::vector<double> values) {
  REQUIRE_FALSE(values.empty());
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// [sequences x tokens] with 2048 / head_dim heads, the form of FlashAttention's own benchmark.
AttentionKernel benchmark(std::uint64_t tokens, std::uint64_t head_dim, bool causal,
                          const std::string& generation) {
  AttentionKernel kernel;
  kernel.sequences = 16384 / tokens;
  kernel.tokens = kernel.kv_tokens = tokens;
  kernel.heads = kernel.kv_heads = 2048 / head_dim;
  kernel.head_dim = kernel.value_dim = head_dim;
  kernel.causal = causal;
  kernel.generation = generation;
  return kernel;
}

double forward_and_backward(const KernelTimer& timer, AttentionKernel kernel) {
  const KernelTime forward = timer.attention(kernel);
  kernel.backward = true;
  const KernelTime backward = timer.attention(kernel);
  return (forward.flops.count() + backward.flops.count()) /
         to_seconds(forward.total + backward.total) / 1e12;
}

}  // namespace

TEST_CASE("a larger matrix never takes less time, on any GPU", "[kernel]") {
  for (const std::string gpu : {"a100", "h100", "b200", "mi300x", "mi355x"}) {
    const KernelTimer timer = timer_of(gpu);
    std::mt19937 random(7);
    std::uniform_real_distribution<double> exponent(0, 14);
    const auto size = [&] { return static_cast<std::uint64_t>(std::exp2(exponent(random))); };
    for (int i = 0; i < 2000; ++i) {
      const Gemm small{size(), size(), size(), 1 + size() % 8};
      Gemm large = small;
      std::uint64_t& grown = i % 4 == 0   ? large.m
                             : i % 4 == 1 ? large.n
                             : i % 4 == 2 ? large.k
                                          : large.batch;
      grown += 1 + size() / 4;
      CAPTURE(gpu, small.m, small.n, small.k, small.batch, large.m, large.n, large.k, large.batch);
      REQUIRE(timer.gemm(large).total >= timer.gemm(small).total);
    }
  }
}

TEST_CASE("longer sequences, more heads and wider heads never take attention less time",
          "[kernel]") {
  const KernelTimer timer = timer_of("h100");
  for (const bool backward : {false, true}) {
    for (const bool causal : {false, true}) {
      Duration before{};
      for (std::uint64_t tokens = 1; tokens < 20'000; tokens += 1 + tokens / 7) {
        AttentionKernel kernel;
        kernel.tokens = kernel.kv_tokens = tokens;
        kernel.heads = 32;
        kernel.kv_heads = 8;
        kernel.causal = causal;
        kernel.backward = backward;
        const Duration now = timer.attention(kernel).total;
        CAPTURE(tokens, causal, backward);
        REQUIRE(now >= before);
        kernel.heads = 64;
        REQUIRE(timer.attention(kernel).total >= now);
        before = now;
      }
    }
  }
}

TEST_CASE("no kernel beats the peak of its GPU or of its memory", "[kernel]") {
  for (const std::string name :
       {"v100", "a100", "h100", "h20", "b200", "b300", "gb200", "gb300", "mi300x", "mi355x"}) {
    const GpuModel gpu = io::Presets().gpu(name);
    const KernelTimer timer = timer_of(name);
    std::mt19937 random(11);
    std::uniform_real_distribution<double> exponent(0, 15);
    const auto size = [&] { return static_cast<std::uint64_t>(std::exp2(exponent(random))); };
    const auto check = [&](const KernelTime& time, KernelType type) {
      const double peak = gpu.flops.at(std::string(peak_name(type))).per_second();
      const double least =
          std::max(time.flops.count() / peak,
                   static_cast<double>(time.bytes.count()) / gpu.memory_bandwidth.per_second());
      CAPTURE(name, to_string(type), time.flops.count(), time.bytes.count());
      REQUIRE(to_seconds(time.total) >= least);
    };
    for (const KernelType type : all_kernel_types) {
      if (!timer.supports(type)) continue;
      for (int i = 0; i < 300; ++i) {
        check(timer.gemm({size(), size(), size(), 1, type}), type);
        check(timer.grouped_gemm({1 + size() % 64, size(), size(), size(), type}), type);
      }
    }
    for (int i = 0; i < 300; ++i) {
      AttentionKernel kernel;
      kernel.type = timer.supports(KernelType::Bf16) ? KernelType::Bf16 : KernelType::Fp16;
      kernel.tokens = kernel.kv_tokens = size();
      kernel.heads = kernel.kv_heads = 1 + size() % 64;
      kernel.backward = i % 2 == 1;
      kernel.causal = i % 3 == 1;
      check(timer.attention(kernel), kernel.type);
      check(timer.elementwise({Bytes{static_cast<std::int64_t>(size() * 4096)}, {}}), kernel.type);
    }
  }
}

TEST_CASE("decoding shapes are bound by memory, training shapes by arithmetic", "[kernel]") {
  for (const std::string gpu : {"a100", "h100", "b200", "mi300x"}) {
    CAPTURE(gpu);
    const KernelTimer timer = timer_of(gpu);
    for (const std::uint64_t m : {1U, 8U, 32U}) {
      CHECK(timer.gemm({m, 28672, 8192}).limit == KernelLimit::Memory);
    }
    CHECK(timer.gemm({8192, 28672, 8192}).limit == KernelLimit::Math);
    CHECK(timer.gemm({16, 16, 16}).limit == KernelLimit::Latency);
  }
}

TEST_CASE("large matrices reach the published best of a sweep but for what a sweep picks out",
          "[kernel][anchor]") {
  struct Anchor {
    std::string gpu;
    KernelType type;
    double best;  // TFLOPS: stas00/ml-engineering, DeepGEMM.
  };
  const std::vector<Anchor> anchors = {
      {"a100", KernelType::Bf16, 271},    {"h100", KernelType::Bf16, 794},
      {"h100", KernelType::Fp8, 1403},    {"b200", KernelType::Bf16, 1745},
      {"b200", KernelType::Fp8, 3433},    {"b300", KernelType::Bf16, 1769},
      {"gb200", KernelType::Bf16, 1822},  {"mi300x", KernelType::Bf16, 668},
      {"mi355x", KernelType::Bf16, 1565}, {"h800", KernelType::Fp8Block, 1358},
  };
  for (const Anchor& anchor : anchors) {
    CAPTURE(anchor.gpu, to_string(anchor.type));
    const double here = teraflops(timer_of(anchor.gpu).gemm({8192, 8192, 8192, 1, anchor.type}));
    CHECK(here == Approx(anchor.best).epsilon(0.12));
  }
}

TEST_CASE("attention rises with the sequence as its authors measured", "[kernel][anchor]") {
  const KernelTimer h100 = timer_of("h100");
  const auto forward = [&](std::uint64_t tokens) {
    return teraflops(h100.attention(benchmark(tokens, 128, true, "fa3")));
  };
  CHECK(forward(1024) == Approx(423).epsilon(0.08));
  CHECK(forward(16384) == Approx(616).epsilon(0.08));
  CHECK(forward_and_backward(h100, benchmark(1024, 128, true, "fa2")) == Approx(221).epsilon(0.1));
  CHECK(forward_and_backward(h100, benchmark(16384, 128, true, "fa2")) == Approx(328).epsilon(0.1));
  const KernelTimer a100 = timer_of("a100");
  CHECK(forward_and_backward(a100, benchmark(1024, 128, true, "fa2")) == Approx(133).epsilon(0.12));
  CHECK(forward_and_backward(a100, benchmark(16384, 128, true, "fa2")) == Approx(189).epsilon(0.1));
}

TEST_CASE("stacks differ by their attention", "[kernel]") {
  CHECK(timer_of("h100").default_generation() == "fa3");
  CHECK(timer_of("a100").default_generation() == "fa2");
  CHECK(timer_of("b200").default_generation() == "cudnn");
  CHECK(timer_of("h100", "2023").default_generation() == "fa2");
  CHECK(timer_of("a100", "2021").default_generation() == "unfused");
  AttentionKernel kernel = benchmark(2048, 128, true, "");
  const Duration old = timer_of("a100", "2021").attention(kernel).total;
  CHECK(old > 2 * timer_of("a100", "2023").attention(kernel).total);
}

TEST_CASE("every shipped GPU has kernels in every shipped model", "[kernel]") {
  const io::Presets presets;
  for (const std::string& model : io::kernel_model_names()) {
    for (const io::PresetInfo& info : presets.list(io::PresetKind::Gpu)) {
      const KernelTimer timer = timer_of(info.name, model);
      AttentionKernel kernel = benchmark(1024, 128, true, "");
      kernel.type = timer.supports(KernelType::Bf16) ? KernelType::Bf16 : KernelType::Fp16;
      CAPTURE(model, info.name);
      CHECK(timer.attention(kernel).total > Duration{});
      CHECK(timer.gemm({64, 64, 64, 1, kernel.type}).total > Duration{});
    }
  }
}

TEST_CASE("errors on measured kernels are what the documentation says", "[kernel][data]") {
  const KernelModel model = io::read_kernels(io::kernel_document("2025"));
  const auto left_out = nlohmann::json::parse(
      test::text_of(source_dir / "validation" / "kernels" / "left-out.json"))["rows"];
  std::vector<double> errors;
  std::vector<double> without_gpu;
  std::vector<double> without_source;
  std::vector<double> without_fifth;
  std::vector<double> rtx;
  std::map<std::string, std::vector<double>> by_gpu;
  std::set<std::string> ids;
  for (const io::KernelMeasurement& record : measured()) {
    CHECK(ids.insert(record.id).second);
    const auto error = [&](double predicted) {
      return std::abs(predicted / record.microseconds - 1);
    };
    const double plain = error(io::predicted_microseconds(model, record));
    if (!in_data_centre(record)) {
      rtx.push_back(plain);
      continue;
    }
    errors.push_back(plain);
    by_gpu[record.gpu.name].push_back(plain);
    const auto& row = left_out.at(record.id);
    without_gpu.push_back(error(row.at("without_gpu_us").get<double>()));
    without_source.push_back(error(row.at("without_source_us").get<double>()));
    without_fifth.push_back(error(row.at("without_fifth_us").get<double>()));
  }
  CHECK(errors.size() == 313);
  CHECK(rtx.size() == 634);
  CHECK(median(errors) < 0.055);
  CHECK(median(without_fifth) < 0.065);
  // An implementation or a GPU that nobody measured has only the priors.
  CHECK(median(without_gpu) < 0.21);
  CHECK(median(without_source) < 0.26);
  CHECK(median(rtx) < 0.075);
  for (const auto& [gpu, list] : by_gpu) {
    CAPTURE(gpu, list.size());
    CHECK(median(list) < 0.15);
  }
  CHECK(median(by_gpu.at("A100-SXM-80GB")) < 0.06);
  CHECK(median(by_gpu.at("H100-SXM")) < 0.05);
  CHECK(median(by_gpu.at("H800-SXM")) < 0.08);
  CHECK(median(by_gpu.at("B300-SXM")) < 0.10);
}

}  // namespace flyover
