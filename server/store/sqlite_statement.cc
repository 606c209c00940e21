#include "server/store/sqlite_statement.h"

#include <sqlite3.h>

#include <limits>
#include <utility>

#include "server/store/sqlite_status.h"

namespace hone::store {
namespace {

// SQLite binds NULL for a null pointer, whatever the length says.
const char* NonNull(absl::string_view bytes) { return bytes.data() == nullptr ? "" : bytes.data(); }

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)),
      path_(other.path_),
      next_parameter_(other.next_parameter_),
      next_column_(other.next_column_),
      bind_error_(std::move(other.bind_error_)) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Statement::Check(int code) {
  if (code != SQLITE_OK && bind_error_.ok()) {
    bind_error_ = SqliteError(sqlite3_db_handle(statement_), *path_, "bind a parameter");
  }
}

Statement& Statement::Bind(int64_t value) {
  Check(sqlite3_bind_int64(statement_, next_parameter_++, value));
  return *this;
}

Statement& Statement::Bind(double value) {
  Check(sqlite3_bind_double(statement_, next_parameter_++, value));
  return *this;
}

Statement& Statement::Bind(absl::string_view text) {
  Check(sqlite3_bind_text64(statement_, next_parameter_++, NonNull(text), text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::BindBlob(absl::string_view bytes) {
  Check(sqlite3_bind_blob64(statement_, next_parameter_++, NonNull(bytes), bytes.size(),
                            SQLITE_TRANSIENT));
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (!bind_error_.ok()) return bind_error_;
  next_column_ = 0;
  switch (sqlite3_step(statement_)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return SqliteError(sqlite3_db_handle(statement_), *path_, "run a statement");
  }
}

absl::Status Statement::Run() { return Step().status(); }

int64_t Statement::Int64() { return sqlite3_column_int64(statement_, next_column_++); }

double Statement::Double() {
  const int column = next_column_++;
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sqlite3_column_double(statement_, column);
}

std::string Statement::Text() {
  const int column = next_column_++;
  const void* const bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

}  // namespace hone::store
