#ifndef HONE_COMMON_RPC_SECRET_H_
#define HONE_COMMON_RPC_SECRET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::rpc {

// 256 random bits as 64 hex digits: a bearer token. Internal: the system gives no random numbers.
absl::StatusOr<std::string> RandomToken();

// SHA-256 of a token, as 64 hex digits: what a server keeps. A token of RandomToken has too many
// bits to be guessed from it, so that no salt and no slow hash is needed.
std::string HashToken(absl::string_view token);

// Whether two texts are equal, in a time that does not tell where they differ.
bool EqualSecrets(absl::string_view a, absl::string_view b);

// The content of a file that holds a secret, without blanks at its ends. PermissionDenied: others
// than its owner and group may read it. NotFound, Internal: as ReadFile.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_SECRET_H_
