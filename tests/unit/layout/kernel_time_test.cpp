// The equations of docs/models/compute.md, on a model with round numbers, so that every time can be
// worked out by hand.

#include "flyover/layout/kernel_time.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"

namespace flyover {

using namespace literals;

namespace {

constexpr double per_sm = 1e12;  // Operations per second.

GpuModel gpu_of(std::uint32_t sms) {
  GpuModel gpu;
  gpu.name = "round";
  gpu.architecture = "test";
  gpu.sms = sms;
  gpu.flops["bf16"] = FlopRate{per_sm * sms};
  gpu.memory_bandwidth = Bandwidth{1e12};
  return gpu;
}

// Everything at peak, nothing but whole waves of 128 x 128 tiles.
KernelModel plain() {
  KernelModel model;
  model.name = "plain";
  model.rates = {{{}, 1}};
  model.tiles = {{{}, {{128, 128}}, 0, {}, 1, 1000}};
  model.memory = {{{}, 1, {}, {}, {}, {}, 1}};
  model.attention = {{{}, "plain", {{64, 0.5}, {256, 1}}, {{64, 0.5}}, 0}};
  model.unfused = {8, 16, 8, 16};
  model.quantise = {{{{}, {}, {KernelType::Fp8}}, 3}};
  model.other_attention = "plain";
  model.launch = 3us;
  return model;
}

double seconds(const KernelTime& time) {
  return to_seconds(time.total);
}

}  // namespace

TEST_CASE("whole tiles in whole waves run at peak", "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(4));
  const KernelTime time = timer.gemm({256, 256, 100'000});
  CHECK(seconds(time) == Approx(2.0 * 256 * 256 * 1e5 / (4 * per_sm)));
  CHECK(time.wave_efficiency == Approx(1));
  CHECK(time.tile_efficiency == Approx(1));
  CHECK(time.limit == KernelLimit::Math);
  CHECK(time.flops.count() == 2.0 * 256 * 256 * 1e5);
}

TEST_CASE("one row more than a tile costs a tile, one tile more than a wave a wave", "[kernel]") {
  KernelModel model = plain();
  const KernelTimer timer(model, gpu_of(4));
  // Short enough in k that it is not cut along it.
  const auto at = [&](std::uint64_t m, std::uint64_t n) {
    return to_seconds(timer.gemm({m, n, 250, 1, KernelType::Bf16, 0}).math);
  };
  const double wave = 2.0 * 128 * 128 * 250 / per_sm;
  CHECK(at(1, 1) == Approx(wave));
  CHECK(at(128, 512) == Approx(wave));
  CHECK(at(129, 256) == Approx(wave));
  CHECK(at(128, 513) == Approx(2 * wave));
  CHECK(at(129, 512) == Approx(2 * wave));
  CHECK(at(128, 1024) == Approx(2 * wave));

  // Half a tail: half of what the last wave leaves idle.
  model.tiles[0].tail = 0.5;
  const KernelTimer half(model, gpu_of(4));
  CHECK(to_seconds(half.gemm({128, 640, 250, 1, KernelType::Bf16, 0}).math) ==
        Approx(wave * (1.25 + 0.5 * 0.75)));
}

TEST_CASE("a lone tile is split along k over SMs, and its parts cost traffic", "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(4));
  const KernelTime time = timer.gemm({128, 128, 40'000});
  CHECK(time.splits == 4);
  CHECK(to_seconds(time.math) == Approx(2.0 * 128 * 128 * 10'000 / per_sm));
  CHECK(to_seconds(time.memory) ==
        Approx((2.0 * 2 * 128 * 40'000 + 2.0 * 128 * 128 + 8.0 * 4 * 128 * 128) / 1e12));
  CHECK(timer.gemm({128, 128, 250}).splits == 1);
}

TEST_CASE("few rows are bound by the bytes of the weights", "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(1000));
  const KernelTime time = timer.gemm({1, 8192, 8192});
  CHECK(time.limit == KernelLimit::Memory);
  CHECK(time.bytes.count() == 2 * (8192 + 8192 * 8192 + 8192));
  CHECK(seconds(time) >= 2.0 * 8192 * 8192 / 1e12);
}

TEST_CASE("small tiles pay in rate, every tile an edge", "[kernel]") {
  KernelModel model = plain();
  model.tiles[0].half_intensity = 64;  // That of a 128 x 128 tile.
  model.tiles[0].edge = 2us;
  const KernelTimer timer(model, gpu_of(4));
  const KernelTime time = timer.gemm({256, 256, 100'000});
  CHECK(to_seconds(time.math) == Approx(2 * 2.0 * 128 * 128 * 1e5 / per_sm + 2e-6));
  CHECK(time.tile_efficiency < 0.5);
}

TEST_CASE("the fastest tile is chosen", "[kernel]") {
  KernelModel model = plain();
  model.tiles[0].tiles = {{64, 64}, {128, 128}};
  model.tiles[0].half_intensity = 4;
  const KernelTimer timer(model, gpu_of(4));
  CHECK(timer.gemm({64, 256, 250}).tile.rows == 64);
  CHECK(timer.gemm({4096, 4096, 250}).tile.rows == 128);
}

TEST_CASE("arithmetic and memory overlap by their p-norm, the start comes on top", "[kernel]") {
  KernelModel model = plain();
  model.tiles[0].overlap = 2;
  model.memory[0].gemm = 5us;
  GpuModel gpu = gpu_of(4);
  const KernelTimer timer(model, gpu);
  const KernelTime time = timer.gemm({256, 256, 10'000});
  const double math = to_seconds(time.math);
  const double memory = to_seconds(time.memory);
  CHECK(seconds(time) == Approx(5e-6 + std::sqrt(math * math + memory * memory)));
  CHECK(time.fixed == 5us);
  CHECK(timer.gemm({1, 1, 1}).limit == KernelLimit::Latency);
}

TEST_CASE("experts with equal rows cost what a batch costs; one row more costs a tile",
          "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(4));
  const KernelTime grouped = timer.grouped_gemm({8, 8 * 128, 512, 250});
  CHECK(grouped.total == timer.gemm({128, 512, 250, 8}).total);
  const KernelTime more = timer.grouped_gemm({8, 8 * 128 + 1, 512, 250});
  CHECK(to_seconds(more.math) == Approx(to_seconds(grouped.math) * 36 / 32));
  // Experts without rows do not read their weights.
  CHECK(timer.grouped_gemm({64, 2, 512, 250}).bytes.count() ==
        2 * (2 * 250 + 2 * 512 * 250 + 2 * 512));
}

TEST_CASE("attention counts the scores that its mask leaves, by blocks of queries", "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(8));
  AttentionKernel kernel;
  kernel.tokens = kernel.kv_tokens = 4096;
  kernel.heads = kernel.kv_heads = 8;
  kernel.head_dim = kernel.value_dim = 256;
  kernel.causal = false;
  const double scores = 8.0 * 4096 * 4096;
  const KernelTime full = timer.attention(kernel);
  CHECK(full.flops.count() == Approx(4 * 256 * scores));
  CHECK(to_seconds(full.math) == Approx(4 * 256 * scores / (8 * per_sm)));

  kernel.causal = true;
  const KernelTime masked = timer.attention(kernel);
  CHECK(masked.flops.count() == Approx(4 * 256 * scores * (4097.0 / 2 / 4096)));
  CHECK(to_seconds(masked.math) == Approx(to_seconds(full.math) * (4096.0 + 128) / 2 / 4096));

  kernel.window = 512;
  CHECK(timer.attention(kernel).flops.count() == Approx(4 * 256 * 8.0 * 4096 * 512));

  kernel.window = 0;
  kernel.backward = true;
  CHECK(timer.attention(kernel).flops.count() == Approx(2.5 * masked.flops.count()));
  CHECK(to_seconds(timer.attention(kernel).math) == Approx(2.5 * 2 * to_seconds(masked.math)));
}

TEST_CASE("between head dimensions the share is linear in their logarithm", "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(8));
  const auto share = [&](std::uint64_t dim) {
    const KernelTime time =
        timer.attention({1, 4096, 4096, 8, 8, dim, dim, false, 0, false, false, {}, {}});
    return time.flops.count() / (8 * per_sm * to_seconds(time.math));
  };
  CHECK(share(32) == Approx(0.5));
  CHECK(share(128) == Approx(0.75));
  CHECK(share(512) == Approx(1));
}

TEST_CASE("a decoding step reads its keys and values once, heads that share them too", "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(100));
  AttentionKernel kernel;
  kernel.sequences = 64;
  kernel.kv_tokens = 8192;
  kernel.heads = 32;
  kernel.kv_heads = 8;
  const KernelTime time = timer.attention(kernel);
  CHECK(time.limit == KernelLimit::Memory);
  CHECK(time.bytes.count() == 2LL * 64 * (32 * 256 + 8 * 8192 * 256));
  kernel.kv_heads = 1;
  kernel.head_dim = 576;
  kernel.value_dim = 512;
  kernel.shared_kv = true;
  CHECK(timer.attention(kernel).bytes.count() == 64LL * 2 * (32 * (576 + 512) + 8192LL * 576));
}

TEST_CASE("unfused attention pays for its scores by the byte, masked ones too", "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(8));
  AttentionKernel kernel{1, 2048, 2048, 8, 8, 128, 128, false, 0, false, false, {}, "unfused"};
  const double scores = 8.0 * 2048 * 2048;
  CHECK(to_seconds(timer.attention(kernel).memory) == Approx(8 * scores / 1e12));
  CHECK(to_seconds(timer.attention(kernel).math) == Approx(4 * 128 * scores / (8 * per_sm)));
  kernel.causal = true;
  CHECK(to_seconds(timer.attention(kernel).memory) == Approx(16 * scores / 1e12));
  CHECK(to_seconds(timer.attention(kernel).math) == Approx(4 * 128 * scores / (8 * per_sm)));
}

TEST_CASE("memory-bound kernels take their bytes at the rate of memory, small ones of cache",
          "[kernel]") {
  KernelModel model = plain();
  model.memory[0].elementwise = 2us;
  model.memory[0].share = 0.8;
  const KernelTimer memory(model, gpu_of(8));
  CHECK(seconds(memory.elementwise({400_MiB, 400_MiB})) ==
        Approx(2e-6 + static_cast<double>((800_MiB).count()) / 0.8e12));
  CHECK(memory.elementwise({}).total == 2us);

  model.memory[0].cache = 100_MiB;
  model.memory[0].cache_gain = 4;
  const KernelTimer cached(model, gpu_of(8));
  const auto beside = [&](Bytes bytes) {
    return to_seconds(cached.elementwise({bytes, {}}).memory) /
           to_seconds(memory.elementwise({bytes, {}}).memory);
  };
  CHECK(beside(100_MiB) == Approx(0.25));
  CHECK(beside(150_MiB) == Approx(0.625));
  CHECK(beside(200_MiB) == Approx(1));
}

TEST_CASE("quantising costs bytes per element, bf16 nothing", "[kernel]") {
  GpuModel gpu = gpu_of(8);
  gpu.flops["fp8"] = FlopRate{2 * per_sm * 8};
  const KernelTimer timer(plain(), gpu);
  CHECK(seconds(timer.quantise({1'000'000'000, KernelType::Fp8})) == Approx(3e-3));
  CHECK(timer.quantise({1'000'000'000, KernelType::Bf16}).total == 0_ps);
}

TEST_CASE("of the rules that match the last counts", "[kernel]") {
  KernelModel model = plain();
  model.rates.push_back({{{"other"}, {}, {}}, 0.1});
  model.rates.push_back({{{"test"}, {}, {}}, 0.5});
  model.rates.push_back({{{}, {"another"}, {}}, 0.1});
  const GpuModel gpu = gpu_of(4);
  const KernelTimer timer(model, gpu);
  CHECK(to_seconds(timer.gemm({256, 256, 100'000}).math) ==
        Approx(2 * 2.0 * 256 * 256 * 1e5 / (4 * per_sm)));
}

TEST_CASE("launches cost by who starts the kernels", "[kernel]") {
  const KernelTimer timer(plain(), gpu_of(4));
  CHECK(timer.launch(false) == 3us);
  CHECK(timer.launch(true) == 0us);
}

TEST_CASE("what the GPU or the model lacks is named", "[kernel]") {
  const GpuModel gpu = gpu_of(4);
  const KernelTimer timer(plain(), gpu);
  CHECK_FALSE(timer.supports(KernelType::Nvfp4));
  CHECK_THROWS_WITH(timer.gemm({1, 1, 1, 1, KernelType::Nvfp4}),
                    "round has no fp4 rate, which nvfp4 kernels need");
  AttentionKernel kernel;
  kernel.generation = "fa9";
  CHECK_THROWS_WITH(timer.attention(kernel),
                    "there is no attention \"fa9\" in bf16 on round; there are unfused, plain");
  KernelModel bare = plain();
  bare.rates = {{{{"ampere"}, {}, {}}, 1}};
  CHECK_THROWS_WITH(KernelTimer(bare, gpu), "the kernels \"plain\" have no rate for round (test)");
  CHECK_THROWS_AS(timer.gemm({0, 1, 1}), InternalError);
}

}  // namespace flyover
