// Do expressions mean what docs/formats/sweep.md says, and do wrong ones say where they are wrong?

#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/study/sweep_space.hpp"
#include "support/dice.hpp"

namespace flyover {
namespace {

const SweepValues& values() {
  static const SweepValues all = {{"fits", true},
                                  {"nothing_new", std::int64_t{3}},
                                  {"oversubscription", 1.5},
                                  {"schedule", std::string("1f1b")},
                                  {"tp", std::int64_t{4}}};
  return all;
}

std::string result(const std::string& text) {
  return to_string(Expression(text).value(values()));
}

std::string problem(const std::string& text) {
  try {
    (void)Expression(text).value(values());
  } catch (const InputError& error) {
    CHECK(error.place().file.empty());
    return error.what();
  }
  return "";
}

bool has_no_value(const std::string& text) {
  try {
    (void)Expression(text).value(values());
  } catch (const NoValue&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("an expression has the value that its operators and functions give", "[study][sweep]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"7 / 2", "3.5"},
      {"8 / 2", "4"},
      {"oversubscription * 2", "3"},
      {"2 ^ 10", "1024"},
      {"2 ^ 3 ^ 2", "512"},
      {"2 ^ -1", "0.5"},
      {"-tp ^ 2", "-16"},
      {"-(2 + 3) ^ 2", "-25"},
      {"2 * -3", "-6"},
      {"1--1", "2"},
      {"+tp", "4"},
      {"-0", "0"},
      {"7 % 4", "3"},
      {"-5 % 3", "1"},
      {"1.5e3", "1500"},
      {".5 + 3.", "3.5"},
      {"min(tp, oversubscription, 9)", "1.5"},
      {"max(1)", "1"},
      {"max(1, 2, 3)", "3"},
      {"abs(-2.5)", "2.5"},
      {"ceil(tp / 3)", "2"},
      {"floor(tp / 3)", "1"},
      {"round(2.5)", "3"},
      {"sqrt(16)", "4"},
      {"log2(1024)", "10"},
      {"log10(1000)", "3"},
      {"ln(exp(2))", "2"},
      {"exp(1)", "2.718281828459"},  // 14 digits: the last ones differ between libraries.
      {"pow(3, 2)", "9"},
      {"3 ^ 33", "5559060566555523"},
      {"max(abs(-1), log2(8))", "3"},
      {"abs(-1) + max(1, 2, log2(4))", "3"},
      {"max(-(2), 3)", "3"},
      {"tp == 4", "true"},
      {"tp != 4", "false"},
      {"tp >= 4 and tp <= 4", "true"},
      {"tp < 4 or tp > 4", "false"},
      {"oversubscription == 1.5", "true"},
      {"schedule == \"1f1b\"", "true"},
      {"schedule == 'gpipe'", "false"},
      {"schedule != 'gpipe'", "true"},
      {"'a' == 'A'", "false"},
      {"fits", "true"},
      {"fits == true", "true"},
      {"not fits", "false"},
      {"!fits", "false"},
      {"not tp == 2", "true"},
      {"not (tp == 2) and fits", "true"},
      {"true or false and false", "true"},
      {"(true or false) and false", "false"},
      {"fits && tp == 4 || false", "true"},
      {"tp > 2 ? 'wide' : 'narrow'", "\"wide\""},
      {"fits ? 1 : tp > 2 ? 3 : 4", "1"},
      {"tp == 4 ? oversubscription > 1 and fits ? 'a' : 'b' : 'c'", "\"a\""},
      {"(tp==4)and(oversubscription<2)", "true"},
      {"schedule", "\"1f1b\""},
      {"nothing_new", "3"},  // Not `not`.
  }));
  CAPTURE(text);
  CHECK(result(text) == expected);
}

TEST_CASE("and, or and conditions do not come to what they need not know", "[study][sweep]") {
  CHECK(result("tp == 4 or vp > 2") == "true");
  CHECK(result("tp == 3 and vp > 2") == "false");
  CHECK(result("tp == 4 ? 1 : vp") == "1");
  CHECK(has_no_value("tp == 3 or vp > 2"));
  CHECK(has_no_value("vp > 2 or tp == 4"));
  CHECK(problem("tp * vp") == "\"tp * vp\" needs vp, which has no value here");
  CHECK(problem("vp and fits") == "\"vp and fits\" needs vp, which has no value here");
}

TEST_CASE("an expression knows the names that it uses", "[study][sweep]") {
  const Expression expression("b.c > 2 and not a or max(a, 'd', e_1) == 'f' and true");
  CHECK(expression.names() == std::vector<std::string>{"a", "b.c", "e_1"});
  CHECK(Expression("1 + 1").names().empty());
}

TEST_CASE("what is no finite number is so at this point only", "[study][sweep]") {
  for (const std::string text : {"1 / 0", "0 / 0", "sqrt(-1)", "ln(0)", "1e308 * 10", "5 % 0"}) {
    CAPTURE(text);
    CHECK(has_no_value(text));
    CHECK(problem(text) == "\"" + text + "\" is no finite number here");
  }
}

TEST_CASE("a wrong expression says where it is wrong", "[study][sweep]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"", "expected an expression, got nothing"},
      {"  ", "expected an expression, got nothing"},
      {"tp >", "end of \"tp >\": expected a value"},
      {"not", "end of \"not\": expected a value"},
      {"tp tp", "character 4 of \"tp tp\": expected an operator, got \"tp\""},
      {"2 tp", "character 3 of \"2 tp\": expected an operator, got \"tp\""},
      {"tp = 3", "character 4 of \"tp = 3\": expected an operator, got \"=\": \"==\" compares"},
      {"tp ** 2",
       "character 4 of \"tp ** 2\": expected an operator, got \"**\": \"^\" is the power"},
      {"tp $ 2", "character 4 of \"tp $ 2\": expected an operator, got \"$\""},
      {"tp andd fits",
       "character 4 of \"tp andd fits\": expected an operator, got \"andd\", did you "
       "mean \"and\"?"},
      {"8 // 3", "character 4 of \"8 // 3\": expected a value, got \"/\""},
      {"and", "character 1 of \"and\": expected a value, got \"and\""},
      {"\xC3\xA9", "character 1 of \"\xC3\xA9\": expected a value, got \"\xC3\xA9\""},
      {"(tp", "character 1 of \"(tp\": \"(\" that is never closed"},
      {"tp)", "character 3 of \"tp)\": \")\" without \"(\""},
      {"()", "character 2 of \"()\": expected a value, got \")\""},
      {"(tp, 3)", "character 4 of \"(tp, 3)\": \",\" outside of a function's parentheses"},
      {"max()", "character 5 of \"max()\": expected a value, got \")\""},
      {"max(1,,2)", "character 7 of \"max(1,,2)\": expected a value, got \",\""},
      {"log2(tp, 3)", "character 1 of \"log2(tp, 3)\": log2 takes 1 value, got 2"},
      {"pow(2)", "character 1 of \"pow(2)\": pow takes 2 values, got 1"},
      {"lgo2(tp)",
       "character 1 of \"lgo2(tp)\": there is no function \"lgo2\", did you mean \"log2\"?"},
      {"min", "character 1 of \"min\": \"min\" is a function, expected min(...)"},
      {"'abc", "character 1 of \"'abc\": a string that never ends"},
      {"0x10",
       "character 2 of \"0x10\": expected the end of a number, which has no unit here, got "
       "\"x\""},
      {"2i",
       "character 2 of \"2i\": expected the end of a number, which has no unit here, got \"i\""},
      {"1.2.3",
       "character 4 of \"1.2.3\": expected the end of a number, which has no unit here, got "
       "\".\""},
      {"1e400", "character 1 of \"1e400\": number out of range"},
      {"tp.", "character 1 of \"tp.\": \"tp.\" is no name"},
      {"fits ? 1", "character 6 of \"fits ? 1\": \"?\" without \":\""},
      {"(fits ? 1) : 2", "character 7 of \"(fits ? 1) : 2\": \"?\" without \":\""},
      {"tp : 3", "character 4 of \"tp : 3\": \":\" without \"?\""},
      {"not not fits",
       "character 5 of \"not not fits\": expected a value, got \"not\": put it in parentheses"},
      {"- - tp", "character 3 of \"- - tp\": expected a value, got \"-\": put it in parentheses"},
      {"tp[1]", "character 3 of \"tp[1]\": expected an operator, got \"[\""},
      // Of the wrong type.
      {"schedule + 1", "character 10 of \"schedule + 1\": + takes numbers, got \"1f1b\""},
      {"-fits", "character 1 of \"-fits\": - takes numbers, got true"},
      {"log2(schedule)", "character 1 of \"log2(schedule)\": log2 takes numbers, got \"1f1b\""},
      {"not tp", "character 1 of \"not tp\": not takes true or false, got 4"},
      {"tp == 'x'", "character 4 of \"tp == 'x'\": == compares like with like, got 4 and \"x\""},
      {"fits == 1", "character 6 of \"fits == 1\": == compares like with like, got true and 1"},
      {"schedule < 'x'",
       "character 10 of \"schedule < 'x'\": < compares numbers, got \"1f1b\" and "
       "\"x\""},
      {"1 < tp < 8", "character 8 of \"1 < tp < 8\": < compares numbers, got true and 8"},
      {"tp and fits", "\"tp and fits\": tp is 4, expected true or false"},
      {"schedule ? 1 : 2", "\"schedule ? 1 : 2\": schedule is \"1f1b\", expected true or false"},
      {"tp + 1 or fits", "\"tp + 1 or fits\": \"and\", \"or\" and \"?\" take true or false"},
  }));
  CAPTURE(text);
  CHECK(problem(text) == expected);
}

