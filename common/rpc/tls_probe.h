#ifndef HONE_COMMON_RPC_TLS_PROBE_H_
#define HONE_COMMON_RPC_TLS_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/certificate.h"
#include "common/rpc/security.h"

namespace hone::rpc {

// The facts of a successful TLS connection to a server.
struct TlsFinding {
  std::string protocol;     // "TLSv1.3"
  CertificateFacts server;  // its certificate
};

// Finds out why a channel fails, which gRPC does not report. Connects once with OpenSSL, and checks
// that the server listens and speaks TLS, that its certificate is valid, from a trusted authority
// and for this host, and that it accepts our certificate. Blocks for at most `limit`. Unavailable:
// no server listens, or the host is unknown. FailedPrecondition: another check failed; the message
// says which, and what to do. REQUIRES: a TCP address and security.tls().
absl::StatusOr<TlsFinding> ProbeTls(absl::string_view address, const ChannelSecurity& security,
                                    absl::Duration limit);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_TLS_PROBE_H_
