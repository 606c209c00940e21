#ifndef HONE_COMMON_RPC_SIGNATURE_H_
#define HONE_COMMON_RPC_SIGNATURE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::rpc {

// Ed25519 signatures (RFC 8032) of texts. Keys are PEM texts, as
//   openssl genpkey -algorithm ed25519 -out key.pem
//   openssl pkey -in key.pem -pubout -out key.pub.pem
// make them. A public key is handled as its 32 bytes.

// Returns the public key of a private or of a public PEM text. InvalidArgument: the text has no
// such key.
absl::StatusOr<std::string> PublicKeyOfPrivate(absl::string_view pem);
absl::StatusOr<std::string> ParsePublicKey(absl::string_view pem);

// Returns the 64 bytes of the signature. InvalidArgument: `private_pem` has no Ed25519 key.
absl::StatusOr<std::string> Sign(absl::string_view private_pem, absl::string_view message);

// Whether `signature` is that of this message by the owner of this key.
bool IsSignatureOf(absl::string_view public_key, absl::string_view message,
                   absl::string_view signature);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_SIGNATURE_H_
