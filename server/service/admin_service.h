#ifndef HONE_SERVER_SERVICE_ADMIN_SERVICE_H_
#define HONE_SERVER_SERVICE_ADMIN_SERVICE_H_

#include "hone/v1/admin.grpc.pb.h"
#include "server/fleet/fleet.h"
#include "server/service/guarded_service.h"
#include "server/service/readiness.h"
#include "server/service/standing_keeper.h"
#include "server/store/store.h"
#include "server/task/executor.h"
#include "server/task/task_environment.h"

namespace hone::service {

// The gRPC service for administrators. Thread-safe. Errors are those of admin.proto.
class AdminService {
 public:
  struct Dependencies {
    fleet::Fleet* fleet = nullptr;
    store::Store* store = nullptr;
    const task::TaskEnvironment* environment = nullptr;
    task::Executor* executor = nullptr;  // for what takes longer than a call may
    const Readiness* readiness = nullptr;
    StandingKeeper* standings = nullptr;
  };
  explicit AdminService(const Dependencies& deps) : deps_(deps) {}

  using Context = grpc::CallbackServerContext;
  // admin_workers.cc
  void DrainWorker(Context*, const v1::DrainWorkerRequest*, v1::WorkerInfo*, Reply);
  void RemoveWorker(Context*, const v1::RemoveWorkerRequest*, v1::RemoveWorkerResponse*, Reply);

  void BackupStore(Context*, const v1::BackupStoreRequest*, v1::BackupStoreResponse*, Reply);
  void CompactStore(Context*, const v1::CompactStoreRequest*, v1::CompactStoreResponse*, Reply);
  grpc::ServerReadReactor<v1::TextChunk>* ImportRecords(Context*, v1::ImportRecordsResponse*);

 private:
  const Dependencies deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_ADMIN_SERVICE_H_
