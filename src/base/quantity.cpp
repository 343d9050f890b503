#include "flyover/base/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::string_view decimal_prefixes = "kMGTPE";
constexpr std::string_view binary_prefixes = "KMGTPE";

enum class Kind : std::uint8_t { Bandwidth, Duration, Size, FlopRate, Flops, Bits };

// A unit is worth 10^ten * 2^two of the base unit of its kind: B/s, ps, B, FLOP/s, FLOP, b.
struct Unit {
  std::string_view name;
  Kind kind;
  int ten = 0;
  int two = 0;
};

// These take a prefix.
constexpr std::array scalable_units = {
    Unit{"B", Kind::Size},
    Unit{"byte", Kind::Size},
    Unit{"bytes", Kind::Size},
    Unit{"b", Kind::Bits},
    Unit{"bit", Kind::Bits},
    Unit{"bits", Kind::Bits},
    Unit{"B/s", Kind::Bandwidth},
    Unit{"Bps", Kind::Bandwidth},
    Unit{"b/s", Kind::Bandwidth, 0, -3},
    Unit{"bps", Kind::Bandwidth, 0, -3},
    Unit{"bit/s", Kind::Bandwidth, 0, -3},
    Unit{"bits/s", Kind::Bandwidth, 0, -3},
    Unit{"FLOPS", Kind::FlopRate},
    Unit{"FLOP/s", Kind::FlopRate},
    Unit{"FLOP", Kind::Flops},
};
// The micro sign comes as U+00B5 or, from Greek keyboards, as U+03BC.
constexpr std::array time_units = {
    Unit{"ps", Kind::Duration, 0},      Unit{"ns", Kind::Duration, 3},
    Unit{"us", Kind::Duration, 6},      Unit{"\u00b5s", Kind::Duration, 6},
    Unit{"\u03bcs", Kind::Duration, 6}, Unit{"ms", Kind::Duration, 9},
    Unit{"s", Kind::Duration, 12},
};

template <class Units>
std::optional<Unit> find_unit(const Units& units, std::string_view name) {
  const auto found = std::ranges::find(units, name, &Unit::name);
  if (found == units.end()) return std::nullopt;
  return *found;
}

std::optional<Unit> unit_named(std::string_view name) {
  if (const auto unit = find_unit(time_units, name)) return unit;
  if (const auto unit = find_unit(scalable_units, name)) return unit;
  if (name.size() < 2) return std::nullopt;
  const bool binary = name[1] == 'i';
  const auto power = (binary ? binary_prefixes : decimal_prefixes).find(name[0]);
  if (power == std::string_view::npos) return std::nullopt;
  auto unit = find_unit(scalable_units, name.substr(binary ? 2 : 1));
  if (unit) (binary ? unit->two : unit->ten) += (static_cast<int>(power) + 1) * (binary ? 10 : 3);
  return unit;
}

// What a parser of one kind of quantity tells its user.
struct Expectation {
  Kind kind;
  std::string_view noun;
  std::string_view examples;
  bool zero_allowed;
};

constexpr Expectation bandwidth_wanted = {Kind::Bandwidth, "a bandwidth",
                                          "such as \"400 Gb/s\" or \"50 GB/s\"", false};
constexpr Expectation duration_wanted = {Kind::Duration, "a duration",
                                         "such as \"1.2 us\" or \"3 ms\"", true};
constexpr Expectation size_wanted = {Kind::Size, "a size", "such as \"128 MiB\" or \"8 B\"", true};
constexpr Expectation flop_rate_wanted = {Kind::FlopRate, "a FLOP rate", "such as \"989 TFLOPS\"",
                                          false};
constexpr Expectation flops_wanted = {Kind::Flops, "a number of operations",
                                      "such as \"2.1 TFLOP\"", true};
constexpr Expectation message_size_wanted = {Kind::Size, "a size",
                                             "such as \"8\", \"64K\", \"16G\" or \"1 MiB\"", true};

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::Bandwidth:
      return "a bandwidth";
    case Kind::Duration:
      return "a duration";
    case Kind::Size:
      return "a size";
    case Kind::FlopRate:
      return "a FLOP rate";
    case Kind::Flops:
      return "a number of operations";
    case Kind::Bits:
      return "a number of bits";
  }
  return "";
}

