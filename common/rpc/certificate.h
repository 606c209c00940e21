#ifndef HONE_COMMON_RPC_CERTIFICATE_H_
#define HONE_COMMON_RPC_CERTIFICATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/role.h"

namespace hone::rpc {

// A certificate and its private key, as PEM texts.
struct KeyPair {
  std::string certificate;
  std::string key;
};

struct CertificateRequest {
  std::string common_name;
  std::vector<std::string> hosts;  // DNS names and IP addresses of a server
  std::string uri;                 // IdentityUri of a client or worker
  std::string token_hash;          // see CertificateFacts
  bool server = false;             // for use by a server, otherwise by a client
  absl::Time not_before;
  absl::Time not_after;
};

// Keys are on the curve P-256, and signatures use ECDSA with SHA-256. Internal: OpenSSL failed; the
// message contains its reasons.
absl::StatusOr<KeyPair> MakeAuthority(const std::string& common_name, absl::Time not_before,
                                      absl::Time not_after);
absl::StatusOr<KeyPair> IssueCertificate(const KeyPair& authority,
                                         const CertificateRequest& request);

// The contents of a certificate.
struct CertificateFacts {
  std::string subject;  // common name
  std::string issuer;   // common name
  std::string serial;   // lower-case hex digits (ParseSerial)
  std::vector<std::string> hosts;
  std::string uri;
  // HashToken of the token that was made with it: the certificate is valid only as long as the
  // server knows that token. "": it does not depend on a token.
  std::string token_hash;
  absl::Time not_before;
  absl::Time not_after;
};
// Describes the first certificate of a PEM text. InvalidArgument: the text has no certificate.
absl::StatusOr<CertificateFacts> DescribeCertificate(absl::string_view pem);

// Checks that a certificate is valid at `now`, the time of this machine's clock, which may be
// wrong. `whose`: "the server's certificate". FailedPrecondition: it has expired or is not valid
// yet; the message contains both times.
absl::Status CheckLifetime(absl::string_view whose, const CertificateFacts& facts, absl::Time now);
// Checks that the certificate belongs to the key. InvalidArgument: it does not, or the texts are
// not in PEM form.
absl::Status CheckKeyPair(const KeyPair& pair);

// Returns the URI that names the owner of a certificate, such as "hone://worker/pi-07".
std::string IdentityUri(const Identity& identity);
// InvalidArgument: `uri` does not have this form.
absl::StatusOr<Identity> IdentityFromUri(absl::string_view uri);
// The beginning of the URI with the hash of the token that a certificate depends on.
inline constexpr char kTokenUri[] = "hone-token:";

// Return the date, such as "2026-11-21", and the time, such as "2026-11-21 16:05 UTC", for messages
// about certificates.
std::string FormatDay(absl::Time time);
std::string FormatMinute(absl::Time time);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_CERTIFICATE_H_
