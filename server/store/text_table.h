#ifndef HONE_SERVER_STORE_TEXT_TABLE_H_
#define HONE_SERVER_STORE_TEXT_TABLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite_connection.h"

// The tables text and artifact: bytes by digest, written once.
namespace hone::store {

// InvalidArgument: the digest is empty.
absl::Status InsertText(SqliteConnection& connection, const std::string& digest,
                        absl::string_view text);
absl::Status InsertArtifact(SqliteConnection& connection, const std::string& digest,
                            absl::string_view bytes);
// NotFound: no such digest.
absl::StatusOr<std::string> SelectText(SqliteConnection& connection, const std::string& digest);
absl::StatusOr<std::string> SelectArtifact(SqliteConnection& connection, const std::string& digest);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_TEXT_TABLE_H_
