// What an administrator says to workers. It is answered once it is durable.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/service/admin_service.h"
#include "server/service/job_convert.h"

namespace hone::service {
namespace {

// Ends the call once the worker's standing is in the store.
void FinishWhenKept(StandingKeeper& keeper, const std::string& worker_id, Reply reply) {
  keeper.Keep(worker_id, [reply](absl::Status kept) {
    if (!kept.ok()) {
      kept = absl::Status(kept.code(),
                          absl::StrCat("it holds, but could not be stored yet, and ends with this "
                                       "run of the server unless that succeeds, which is tried "
                                       "again: ",
                                       kept.message()));
    }
    reply(kept);
  });
}

}  // namespace

void AdminService::DrainWorker(Context*, const v1::DrainWorkerRequest* request,
                               v1::WorkerInfo* response, Reply reply) {
  const absl::StatusOr<fleet::WorkerInfo> worker =
      deps_.fleet->Drain(request->id(), request->resume());
  if (!worker.ok()) return reply(worker.status());
  *response = ToProto(*worker, absl::Now());
  FinishWhenKept(*deps_.standings, request->id(), reply);
}

void AdminService::RemoveWorker(Context*, const v1::RemoveWorkerRequest* request,
                                v1::RemoveWorkerResponse* response, Reply reply) {
  const absl::StatusOr<int> requeued = deps_.fleet->Remove(request->id());
  if (!requeued.ok()) return reply(requeued.status());
  response->set_requeued(*requeued);
  FinishWhenKept(*deps_.standings, request->id(), reply);
}

}  // namespace hone::service
