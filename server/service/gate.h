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

// Which calls a listener accepts.
struct GateOptions {
  rpc::Address address;
  std::vector<rpc::Role> roles;  // only methods of these roles are served; empty: all methods
  // Every caller may call every method: on a Unix socket, whose folder restricts access, or on a
  // server without authentication on this machine or a trusted network.
  bool trusted = false;
};

// Decides whether a call is admitted. Each listener has a gate and asks it before every call.
// Thread-safe.
class Gate {
 public:
  // REQUIRES: the other objects outlive this one.
  Gate(GateOptions options, const rpc::Authenticator* authenticator, rpc::RateLimiter* limiter)
      : options_(std::move(options)), authenticator_(authenticator), limiter_(limiter) {}

  // Returns the caller. `message` is null for a stream of requests. Unauthenticated: see
  // Authenticator. PermissionDenied: the method is for another role, or this listener does not
  // serve it. ResourceExhausted: the caller has made too many calls. InvalidArgument: the message
  // is over a limit.
  absl::StatusOr<rpc::Identity> Admit(const grpc::ServerContextBase& context,
                                      absl::string_view method,
                                      const google::protobuf::Message* message) const;
  // PermissionDenied: the caller is another worker.
  absl::Status CheckWorkerId(const rpc::Identity& caller, const std::string& worker_id) const;

 private:
  const GateOptions options_;
  const rpc::Authenticator* const authenticator_;
  rpc::RateLimiter* const limiter_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_GATE_H_
