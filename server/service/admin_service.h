#ifndef HONE_SERVER_SERVICE_ADMIN_SERVICE_H_
#define HONE_SERVER_SERVICE_ADMIN_SERVICE_H_

#include "hone/v1/admin.grpc.pb.h"
#include "server/fleet/fleet.h"
#include "server/service/readiness.h"
#include "server/service/standing_keeper.h"
#include "server/store/store.h"
#include "server/task/executor.h"
#include "server/task/task_environment.h"

namespace hone::service {

// The gRPC service for administrators. Thread-safe. Errors are those of admin.proto.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  struct Dependencies {
    fleet::Fleet* fleet = nullptr;
    store::Store* store = nullptr;
    const task::TaskEnvironment* environment = nullptr;
    task::Executor* executor = nullptr;  // for what takes longer than a handler may
    const Readiness* readiness = nullptr;
    StandingKeeper* standings = nullptr;
  };
  explicit AdminService(const Dependencies& deps) : deps_(deps) {}

  // admin_workers.cc
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::WorkerInfo* response) override;
  grpc::ServerUnaryReactor* RemoveWorker(grpc::CallbackServerContext* context,
                                         const v1::RemoveWorkerRequest* request,
                                         v1::RemoveWorkerResponse* response) override;

  grpc::ServerUnaryReactor* BackupStore(grpc::CallbackServerContext* context,
                                        const v1::BackupStoreRequest* request,
                                        v1::BackupStoreResponse* response) override;
  grpc::ServerUnaryReactor* CompactStore(grpc::CallbackServerContext* context,
                                         const v1::CompactStoreRequest* request,
                                         v1::CompactStoreResponse* response) override;
  grpc::ServerReadReactor<v1::TextChunk>* ImportRecords(
      grpc::CallbackServerContext* context, v1::ImportRecordsResponse* response) override;

 private:
  const Dependencies deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_ADMIN_SERVICE_H_
