#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

absl::StatusOr<std::string> SelectBytes(Connection& connection, absl::string_view sql,
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
  return connection.Run(kInsertText, digest, text, now_unix_ms);
}

absl::Status InsertArtifact(Connection& connection, const std::string& digest,
                            absl::string_view bytes, int64_t now_unix_ms) {
  HONE_RETURN_IF_ERROR(CheckDigest(digest));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(kInsertArtifact));
  return statement.Bind(digest).BindBlob(bytes).Bind(now_unix_ms).Run();
}

absl::StatusOr<bool> HasText(Connection& connection, const std::string& digest) {
  return connection.Has("SELECT 1 FROM text WHERE digest = ?", digest);
}

absl::StatusOr<std::string> SelectIdentity(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare("SELECT id FROM identity"));
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::DataLossError(absl::StrCat("store ", connection.name(), " has no name"));
  return statement.Text();
}

void Store::PutText(const std::string& digest, const std::string& text, Done done) {
  Write([this, digest, text](Connection& c) { return InsertText(c, digest, text, NowUnixMs()); },
        std::move(done), kRowBytes + text.size(), WhenFull::kWait);
}

absl::StatusOr<std::string> Store::GetText(const std::string& digest) {
  return Get([&](Connection& c) {
    return SelectBytes(c, "SELECT text FROM text WHERE digest = ?", digest, "text");
  });
}

void Store::PutArtifact(const std::string& digest, std::string bytes, Done done) {
  const size_t size = kRowBytes + bytes.size();
  Write([this, digest, bytes = std::move(bytes)](
            Connection& c) { return InsertArtifact(c, digest, bytes, NowUnixMs()); },
        std::move(done), size, WhenFull::kWait);
}

absl::StatusOr<std::string> Store::GetArtifact(const std::string& digest) {
  return Get([&](Connection& c) {
    return SelectBytes(c, "SELECT bytes FROM artifact WHERE digest = ?", digest, "artifact");
  });
}

absl::StatusOr<std::string> Store::Identity() {
  return Get([](Connection& c) { return SelectIdentity(c); });
}

}  // namespace hone::store
