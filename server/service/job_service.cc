#include "server/service/job_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/service/job_convert.h"
#include "server/service/request_fields.h"

namespace hone::service {

absl::Status JobService::Fill(const job::SnapshotOr& snapshot, v1::Job* response) const {
  if (!snapshot.ok()) return snapshot.status();
  *response = ToProto(**snapshot);
  SetPeaks(*deps_.fleet, *response);
  return absl::OkStatus();
}

absl::StatusOr<job::JobSpec> JobService::ReadSpec(const v1::CreateJobRequest& request) const {
  if (request.workload_digest().empty() || request.has_network())
    return ToSpec(request, *deps_.environment);
  if (!request.workload().empty()) {
    return FieldError("workload_digest", "cannot be combined with workload");
  }
  absl::StatusOr<std::string> text = deps_.store->GetText(request.workload_digest());
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError("the workload is not in the store");
  }
  HONE_RETURN_IF_ERROR(text.status());
  v1::CreateJobRequest with_text = request;
  with_text.set_workload(*std::move(text));
  return ToSpec(with_text, *deps_.environment);
}

void JobService::CreateJob(Context* context, const v1::CreateJobRequest* request, v1::Job* response,
                           Reply reply) {
  absl::StatusOr<job::JobSpec> spec = ReadSpec(*request);
  if (!spec.ok()) return reply(spec.status());
  const absl::Status writable = deps_.store->CheckWritable();
  if (!writable.ok() || request->validate_only()) return reply(writable);
  spec->owner = deps_.authenticator->NameOf(*context);
  const std::string key = spec->requested_target == kNativeTarget ? "" : spec->requested_target;
  // A request that waits for its target counts among the owner's jobs from now on.
  absl::StatusOr<std::shared_ptr<void>> place = nullptr;
  if (absl::IsUnavailable(deps_.fleet->FindTarget(key).status())) {
    place = deps_.jobs->Reserve(*spec);
  }
  if (!place.ok()) return reply(place.status());
  deps_.fleet->AwaitTarget(
      key, deps_.target_wait,
      [this, context, reply, response, place = *std::move(place),
       spec = *std::move(spec)](absl::StatusOr<fleet::TargetChoice> target) mutable {
        place.reset();  // Create makes its own reservation
        if (!target.ok()) return reply(target.status());
        // The caller no longer waits for the job.
        if (context->IsCancelled()) return reply(absl::CancelledError("the caller has gone"));
        spec.target_key = std::move(target->key);
        spec.target = std::move(target->text);
        deps_.jobs->Create(std::move(spec),
                           [this, reply, response](const job::SnapshotOr& snapshot) {
                             reply(Fill(snapshot, response));
                           });
      });
}

void JobService::DraftSchedule(Context* context, const v1::DraftScheduleRequest* request,
                               v1::DraftedSchedule* response, Reply reply) {
  absl::StatusOr<job::JobSpec> spec = ToSpec(*request, *deps_.environment);
  if (!spec.ok()) return reply(spec.status());
  absl::StatusOr<std::string> target = DescribedTarget(request->target(), *deps_.fleet);
  if (!target.ok()) return reply(target.status());
  spec->target = *target;
  deps_.drafts->Draft(
      *std::move(spec), StopWithCaller(context),
      [reply, response, target = *std::move(target)](absl::StatusOr<std::string> trace) {
        if (trace.ok()) {
          response->set_trace(*std::move(trace));
          response->set_target(target);
        }
        reply(trace.status());
      });
}

absl::Status JobService::GetJob(const v1::GetJobRequest& request, v1::Job* response) {
  return Fill(deps_.jobs->Get(request.id()), response);
}

grpc::ServerWriteReactor<v1::Job>* JobService::WatchJob(Context*,
                                                        const v1::GetJobRequest* request) {
  return deps_.watches->Open(request->id());
}

absl::Status JobService::CancelJob(const v1::CancelJobRequest& request, v1::Job* response) {
  return Fill(deps_.jobs->Cancel(request.id(), request.confirm_finalists()), response);
}

absl::Status JobService::ListJobs(const v1::ListJobsRequest& request,
                                  v1::ListJobsResponse* response) {
  HONE_RETURN_IF_ERROR(CheckPageToken(request.page_token()));
  HONE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size()));
  absl::StatusOr<std::vector<std::shared_ptr<const job::JobSnapshot>>> jobs =
      deps_.jobs->List(page_size, request.page_token());
  if (absl::IsNotFound(jobs.status())) {
    return FieldError("page_token", "not a page token of this server");
  }
  HONE_RETURN_IF_ERROR(jobs.status());
  for (const auto& job : *jobs) {
    v1::Job& message = *response->add_jobs() = ToProto(*job);
    SetPeaks(*deps_.fleet, message);
    if (!message.has_network()) continue;
    message.mutable_network()->clear_tasks();  // a page would be too large with them
    message.mutable_network()->clear_estimates();
  }
  if (static_cast<int>(jobs->size()) == page_size) {
    response->set_next_page_token(jobs->back()->id);
  }
  return absl::OkStatus();
}

void JobService::ResumeJob(Context*, const v1::ResumeJobRequest* request, v1::Job* response,
                           Reply reply) {
  if (request->max_trials() < 0 || request->max_time_ms() < 0) {
    return reply(absl::InvalidArgumentError("the limits of a job must not be negative"));
  }
  deps_.jobs->Resume(request->id(), request->max_trials(),
                     absl::Milliseconds(request->max_time_ms()),
                     [this, reply, response](const job::SnapshotOr& snapshot) {
                       reply(Fill(snapshot, response));
                     });
}

}  // namespace hone::service
