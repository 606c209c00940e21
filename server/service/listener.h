#ifndef HONE_SERVER_SERVICE_LISTENER_H_
#define HONE_SERVER_SERVICE_LISTENER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/rate_limit.h"
#include "common/rpc/server_certificates.h"
#include "grpcpp/server.h"
#include "server/service/audit_log.h"
#include "server/service/gate.h"
#include "server/service/guarded_service.h"
#include "server/service/services.h"

namespace hone::service {

// One address with a gRPC server of its own: the services behind a gate, health and reflection.
class Listener {
 public:
  // What a listener works with. All outlive it.
  struct Parts {
    rpc::ServerCertificates* certificates = nullptr;
    rpc::RateLimiter* limiter = nullptr;
    AuditLog* audit = nullptr;  // may be null
    Services* services = nullptr;
  };

  // Accepts connections, and is not SERVING yet. AlreadyExists: the address is in use, not of this
  // machine, or its folder cannot be written; PermissionDenied: see rpc::CheckAllowed.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(const GateOptions& options,
                                                         const Parts& parts);

  // With the port that it got.
  const rpc::Address& address() const { return address_; }
  // What health says.
  void SetServing(bool serving);
  // Takes no more calls; those under way end by `deadline`, or are cancelled then. Returns when
  // none is left.
  void Shutdown(absl::Time deadline);

 private:
  Listener(const GateOptions& options, const Parts& parts);

  rpc::Address address_;
  const Gate gate_;
  GuardedService tuning_;
  GuardedService worker_;
  GuardedService admin_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_LISTENER_H_
