#ifndef HONE_COMMON_RPC_SECRET_H_
#define HONE_COMMON_RPC_SECRET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::rpc {

// Returns a new bearer token: 256 random bits as 64 hex digits. Internal: the system cannot
// generate random numbers.
absl::StatusOr<std::string> RandomToken();

// Returns the SHA-256 of a token as 64 hex digits, which is all that a server stores. Tokens of
// RandomToken have too many bits to be guessed from the hash, so neither a salt nor a slow hash is
// needed.
std::string HashToken(absl::string_view token);

// Returns whether two texts are equal. The time does not depend on where they differ.
bool EqualSecrets(absl::string_view a, absl::string_view b);

// Returns the content of a file with a secret, without blanks at its ends. PermissionDenied: users
// other than its owner and group may access it. Other errors are those of ReadFile.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_SECRET_H_
