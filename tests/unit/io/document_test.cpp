#include "flyover/io/document.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/folder.hpp"

using namespace flyover;
using namespace flyover::literals;
using flyover::io::Document;
using flyover::io::Field;

namespace {

template <class Read>
std::string message_of(std::string text, Read read) {
  try {
    const Document document = Document::parse("pod.json", std::move(text));
    read(document.root());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string syntax_of(std::string text) {
  return message_of(std::move(text), [](const Field&) {});
}

std::string load_message(const std::filesystem::path& path) {
  try {
    (void)Document::load(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string message_of_set(std::string text, std::vector<io::Setting> settings,
                           void (*read)(const Field&)) {
  try {
    Document document = Document::parse("pod.json", std::move(text));
    for (const io::Setting& setting : settings) document.apply(setting);
    read(document.root());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an error names the file, line, column, pointer and what would be right", "[document]") {
  const char* text = R"({
  "links": [
    {"from": "a", "to": "b", "bandwidth": "400 Gb/s"},
    {"from": "b", "to": "a",
     "bandwidth": "-5 Gb/s"}
  ],
  "ranks": 8.5
})";
  CHECK(
      message_of(text,
                 [](const Field& root) { (void)root["links"][1]["bandwidth"].bandwidth(); }) ==
      "pod.json:5:19: /links/1/bandwidth: expected a bandwidth above zero such as \"400 Gb/s\" or "
      "\"50 GB/s\", got \"-5 Gb/s\"");
  CHECK(message_of(text, [](const Field& root) { (void)root["ranks"].integer(); }) ==
        "pod.json:7:12: /ranks: expected a whole number, got 8.5");
  CHECK(message_of(text, [](const Field& root) { (void)root["links"][0]["latency"]; }) ==
        "pod.json:3:5: /links/0: \"latency\" is missing");
  CHECK(message_of(text, [](const Field& root) { (void)root["links"][0]["bandwith"]; }) ==
        "pod.json:3:5: /links/0: \"bandwith\" is missing, is it \"bandwidth\" misspelt?");
  CHECK(message_of(text, [](const Field& root) {
          root.allow_only({"link", "ranks"});
        }) == "pod.json:2:3: /links: is not a known option, did you mean \"link\"?");
  CHECK(message_of(text, [](const Field& root) {
          root.allow_only({"links", "cabling", "racks"});
        }) == "pod.json:7:3: /ranks: is not a known option, did you mean \"racks\"?");
  CHECK(message_of(text, [](const Field& root) {
          root.allow_only({"links", "cabling"});
        }) == "pod.json:7:3: /ranks: is not a known option, known are \"links\" and \"cabling\"");
  CHECK(message_of("{\"a\": 1}", [](const Field& root) { root.allow_only({}); }) ==
        "pod.json:1:2: /a: is not a known option");
}

TEST_CASE("places are right for escaped keys, numbers in arrays and wide characters",
          "[document]") {
  CHECK(message_of("[1,\n2,\n3\n]", [](const Field& root) { root[2].fail("x"); }) ==
        "pod.json:3:1: /2: x");
  CHECK(message_of("[\n[1,2],\n[3,\n {\"a/b~\":4}]]", [](const Field& root) {
          root[1][1]["a/b~"].fail("x");
        }) == "pod.json:4:10: /1/1/a~1b~0: x");
  CHECK(message_of("\xEF\xBB\xBF[\"µs\", 1]", [](const Field& root) { root[1].fail("x"); }) ==
        "pod.json:1:8: /1: x");
  CHECK(message_of("7", [](const Field& root) { root.fail("x"); }) == "pod.json:1:1: x");
}

TEST_CASE("comments are allowed, and so are $schema and comment everywhere", "[document]") {
  CHECK(message_of("// a pod\n{ /* one */ \"$schema\": \"x\", \"comment\": [\"any\", \"thing\"],\n"
                   "\"links\": [] // none\n} /* end */ // really",
                   [](const Field& root) { root.allow_only({"links"}); }) == "no error");
}

TEST_CASE("wrong types are named as they stand in the file", "[document]") {
  const auto problem = [](const char* text, auto read) {
    return message_of(text, [&](const Field& root) { (void)read(root); });
  };
  const auto text = [](const Field& f) { return f.text(); };
  CHECK(problem("[1]", text) == "pod.json:1:1: expected a string, got an array");
  CHECK(problem("{}", text) == "pod.json:1:1: expected a string, got an object");
  CHECK(problem("null", text) == "pod.json:1:1: expected a string, got null");
  CHECK(problem("1e3", text) == "pod.json:1:1: expected a string, got 1e3");
  CHECK(problem("\"yes\"", [](const Field& f) { return f.boolean(); }) ==
        "pod.json:1:1: expected true or false, got \"yes\"");
  CHECK(problem("true", [](const Field& f) { return f.number(); }) ==
        "pod.json:1:1: expected a number, got true");
  CHECK(problem("0", [](const Field& f) { return f.positive_number(); }) ==
        "pod.json:1:1: expected a number above zero, got 0");
  CHECK(problem("\"8\"", [](const Field& f) { return f.integer(); }) ==
        "pod.json:1:1: expected a whole number, got \"8\"");
  CHECK(problem("1e300", [](const Field& f) { return f.integer(); }) ==
        "pod.json:1:1: expected a whole number, got 1e300");
  CHECK(problem("0", [](const Field& f) { return f.count(); }) ==
        "pod.json:1:1: expected a whole number from 1 to 100000000, got 0");
  CHECK(problem("9", [](const Field& f) { return f.count(2, 8); }) ==
        "pod.json:1:1: expected a whole number from 2 to 8, got 9");
  CHECK(problem("-1", [](const Field& f) { return f.count(); }) ==
        "pod.json:1:1: expected a whole number from 1 to 100000000, got -1");
  CHECK(problem("3", [](const Field& f) { return f.size(); }) ==
        "pod.json:1:1: expected an array, got 3");
  CHECK(problem("3", [](const Field& f) { return f.elements().size(); }) ==
        "pod.json:1:1: expected an array, got 3");
  CHECK(problem("[]", [](const Field& f) { return f["a"].text(); }) ==
        "pod.json:1:1: expected an object, got an array");
  CHECK(problem("[]", [](const Field& f) { return f.keys().size(); }) ==
        "pod.json:1:1: expected an object, got an array");
  CHECK(problem("[4, 5]", [](const Field& f) { return f[2].text(); }) ==
        "pod.json:1:1: expected more than 2 elements");
  CHECK(message_of("[]", [](const Field& f) { f.allow_only({"a"}); }) ==
        "pod.json:1:1: expected an object, got an array");
  CHECK(problem(("\"" + std::string(59, 'x') + "µµ\"").c_str(), [](const Field& f) {
          return f.number();
        }) == "pod.json:1:1: expected a number, got \"" + std::string(59, 'x') + "...\"");
}

TEST_CASE("a quantity without a unit is refused even as a number", "[document]") {
  CHECK(message_of("400", [](const Field& f) { (void)f.bandwidth(); }) ==
        "pod.json:1:1: expected a bandwidth with its unit such as \"400 Gb/s\" or \"50 GB/s\", got "
        "\"400\"");
  CHECK(message_of("true", [](const Field& f) { (void)f.bandwidth(); }) ==
        "pod.json:1:1: expected a string, got true");
  CHECK(message_of("\"0 B\"", [](const Field& f) { (void)f.bytes(); }) ==
        "pod.json:1:1: expected a size above zero such as \"128 MiB\" or \"8 B\", got \"0 B\"");
  CHECK(
      message_of("\"1 XB\"", [](const Field& f) { (void)f.bytes(); }) ==
      "pod.json:1:1: expected a size such as \"128 MiB\" or \"8 B\", got \"1 XB\": \"XB\" is not a "
      "known unit");
}

TEST_CASE("fields read what is there", "[document]") {
  const Document document = Document::parse("pod.json", R"({
    "z": 1, "a": [true, null, "\u00b5\ud83d\ude80\n\"\\\/"], "m": {"b": "50 GB/s", "t": "2 us",
    "s": "1 KiB", "r": "3 TFLOPS", "f": "0 FLOP"}, "n": -12.5e-1, "e": 1e6, "w": 8.0,
    "big": 9223372036854775807, "tiny": 1e-999, "tinier": 0.0e999 })");
  const Field root = document.root();
  CHECK(root.keys() ==
        std::vector<std::string>{"z", "a", "m", "n", "e", "w", "big", "tiny", "tinier"});
  CHECK(root["a"].size() == 3);
  CHECK(root["a"][0].boolean());
  CHECK(root["a"].elements()[2].text() == "µ🚀\n\"\\/");
  CHECK(root["m"]["b"].bandwidth() == 50_GBps);
  CHECK(root["m"]["t"].duration() == Duration{2us});
  CHECK(root["m"]["s"].bytes() == 1_KiB);
  CHECK(root["m"]["r"].flop_rate() == FlopRate{3e12});
  CHECK(root["m"]["f"].flops() == Flops{0});
  CHECK(root["n"].number() == -1.25);
  CHECK(root["e"].integer() == 1'000'000);
  CHECK(root["w"].count() == 8);
  CHECK(root["big"].integer() == 9223372036854775807);
  CHECK(root["tiny"].number() == 0);
  CHECK(root["tinier"].number() == 0);
  CHECK(root.has("z"));
  CHECK_FALSE(root.has("y"));
  CHECK_FALSE(root["z"].has("y"));
  CHECK(root.is_object());
  CHECK(root["a"].is_array());
  CHECK(root["a"][2].is_string());
  CHECK(root["z"].is_number());
  CHECK(root["a"][0].is_bool());
  CHECK_FALSE(root["a"][1].is_bool());
  CHECK(root["z"].place().line == 2);
  CHECK(root["z"].place().column == 10);
}

TEST_CASE("a word must be one of the known ones", "[document]") {
  const auto read = [](const Field& root) { (void)root.one_of({"ecmp", "adaptive", "rail"}); };
  CHECK(message_of("\"rail\"", read) == "no error");
  CHECK(message_of("\"adaptve\"", read) ==
        "pod.json:1:1: expected \"ecmp\", \"adaptive\" or \"rail\", got \"adaptve\", did you mean "
        "\"adaptive\"?");
  CHECK(message_of("\"x\"", read) ==
        "pod.json:1:1: expected \"ecmp\", \"adaptive\" or \"rail\", got \"x\"");
  CHECK(message_of("4", read) ==
        "pod.json:1:1: expected \"ecmp\", \"adaptive\" or \"rail\", got 4");
}

TEST_CASE("a parser without a place gets the field's", "[document]") {
  CHECK(message_of("\n \"abc\"", [](const Field& root) {
          (void)root.parsed(
              [](const std::string& text) -> int { throw InputError("bad " + text); });
        }) == "pod.json:2:2: bad abc");
  CHECK(message_of("\"abc\"", [](const Field& root) {
          (void)root.parsed([](const std::string&) -> int {
            throw InputError({"other.json", 3, 4, ""}, "bad");
          });
        }) == "other.json:3:4: bad");
}

TEST_CASE("text that is not JSON is refused with what was expected", "[document]") {
  CHECK(syntax_of("") == "pod.json:1:1: expected a value, got the end of the text");
  CHECK(syntax_of(" // x") == "pod.json:1:6: expected a value, got the end of the text");
  CHECK(syntax_of("{\n  \"a\": 1,\n}") ==
        "pod.json:3:1: expected a key in double quotes, got \"}\"");
  CHECK(syntax_of("{a: 1}") == "pod.json:1:2: expected a key in double quotes, got \"a\"");
  CHECK(syntax_of("{'a': 1}") == "pod.json:1:2: expected a key in double quotes, got \"'a'\"");
  CHECK(syntax_of("{\"a\" 1}") == "pod.json:1:6: expected \":\" after the key, got \"1\"");
  CHECK(syntax_of("{\"a\": }") == "pod.json:1:7: expected a value, got \"}\"");
  CHECK(syntax_of("{\"a\": 1 \"b\": 2}") == "pod.json:1:9: expected \",\" or \"}\", got a string");
  CHECK(syntax_of("{\"a\": 1") == "pod.json:1:8: expected \",\" or \"}\", got the end of the text");
  CHECK(syntax_of("[1 2]") == "pod.json:1:4: expected \",\" or \"]\", got \"2\"");
  CHECK(syntax_of("[1,]") == "pod.json:1:4: expected a value, got \"]\"");
  CHECK(syntax_of("[") == "pod.json:1:2: expected a value, got the end of the text");
  CHECK(syntax_of("[1}") == "pod.json:1:3: expected \",\" or \"]\", got \"}\"");
  CHECK(syntax_of("1 2") == "pod.json:1:3: expected the end of the document, got \"2\"");
  CHECK(syntax_of("[nul]") == "pod.json:1:2: expected a value, got \"nul\"");
  CHECK(syntax_of("[nullx]") == "pod.json:1:2: expected a value, got \"nullx\"");
  CHECK(syntax_of("tru") == "pod.json:1:1: expected a value, got \"tru\"");
  CHECK(syntax_of("[True]") == "pod.json:1:2: expected a value, got \"True\"");
  CHECK(syntax_of("[1 / 2]") == "pod.json:1:5: expected \"/\" or \"*\" after \"/\", got \" \"");
  CHECK(syntax_of("1 /") ==
        "pod.json:1:4: expected \"/\" or \"*\" after \"/\", got the end of the text");
  CHECK(syntax_of("[1, /* 2]") == "pod.json:1:5: the comment that starts here is not closed");
  CHECK(syntax_of("[\"/*\", 1/* 2 */, /* 3]") ==
        "pod.json:1:18: the comment that starts here is not closed");
  CHECK(syntax_of("/* 1") == "pod.json:1:1: the comment that starts here is not closed");
  CHECK(syntax_of("[1@]") == "pod.json:1:3: expected \",\" or \"]\", got \"@\"");
  CHECK(syntax_of("[1, nul]") == "pod.json:1:5: expected a value, got \"nul\"");
  CHECK(syntax_of("\"a\" \"b\\\"c\"") ==
        "pod.json:1:5: expected the end of the document, got a string");
  CHECK(syntax_of("\xEF\xBB{}") ==
        "pod.json:1:2: expected the whole byte order mark EF BB BF or none, got \"{\"");
  CHECK(syntax_of(std::string("{}\0{", 4)) ==
        "pod.json:1:3: expected the end of the document, got the byte 0x00");
  CHECK(syntax_of("[µ]") == "pod.json:1:2: expected a value, got \"µ\"");
  CHECK(syntax_of(std::string("[\0]", 3)) == "pod.json:1:2: expected a value, got the byte 0x00");
  CHECK(syntax_of("\xFF\xFE{") == "pod.json:1:1: expected a value, got the byte 0xFF");
}

TEST_CASE("numbers are finite and written as JSON writes them", "[document]") {
  CHECK(syntax_of("{\"a\": NaN}") == "pod.json:1:7: expected a value, got \"NaN\"");
  CHECK(syntax_of("[Infinity]") == "pod.json:1:2: expected a value, got \"Infinity\"");
  for (const char* number : {"-Infinity", "01", "+1", ".5", "1.", "1e", "1e+", "-", "1.2.3", "0x10",
                             "1e5.5", "--1", "12abc", "1_000"}) {
    CHECK(
        syntax_of(fmt::format("[{}]", number)) ==
        fmt::format("pod.json:1:2: expected a number such as 12, -0.5 or 1e9, got \"{}\"", number));
  }
  CHECK(syntax_of("{\"x\": [0, 1e999]}") == "pod.json:1:11: /x/1: the number 1e999 is too large");
  CHECK(syntax_of("[-1e99999999999999]") ==
        "pod.json:1:2: /0: the number -1e99999999999999 is too large");
  CHECK(syntax_of("[" + std::string(400, '9') + "e-5]") ==
        "pod.json:1:2: /0: the number " + std::string(40, '9') + " is too large");
  CHECK(syntax_of("[1e-99999999999999, 0." + std::string(400, '0') + "1]") == "no error");
}

TEST_CASE("strings are closed, escaped and UTF-8", "[document]") {
  CHECK(syntax_of("[\"abc]") ==
        "pod.json:1:2: the string that starts here is not closed on its line");
  CHECK(syntax_of("{\n\"abc: 1,\n\"d\": 2}") ==
        "pod.json:2:1: the string that starts here is not closed on its line");
  CHECK(syntax_of("[\"a\tb\"]") ==
        "pod.json:1:4: expected control characters in strings to be escaped, got the byte 0x09");
  CHECK(syntax_of("[\"\\q\"]") ==
        "pod.json:1:4: expected an escape such as \\n, \\\" or \\u00b5, got \"q\"");
  CHECK(syntax_of("[\"\\u12g4\"]") ==
        "pod.json:1:7: expected four hexadecimal digits after \\u, got \"g4\"");
  CHECK(syntax_of("[\"\\ud800\"]") ==
        "pod.json:1:9: expected both halves of a character such as \\ud83d\\ude80, got \"\\\"\"");
  CHECK(syntax_of("[\"\\udc00\"]") ==
        "pod.json:1:8: expected both halves of a character such as \\ud83d\\ude80, got \"0\"");
  CHECK(syntax_of("[\"\\ud800\\u0041\"]") ==
        "pod.json:1:14: expected both halves of a character such as \\ud83d\\ude80, got \"1\"");
  CHECK(syntax_of("[\"\xC0\xAF\"]") == "pod.json:1:3: expected UTF-8 text, got the byte 0xC0");
  CHECK(syntax_of("[\"\xED\xA0\x80\"]") == "pod.json:1:4: expected UTF-8 text, got the byte 0xA0");
}

TEST_CASE("a key given twice is refused", "[document]") {
  CHECK(syntax_of("{\"a\": {\"b\": 1,\n \"c\": 2,\n \"b\": 3}}") ==
        "pod.json:3:2: /a/b: the key \"b\" is given twice, first in line 1");
  CHECK(syntax_of("{\"b\": 1, \"\\u0062\": 2}") ==
        "pod.json:1:10: /b: the key \"b\" is given twice, first in line 1");
  std::string many = "{";
  for (int i = 0; i < 1000; ++i) many += fmt::format("\"{}\": 0,\n", i);
  CHECK(syntax_of(many + "\"7\": 1}") ==
        "pod.json:1001:1: /7: the key \"7\" is given twice, first in line 8");
  CHECK(syntax_of(many + "\"900\": 1}") ==
        "pod.json:1001:1: /900: the key \"900\" is given twice, first in line 901");
  CHECK(syntax_of(many + "\"x\": 1}") == "no error");
}

TEST_CASE("nesting is limited, so that no input crashes", "[document]") {
  CHECK(syntax_of(std::string(200, '[') + std::string(200, ']')) == "no error");
  CHECK(syntax_of(std::string(201, '[') + std::string(201, ']')) ==
        "pod.json:1:201: nested more than 200 deep");
  CHECK(syntax_of(std::string(1'000'000, '[')) == "pod.json:1:201: nested more than 200 deep");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK(syntax_of(objects) == "pod.json:1:1001: nested more than 200 deep");
}

namespace {

// The byte of the text that a place names; columns count characters.
std::size_t byte_at(const std::string& text, const Place& place) {
  std::size_t at = 0;
  for (int line = 1; line < place.line; ++line) at = text.find('\n', at) + 1;
  for (int column = 1; column < place.column; ++column) {
    ++at;
    while ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
  }
  return at;
}

// Every value is what nlohmann reads, in the order of the file, and stands where it says.
void check_tree(const Field& field, const nlohmann::ordered_json& theirs, const std::string& text) {
  const std::string_view written = std::string_view(text).substr(byte_at(text, field.place()));
  if (theirs.is_object()) {
    REQUIRE(written.starts_with('{'));
    std::vector<std::string> keys;
    for (const auto& [key, value] : theirs.items()) {
      keys.push_back(key);
      check_tree(field[key], value, text);
    }
    REQUIRE(field.keys() == keys);
  } else if (theirs.is_array()) {
    REQUIRE(written.starts_with('['));
    REQUIRE(field.size() == theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) check_tree(field[i], theirs[i], text);
  } else if (theirs.is_string()) {
    REQUIRE(written.starts_with('"'));
    REQUIRE(field.text() == theirs.get<std::string>());
  } else if (theirs.is_number()) {
    REQUIRE(field.number() == theirs.get<double>());
    REQUIRE(std::strtod(written.data(), nullptr) == theirs.get<double>());
  } else if (theirs.is_boolean()) {
    REQUIRE(field.boolean() == theirs.get<bool>());
    REQUIRE(written.starts_with(theirs.get<bool>() ? "true" : "false"));
  } else {
    REQUIRE(written.starts_with("null"));
  }
}

}  // namespace

TEST_CASE("what nlohmann reads is read, with its places, but for double keys", "[document]") {
  const std::string seed =
      R"({"a": [1, -2.5e3, true, false, null], "b": {"c": "x\u00e9\"\\\n", "d": []},
    "e": {}, /* c " */ "f": "µ", "g": 0.1 // d
    })";
  const std::string letters = "{}[]\",:/*\\ue0-+.1truefalsn \n\t\x01\xC2\xB5";
  std::mt19937 random(3);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = seed;
    const auto edits = 1 + random() % 3;
    for (unsigned e = 0; e < edits && !text.empty(); ++e) {
      const auto at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 3);
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        case 2:
          text[at] = letter;
          break;
        default:
          text.resize(at + 1);
          break;
      }
    }
    CAPTURE(text);
    const std::string message = syntax_of(text);
    if (message.find("is given twice") != std::string::npos) continue;
    const auto theirs = nlohmann::ordered_json::parse(text, nullptr, false, true);
    REQUIRE((message == "no error") == !theirs.is_discarded());
    if (message != "no error") continue;
    ++accepted;
    check_tree(Document::parse("pod.json", text).root(), theirs, text);
  }
  CHECK(accepted > 300);
}