TEST_CASE("conditions are true or false, objectives are numbers", "[study][sweep]") {
  CHECK(Expression("tp > 2").holds(values()));
  CHECK(Expression("tp / 8").number(values()) == 0.5);
  CHECK_THROWS_WITH(Expression("tp + 1").holds(values()),
                    "\"tp + 1\" is 5, expected a condition, true or false");
  CHECK_THROWS_WITH(Expression("schedule").number(values()),
                    "\"schedule\" is \"1f1b\", expected a number");
  CHECK_THROWS_WITH(Expression("fits").number(values()), "\"fits\" is true, expected a number");
}

TEST_CASE("whole numbers that a double cannot hold are refused", "[study][sweep]") {
  const std::int64_t largest = std::int64_t{1} << 53U;
  CHECK(Expression("n").value({{"n", largest}}) == SweepValue(largest));
  CHECK_THROWS_WITH(Expression("n + 1").value({{"n", 4 * largest}}),
                    "\"n + 1\": n is 36028797018963968, expected at most 2^53");
}

TEST_CASE("an expression of a thousand terms works, a longer one is refused", "[study][sweep]") {
  std::string sum = "1";
  for (int i = 1; i < 1000; ++i) sum += "+1";
  CHECK(result(sum) == "1000");
  const std::string nested = std::string(1000, '(') + "7" + std::string(1000, ')');
  CHECK(result(nested) == "7");
  for (int i = 0; i < 2000; ++i) sum += "+1";
  CHECK(problem(sum) == "an expression of 5999 words and signs is too long: derive parts");
}

