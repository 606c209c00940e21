#ifndef HONE_COMMON_RPC_SECURITY_H_
#define HONE_COMMON_RPC_SECURITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"

namespace hone::rpc {

// If `ca` has this value, the authorities are those that the machine trusts.
inline constexpr char kSystemAuthorities[] = "system";

// The authorities that a client or worker trusts, and its own identity. Certificates and keys are
// PEM texts, not paths.
struct ChannelSecurity {
  // Authorities that may issue the server's certificate, or kSystemAuthorities; "": no TLS.
  std::string ca;
  KeyPair identity;         // "": no certificate is sent
  std::string token;        // "": no token is sent
  std::string server_name;  // expected in the server's certificate; "": the host of the address
  bool insecure = false;    // connections to other machines may be unencrypted

  bool tls() const { return !ca.empty(); }
};

// The settings from which LoadSecurity makes a ChannelSecurity. `ca`, `certificate` and `key` are
// paths, or PEM texts, which a configuration file may contain.
struct SecuritySources {
  std::string ca;
  std::string certificate;
  std::string key;
  std::string token_file;
  std::string token;
  std::string server_name;
  bool insecure = false;
};

// Reads the sources. InvalidArgument: a certificate without its key or without `ca`, a key that
// does not belong to the certificate, both `token` and `token_file`, an empty or malformed token,
// or a text that is not in PEM form. PermissionDenied: users other than the owner and the group may
// access the file of the key or the token. NotFound: a file does not exist. Messages contain the
// option and the path, but never the content of a file.
absl::StatusOr<ChannelSecurity> LoadSecurity(const SecuritySources& sources);
// Checks that our own certificate, if there is one, is valid by this machine's clock. Errors as for
// CheckLifetime.
absl::Status CheckOwnLifetime(const ChannelSecurity& security, absl::Time now);

// The certificate of a server's TCP listeners, and which certificates they accept from callers.
struct ServerSecurity {
  KeyPair identity;                   // "": no TLS
  std::string client_ca;              // authorities of callers' certificates; "": none are accepted
  bool require_certificates = false;  // a caller without a certificate is refused
  bool insecure = false;              // connections from other machines may be unencrypted

  bool tls() const { return !identity.certificate.empty(); }
};

struct ServerSecuritySources {
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string client_certificates;  // "", "none", "accept" or "require"
  bool insecure = false;
};

// Errors as for LoadSecurity. InvalidArgument also: an unknown value of `client_certificates`, or
// client certificates without `certificate`, `key` and `client_ca`. FailedPrecondition: the
// certificate has expired or is not valid yet.
absl::StatusOr<ServerSecurity> LoadServerSecurity(const ServerSecuritySources& sources,
                                                  absl::Time now);

// Checks that plain text stays on this machine. PermissionDenied: the address is not local, the
// traffic is not encrypted, and `insecure` is not set.
absl::Status CheckAllowed(const Address& address, bool tls, bool insecure);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_SECURITY_H_
