#ifndef HONE_COMMON_RPC_SECURITY_H_
#define HONE_COMMON_RPC_SECURITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"

namespace hone::rpc {

// `ca` of those who trust the authorities that the machine trusts.
inline constexpr char kSystemAuthorities[] = "system";

// What a client or worker trusts, and by what it is known. Texts in PEM form, no paths.
struct ChannelSecurity {
  // Authorities of the server's certificate, or kSystemAuthorities; "": no TLS.
  std::string ca;
  KeyPair identity;         // "": none is shown
  std::string token;        // "": none is sent
  std::string server_name;  // that the server's certificate must have; "": the address's host
  bool insecure = false;    // plain text is allowed beyond this machine

  bool tls() const { return !ca.empty(); }
};

// Where these come from: paths, or the PEM texts themselves (a file of one's own has them in line).
struct SecuritySources {
  std::string ca;
  std::string certificate;
  std::string key;
  std::string token_file;
  std::string token;
  std::string server_name;
  bool insecure = false;
};

// Reads them. InvalidArgument: a certificate without its key or without `ca`, a token twice, or no
// PEM. FailedPrecondition: our own certificate has expired or is not valid yet. PermissionDenied:
// everybody may read the key or token. NotFound: no such file. Messages name the option and the
// path, never a content.
absl::StatusOr<ChannelSecurity> LoadSecurity(const SecuritySources& sources, absl::Time now);

// What a server shows on its TCP listeners, and whom it asks for a certificate.
struct ServerSecurity {
  KeyPair identity;                   // "": no TLS
  std::string client_ca;              // authorities of callers' certificates; "": none is asked for
  bool require_certificates = false;  // a caller without one is refused
  bool insecure = false;              // plain text is allowed beyond this machine

  bool tls() const { return !identity.certificate.empty(); }
};

struct ServerSecuritySources {
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string client_certificates;  // "", "none", "accept" or "require"
  bool insecure = false;
};

// Errors as of LoadSecurity.
absl::StatusOr<ServerSecurity> LoadServerSecurity(const ServerSecuritySources& sources,
                                                  absl::Time now);

// Plain text stays on this machine: PermissionDenied for anything but local addresses unless the
// traffic is encrypted or `insecure` was asked for.
absl::Status CheckAllowed(const Address& address, bool tls, bool insecure);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_SECURITY_H_
