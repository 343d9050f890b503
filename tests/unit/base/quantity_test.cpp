#include "flyover/base/quantity.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

template <class Parse>
std::string problem_of(Parse parse, std::string_view text) {
  try {
    (void)parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("bits are not bytes, in every spelling of a bandwidth", "[quantity]") {
  for (const char* text :
       {"400 Gb/s", "400Gb/s", "400 Gbps", "400 Gbit/s", "400 Gbits/s", "50 GB/s", "50GBps",
        "0.4 Tb/s", "4e2 Gb/s", " 400  Gb/s ", "400.000 Gb/s"}) {
    CAPTURE(text);
    CHECK(parse_bandwidth(text) == 50_GBps);
  }
  CHECK(parse_bandwidth("1.8 TB/s").per_second() == 1.8e12);
  CHECK(parse_bandwidth("2 GiB/s").per_second() == 0x1p31);
  CHECK(parse_bandwidth("8 Kib/s").per_second() == 1024);
  CHECK(parse_bandwidth("1 b/s").per_second() == 0.125);
  CHECK(parse_bandwidth("12 kB/s").per_second() == 12'000);
  CHECK(parse_bandwidth("1 EB/s").per_second() == 1e18);
}

TEST_CASE("a decimal rate is the double nearest to what is written", "[quantity]") {
  // 0.1 * 1e9 in doubles would round twice.
  CHECK(parse_bandwidth("1.1 GB/s").per_second() == 1.1e9);
  CHECK(parse_bandwidth("0.7 TB/s").per_second() == 0.7e12);
  CHECK(parse_flop_rate("989.4 TFLOPS").per_second() == 989.4e12);
  CHECK(parse_flops("2.1 TFLOP").count() == 2.1e12);
}

TEST_CASE("durations are exact to the picosecond", "[quantity]") {
  CHECK(parse_duration("0.1 us") == 100'000_ps);
  CHECK(parse_duration("1.2us") == 1'200'000_ps);
  CHECK(parse_duration("1.2 \u00b5s") == 1'200'000_ps);
  CHECK(parse_duration("1.2 \u03bcs") == 1'200'000_ps);
  CHECK(parse_duration("500 ns") == 500'000_ps);
  CHECK(parse_duration("3 ms") == 3'000'000'000_ps);
  CHECK(parse_duration("2 s") == 2'000'000'000'000_ps);
  CHECK(parse_duration("0 ps") == 0_ps);
  CHECK(parse_duration("-0 s") == 0_ps);
  CHECK(parse_duration("9223372.036854775807 s") == Duration{most});
  CHECK(parse_duration("9223372036854775807 ps") == Duration{most});
}

TEST_CASE("a fraction of a picosecond rounds up, so that nothing ends early", "[quantity]") {
  CHECK(parse_duration("0.5 ps") == 1_ps);
  CHECK(parse_duration("1e-300 s") == 1_ps);
  CHECK(parse_duration("1.0000000000001 s") == 1'000'000'000'001_ps);
  CHECK(parse_duration("0.00000000000000000000000000000000000000000000000000001 s") == 1_ps);
  CHECK(parse_duration("1.00000000000000000000000000000000000000000000000000001 ps") == 2_ps);
}

TEST_CASE("sizes are whole numbers of bytes, exactly", "[quantity]") {
  CHECK(parse_bytes("1.5 GiB") == Bytes{3LL << 29});
  CHECK(parse_bytes("1 GiB") == 1_GiB);
  CHECK(parse_bytes("128 MB") == Bytes{128'000'000});
  CHECK(parse_bytes("8 B") == 8_B);
  CHECK(parse_bytes("8 bytes") == 8_B);
  CHECK(parse_bytes("0 B") == 0_B);
  CHECK(parse_bytes("0.001 kB") == 1_B);
  CHECK(parse_bytes("1EB") == Bytes{1'000'000'000'000'000'000});
  CHECK(parse_bytes("1E3 B") == 1000_B);
  CHECK(parse_bytes("0.000000000931322574615478515625 GiB") == 1_B);
  CHECK(parse_bytes("9223372036854775807 B") == Bytes{most});
  CHECK(parse_bytes("9.223372036854775807 EB") == Bytes{most});
}

TEST_CASE("message sizes are written as nccl-tests users write them", "[quantity]") {
  CHECK(parse_message_size("8") == 8_B);
  CHECK(parse_message_size("64K") == 64_KiB);
  CHECK(parse_message_size("64k") == 64_KiB);
  CHECK(parse_message_size("1M") == 1_MiB);
  CHECK(parse_message_size("16G") == 16_GiB);
  CHECK(parse_message_size("1.5G") == 1536_MiB);
  CHECK(parse_message_size("2T") == 2048_GiB);
  CHECK(parse_message_size("1 MiB") == 1_MiB);
  CHECK(parse_message_size("1 MB") == Bytes{1'000'000});
  CHECK(problem_of(parse_message_size, "64Q") ==
        "expected a size such as \"8\", \"64K\", \"16G\" or \"1 MiB\", got \"64Q\": \"Q\" is not a "
        "known unit");
  CHECK(problem_of(parse_message_size, "") ==
        "expected a size such as \"8\", \"64K\", \"16G\" or \"1 MiB\", got \"\"");
  CHECK(problem_of(parse_message_size, "-8") ==
        "expected a size of zero or more such as \"8\", \"64K\", \"16G\" or \"1 MiB\", got \"-8\"");
  CHECK(problem_of(parse_message_size, "0.3") ==
        "expected a size such as \"8\", \"64K\", \"16G\" or \"1 MiB\", got \"0.3\": it is not a "
        "whole "
        "number of bytes");
  CHECK(
      problem_of(parse_message_size, "99999999T") ==
      "expected a size such as \"8\", \"64K\", \"16G\" or \"1 MiB\", got \"99999999T\": it is more "
      "than 2^63 - 1 bytes");
}

TEST_CASE("a bandwidth that is none is refused with the right form", "[quantity]") {
  const std::string form = "such as \"400 Gb/s\" or \"50 GB/s\", got ";
  const auto problem = [](std::string_view text) { return problem_of(parse_bandwidth, text); };
  CHECK(problem("400") == "expected a bandwidth with its unit " + form + "\"400\"");
  CHECK(problem("fast") == "expected a bandwidth with its unit " + form + "\"fast\"");
  CHECK(problem("") == "expected a bandwidth with its unit " + form + "\"\"");
  CHECK(problem("nan GB/s") == "expected a bandwidth with its unit " + form + "\"nan GB/s\"");
  CHECK(problem("inf GB/s") == "expected a bandwidth with its unit " + form + "\"inf GB/s\"");
  CHECK(problem("0x10 GB/s") ==
        "expected a bandwidth " + form + "\"0x10 GB/s\": \"x10 GB/s\" is not a known unit");
  CHECK(problem("400 Gb") ==
        "expected a bandwidth " + form + "\"400 Gb\": \"Gb\" is a number of bits");
  CHECK(problem("50 GB") == "expected a bandwidth " + form + "\"50 GB\": \"GB\" is a size");
  CHECK(problem("5 us") == "expected a bandwidth " + form + "\"5 us\": \"us\" is a duration");
  CHECK(problem("5 TFLOPS") ==
        "expected a bandwidth " + form + "\"5 TFLOPS\": \"TFLOPS\" is a FLOP rate");
  CHECK(problem("5 TFLOP") ==
        "expected a bandwidth " + form + "\"5 TFLOP\": \"TFLOP\" is a number of operations");
  CHECK(problem("400 Gb/s!") ==
        "expected a bandwidth " + form + "\"400 Gb/s!\": \"Gb/s!\" is not a known unit");
  CHECK(problem("400 gb/s") ==
        "expected a bandwidth " + form + "\"400 gb/s\": \"gb/s\" is not a known unit");
  CHECK(problem("4 KB/s") == "expected a bandwidth " + form +
                                 "\"4 KB/s\": \"KB/s\" is ambiguous, write \"kB/s\" for 1000 or "
                                 "\"KiB/s\" for 1024");
  CHECK(problem("-5 Gb/s") == "expected a bandwidth above zero " + form + "\"-5 Gb/s\"");
  CHECK(problem("0 Gb/s") == "expected a bandwidth above zero " + form + "\"0 Gb/s\"");
  CHECK(problem("2 EB/s") == "expected a bandwidth of at most 1 EB/s " + form + "\"2 EB/s\"");
  CHECK(problem("1e999 GB/s") ==
        "expected a bandwidth " + form + "\"1e999 GB/s\": it is too large");
  CHECK(problem("1e-999 GB/s") ==
        "expected a bandwidth " + form + "\"1e-999 GB/s\": it is too small");
}

TEST_CASE("wrong durations, sizes and operation counts are refused with the right form",
          "[quantity]") {
  CHECK(problem_of(parse_duration, "3") ==
        "expected a duration with its unit such as \"1.2 us\" or \"3 ms\", got \"3\"");
  CHECK(problem_of(parse_duration, "-3 us") ==
        "expected a duration of zero or more such as \"1.2 us\" or \"3 ms\", got \"-3 us\"");
  CHECK(problem_of(parse_duration, "107 days") ==
        "expected a duration such as \"1.2 us\" or \"3 ms\", got \"107 days\": \"days\" is not a "
        "known "
        "unit");
  CHECK(problem_of(parse_duration, "1e7 s") ==
        "expected a duration such as \"1.2 us\" or \"3 ms\", got \"1e7 s\": it is longer than "
        "simulated time can hold (106 days)");
  CHECK(
      problem_of(parse_duration, "9223372036854775807.5 ps") ==
      "expected a duration such as \"1.2 us\" or \"3 ms\", got \"9223372036854775807.5 ps\": it is "
      "longer than simulated time can hold (106 days)");
  CHECK(problem_of(parse_bytes, "1024") ==
        "expected a size with its unit such as \"128 MiB\" or \"8 B\", got \"1024\"");
  CHECK(
      problem_of(parse_bytes, "0.3 B") ==
      "expected a size such as \"128 MiB\" or \"8 B\", got \"0.3 B\": it is not a whole number of "
      "bytes");
  CHECK(problem_of(parse_bytes, "8 Mb") ==
        "expected a size such as \"128 MiB\" or \"8 B\", got \"8 Mb\": \"Mb\" is a number of bits, "
        "bytes are B");
  CHECK(problem_of(parse_bytes, "64 KB") ==
        "expected a size such as \"128 MiB\" or \"8 B\", got \"64 KB\": \"KB\" is ambiguous, write "
        "\"kB\" for 1000 or \"KiB\" for 1024");
  CHECK(problem_of(parse_bytes, "8 EiB") ==
        "expected a size such as \"128 MiB\" or \"8 B\", got \"8 EiB\": it is more than 2^63 - 1 "
        "bytes");
  CHECK(problem_of(parse_bytes, "-1 B") ==
        "expected a size of zero or more such as \"128 MiB\" or \"8 B\", got \"-1 B\"");
  CHECK(problem_of(parse_flop_rate, "989 TFLOP") ==
        "expected a FLOP rate such as \"989 TFLOPS\", got \"989 TFLOP\": \"TFLOP\" is a number of "
        "operations");
  CHECK(problem_of(parse_flop_rate, "0 TFLOPS") ==
        "expected a FLOP rate above zero such as \"989 TFLOPS\", got \"0 TFLOPS\"");
  CHECK(problem_of(parse_flops, "2 TFLOPS") ==
        "expected a number of operations such as \"2.1 TFLOP\", got \"2 TFLOPS\": \"TFLOPS\" is a "
        "FLOP rate");
  CHECK(parse_flop_rate("989 TFLOP/s") == parse_flop_rate("989 TFLOPS"));
  CHECK(parse_flops("0 FLOP") == Flops{0});
}

TEST_CASE("quantities print as people write them", "[quantity]") {
  CHECK(to_string(50_GBps) == "50 GB/s");
  CHECK(to_string(Bandwidth{1.8e12}) == "1.8 TB/s");
  CHECK(to_string(Bandwidth{0.125}) == "0.125 B/s");
  CHECK(to_string(Bandwidth{999.5e9}) == "999.5 GB/s");
  CHECK(to_string(Bandwidth{1e18}) == "1 EB/s");
  CHECK(to_string(Bandwidth{1e-12}) == "1e-12 B/s");
  CHECK(to_string(Bandwidth{0}) == "0 B/s");
  CHECK(to_string(Bandwidth{std::numeric_limits<double>::infinity()}) == "inf B/s");
  CHECK(to_string(1'200'000_ps) == "1.2 us");
  CHECK(to_string(0_ps) == "0 ps");
  CHECK(to_string(999_ps) == "999 ps");
  CHECK(to_string(Duration{3600s}) == "3600 s");
  CHECK(to_string(Duration{-1500}) == "-1.5 ns");
  CHECK(to_string(Duration{std::numeric_limits<std::int64_t>::min()}) == "-9223372.036854775808 s");
  CHECK(to_string(128_MiB) == "128 MiB");
  CHECK(to_string(1000_B) == "1000 B");
  CHECK(to_string(1024_B) == "1 KiB");
  CHECK(to_string(1536_B) == "1536 B");
  CHECK(to_string(1536_MiB) == "1.5 GiB");
  CHECK(to_string(Bytes{1'000'000'000}) == "1 GB");
  CHECK(to_string(Bytes{1'400'000'000}) == "1.4 GB");
  CHECK(to_string(Bytes{134'217'729}) == "134217729 B");
  CHECK(to_string(Bytes{-1024}) == "-1 KiB");
  CHECK(to_string(0_B) == "0 B");
  CHECK(to_string(FlopRate{989e12}) == "989 TFLOPS");
  CHECK(to_string(Flops{2.1e12}) == "2.1 TFLOP");
  CHECK(to_string(Flops{3.8e25}) == "38000000 EFLOP");
  CHECK(to_string(Flops{3.8e30}) == "3.8e12 EFLOP");
}

TEST_CASE("what is printed parses back to the same value", "[quantity]") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    // All magnitudes alike, and round numbers as often as odd ones.
    auto count = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    if (i % 2 == 0) count -= count % 1000;
    if (i % 5 == 0) count &= ~std::int64_t{0xFFFFF};
    CAPTURE(count);
    REQUIRE(parse_bytes(to_string(Bytes{count})) == Bytes{count});
    REQUIRE(parse_duration(to_string(Duration{count})) == Duration{count});

    const double mantissa = 1 + static_cast<double>(random() >> 11) * 0x1p-53;
    const double odd = std::ldexp(mantissa, static_cast<int>(random() % 200) - 100);
    const double rate = std::min(i % 2 == 0 ? std::round(odd) + 1 : odd, 1e18);
    CAPTURE(rate);
    REQUIRE(parse_bandwidth(to_string(Bandwidth{rate})) == Bandwidth{rate});
    REQUIRE(parse_flop_rate(to_string(FlopRate{odd})) == FlopRate{odd});
    REQUIRE(parse_flops(to_string(Flops{odd})) == Flops{odd});
  }
}
