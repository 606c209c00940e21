#ifndef HONE_SERVER_STORE_POSTGRES_STATEMENT_H_
#define HONE_SERVER_STORE_POSTGRES_STATEMENT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

struct pg_result;

namespace hone::store {

// The parameters $1, $2, … of a statement in order. PostgreSQL's binary format represents every
// double and every byte exactly.
class PostgresParams {
 public:
  PostgresParams& Bind(int64_t value);
  PostgresParams& Bind(double value);
  // Adds text in UTF-8. status() returns an error if it contains a NUL byte, which PostgreSQL's
  // texts cannot contain.
  PostgresParams& Bind(absl::string_view text);
  PostgresParams& BindBlob(absl::string_view bytes);
  PostgresParams& BindBool(bool value);
  // Adds text that may contain any bytes, for a column of type bytea.
  PostgresParams& BindRaw(absl::string_view text) { return BindBlob(text); }

  // InvalidArgument: a parameter cannot be represented; the message says which.
  const absl::Status& status() const { return status_; }
  int count() const { return static_cast<int>(bytes_.size()); }
  const std::vector<unsigned>& types() const { return types_; }
  // The arguments for libpq, which point into this object.
  std::vector<const char*> values() const;
  std::vector<int> lengths() const;
  std::vector<int> formats() const { return std::vector<int>(bytes_.size(), 1); }

 private:
  PostgresParams& Add(unsigned type, std::string bytes);

  std::vector<unsigned> types_;
  std::vector<std::string> bytes_;
  absl::Status status_;
};

// Reads the rows of a result in binary format in order, and the columns of each row in order.
class PostgresRows {
 public:
  // Takes ownership of the result.
  explicit PostgresRows(pg_result* result);
  PostgresRows(PostgresRows&&) noexcept = default;
  PostgresRows& operator=(PostgresRows&&) noexcept = default;

  // Moves to the next row. Returns false after the last row.
  bool Next();
  int64_t changed() const;  // rows that the statement inserted, updated or deleted

  // REQUIRES: Next returned true, and the column is of that type.
  int64_t Int64();
  double Double();
  bool Bool();
  std::string Text();

 private:
  struct Free {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Free> result_;
  int row_ = -1;
  int column_ = 0;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_STATEMENT_H_
