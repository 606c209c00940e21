#include "server/store/sqlite/statement.h"

#include <sqlite3.h>

#include <limits>

#include "server/store/sqlite/status.h"

namespace hone::store {
namespace {

// SQLite binds NULL for a null pointer, even if the length is 0.
const char* NonNull(absl::string_view bytes) { return bytes.data() == nullptr ? "" : bytes.data(); }

}  // namespace

SqliteStatement::~SqliteStatement() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void SqliteStatement::Check(int code) {
  if (code != SQLITE_OK && bind_error_.ok()) {
    bind_error_ = SqliteError(sqlite3_db_handle(statement_), *path_, "bind a parameter");
  }
}

void SqliteStatement::BindInt64(int64_t value) {
  Check(sqlite3_bind_int64(statement_, next_parameter_++, value));
}

void SqliteStatement::BindDouble(double value) {
  Check(sqlite3_bind_double(statement_, next_parameter_++, value));
}

void SqliteStatement::BindText(absl::string_view text) {
  Check(sqlite3_bind_text64(statement_, next_parameter_++, NonNull(text), text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8));
}

void SqliteStatement::BindBlob(absl::string_view bytes) {
  Check(sqlite3_bind_blob64(statement_, next_parameter_++, NonNull(bytes), bytes.size(),
                            SQLITE_TRANSIENT));
}

absl::StatusOr<bool> SqliteStatement::Step() {
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

int64_t SqliteStatement::Int64() { return sqlite3_column_int64(statement_, next_column_++); }

double SqliteStatement::Double() {
  const int column = next_column_++;
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sqlite3_column_double(statement_, column);
}

std::string SqliteStatement::Text() {
  const int column = next_column_++;
  const void* const bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

}  // namespace hone::store
