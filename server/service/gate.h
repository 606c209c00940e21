#ifndef HONE_SERVER_SERVICE_GATE_H_
#define HONE_SERVER_SERVICE_GATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/address.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/rate_limit.h"
#include "google/protobuf/message.h"

namespace hone::service {

// What a listener lets through.
struct GateOptions {
  rpc::Address address;
  std::vector<rpc::Role> roles;  // whose methods are served here; none: all
  // Everybody who can connect is trusted with everything: a Unix socket, whose folder says who may
  // use it, or a server without tokens on this machine or a trusted network.
  bool trusted = false;
};

// The one place where a call is let in: each listener has one, and asks it before every method.
// Thread-safe.
class Gate {
 public:
  // The others outlive it.
  Gate(GateOptions options, const rpc::Authenticator* authenticator, rpc::RateLimiter* limiter)
      : options_(std::move(options)), authenticator_(authenticator), limiter_(limiter) {}

  // Unauthenticated: see Authenticator. PermissionDenied: another role's method, or one that this
  // listener does not serve. ResourceExhausted: too many calls. InvalidArgument: the message is
  // over a limit. `message` may be null (a stream).
  absl::StatusOr<rpc::Identity> Admit(const grpc::ServerContextBase& context,
                                      absl::string_view method,
                                      const google::protobuf::Message* message) const;
  // PermissionDenied: the caller is a worker, and not this one.
  absl::Status CheckWorkerId(const rpc::Identity& caller, const std::string& worker_id) const;

 private:
  const GateOptions options_;
  const rpc::Authenticator* const authenticator_;
  rpc::RateLimiter* const limiter_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_GATE_H_