TEST_CASE("names are letters, digits, underscores and dots", "[study][sweep]") {
  for (const std::string name : {"tp", "a.b.0.c", "_x", "T2", "andy", "minimum"}) {
    CAPTURE(name);
    CHECK(is_expression_name(name));
    CHECK(to_string(Expression(name + " + 1").value({{name, std::int64_t{1}}})) == "2");
  }
  for (const std::string name :
       {"", "2x", "a-b", "a.", ".a", "a..b", "and", "min", "true", "\xC3\xA9"}) {
    CAPTURE(name);
    CHECK_FALSE(is_expression_name(name));
  }
}

TEST_CASE("an expression on many threads gives each its own value", "[study][sweep]") {
  const Expression expression("kind == 'odd' ? 3 * n + 1 : n / 2");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t n = 0; n < 2000; ++n) {
        const std::int64_t expected = n % 2 == 1 ? 3 * n + 1 : n / 2;
        const SweepValues point = {{"kind", std::string(n % 2 == 1 ? "odd" : "even")}, {"n", n}};
        if (expression.value(point) != SweepValue(expected)) ++wrong[t];
        if (Expression("n + 1").value(point) != SweepValue(n + 1)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(wrong.size()));
}

TEST_CASE("no text makes the parser fail otherwise than with an error of ours", "[study][sweep]") {
  test::Dice dice(7);
  const std::vector<std::string> pieces = {
      "tp",  "fits", "schedule", "vp", "1", "2.5",  "'a'",   "(",    ")",    ",",
      "+",   "-",    "*",        "/",  "^", "%",    "==",    "!=",   "<",    ">=",
      "and", "or",   "not",      "?",  ":", "max(", "log2(", "true", " ",    "!",
      "&&",  "||",   "i",        "e",  "0", ".",    "\"",    "=",    "abs(-"};
  int valid = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint32_t n = 1 + dice.below(9); n > 0; --n)
      text += dice.of(pieces) + (dice.one_in(2) ? " " : "");
    CAPTURE(text);
    try {
      (void)Expression(text).value(values());
      ++valid;
    } catch (const InputError& error) {
      if (error.problem().empty()) FAIL("an error without a problem");
    }
  }
  CHECK(valid > 200);
}

}  // namespace flyover
