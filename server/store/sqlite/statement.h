#ifndef HONE_SERVER_STORE_SQLITE_STATEMENT_H_
#define HONE_SERVER_STORE_SQLITE_STATEMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/connection.h"

struct sqlite3_stmt;

namespace hone::store {

// One use of a prepared statement, made by SqliteConnection::Prepare. Destruction resets the
// statement, which ends its read transaction; the connection owns and keeps the compiled form. Not
// thread-safe.
class SqliteStatement final : public StatementRun {
 public:
  SqliteStatement(sqlite3_stmt* statement, const std::string* path)
      : statement_(statement), path_(path) {}
  ~SqliteStatement() override;

  void BindInt64(int64_t value) override;
  void BindDouble(double value) override;  // SQLite can store NaN only as NULL
  void BindText(absl::string_view text) override;
  void BindBlob(absl::string_view bytes) override;
  void BindBool(bool value) override { BindInt64(value ? 1 : 0); }
  void BindRaw(absl::string_view text) override { BindText(text); }
  absl::StatusOr<bool> Step() override;
  int64_t Int64() override;
  bool Bool() override { return Int64() != 0; }
  double Double() override;
  std::string Text() override;

 private:
  void Check(int code);

  sqlite3_stmt* const statement_;
  const std::string* const path_;
  int next_parameter_ = 1;
  int next_column_ = 0;
  absl::Status bind_error_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_STATEMENT_H_
