#ifndef HONE_SERVER_SERVICE_FLEET_SERVICE_H_
#define HONE_SERVER_SERVICE_FLEET_SERVICE_H_

#include "absl/status/status.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/tuning.pb.h"
#include "server/service/handler.h"

namespace hone::service {

// The calls of clients and administrators about workers. A drain or a removal is answered once it
// is durable. Thread-safe. Errors are those of tuning.proto and admin.proto.
class FleetService {
 public:
  explicit FleetService(const Dependencies& deps) : deps_(deps) {}

  absl::Status ListWorkers(const v1::ListWorkersRequest&, v1::ListWorkersResponse*);
  void DrainWorker(Context*, const v1::DrainWorkerRequest*, v1::WorkerInfo*, Reply);
  void RemoveWorker(Context*, const v1::RemoveWorkerRequest*, v1::RemoveWorkerResponse*, Reply);

 private:
  const Dependencies& deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_FLEET_SERVICE_H_
