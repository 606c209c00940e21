#ifndef HONE_SERVER_STORE_SQLITE_STATEMENT_H_
#define HONE_SERVER_STORE_SQLITE_STATEMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3_stmt;

namespace hone::store {

// One use of a prepared statement, made by SqliteConnection::Prepare. Parameters are bound and
// columns are read in their order, so that code stands beside the SQL it belongs to. Destruction
// resets the statement, which ends its read transaction; the connection owns and keeps the compiled
// form. Not thread-safe.
class Statement {
 public:
  Statement(sqlite3_stmt* statement, const std::string* path)
      : statement_(statement), path_(path) {}
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Bind the next parameter. An error is kept and returned by Step.
  Statement& Bind(int64_t value);
  Statement& Bind(double value);  // not a number is kept as NULL, the only way SQLite has
  Statement& Bind(absl::string_view text);
  Statement& BindBlob(absl::string_view bytes);
  Statement& BindBool(bool value) { return Bind(int64_t{value}); }
  // Text that may hold any bytes, as what a crashed child wrote.
  Statement& BindRaw(absl::string_view text) { return Bind(text); }

  // True: there is a row, whose columns are read next. False: the statement is done.
  absl::StatusOr<bool> Step();
  // Step for a statement without rows.
  absl::Status Run();

  // Read the next column of the row. REQUIRES: Step returned true.
  int64_t Int64();
  bool Bool() { return Int64() != 0; }
  double Double();  // NULL is not a number
  std::string Text();
  std::string Blob() { return Text(); }
  std::string Raw() { return Text(); }

 private:
  void Check(int code);

  sqlite3_stmt* statement_;
  const std::string* path_;
  int next_parameter_ = 1;
  int next_column_ = 0;
  absl::Status bind_error_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_STATEMENT_H_
