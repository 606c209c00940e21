#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

absl::Status CheckSize(absl::string_view what, size_t size, size_t least, size_t most) {
  if (size >= least && size <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", what, " of a cached value has ", size,
                                                 " bytes; it needs ", least, " to ", most));
}

}  // namespace

absl::Status InsertCached(Connection& connection, const CachedRow& row, int64_t most) {
  HONE_RETURN_IF_ERROR(CheckSize("name", row.name.size(), 1, Store::kMaxCachedName));
  HONE_RETURN_IF_ERROR(
      CheckSize("environment", row.environment.size(), 0, Store::kMaxCachedEnvironment));
  HONE_RETURN_IF_ERROR(CheckSize("value", row.value.size(), 1, Store::kMaxCachedValue));
  HONE_RETURN_IF_ERROR(connection.Run("DELETE FROM cached WHERE name = ? AND environment = ?",
                                      row.name, row.environment));
  HONE_ASSIGN_OR_RETURN(Statement insert,
                        connection.Prepare("INSERT INTO cached (name, environment, put_unix_ms,"
                                           " value) VALUES (?, ?, ?, ?) RETURNING id"));
  insert.Bind(row.name).Bind(row.environment).Bind(row.put_unix_ms).BindBlob(row.value);
  HONE_RETURN_IF_ERROR(insert.Run());
  if (insert.Int64() % kCachedSteps != 0) return absl::OkStatus();
  return connection.Run(
      "DELETE FROM cached WHERE id IN (SELECT id FROM (SELECT id,"
      " SUM(length(value)) OVER (ORDER BY id DESC) AS later FROM cached) AS sums WHERE later > ?)",
      most);
}

absl::StatusOr<CachedRow> SelectCached(Connection& connection, const std::string& name,
                                       const std::string& environment) {
  HONE_ASSIGN_OR_RETURN(Statement select,
                        connection.Prepare("SELECT put_unix_ms, value FROM cached"
                                           " WHERE name = ? AND environment = ?"));
  HONE_ASSIGN_OR_RETURN(const bool found, select.Bind(name).Bind(environment).Step());
  if (!found) {
    return absl::NotFoundError(
        absl::StrCat("no value of '", name, "' is cached for this environment"));
  }
  CachedRow row{.name = name, .environment = environment};
  row.put_unix_ms = select.Int64();
  row.value = select.Blob();
  return row;
}

void Store::PutCached(CachedRow row, Done done) {
  const size_t bytes = kRowBytes + row.name.size() + row.environment.size() + row.value.size();
  Write(
      [this, row = std::move(row)](Connection& c) mutable {
        row.put_unix_ms = NowUnixMs();
        return InsertCached(c, row, kMostCached);
      },
      std::move(done), bytes, WhenFull::kFail);
}

absl::StatusOr<CachedRow> Store::GetCached(const std::string& name,
                                           const std::string& environment) {
  return Get([&](Connection& c) { return SelectCached(c, name, environment); });
}

}  // namespace hone::store
