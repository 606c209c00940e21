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
  std::vector<std::string> hosts;  // DNS names and IP addresses that a server is reached by
  std::string uri;                 // of a client or worker: IdentityUri
  bool server = false;             // may be used by a server; else by a client
  absl::Time not_before;
  absl::Time not_after;
};

// Keys are on the curve P-256, signatures ECDSA with SHA-256. Internal: OpenSSL refuses; the
// message has its words.
absl::StatusOr<KeyPair> MakeAuthority(const std::string& common_name, absl::Time not_before,
                                      absl::Time not_after);
absl::StatusOr<KeyPair> IssueCertificate(const KeyPair& authority,
                                         const CertificateRequest& request);

// What a certificate says.
struct CertificateFacts {
  std::string subject;  // common name
  std::string issuer;   // common name
  std::vector<std::string> hosts;
  std::string uri;
  absl::Time not_before;
  absl::Time not_after;
};
// Of the first certificate of a PEM text. InvalidArgument: there is none.
absl::StatusOr<CertificateFacts> DescribeCertificate(absl::string_view pem);

// Whether the certificate may be used at that time and belongs to the key. FailedPrecondition: it
// has expired or is not valid yet; the message has the date. InvalidArgument: no PEM, or another
// key's.
absl::Status CheckKeyPair(const KeyPair& pair, absl::Time now);

// How a certificate names its owner: "hone://worker/pi-07".
std::string IdentityUri(const Identity& identity);
// InvalidArgument: it is not such a URI.
absl::StatusOr<Identity> IdentityFromUri(absl::string_view uri);

// "2026-11-21", for messages about certificates.
std::string FormatDay(absl::Time time);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_CERTIFICATE_H_
