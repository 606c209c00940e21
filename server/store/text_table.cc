#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

absl::StatusOr<std::string> Select(Connection& connection, absl::string_view sql,
                                   const std::string& digest, absl::string_view what) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(sql));
  statement.Bind(digest);
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::NotFoundError(absl::StrCat("the store has no ", what, " ", digest));
  return statement.Blob();
}

}  // namespace

absl::Status CheckDigest(const std::string& digest) {
  return digest.empty() ? absl::InvalidArgumentError("the digest is empty") : absl::OkStatus();
}

absl::Status InsertText(Connection& connection, const std::string& digest, absl::string_view text,
                        int64_t now_unix_ms) {
  HONE_RETURN_IF_ERROR(CheckDigest(digest));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(kInsertText));
  return statement.Bind(digest).Bind(text).Bind(now_unix_ms).Run();
}

absl::Status InsertArtifact(Connection& connection, const std::string& digest,
                            absl::string_view bytes, int64_t now_unix_ms) {
  HONE_RETURN_IF_ERROR(CheckDigest(digest));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(kInsertArtifact));
  return statement.Bind(digest).BindBlob(bytes).Bind(now_unix_ms).Run();
}

absl::StatusOr<std::string> SelectText(Connection& connection, const std::string& digest) {
  return Select(connection, "SELECT text FROM text WHERE digest = ?", digest, "text");
}

absl::StatusOr<std::string> SelectArtifact(Connection& connection, const std::string& digest) {
  return Select(connection, "SELECT bytes FROM artifact WHERE digest = ?", digest, "artifact");
}

absl::StatusOr<std::string> SelectIdentity(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare("SELECT id FROM identity"));
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::DataLossError(absl::StrCat("store ", connection.name(), " has no name"));
  return statement.Text();
}

}  // namespace hone::store
