#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <muparserx/mpOprtBinShortcut.h>
#include <muparserx/mpParser.h>
#include <muparserx/mpValReader.h>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/text.hpp"
#include "flyover/study/sweep_space.hpp"

namespace flyover {

namespace {

// muParserX works in doubles, which hold every whole number up to here.
constexpr double largest_whole = 9007199254740992;

std::string kind_of(const mup::IValue& value) {
  switch (value.GetType()) {
    case 'b':
      return value.GetBool() ? "true" : "false";
    case 's':
      return fmt::format("\"{}\"", value.GetString());
    default:
      return fmt::format("{}", value.GetFloat());
  }
}

// What evaluation finds wrong, with the place in the text that muParserX reads.
struct Trouble {
  int position;
  std::string problem;
  std::string missing;  // The name, as muParserX knows it, that has no value.
};

// A variable without a value is of type 'v'.
bool is_number(const mup::IValue& value) {
  return value.GetType() == 'i' || value.GetType() == 'f';
}

void check_present(const mup::IValue& value) {
  if (value.GetType() == 'v') throw Trouble{-1, {}, value.GetIdent()};
}

double number_for(const mup::IToken& user, std::string_view word, const mup::IValue& value) {
  check_present(value);
  if (is_number(value)) return value.GetFloat();
  throw Trouble{
      user.GetExprPos(), fmt::format("{} takes numbers, got {}", word, kind_of(value)), {}};
}

bool truth_for(const mup::IToken& user, std::string_view word, const mup::IValue& value) {
  check_present(value);
  if (value.GetType() == 'b') return value.GetBool();
  throw Trouble{
      user.GetExprPos(), fmt::format("{} takes true or false, got {}", word, kind_of(value)), {}};
}

struct BinaryOperator {
  std::string_view word;
  int precedence;
  mup::EOprtAsct associativity;
  double (*arithmetic)(double, double);
};

double modulo(double a, double b) {
  return a - b * std::floor(a / b);
}

// Libraries and processors differ in the last bits of logarithms and powers; no result should.
double portable(double value) {
  if (!std::isfinite(value) || value == std::trunc(value)) return value;
  const std::string text = fmt::format("{:.13e}", value);
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double power(double a, double b) {
  return portable(std::pow(a, b));
}

constexpr std::array arithmetic_operators = {
    BinaryOperator{"+", mup::prADD_SUB, mup::oaLEFT, [](double a, double b) { return a + b; }},
    BinaryOperator{"-", mup::prADD_SUB, mup::oaLEFT, [](double a, double b) { return a - b; }},
    BinaryOperator{"*", mup::prMUL_DIV, mup::oaLEFT, [](double a, double b) { return a * b; }},
    BinaryOperator{"/", mup::prMUL_DIV, mup::oaLEFT, [](double a, double b) { return a / b; }},
    BinaryOperator{"%", mup::prMUL_DIV, mup::oaLEFT, modulo},
    BinaryOperator{"^", mup::prPOW, mup::oaRIGHT, power}};

class Arithmetic : public mup::IOprtBin {
 public:
  explicit Arithmetic(const BinaryOperator& made_of)
      : IOprtBin(made_of.word.data(), made_of.precedence, made_of.associativity),
        made_of_(made_of) {}
  void Eval(mup::ptr_val_type& result, const mup::ptr_val_type* arguments, int /*count*/) override {
    const double a = number_for(*this, made_of_.word, *arguments[0]);
    const double b = number_for(*this, made_of_.word, *arguments[1]);
    *result = made_of_.arithmetic(a, b);
  }
  [[nodiscard]] const mup::char_type* GetDesc() const override { return ""; }
  [[nodiscard]] mup::IToken* Clone() const override { return new Arithmetic(*this); }

 private:
  const BinaryOperator& made_of_;
};

struct ComparisonOperator {
  std::string_view word;
  int precedence;
  bool (*holds)(double);  // Of the difference's sign.
};

constexpr std::array comparison_operators = {
    ComparisonOperator{"==", mup::prRELATIONAL1, [](double sign) { return sign == 0; }},
    ComparisonOperator{"!=", mup::prRELATIONAL1, [](double sign) { return sign != 0; }},
    ComparisonOperator{"<", mup::prRELATIONAL2, [](double sign) { return sign < 0; }},
    ComparisonOperator{"<=", mup::prRELATIONAL2, [](double sign) { return sign <= 0; }},
    ComparisonOperator{">", mup::prRELATIONAL2, [](double sign) { return sign > 0; }},
    ComparisonOperator{">=", mup::prRELATIONAL2, [](double sign) { return sign >= 0; }}};

class Comparison : public mup::IOprtBin {
 public:
  explicit Comparison(const ComparisonOperator& made_of)
      : IOprtBin(made_of.word.data(), made_of.precedence, mup::oaLEFT),
        made_of_(made_of) {}
  void Eval(mup::ptr_val_type& result, const mup::ptr_val_type* arguments, int /*count*/) override {
    const mup::IValue& a = *arguments[0];
    const mup::IValue& b = *arguments[1];
    check_present(a);
    check_present(b);
    if (is_number(a) && is_number(b)) {
      const double x = a.GetFloat();
      const double y = b.GetFloat();
      *result = made_of_.holds(x < y ? -1 : (x > y ? 1 : 0));
      return;
    }
    const bool equality = made_of_.precedence == mup::prRELATIONAL1;
    if (!equality || a.GetType() != b.GetType()) {
      throw Trouble{GetExprPos(),
                    fmt::format("{} compares {}, got {} and {}", made_of_.word,
                                equality ? "like with like" : "numbers", kind_of(a), kind_of(b)),
                    {}};
    }
    const bool same =
        a.GetType() == 's' ? a.GetString() == b.GetString() : a.GetBool() == b.GetBool();
    *result = made_of_.holds(same ? 0 : 1);
  }
  [[nodiscard]] const mup::char_type* GetDesc() const override { return ""; }
  [[nodiscard]] mup::IToken* Clone() const override { return new Comparison(*this); }

 private:
  const ComparisonOperator& made_of_;
};

class Sign : public mup::IOprtInfix {
 public:
  explicit Sign(double factor)
      : IOprtInfix(factor < 0 ? "-" : "+", mup::prINFIX),
        factor_(factor) {}
  void Eval(mup::ptr_val_type& result, const mup::ptr_val_type* arguments, int /*count*/) override {
    *result = factor_ * number_for(*this, factor_ < 0 ? "-" : "+", *arguments[0]);
  }
  [[nodiscard]] const mup::char_type* GetDesc() const override { return ""; }
  [[nodiscard]] mup::IToken* Clone() const override { return new Sign(*this); }

 private:
  double factor_;
};

// Binds less than comparisons, so that `not a == b` is `not (a == b)`, and more than `and`.
class Not : public mup::IOprtInfix {
 public:
  Not() : IOprtInfix("!", mup::prBIT_OR) {}
  void Eval(mup::ptr_val_type& result, const mup::ptr_val_type* arguments, int /*count*/) override {
    *result = !truth_for(*this, "not", *arguments[0]);
  }
  [[nodiscard]] const mup::char_type* GetDesc() const override { return ""; }
  [[nodiscard]] mup::IToken* Clone() const override { return new Not(*this); }
};

constexpr std::size_t any_count = 0;

struct FunctionKind {
  std::string_view name;
  std::size_t arguments;  // Or any_count: one or more.
  double (*of)(double, double);
};

constexpr std::array function_kinds = {
    FunctionKind{"abs", 1, [](double a, double) { return std::fabs(a); }},
    FunctionKind{"ceil", 1, [](double a, double) { return std::ceil(a); }},
    FunctionKind{"exp", 1, [](double a, double) { return portable(std::exp(a)); }},
    FunctionKind{"floor", 1, [](double a, double) { return std::floor(a); }},
    FunctionKind{"ln", 1, [](double a, double) { return portable(std::log(a)); }},
    FunctionKind{"log10", 1, [](double a, double) { return portable(std::log10(a)); }},
    FunctionKind{"log2", 1, [](double a, double) { return portable(std::log2(a)); }},
    FunctionKind{"max", any_count, [](double a, double b) { return std::max(a, b); }},
    FunctionKind{"min", any_count, [](double a, double b) { return std::min(a, b); }},
    FunctionKind{"pow", 2, power},
    FunctionKind{"round", 1, [](double a, double) { return std::round(a); }},
    FunctionKind{"sqrt", 1, [](double a, double) { return std::sqrt(a); }}};

// Known to muParserX with any number of arguments: where a sign stands in a call it takes the
// arguments of an outer function for those of an inner one. Our reading has counted them.
class Function : public mup::ICallback {
 public:
  explicit Function(const FunctionKind& kind)
      : ICallback(mup::cmFUNC, kind.name.data(), -1),
        kind_(kind) {}
  void Eval(mup::ptr_val_type& result, const mup::ptr_val_type* arguments, int count) override {
    double value = number_for(*this, kind_.name, *arguments[0]);
    if (kind_.arguments == 1) value = kind_.of(value, 0);
    for (int i = 1; i < count; ++i) {
      value = kind_.of(value, number_for(*this, kind_.name, *arguments[i]));
    }
    *result = value;
  }
  [[nodiscard]] const mup::char_type* GetDesc() const override { return ""; }
  [[nodiscard]] mup::IToken* Clone() const override { return new Function(*this); }

 private:
  const FunctionKind& kind_;
};

const FunctionKind* function_kind(std::string_view name) {
  const auto* found = std::ranges::find(function_kinds, name, &FunctionKind::name);
  return found == function_kinds.end() ? nullptr : found;
}

constexpr std::array<std::string_view, 5> keywords = {"and", "false", "not", "or", "true"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// What muParserX is given instead of the text: words of ours spelt as it has them, names and
// strings as variables v0, v1, ... and s0, s1, ..., a blank between any two. Its own reader takes
// the start of a name for an operator ("not" of "notes"), "2i" for a complex number, and tells no
// positions for much of what it refuses; so what may follow what is checked here, what it means is
// left to muParserX.
struct Translation {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // In `text`, in the original.
  std::vector<std::string> names;                           // v0, v1, ...
  std::vector<std::string> strings;                         // s0, s1, ...
};

// muParserX takes 10,000 characters.
constexpr std::size_t longest = 9'900;

class Translator {
 public:
  explicit Translator(std::string_view text) : text_(text) {}

  Translation translate() {
    skip_blanks();
    if (at_ == text_.size()) throw InputError("expected an expression, got nothing");
    while (at_ < text_.size()) {
      if (wants_value_) {
        read_value();
      } else {
        read_operator();
      }
      skip_blanks();
    }
    if (wants_value_) fail(text_.size(), "expected a value");
    if (!open_.empty()) {
      const Open& last = open_.back();
      fail(last.at, last.kind == '?' ? "\"?\" without \":\"" : "\"(\" that is never closed");
    }
    if (out_.text.size() > longest) {
      throw InputError(fmt::format("an expression of {} words and signs is too long: derive parts",
                                   out_.places.size()));
    }
    return std::move(out_);
  }

 private:
  struct Open {
    char kind;  // '(' or '?'
    std::size_t at;
    const FunctionKind* function;
    std::size_t commas;
  };

  [[noreturn]] void fail(std::size_t at, std::string_view problem) const {
    if (at == text_.size()) {
      throw InputError(fmt::format("end of \"{}\": {}", text_, problem));
    }
    throw InputError(fmt::format("character {} of \"{}\": {}", at + 1, text_, problem));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) {
      ++at_;
    }
  }

  [[nodiscard]] bool starts(std::string_view word) const {
    return text_.substr(at_).starts_with(word);
  }

  // The text of a token, as a person would quote it.
  [[nodiscard]] std::string shown() const {
    std::size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    if (end == at_) ++end;
    // All bytes of a character beyond ASCII.
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80U) ++end;
    return fmt::format("\"{}\"", text_.substr(at_, end - at_));
  }

  void emit(std::string_view word, std::size_t length) {
    out_.places.emplace_back(out_.text.size(), at_);
    out_.text += word;
    out_.text += ' ';
    at_ += length;
  }

  void read_value() {
    const char c = text_[at_];
    if (c == '(') {
      open_.push_back({'(', at_, nullptr, 0});
      emit("(", 1);
    } else if (c == '-' || c == '+') {
      prefix(text_.substr(at_, 1), 1);
    } else if (c == '!' && !starts("!=")) {
      prefix("!", 1);
    } else if (is_digit(c) || c == '.') {
      read_number();
    } else if (c == '"' || c == '\'') {
      read_string(c);
    } else if (is_letter(c)) {
      read_word();
    } else {
      fail(at_, fmt::format("expected a value, got {}", shown()));
    }
  }

  // muParserX takes one.
  void prefix(std::string_view word, std::size_t length) {
    if (!out_.text.empty() && after_prefix_ == out_.text.size()) {
      fail(at_, fmt::format("expected a value, got {}: put it in parentheses", shown()));
    }
    emit(word, length);
    after_prefix_ = out_.text.size();
  }

  void read_number() {
    double value = 0;
    const char* first = text_.data() + at_;
    const char* last = text_.data() + text_.size();
    const auto [end, error] = std::from_chars(first, last, value);
    if (error == std::errc::result_out_of_range) fail(at_, "number out of range");
    if (error != std::errc()) fail(at_, fmt::format("expected a value, got {}", shown()));
    const auto length = static_cast<std::size_t>(end - first);
    if (end != last && (is_letter(*end) || *end == '.')) {
      fail(at_ + length, "expected the end of a number, which has no unit here, got \"" +
                             std::string(1, *end) + "\"");
    }
    emit(text_.substr(at_, length), length);
    wants_value_ = false;
  }

  void read_string(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(at_, "a string that never ends");
    out_.strings.emplace_back(text_.substr(at_ + 1, end - at_ - 1));
    emit(fmt::format("s{}", out_.strings.size() - 1), end + 1 - at_);
    wants_value_ = false;
  }

  [[nodiscard]] std::string_view word_here() const {
    std::size_t end = at_;
    while (end < text_.size() &&
           (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.')) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  void read_word() {
    const std::string_view word = word_here();
    if (word == "not") return prefix("!", word.size());
    if (word == "and" || word == "or") fail(at_, fmt::format("expected a value, got \"{}\"", word));
    if (word == "true" || word == "false") {
      emit(word, word.size());
      wants_value_ = false;
      return;
    }
    std::size_t next = at_ + word.size();
    while (next < text_.size() && text_[next] == ' ') ++next;
    const bool called = next < text_.size() && text_[next] == '(';
    const FunctionKind* function = function_kind(word);
    if (called) return read_call(word, function, next);
    if (function != nullptr) {
      fail(at_, fmt::format("\"{0}\" is a function, expected {0}(...)", word));
    }
    if (!is_expression_name(word)) fail(at_, fmt::format("\"{}\" is no name", word));
    const auto known = std::ranges::find(out_.names, word);
    const auto index = static_cast<std::size_t>(known - out_.names.begin());
    if (known == out_.names.end()) out_.names.emplace_back(word);
    emit(fmt::format("v{}", index), word.size());
    wants_value_ = false;
  }

  void read_call(std::string_view word, const FunctionKind* function, std::size_t parenthesis) {
    if (function == nullptr) {
      std::vector<std::string> known;
      known.reserve(function_kinds.size());
      for (const FunctionKind& kind : function_kinds) known.emplace_back(kind.name);
      fail(at_, fmt::format("there is no function \"{}\"{}", word, did_you_mean(word, known)));
    }
    open_.push_back({'(', at_, function, 0});
    emit(word, word.size());
    at_ = parenthesis;
    emit("(", 1);
  }

  void read_operator() {
    wants_value_ = true;
    const char c = text_[at_];
    if (c == ')') return close();
    if (c == ',') return separate();
    if (c == '?') {
      open_.push_back({'?', at_, nullptr, 0});
      return emit("?", 1);
    }
    if (c == ':') {
      if (open_.empty() || open_.back().kind != '?') fail(at_, "\":\" without \"?\"");
      open_.pop_back();
      return emit(":", 1);
    }
    if (is_letter(c)) {
      const std::string_view word = word_here();
      if (word == "and") return emit("&&", word.size());
      if (word == "or") return emit("||", word.size());
      const std::vector<std::string> known = {"and", "or"};
      fail(at_, fmt::format("expected an operator, got \"{}\"{}", word, did_you_mean(word, known)));
    }
    for (const std::string_view word : {"&&", "||", "==", "!=", "<=", ">=", "<", ">"}) {
      if (starts(word)) return emit(word, word.size());
    }
    if (c == '=') fail(at_, "expected an operator, got \"=\": \"==\" compares");
    if (starts("**")) fail(at_, "expected an operator, got \"**\": \"^\" is the power");
    for (const BinaryOperator& arithmetic : arithmetic_operators) {
      if (starts(arithmetic.word)) return emit(arithmetic.word, arithmetic.word.size());
    }
    fail(at_, fmt::format("expected an operator, got {}", shown()));
  }

  void check_closed_condition() const {
    if (!open_.empty() && open_.back().kind == '?') fail(open_.back().at, "\"?\" without \":\"");
  }

  void close() {
    check_closed_condition();
    if (open_.empty()) fail(at_, "\")\" without \"(\"");
    const Open last = open_.back();
    const FunctionKind* function = last.function;
    const std::size_t count = last.commas + 1;
    if (function != nullptr && function->arguments != any_count && count != function->arguments) {
      fail(last.at, fmt::format("{} takes {} value{}, got {}", function->name, function->arguments,
                                function->arguments == 1 ? "" : "s", count));
    }
    open_.pop_back();
    emit(")", 1);
    wants_value_ = false;
  }

  void separate() {
    check_closed_condition();
    if (open_.empty() || open_.back().function == nullptr) {
      fail(at_, "\",\" outside of a function's parentheses");
    }
    ++open_.back().commas;
    emit(",", 1);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool wants_value_ = true;
  std::size_t after_prefix_ = 0;  // In the translation.
  std::vector<Open> open_;
  Translation out_;
};

// One parser and the values of its variables; used by one thread at a time.
class Compiled {
 public:
  explicit Compiled(const Translation& translation)
      : parser_(0),
        names_(translation.names.size()),
        strings_(translation.strings.size()) {
    parser_.DefineNameChars("0123456789abcdefghijklmnopqrstuvwxyz");
    parser_.DefineOprtChars("+-*/%^=!<>&|?:");
    parser_.DefineInfixOprtChars("+-!");
    parser_.AddValueReader(new mup::DblValReader());
    parser_.AddValueReader(new mup::BoolValReader());
    for (const BinaryOperator& one : arithmetic_operators) {
      parser_.DefineOprt(mup::TokenPtr<mup::IOprtBin>(new Arithmetic(one)));
    }
    for (const ComparisonOperator& one : comparison_operators) {
      parser_.DefineOprt(mup::TokenPtr<mup::IOprtBin>(new Comparison(one)));
    }
    using ShortCut = mup::TokenPtr<mup::IOprtBinShortcut>;
    parser_.DefineOprt(ShortCut(new mup::OprtShortcutLogicAndBegin()));
    parser_.DefineOprt(ShortCut(new mup::OprtShortcutLogicOrBegin()));
    using Prefix = mup::TokenPtr<mup::IOprtInfix>;
    parser_.DefineInfixOprt(Prefix(new Sign(1)));
    parser_.DefineInfixOprt(Prefix(new Sign(-1)));
    parser_.DefineInfixOprt(Prefix(new Not()));
    for (const FunctionKind& kind : function_kinds) {
      parser_.DefineFun(mup::ptr_cal_type(new Function(kind)));
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      parser_.DefineVar(fmt::format("v{}", i), mup::Variable(&names_[i]));
    }
    for (std::size_t i = 0; i < strings_.size(); ++i) {
      strings_[i] = translation.strings[i];
      parser_.DefineVar(fmt::format("s{}", i), mup::Variable(&strings_[i]));
    }
    parser_.SetExpr(translation.text);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  void check() { (void)parser_.GetExprVar(); }
  mup::Value& variable(std::size_t index) { return names_[index]; }
  const mup::IValue& value() { return parser_.Eval(); }

 private:
  mup::ParserX parser_;
  std::vector<mup::Value> names_;  // Borrowed by the parser: never resized.
  std::vector<mup::Value> strings_;
};

void assign(mup::Value& variable, const SweepValue& value) {
  if (const auto* truth = std::get_if<bool>(&value)) {
    variable = *truth;
  } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    variable = static_cast<double>(*whole);
  } else if (const auto* number = std::get_if<double>(&value)) {
    variable = *number;
  } else {
    variable = std::get<std::string>(value);
  }
}

bool too_large(const SweepValue& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole != nullptr && std::fabs(static_cast<double>(*whole)) > largest_whole;
}

}  // namespace

struct Expression::Impl {
  std::string text;
  Translation translation;
  std::vector<std::string> names;  // Ascending.

  // Parsers that no thread uses at the moment. muParserX counts references without locks and makes
  // its tables at the first use, so making one is guarded across all expressions.
  std::mutex guard;
  std::vector<std::unique_ptr<Compiled>> idle;

  std::unique_ptr<Compiled> take() {
    {
      const std::lock_guard lock(guard);
      if (!idle.empty()) {
        std::unique_ptr<Compiled> one = std::move(idle.back());
        idle.pop_back();
        return one;
      }
    }
    static std::mutex making;
    const std::lock_guard lock(making);
    (void)mup::ParserErrorMsg::Instance();
    return std::make_unique<Compiled>(translation);
  }

  void give_back(std::unique_ptr<Compiled> one) {
    const std::lock_guard lock(guard);
    idle.push_back(std::move(one));
  }

  [[nodiscard]] std::string at(int position) const {
    const auto after = std::ranges::upper_bound(translation.places,
                                                static_cast<std::size_t>(std::max(position, 0)), {},
                                                &std::pair<std::size_t, std::size_t>::first);
    const std::size_t place = after == translation.places.begin() ? 0 : std::prev(after)->second;
    return fmt::format("character {} of \"{}\"", place + 1, text);
  }

  [[nodiscard]] SweepValue result(const mup::IValue& value) const {
    check_present(value);
    if (value.GetType() == 'b') return value.GetBool();
    if (value.GetType() == 's') return value.GetString();
    const double number = value.GetFloat();
    if (!std::isfinite(number)) {
      throw NoValue(fmt::format("\"{}\" is no finite number here", text));
    }
    if (number == std::trunc(number) && std::fabs(number) <= largest_whole) {
      return static_cast<std::int64_t>(number);
    }
    return number;
  }

  // muParserX's own complaints, of which only those about conditions are left.
  [[noreturn]] void explain(const mup::ParserError& error, const SweepValues& values) const {
    for (const std::string& name : names) {
      if (error.GetToken().empty() || error.GetToken() != variable_of(name)) continue;
      const SweepValue* value = find(values, name);
      if (value == nullptr) throw_missing(name);
      throw InputError(
          fmt::format("\"{}\": {} is {}, expected true or false", text, name, to_string(*value)));
    }
    throw InputError(fmt::format("\"{}\": \"and\", \"or\" and \"?\" take true or false", text));
  }

  [[nodiscard]] std::string variable_of(const std::string& name) const {
    return fmt::format("v{}",
                       std::ranges::find(translation.names, name) - translation.names.begin());
  }

  [[noreturn]] void throw_missing(const std::string& name) const {
    throw NoValue(fmt::format("\"{}\" needs {}, which has no value here", text, name));
  }

  SweepValue evaluate(Compiled& compiled, const SweepValues& values) const {
    for (std::size_t i = 0; i < translation.names.size(); ++i) {
      const SweepValue* value = find(values, translation.names[i]);
      if (value == nullptr) {
        compiled.variable(i) = mup::Value('v');
        continue;
      }
      if (too_large(*value)) {
        throw InputError(fmt::format("\"{}\": {} is {}, expected at most 2^53", text,
                                     translation.names[i], to_string(*value)));
      }
      assign(compiled.variable(i), *value);
    }
    try {
      return result(compiled.value());
    } catch (const Trouble& trouble) {
      if (trouble.missing.empty()) {
        throw InputError(fmt::format("{}: {}", at(trouble.position), trouble.problem));
      }
      for (const std::string& name : translation.names) {
        if (variable_of(name) == trouble.missing) throw_missing(name);
      }
      require(false, "a name for every variable");
    } catch (const mup::ParserError& error) {
      explain(error, values);
    }
    return {};
  }
};

std::span<const std::string> expression_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all(keywords.begin(), keywords.end());
    for (const FunctionKind& kind : function_kinds) all.emplace_back(kind.name);
    std::ranges::sort(all);
    return all;
  }();
  return words;
}

bool is_expression_name(std::string_view name) {
  if (name.empty() || !is_letter(name.front()) || name.back() == '.') return false;
  if (name.find("..") != std::string_view::npos) return false;
  return std::ranges::all_of(name,
                             [](char c) { return is_letter(c) || is_digit(c) || c == '.'; }) &&
         !std::ranges::binary_search(expression_words(), name);
}

Expression::Expression(std::string text) : impl_(std::make_unique<Impl>()) {
  impl_->text = std::move(text);
  impl_->translation = Translator(impl_->text).translate();
  impl_->names = impl_->translation.names;
  std::ranges::sort(impl_->names);
  std::unique_ptr<Compiled> compiled = impl_->take();
  try {
    compiled->check();
  } catch (const mup::ParserError& error) {
    throw InputError(fmt::format("{}: {}", impl_->at(error.GetPos()), error.GetMsg()));
  }
  impl_->give_back(std::move(compiled));
}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

const std::string& Expression::text() const {
  return impl_->text;
}

const std::vector<std::string>& Expression::names() const {
  return impl_->names;
}

SweepValue Expression::value(const SweepValues& values) const {
  std::unique_ptr<Compiled> compiled = impl_->take();
  try {
    SweepValue result = impl_->evaluate(*compiled, values);
    impl_->give_back(std::move(compiled));
    return result;
  } catch (const InputError&) {
    impl_->give_back(std::move(compiled));
    throw;
  }
}

bool Expression::holds(const SweepValues& values) const {
  const SweepValue result = value(values);
  if (const auto* truth = std::get_if<bool>(&result)) return *truth;
  throw InputError(
      fmt::format("\"{}\" is {}, expected a condition, true or false", text(), to_string(result)));
}

double Expression::number(const SweepValues& values) const {
  const SweepValue result = value(values);
  if (const auto* whole = std::get_if<std::int64_t>(&result)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&result)) return *number;
  throw InputError(fmt::format("\"{}\" is {}, expected a number", text(), to_string(result)));
}

}  // namespace flyover
