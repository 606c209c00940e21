// What an administrator says to workers.

#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "server/service/admin_service.h"
#include "server/service/job_convert.h"

namespace hone::service {

grpc::ServerUnaryReactor* AdminService::DrainWorker(grpc::CallbackServerContext* context,
                                                    const v1::DrainWorkerRequest* request,
                                                    v1::WorkerInfo* response) {
  absl::Status status = rooms_.readiness->Check();
  if (status.ok()) {
    const absl::StatusOr<fleet::WorkerInfo> worker =
        rooms_.fleet->Drain(request->id(), request->resume());
    status = worker.status();
    if (worker.ok()) *response = ToProto(*worker, absl::Now());
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::RemoveWorker(grpc::CallbackServerContext* context,
                                                     const v1::RemoveWorkerRequest* request,
                                                     v1::RemoveWorkerResponse* response) {
  absl::Status status = rooms_.readiness->Check();
  if (status.ok()) {
    const absl::StatusOr<int> requeued = rooms_.fleet->Remove(request->id());
    status = requeued.status();
    if (requeued.ok()) response->set_requeued(*requeued);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

}  // namespace hone::service