TEST_CASE("files that cannot be read say why", "[document]") {
  const test::Folder folder;
  const auto good = folder.write("topology.json", "{}");
  CHECK(load_message(good) == "no error");
  CHECK(load_message(folder / "topolgy.json") ==
        folder.string() + "/topolgy.json: there is no such file, did you mean \"topology.json\"?");
  CHECK(load_message(folder / "weather.txt") ==
        folder.string() + "/weather.txt: there is no such file");
  CHECK(load_message("/nonexistent/x.json") == "/nonexistent/x.json: there is no such file");
  CHECK(load_message(folder.string()) == folder.string() + ": is a directory, expected a file");
  CHECK(load_message(folder.write("empty.json", "")) ==
        folder.string() + "/empty.json: is empty, expected JSON");
  CHECK(load_message(good / "x") ==
        folder.string() + "/topology.json/x: cannot be opened: Not a directory");
  CHECK(load_message(folder.write("broken.json", "{\n\"a\" 1}")) ==
        folder.string() + "/broken.json:2:5: expected \":\" after the key, got \"1\"");
  if (geteuid() != 0) {  // Root may read anything.
    const auto locked = folder.write("locked.json", "{}");
    chmod(locked.c_str(), 0);
    CHECK(load_message(locked) ==
          folder.string() + "/locked.json: cannot be opened: Permission denied");
  }
}

