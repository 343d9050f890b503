#pragma once

// SQLite's C interface with owners and exceptions. Included by .cpp files only.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace flyover::io::sqlite {

// What SQLite says, in its own words; who knows the file says what to do about it.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] int code() const { return code_; }  // SQLITE_FULL etc., without its extension.

 private:
  int code_;
};

class Connection {
 public:
  // `flags` of sqlite3_open_v2. A connection is for one thread at a time.
  Connection(const std::string& path, int flags);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run(const std::string& statements);  // One or several, whose rows do not matter.
  [[nodiscard]] std::string text(
      const std::string& query);  // First column of the first row, or "".
  [[nodiscard]] std::int64_t whole(const std::string& query);
  [[nodiscard]] bool in_transaction() const;
  [[nodiscard]] bool read_only() const;
  // The operating system's errno behind the last error, or 0.
  [[nodiscard]] int system_error() const;
  [[nodiscard]] int limit(int which) const;  // sqlite3_limit.

 private:
  friend class Statement;
  [[noreturn]] void fail(int code) const;

  sqlite3* handle_ = nullptr;
};

// A prepared statement. Parameters and columns count from 0.
class Statement {
 public:
  Statement(Connection& connection, const std::string& text);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int at, std::int64_t value);
  void bind(int at, double value);
  void bind(int at, std::string_view value);
  void bind_null(int at);
  bool step();   // Is there a row?
  void reset();  // For another run, with nothing bound.

  [[nodiscard]] int type(int column) const;  // SQLITE_INTEGER etc.
  [[nodiscard]] std::int64_t whole(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;

 private:
  Connection& connection_;
  sqlite3_stmt* handle_ = nullptr;
};

// A name as SQL takes any name: "in ""quotes""".
[[nodiscard]] std::string quoted(std::string_view name);
// 'A text', likewise.
[[nodiscard]] std::string literal(std::string_view text);

}  // namespace flyover::io::sqlite
