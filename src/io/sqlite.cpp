#include "io/sqlite.hpp"

#include <sqlite3.h>

#include "flyover/base/error.hpp"

namespace flyover::io::sqlite {

namespace {

std::string in(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote) out += quote;
    out += c;
  }
  return out + quote;
}

}  // namespace

Connection::Connection(const std::string& path, int flags) {
  const int code = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) {
    const Error error(code & 0xff, handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code));
    sqlite3_close(handle_);
    throw error;
  }
}

Connection::~Connection() {
  // Fails only while statements are open, which are gone by now.
  sqlite3_close(handle_);
}

void Connection::fail(int code) const {
  throw Error(code & 0xff, sqlite3_errmsg(handle_));
}

void Connection::run(const std::string& statements) {
  const int code = sqlite3_exec(handle_, statements.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::string Connection::text(const std::string& query) {
  Statement statement(*this, query);
  return statement.step() ? statement.text(0) : "";
}

std::int64_t Connection::whole(const std::string& query) {
  Statement statement(*this, query);
  return statement.step() ? statement.whole(0) : 0;
}

bool Connection::in_transaction() const {
  return sqlite3_get_autocommit(handle_) == 0;
}
bool Connection::read_only() const {
  return sqlite3_db_readonly(handle_, "main") == 1;
}
int Connection::system_error() const {
  return sqlite3_system_errno(handle_);
}
int Connection::limit(int which) const {
  return sqlite3_limit(handle_, which, -1);
}

Statement::Statement(Connection& connection, const std::string& text) : connection_(connection) {
  const int code = sqlite3_prepare_v2(connection.handle_, text.c_str(),
                                      static_cast<int>(text.size()), &handle_, nullptr);
  if (code != SQLITE_OK) connection_.fail(code);
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

void Statement::bind(int at, std::int64_t value) {
  const int code = sqlite3_bind_int64(handle_, at + 1, value);
  if (code != SQLITE_OK) connection_.fail(code);
}

void Statement::bind(int at, double value) {
  const int code = sqlite3_bind_double(handle_, at + 1, value);
  if (code != SQLITE_OK) connection_.fail(code);
}

void Statement::bind(int at, std::string_view value) {
  // No destructor: our callers keep their texts until the statement has run. An empty view may
  // have no address, which SQLite would take for NULL.
  const int code = sqlite3_bind_text64(handle_, at + 1, value.empty() ? "" : value.data(),
                                       value.size(), nullptr, SQLITE_UTF8);
  if (code != SQLITE_OK) connection_.fail(code);
}

void Statement::bind_null(int at) {
  const int code = sqlite3_bind_null(handle_, at + 1);
  if (code != SQLITE_OK) connection_.fail(code);
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) connection_.fail(code);
  return false;
}

void Statement::reset() {
  // Repeats the error of the last step, which has been thrown.
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

int Statement::type(int column) const {
  return sqlite3_column_type(handle_, column);
}
std::int64_t Statement::whole(int column) const {
  return sqlite3_column_int64(handle_, column);
}
double Statement::real(int column) const {
  return sqlite3_column_double(handle_, column);
}

std::string Statement::text(int column) const {
  const unsigned char* begin = sqlite3_column_text(handle_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
  return begin ? std::string(begin, begin + size) : "";
}

std::string quoted(std::string_view name) {
  return in(name, '"');
}
std::string literal(std::string_view text) {
  return in(text, '\'');
}

}  // namespace flyover::io::sqlite
