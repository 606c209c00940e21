#ifndef HONE_SERVER_STORE_TEXT_TABLE_H_
#define HONE_SERVER_STORE_TEXT_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite_connection.h"

// The tables identity, text and artifact: the last two hold bytes by digest, written once; only the
// time of the last put changes, which tells compaction what may still be wanted.
namespace hone::store {

// InvalidArgument: the digest is empty.
absl::Status InsertText(SqliteConnection& connection, const std::string& digest,
                        absl::string_view text, int64_t now_unix_ms);
absl::Status InsertArtifact(SqliteConnection& connection, const std::string& digest,
                            absl::string_view bytes, int64_t now_unix_ms);
// NotFound: no such digest.
absl::StatusOr<std::string> SelectText(SqliteConnection& connection, const std::string& digest);
absl::StatusOr<std::string> SelectArtifact(SqliteConnection& connection, const std::string& digest);

// The store's name, see Store::Identity.
absl::StatusOr<std::string> SelectIdentity(SqliteConnection& connection);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_TEXT_TABLE_H_
