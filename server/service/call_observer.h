#ifndef HONE_SERVER_SERVICE_CALL_OBSERVER_H_
#define HONE_SERVER_SERVICE_CALL_OBSERVER_H_

#include <memory>

#include "common/base/clock.h"
#include "common/rpc/authenticator.h"
#include "grpcpp/support/server_interceptor.h"
#include "server/service/audit_log.h"
#include "server/service/server_observer.h"

namespace hone::service {

// The header of every answer that says what the server's clock says, in milliseconds of Unix time.
inline constexpr char kTimeHeader[] = "hone-unix-ms";

// Sees every call from its arrival to its status: writes the audit log, tells the observer, gives
// each answer the server's time, and says why a request could not be read (gRPC calls that
// UNIMPLEMENTED).
class CallObserver final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // All outlive it; `audit` and `observer` may be null.
  struct Dependencies {
    const Clock* clock = nullptr;
    const rpc::Authenticator* authenticator = nullptr;
    AuditLog* audit = nullptr;
    ServerObserver* observer = nullptr;
  };
  explicit CallObserver(const Dependencies& deps) : deps_(deps) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  class Call;
  const Dependencies deps_;
};

// From now on Protobuf's complaints about texts that are not UTF-8 are kept for the observer, and
// not printed. Called before a server is made.
void TakeProtobufLog();

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_CALL_OBSERVER_H_
