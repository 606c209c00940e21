#ifndef HONE_SERVER_SERVICE_CALL_OBSERVER_H_
#define HONE_SERVER_SERVICE_CALL_OBSERVER_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/authenticator.h"
#include "grpcpp/support/server_interceptor.h"
#include "server/service/audit_log.h"
#include "server/service/server_observer.h"
#include "server/store/store.h"

namespace hone::service {

// The header of every answer with the server's time, in milliseconds of Unix time.
inline constexpr char kTimeHeader[] = "hone-unix-ms";
// A header about the state of the store: kStoreIsChecked while the check of the whole store is
// under way, or else what is wrong with a damaged store. Absent if no damage is known.
inline constexpr char kStoreHeader[] = "hone-store-bin";
inline constexpr char kStoreIsChecked[] = "checking";

// Observes every call from its arrival to its status. Writes the audit log, calls the observer,
// adds the server's time and the state of its store to each answer, and explains why a request
// could not be parsed, for which gRPC reports UNIMPLEMENTED. Logs the workers whose token or
// certificate is not accepted.
class CallObserver final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // REQUIRES: all outlive this object. `audit` and `observer` may be null.
  struct Dependencies {
    const Clock* clock = nullptr;  // the time of day
    const rpc::Authenticator* authenticator = nullptr;
    store::Store* store = nullptr;
    AuditLog* audit = nullptr;
    ServerObserver* observer = nullptr;
  };
  explicit CallObserver(const Dependencies& deps) : deps_(deps) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  class Call;
  // Whether the refusal of a worker is to be logged: once a minute per name, and for a few names
  // only, because unknown callers can send any name.
  bool IsToBeLogged(const std::string& worker_id);

  const Dependencies deps_;
  absl::Mutex mutex_;
  // The workers whose refusal was logged in the last minute, and when.
  absl::flat_hash_map<std::string, absl::Time> logged_ ABSL_GUARDED_BY(mutex_);
};

// Passes Protobuf's errors about texts that are not UTF-8 to the observer instead of printing them.
// Called before a server is made.
void TakeProtobufLog();

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_CALL_OBSERVER_H_