// `detail` says which kind of it: " with its unit", " above zero"; `reason` what is wrong.
[[noreturn]] void refuse(const Expectation& wanted, std::string_view detail, std::string_view text,
                         std::string_view reason = "") {
  throw InputError(fmt::format("expected {}{} {}, got \"{}\"{}{}", wanted.noun, detail,
                               wanted.examples, text, reason.empty() ? "" : ": ", reason));
}

// digits * 10^exponent; `inexact` if digits beyond the 38 that fit were cut off.
struct Decimal {
  Wide digits = 0;
  int exponent = 0;
  bool inexact = false;
  bool negative = false;
  std::string_view written;  // Digits and point, without sign and exponent.
  int written_exponent = 0;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Takes the number off the front of `text`, or nothing if there is none.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) number.negative = text[at++] == '-';
  const std::size_t first = at;
  bool point = false;
  bool any = false;
  constexpr Wide room = ~Wide{0} / 10 - 1;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    any = true;
    const auto digit = static_cast<unsigned>(text[at] - '0');
    if (number.digits <= room) {
      number.digits = number.digits * 10 + digit;
      number.exponent -= point ? 1 : 0;
    } else {
      number.inexact = number.inexact || digit != 0;
      number.exponent += point ? 0 : 1;
    }
  }
  if (!any) return std::nullopt;
  number.written = text.substr(first, at - first);

  // The E of "1EB" is a prefix; that of "1E3 B" is followed by a number.
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const bool sign = at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+');
    std::size_t end = at + (sign ? 2 : 1);
    if (end < text.size() && is_digit(text[end])) {
      int exponent = 0;
      for (; end < text.size() && is_digit(text[end]); ++end) {
        exponent = std::min(exponent * 10 + (text[end] - '0'), 100'000);
      }
      number.written_exponent = sign && text[at + 1] == '-' ? -exponent : exponent;
      number.exponent += number.written_exponent;
      at = end;
    }
  }
  text.remove_prefix(at);
  return number;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct Quantity {
  Decimal number;
  Unit unit;
};

Quantity parse(std::string_view text, const Expectation& wanted) {
  std::string_view rest = trimmed(text);
  const auto number = take_decimal(rest);
  rest = trimmed(rest);
  if (!number || rest.empty()) refuse(wanted, " with its unit", text);
  const auto unit = unit_named(rest);
  if (!unit) {
    if (rest[0] == 'K' && unit_named("k" + std::string(rest.substr(1)))) {
      refuse(wanted, "", text,
             fmt::format("\"{}\" is ambiguous, write \"k{}\" for 1000 or \"Ki{}\" for 1024", rest,
                         rest.substr(1), rest.substr(1)));
    }
    refuse(wanted, "", text, fmt::format("\"{}\" is not a known unit", rest));
  }
  if (unit->kind != wanted.kind) {
    refuse(
        wanted, "", text,
        fmt::format("\"{}\" is {}{}", rest, name_of(unit->kind),
                    unit->kind == Kind::Bits && wanted.kind == Kind::Size ? ", bytes are B" : ""));
  }
  const bool zero = number->digits == 0;
  if ((number->negative && !zero) || (zero && !wanted.zero_allowed)) {
    refuse(wanted, wanted.zero_allowed ? " of zero or more" : " above zero", text);
  }
  return {*number, *unit};
}

// The double nearest to the quantity in base units. The decimal exponents are added in the text, so
// that there is one rounding; the power of two is exact.
double nearest_double(const Quantity& quantity, std::string_view text, const Expectation& wanted) {
  const Decimal& number = quantity.number;
  if (number.digits == 0) return 0;
  const std::string scaled =
      fmt::format("{}e{}", number.written, number.written_exponent + quantity.unit.ten);
  double value = 0;
  const auto [end, error] = std::from_chars(scaled.data(), scaled.data() + scaled.size(), value);
  if (error != std::errc{}) {
    refuse(wanted, "", text, number.exponent > 0 ? "it is too large" : "it is too small");
  }
  return std::ldexp(value, quantity.unit.two);
}

