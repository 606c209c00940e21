// What an administrator says to workers. It is answered once it is durable.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "server/service/admin_service.h"
#include "server/service/job_convert.h"

namespace hone::service {
namespace {

// Ends the call once the worker's standing is in the store.
void FinishWhenKept(StandingKeeper& keeper, const std::string& worker_id,
                    grpc::ServerUnaryReactor* reactor) {
  keeper.Keep(worker_id, [reactor](absl::Status kept) {
    if (!kept.ok()) {
      kept = absl::Status(kept.code(),
                          absl::StrCat("it holds, but could not be stored yet, and ends with this "
                                       "run of the server unless that succeeds, which is tried "
                                       "again: ",
                                       kept.message()));
    }
    reactor->Finish(rpc::ToGrpc(kept));
  });
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::DrainWorker(grpc::CallbackServerContext* context,
                                                    const v1::DrainWorkerRequest* request,
                                                    v1::WorkerInfo* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::Status status = deps_.readiness->Check();
  if (status.ok()) {
    const absl::StatusOr<fleet::WorkerInfo> worker =
        deps_.fleet->Drain(request->id(), request->resume());
    status = worker.status();
    if (worker.ok()) *response = ToProto(*worker, absl::Now());
  }
  if (status.ok()) {
    FinishWhenKept(*deps_.standings, request->id(), reactor);
  } else {
    reactor->Finish(rpc::ToGrpc(status));
  }
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::RemoveWorker(grpc::CallbackServerContext* context,
                                                     const v1::RemoveWorkerRequest* request,
                                                     v1::RemoveWorkerResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::Status status = deps_.readiness->Check();
  if (status.ok()) {
    const absl::StatusOr<int> requeued = deps_.fleet->Remove(request->id());
    status = requeued.status();
    if (requeued.ok()) response->set_requeued(*requeued);
  }
  if (status.ok()) {
    FinishWhenKept(*deps_.standings, request->id(), reactor);
  } else {
    reactor->Finish(rpc::ToGrpc(status));
  }
  return reactor;
}

}  // namespace hone::service
