#include "server/service/fleet_service.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/service/job_convert.h"

namespace hone::service {
namespace {

// Ends the call once the worker's standing is durable.
void FinishWhenKept(StandingKeeper& keeper, const std::string& worker_id, Reply reply) {
  keeper.Keep(worker_id, [reply](absl::Status kept) {
    if (!kept.ok()) {
      kept = absl::Status(kept.code(),
                          absl::StrCat("the change is in effect but not stored yet; the server "
                                       "tries again, and a restart before that loses it: ",
                                       kept.message()));
    }
    reply(kept);
  });
}

}  // namespace

absl::Status FleetService::ListWorkers(const v1::ListWorkersRequest& request,
                                       v1::ListWorkersResponse* response) {
  HONE_RETURN_IF_ERROR(CheckPageToken(request.page_token()));
  HONE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size()));
  for (const fleet::WorkerInfo& worker :
       deps_.worker_memory->WithAbsent(deps_.fleet->KnownWorkers())) {  // by id
    if (worker.id <= request.page_token()) continue;
    if (response->workers_size() == page_size) {
      response->set_next_page_token(response->workers(page_size - 1).id());
      break;
    }
    *response->add_workers() = ToProto(worker, deps_.clock->Now());
  }
  return absl::OkStatus();
}

void FleetService::DrainWorker(Context*, const v1::DrainWorkerRequest* request,
                               v1::WorkerInfo* response, Reply reply) {
  const absl::StatusOr<fleet::WorkerInfo> worker =
      deps_.fleet->Drain(request->id(), request->resume());
  if (!worker.ok()) return reply(worker.status());
  *response = ToProto(*worker, deps_.clock->Now());
  FinishWhenKept(*deps_.standings, request->id(), reply);
}

void FleetService::RemoveWorker(Context*, const v1::RemoveWorkerRequest* request,
                                v1::RemoveWorkerResponse* response, Reply reply) {
  // It stays in the list until it is resumed and calls again.
  deps_.worker_memory->Keep(request->id());
  const absl::StatusOr<int> requeued = deps_.fleet->Remove(request->id());
  if (absl::IsNotFound(requeued.status()) && deps_.fleet->standings().MayWork(request->id()) &&
      deps_.worker_memory->Forget(request->id())) {
    return reply(absl::OkStatus());  // it was only remembered
  }
  if (!requeued.ok()) return reply(requeued.status());
  response->set_requeued(*requeued);
  FinishWhenKept(*deps_.standings, request->id(), reply);
}

}  // namespace hone::service
