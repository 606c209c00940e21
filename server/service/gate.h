#ifndef HONE_SERVER_SERVICE_GATE_H_
#define HONE_SERVER_SERVICE_GATE_H_

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/address.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/connections.h"
#include "common/rpc/rate_limit.h"
#include "common/rpc/role.h"
#include "google/protobuf/message.h"

namespace hone::service {

// Whether the server accepts calls, which it does while it leads. Thread-safe.
class Readiness {
 public:
  enum class State {
    kStarting,
    kStandby,      // another server leads
    kUnreachable,  // the database of the store cannot be reached
    kRefused,      // the database answers, but this server must not lead; the log says why
    kLeader,       // accepts calls
    kDraining,
  };
  static constexpr absl::string_view kNames[] = {"starting", "standby", "unreachable",
                                                 "refused",  "leader",  "ending"};
  // kDraining is final: a server that ends does not begin to lead.
  void Set(State state) {
    State now = state_;
    while (now != State::kDraining && !state_.compare_exchange_weak(now, state)) {
    }
  }
  State state() const { return state_; }
  // Unavailable: the server does not accept calls. Clients retry such calls.
  absl::Status Check() const;

 private:
  std::atomic<State> state_{State::kStarting};
};

// The access rule of a method.
struct Access {
  absl::string_view method;    // "/hone.v1.TuningService/CreateJob"
  rpc::Role role;              // the role that may call it; administrators may call all methods
  bool audited = false;        // all calls are written to the audit log, not only refused ones
  absl::string_view resource;  // the request's field that names its resource; "" if none
  bool for_viewers = false;    // viewers may call it, too
  // The largest request. A longer one is not parsed: gRPC has received it by then, but a message
  // takes several times as much memory as its bytes.
  size_t max_bytes = 128 << 10;
};

// Returns the rule of a method. Null if the method is unknown; such calls are refused.
const Access* FindAccess(absl::string_view method);

// Which calls a listener accepts.
struct GateOptions {
  rpc::Address address;
  std::optional<rpc::Role> role = {};  // only methods of this role are served; nullopt: all
  // Every caller may call every method: on a Unix socket, whose folder restricts access, or on a
  // server without authentication on this machine or a trusted network.
  bool trusted = false;
};

// Decides whether a call is admitted. Each listener has a gate and asks it before every call.
// Thread-safe.
class Gate {
 public:
  // REQUIRES: the other objects outlive this one. `connections` may be null.
  Gate(GateOptions options, const rpc::Authenticator* authenticator, rpc::RateLimiter* limiter,
       rpc::Connections* connections)
      : options_(std::move(options)),
        authenticator_(authenticator),
        limiter_(limiter),
        connections_(connections) {}

  // Returns the caller, before its request is read. Errors are those of Authenticator.
  absl::StatusOr<rpc::Identity> Identify(const grpc::ServerContextBase& context) const;

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
  rpc::Connections* const connections_;
};

// Limits of all texts and lists of requests. Texts that are not names have their own limits, in the
// table in gate.cc. common/rpc limits the size of a message, Protobuf checks UTF-8 and
// limits the nesting of messages, and parsers limit the nesting of workloads and traces.
inline constexpr int kMaxNameBytes = 4096;
inline constexpr int kMaxListEntries = 1 << 16;
// A message of a stream of requests.
inline constexpr size_t kMaxChunkBytes = 4 << 20;

// Returns ResourceExhausted for a request, or a message of a stream of requests, over its limit.
absl::Status RequestTooLong(size_t bytes, size_t most);

// InvalidArgument: a text is too long, a list has too many entries, or a name contains a control
// character. The message contains the path of the field ("finished[3].result.detail").
absl::Status CheckMessage(const google::protobuf::Message& message);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_GATE_H_
