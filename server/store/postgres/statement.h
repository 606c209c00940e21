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

// The parameters $1, $2, … of a statement in their order, in PostgreSQL's binary form, which keeps
// every double and every byte.
class PostgresParams {
 public:
  PostgresParams& Bind(int64_t value);
  PostgresParams& Bind(double value);
  // Text in UTF-8. A NUL byte, which PostgreSQL's texts cannot hold, is an error that status() has.
  PostgresParams& Bind(absl::string_view text);
  PostgresParams& BindBlob(absl::string_view bytes);
  PostgresParams& BindBool(bool value);
  // Text that may hold any bytes; its column is of type bytea.
  PostgresParams& BindRaw(absl::string_view text) { return BindBlob(text); }

  // InvalidArgument: says which parameter cannot be kept.
  const absl::Status& status() const { return status_; }
  int count() const { return static_cast<int>(bytes_.size()); }
  const std::vector<unsigned>& types() const { return types_; }
  // As libpq takes them; point into this object.
  std::vector<const char*> values() const;
  std::vector<int> lengths() const;
  std::vector<int> formats() const { return std::vector<int>(bytes_.size(), 1); }

 private:
  PostgresParams& Add(unsigned type, std::string bytes);

  std::vector<unsigned> types_;
  std::vector<std::string> bytes_;
  absl::Status status_;
};

// The rows of a result in binary form, read one after another, and their columns from the first to
// the last.
class PostgresRows {
 public:
  // Takes the result.
  explicit PostgresRows(pg_result* result);
  PostgresRows(PostgresRows&&) noexcept = default;
  PostgresRows& operator=(PostgresRows&&) noexcept = default;

  // Goes to the next row; false: there is none.
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
