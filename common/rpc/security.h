#ifndef HONE_COMMON_RPC_SECURITY_H_
#define HONE_COMMON_RPC_SECURITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"

namespace hone::rpc {

// The value of `ca` that means the authorities that the machine trusts.
inline constexpr char kSystemAuthorities[] = "system";

// The authorities that a client or worker trusts, and its own identity. The strings are texts in
// PEM form, not paths.
struct ChannelSecurity {
  // Authorities of the server's certificate, or kSystemAuthorities; "": no TLS.
  std::string ca;
  KeyPair identity;         // "": no certificate is sent
  std::string token;        // "": no token is sent
  std::string server_name;  // expected in the server's certificate; "": the address's host
  bool insecure = false;    // plain text is allowed to other machines

  bool tls() const { return !ca.empty(); }
};

// The sources of these: paths, or the PEM texts themselves, which a configuration file may contain.
struct SecuritySources {
  std::string ca;
  std::string certificate;
  std::string key;
  std::string token_file;
  std::string token;
  std::string server_name;
  bool insecure = false;
};

// Reads the sources. InvalidArgument: a certificate without its key or without `ca`, both `token`
// and `token_file`, or a text that is not in PEM form. FailedPrecondition: our own certificate has
// expired or is not valid yet. PermissionDenied: every user may access the key or the token.
// NotFound: there is no such file. Messages contain the option and the path, but never the content.
absl::StatusOr<ChannelSecurity> LoadSecurity(const SecuritySources& sources, absl::Time now);

// The certificate of a server's TCP listeners, and the certificates that callers need.
struct ServerSecurity {
  KeyPair identity;       // "": no TLS
  std::string client_ca;  // authorities of callers' certificates; "": no client certificates
  bool require_certificates = false;  // a caller without a certificate is refused
  bool insecure = false;              // plain text is allowed to other machines

  bool tls() const { return !identity.certificate.empty(); }
};

struct ServerSecuritySources {
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string client_certificates;  // "", "none", "accept" or "require"
  bool insecure = false;
};

// Errors are those of LoadSecurity.
absl::StatusOr<ServerSecurity> LoadServerSecurity(const ServerSecuritySources& sources,
                                                  absl::Time now);

// Checks that plain text stays on this machine. PermissionDenied: the address is not local, the
// traffic is not encrypted, and `insecure` is not set.
absl::Status CheckAllowed(const Address& address, bool tls, bool insecure);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_SECURITY_H_