constexpr Wide max_count = std::numeric_limits<std::int64_t>::max();

struct Whole {
  std::int64_t count = 0;
  bool overflow = false;
  bool rounded = false;
};

// The quantity in base units, rounded down.
Whole whole_number(const Decimal& number, const Unit& unit) {
  Wide value = number.digits;
  int ten = number.exponent + unit.ten;
  int two = unit.two + ten;
  bool rounded = number.inexact;
  if (value == 0) return {0, false, rounded};
  // 10^ten = 5^ten * 2^ten: fives first, so that binary fractions such as 2^-30 stay exact.
  for (; ten > 0; --ten) {
    if (value > max_count) return {0, true, false};
    value *= 5;
  }
  // Dividing down one five at a time floors as dividing at once does.
  for (; ten < 0 && value > 0; ++ten) {
    rounded = rounded || value % 5 != 0;
    value /= 5;
  }
  for (; two > 0 && value > 0; --two) {
    if (value > max_count) return {0, true, false};
    value *= 2;
  }
  for (; two < 0 && value > 0; ++two) {
    rounded = rounded || value % 2 != 0;
    value /= 2;
  }
  if (value > max_count) return {0, true, false};
  return {static_cast<std::int64_t>(value), false, rounded};
}

Bytes whole_bytes(const Decimal& number, const Unit& unit, std::string_view text,
                  const Expectation& wanted) {
  const Whole whole = whole_number(number, unit);
  if (whole.overflow) refuse(wanted, "", text, "it is more than 2^63 - 1 bytes");
  if (whole.rounded) refuse(wanted, "", text, "it is not a whole number of bytes");
  return Bytes{whole.count};
}

// A positive double as its shortest decimal digits and the power of ten of the first of them.
struct Digits {
  std::string text;
  int exponent;
};

Digits shortest_digits(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::scientific);
  require(error == std::errc{}, "shortest_digits: a buffer that is large enough");
  const std::string_view written(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const auto e = written.find('e');
  Digits digits{std::string(written.substr(0, e)), 0};
  std::erase(digits.text, '.');
  const char* exponent = written.data() + e + 1;
  std::from_chars(exponent + (*exponent == '+' ? 1 : 0), end, digits.exponent);
  return digits;
}

// Puts the point behind `whole` digits, without zeros that say nothing.
std::string with_point(std::string digits, int whole) {
  if (whole <= 0) {
    digits.insert(0, static_cast<std::size_t>(1 - whole), '0');
    whole = 1;
  }
  const auto point = static_cast<std::size_t>(whole);
  if (digits.size() < point) digits.append(point - digits.size(), '0');
  digits.insert(point, 1, '.');
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

std::string print(double value, std::string_view unit) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{} {}", value, unit);
  const auto [digits, exponent] = shortest_digits(std::abs(value));
  const int power = std::clamp(exponent / 3, 0, static_cast<int>(decimal_prefixes.size()));
  const std::string_view prefix =
      power == 0 ? "" : decimal_prefixes.substr(static_cast<std::size_t>(power) - 1, 1);
  const int whole = exponent - 3 * power + 1;
  const bool plain = whole > -6 && whole <= 9;
  const std::string number =
      plain ? with_point(digits, whole) : fmt::format("{}e{}", with_point(digits, 1), whole - 1);
  return fmt::format("{}{} {}{}", value < 0 ? "-" : "", number, prefix, unit);
}

std::uint64_t magnitude(std::int64_t count) {
  return count < 0 ? ~static_cast<std::uint64_t>(count) + 1 : static_cast<std::uint64_t>(count);
}

// count / unit as a decimal of at most three places, or nothing if that is below one or not exact.
std::optional<std::string> exact_quotient(std::uint64_t count, std::uint64_t unit) {
  if (count < unit) return std::nullopt;
  const Wide thousandths = Wide{count} * 1000;
  if (thousandths % unit != 0) return std::nullopt;
  const std::string whole = std::to_string(count / unit);
  const auto places = static_cast<std::uint64_t>(thousandths / unit % 1000);
  return with_point(fmt::format("{}{:03}", whole, places), static_cast<int>(whole.size()));
}

}  // namespace