TEST_CASE("large good files are read whole", "[document]") {
  const test::Folder folder;
  std::string text = "[";
  for (int i = 0; i < 50'000; ++i) text += fmt::format("\"element µ {}\",\n", i);
  text += "\"last\"]";
  const auto path = folder.write("large.json", text);
  const Document document = Document::load(path);
  CHECK(document.root().size() == 50'001);
  CHECK(document.root()[50'000].text() == "last");
  CHECK(document.digest() == Document::parse("other", text).digest());

  // Whatever the first piece of the file ends in.
  for (std::size_t cut = 0; cut < 64; ++cut) {
    const std::string tail = R"(["\u00b5\ud83d\ude80µ🚀", -12.5e-10, true, null, /* x */ {"a": 1}])";
    const std::string blanks((std::size_t{64} << 10) - cut - 1, ' ');
    CHECK(load_message(folder.write("cut.json", "[" + blanks + tail + "]")) == "no error");
  }
}

TEST_CASE("a gibibyte of garbage is refused at its start", "[document]") {
  const test::Folder folder;
  const auto path = folder.write("garbage.json", "");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 30);
  CHECK(load_message(path) == path.string() + ":1:1: expected a value, got the byte 0x00");
  CHECK(load_message("/dev/zero") == "/dev/zero:1:1: expected a value, got the byte 0x00");
  CHECK(load_message(folder.write("blank.json", std::string(100'000, ' '))) ==
        folder.string() + "/blank.json: expected JSON, got nothing but blanks");
  CHECK(load_message(folder.write("noise.json", "[" + std::string(1'000'000, 'x'))) ==
        folder.string() + "/noise.json:1:2: expected a value, got \"" + std::string(40, 'x') +
            "\"");
  std::filesystem::resize_file(path, (std::uintmax_t{1} << 30) + 1);
  CHECK(load_message(path) == path.string() + ": is larger than 1 GiB");
}

TEST_CASE("pipes are read to their end", "[document]") {
  const test::Folder folder;
  const auto pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string text = "[" + std::string(200'000, ' ') + "1]";
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << text; });
  const Document document = Document::load(pipe);
  writer.join();
  CHECK(document.root()[0].integer() == 1);
}

TEST_CASE("a dash is standard input", "[document]") {
  const test::Folder folder;
  REQUIRE(std::freopen(folder.write("in.json", "{\"a\": 1,}").c_str(), "rb", stdin) != nullptr);
  CHECK(load_message("-") == "<stdin>:1:9: expected a key in double quotes, got \"}\"");
  REQUIRE(std::freopen(folder.write("in.json", "[7]").c_str(), "rb", stdin) != nullptr);
  const Document document = Document::load("-");
  CHECK(document.name() == "<stdin>");
  CHECK(document.root()[0].integer() == 7);
  REQUIRE(std::freopen("/dev/null", "rb", stdin) != nullptr);
  CHECK(load_message("-") == "<stdin>: is empty, expected JSON");
}

TEST_CASE("a setting overrides a value or makes one", "[document]") {
  Document document = Document::parse(
      "pod.json",
      R"({"fabric": {"type": "ring", "link": null}, "nodes": [{"count": 1}, {"count": 2}]})");
  document.apply({"fabric.type", "rail"});
  document.apply({"fabric.link.bandwidth", "800 Gb/s"});
  document.apply({"nodes.1.count", "7"});
  document.apply({"nodes.2", R"({"count": 9})"});
  document.apply({"nodes.-.count", "11"});
  document.apply({"/a~1b/c~0d", "[true, \"x\"]"});
  document.apply({"nccl.NCCL_ALGO", "Ring"});
  document.apply({"quoted", "\"5\""});
  document.apply({"odd", "NaN"});
  const Field root = document.root();
  CHECK(root["fabric"]["type"].text() == "rail");
  CHECK(root["fabric"]["link"]["bandwidth"].bandwidth() == 100_GBps);
  CHECK(root["nodes"][0]["count"].count() == 1);
  CHECK(root["nodes"][1]["count"].count() == 7);
  CHECK(root["nodes"][2]["count"].count() == 9);
  CHECK(root["nodes"][3]["count"].count() == 11);
  CHECK(root["a/b"]["c~d"][0].boolean());
  CHECK(root["nccl"]["NCCL_ALGO"].text() == "Ring");
  CHECK(root["quoted"].text() == "5");
  CHECK(root["odd"].text() == "NaN");
}

TEST_CASE("an error in what was set names the setting", "[document]") {
  const char* text = R"({"nodes": [{"count": 1}], "name": "x", "fabric": {}})";
  const auto none = [](const Field&) {};
  CHECK(message_of_set(text, {{"fabric.bandwidth", "400"}},
                       [](const Field& root) { (void)root["fabric"]["bandwidth"].bandwidth(); }) ==
        "--set fabric.bandwidth: expected a bandwidth with its unit such as \"400 Gb/s\" or \"50 "
        "GB/s\", got \"400\"");
  CHECK(message_of_set(text, {{"fabric", "{\"a\": {\"b\": 1}}"}}, [](const Field& root) {
          (void)root["fabric"]["a"]["b"].text();
        }) == "--set fabric: /fabric/a/b: expected a string, got 1");
  CHECK(message_of_set(text, {{"fabrik.x", "1"}}, [](const Field& root) {
          root.allow_only({"nodes", "name", "fabric"});
        }) == "--set fabrik.x: /fabrik: is not a known option, did you mean \"fabric\"?");
  // What was not set keeps its place in the file.
  CHECK(message_of_set(text, {{"nodes.0.x", "1"}}, [](const Field& root) {
          (void)root["nodes"][0]["count"].text();
        }) == "pod.json:1:22: /nodes/0/count: expected a string, got 1");

  CHECK(message_of_set(text, {{"name.x", "1"}}, none) ==
        "--set name.x: /name is \"x\", which has no member \"x\"");
  CHECK(message_of_set(text, {{"nodes.x", "1"}}, none) ==
        "--set nodes.x: /nodes is an array of 1, which has no element \"x\"");
  CHECK(message_of_set(text, {{"nodes.2.count", "1"}}, none) ==
        "--set nodes.2.count: /nodes is an array of 1, which has no element \"2\"");
  CHECK(message_of_set("7", {{"x", "1"}}, none) ==
        "--set x: the document is 7, which has no member \"x\"");
  CHECK(message_of_set(text, {{"a..b", "1"}}, none) ==
        "--set: expected a path such as \"fabric.oversubscription\" or \"nodes.0.count\", got "
        "\"a..b\"");
  CHECK(
      message_of_set(text, {{"", "1"}}, none) ==
      "--set: expected a path such as \"fabric.oversubscription\" or \"nodes.0.count\", got \"\"");
  CHECK(message_of_set(text, {{"a", "{\"b\": }"}}, none) ==
        "--set a: at character 7: expected a value, got \"}\"");
  CHECK(message_of_set(text, {{"a", "[1, 2"}}, none) ==
        "--set a: at character 6: expected \",\" or \"]\", got the end of the text");
}

TEST_CASE("the digest tells inputs apart", "[document]") {
  // FNV-1a's own test vector for "foobar" is 85944171f73967e8; JSON needs its quotes.
  CHECK(Document::parse("a", "0").digest() == "af63ad4c86019caf");
  CHECK(Document::parse("a", "{}").digest() == Document::parse("b", "{}").digest());
  CHECK(Document::parse("a", "{}").digest() != Document::parse("a", "{ }").digest());

  Document document = Document::parse("a", "{}");
  document.apply({"x", "12"});
  Document other = Document::parse("a", "{}");
  other.apply({"x1", "2"});
  CHECK(document.digest() != Document::parse("a", "{}").digest());
  CHECK(document.digest() != other.digest());
  CHECK(document.digest().size() == 16);
  CHECK(document.name() == "a");
}
