#ifndef HONE_CLIENT_CLI_RECORDS_BUNDLE_H_
#define HONE_CLIENT_CLI_RECORDS_BUNDLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Signed bundles of records, which carry results that were tuned on one machine to others of its
// kind. A bundle is a text of lines:
//   {"hone_bundle":1,"key":"…"}    the public key of the signer in hex
//   …                              an export of records (server/store/README.md)
//   {"signature":"…"}              the Ed25519 signature in hex of all bytes before this line
// Nothing may follow the last line, so the signature covers the whole file.
namespace hone::cli {

// `private_pem`: an Ed25519 key in PEM form. InvalidArgument: it is not.
absl::StatusOr<std::string> SignBundle(absl::string_view export_text,
                                       absl::string_view private_pem);

// Returns the export in a bundle, a part of `bundle`. `public_key`: 32 bytes. FailedPrecondition:
// the text is no bundle, is not signed, is signed with another key, or was changed or truncated
// after it was signed; the message says which.
absl::StatusOr<absl::string_view> VerifyBundle(absl::string_view bundle,
                                               absl::string_view public_key);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_BUNDLE_H_
