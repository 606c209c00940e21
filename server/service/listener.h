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

// One address with its own gRPC server: the services behind a gate, health and reflection.
class Listener {
 public:
  // The objects that a listener uses. All outlive it.
  struct Parts {
    rpc::ServerCertificates* certificates = nullptr;
    rpc::RateLimiter* limiter = nullptr;
    AuditLog* audit = nullptr;  // may be null
    Services* services = nullptr;
  };

  // Starts to accept connections; health is NOT_SERVING until SetServing. Errors are those of
  // rpc::AddListener, and Unavailable if the address cannot be used.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(const GateOptions& options,
                                                         const Parts& parts);

  // The address, with the port that the listener got if it asked for port 0.
  const rpc::Address& address() const { return address_; }
  // Sets the health status of the services. kReads: the store is damaged and only read. Then
  // TuningService is SERVING, because it answers look-ups; the others and the server as a whole
  // (the service "") are not.
  enum class Serving { kNothing, kReads, kAll };
  void SetServing(Serving serving);
  // Refuses new calls, and cancels active calls at `deadline`. Returns when no call is active.
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