Bandwidth parse_bandwidth(std::string_view text) {
  const double value = nearest_double(parse(text, bandwidth_wanted), text, bandwidth_wanted);
  if (value > 1e18) refuse(bandwidth_wanted, " of at most 1 EB/s", text);
  return Bandwidth{value};
}

Duration parse_duration(std::string_view text) {
  const auto [number, unit] = parse(text, duration_wanted);
  const Whole whole = whole_number(number, unit);
  const bool up = whole.rounded;
  if (whole.overflow || (up && whole.count == std::numeric_limits<std::int64_t>::max())) {
    refuse(duration_wanted, "", text, "it is longer than simulated time can hold (106 days)");
  }
  return Duration{whole.count + (up ? 1 : 0)};
}

Bytes parse_bytes(std::string_view text) {
  const auto [number, unit] = parse(text, size_wanted);
  return whole_bytes(number, unit, text, size_wanted);
}

Bytes parse_message_size(std::string_view text) {
  std::string_view rest = trimmed(text);
  const auto number = take_decimal(rest);
  if (!number) refuse(message_size_wanted, "", text);
  Unit unit{"", Kind::Size};
  if (rest.size() == 1) {
    const auto power = std::string_view("KMGT").find(rest[0] == 'k' ? 'K' : rest[0]);
    if (power != std::string_view::npos) {
      unit.two = 10 * (static_cast<int>(power) + 1);
      rest = {};
    }
  }
  if (rest.empty()) {
    if (number->negative && number->digits != 0) {
      refuse(message_size_wanted, " of zero or more", text);
    }
    return whole_bytes(*number, unit, text, message_size_wanted);
  }
  const auto [value, explicit_unit] = parse(text, message_size_wanted);
  return whole_bytes(value, explicit_unit, text, message_size_wanted);
}

FlopRate parse_flop_rate(std::string_view text) {
  return FlopRate{nearest_double(parse(text, flop_rate_wanted), text, flop_rate_wanted)};
}

Flops parse_flops(std::string_view text) {
  return Flops{nearest_double(parse(text, flops_wanted), text, flops_wanted)};
}

std::string to_string(Bandwidth bandwidth) {
  return print(bandwidth.per_second(), "B/s");
}
std::string to_string(FlopRate rate) {
  return print(rate.per_second(), "FLOPS");
}
std::string to_string(Flops flops) {
  return print(flops.count(), "FLOP");
}

std::string to_string(Duration duration) {
  constexpr std::array<std::string_view, 5> names = {"ps", "ns", "us", "ms", "s"};
  const std::string digits = std::to_string(magnitude(duration.count()));
  const std::size_t power = std::min((digits.size() - 1) / 3, names.size() - 1);
  const int whole = static_cast<int>(digits.size()) - static_cast<int>(3 * power);
  return fmt::format("{}{} {}", duration.count() < 0 ? "-" : "", with_point(digits, whole),
                     names[power]);
}

std::string to_string(Bytes bytes) {
  const std::uint64_t count = magnitude(bytes.count());
  std::string best = fmt::format("{} B", count);
  const auto offer = [&](std::uint64_t unit, std::string_view name) {
    const auto number = exact_quotient(count, unit);
    if (number && number->size() + 1 + name.size() < best.size()) {
      best = fmt::format("{} {}", *number, name);
    }
  };
  std::uint64_t binary = 1;
  for (const char prefix : binary_prefixes) {
    binary *= 1024;
    offer(binary, fmt::format("{}iB", prefix));
  }
  // From MB on: "1000 B" says the same as "1 kB" without asking which thousand is meant.
  std::uint64_t decimal = 1000;
  for (const char prefix : decimal_prefixes.substr(1)) {
    decimal *= 1000;
    offer(decimal, fmt::format("{}B", prefix));
  }
  return (bytes.count() < 0 ? "-" : "") + best;
}

}  // namespace flyover
