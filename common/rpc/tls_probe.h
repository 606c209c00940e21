#ifndef HONE_COMMON_RPC_TLS_PROBE_H_
#define HONE_COMMON_RPC_TLS_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/certificate.h"
#include "common/rpc/security.h"

namespace hone::rpc {

// What a connection to a server came to.
struct TlsFinding {
  std::string protocol;     // "TLSv1.3"
  CertificateFacts server;  // its certificate
};

// Connects once, by hand, to say what gRPC does not when a channel fails: whether the server is
// there, speaks TLS, has a certificate that is valid, of a known authority and for this host, and
// takes ours. Blocks for `limit` at most. For TCP addresses with security.tls().
// Unavailable: no server listens, or the host is unknown. FailedPrecondition: one of the others;
// the message says which and what to do.
absl::StatusOr<TlsFinding> ProbeTls(absl::string_view address, const ChannelSecurity& security,
                                    absl::Duration limit);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_TLS_PROBE_H_
