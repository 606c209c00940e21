#include "server/service/tuning_service.h"

#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/service/artifact_stream.h"
#include "server/service/job_convert.h"
#include "server/service/worker_service.h"

namespace hone::service {
namespace {

constexpr char kNative[] = "native";

absl::Status Fill(const task::SnapshotOr& snapshot, v1::Job* response) {
  if (!snapshot.ok()) return snapshot.status();
  *response = ToProto(**snapshot);
  return absl::OkStatus();
}

absl::Status CheckToken(const std::string& token) {
  if (token.size() <= kMaxIdBytes) return absl::OkStatus();
  return absl::InvalidArgumentError("page_token: not one that this server gave");
}

}  // namespace

void TuningService::CreateJob(Context* context, const v1::CreateJobRequest* request,
                              v1::Job* response, Reply reply) {
  absl::StatusOr<task::JobSpec> spec = ToSpec(*request, *deps_.environment);
  if (!spec.ok() || request->validate_only()) return reply(spec.status());
  spec->owner = deps_.authenticator->NameOf(*context);
  const std::string key = spec->requested_target == kNative ? "" : spec->requested_target;
  // What waits for its target has its place among the owner's jobs from now on.
  absl::StatusOr<std::shared_ptr<void>> place = nullptr;
  if (absl::IsUnavailable(deps_.fleet->FindTarget(key).status())) {
    place = deps_.jobs->Reserve(*spec);
  }
  if (!place.ok()) return reply(place.status());
  deps_.fleet->AwaitTarget(
      key, deps_.target_wait,
      [this, reply, response, place = *std::move(place),
       spec = *std::move(spec)](absl::StatusOr<fleet::TargetChoice> target) mutable {
        place.reset();  // Create takes a place of its own
        if (!target.ok()) return reply(target.status());
        spec.target_key = std::move(target->key);
        spec.target = std::move(target->text);
        deps_.jobs->Create(std::move(spec), [reply, response](const task::SnapshotOr& snapshot) {
          reply(Fill(snapshot, response));
        });
      });
}

absl::Status TuningService::GetJob(const v1::GetJobRequest& request, v1::Job* response) {
  return Fill(deps_.jobs->Get(request.id()), response);
}

grpc::ServerWriteReactor<v1::Job>* TuningService::WatchJob(grpc::CallbackServerContext*,
                                                           const v1::GetJobRequest* request) {
  return deps_.watches->Open(request->id());
}

absl::Status TuningService::CancelJob(const v1::CancelJobRequest& request, v1::Job* response) {
  return Fill(deps_.jobs->Cancel(request.id(), request.confirm_finalists()), response);
}

void TuningService::ResumeJob(Context*, const v1::ResumeJobRequest* request, v1::Job* response,
                              Reply reply) {
  if (request->max_trials() < 0 || request->max_time_ms() < 0) {
    return reply(absl::InvalidArgumentError("max_trials, max_time_ms: negative"));
  }
  deps_.jobs->Resume(
      request->id(), request->max_trials(), absl::Milliseconds(request->max_time_ms()),
      [reply, response](const task::SnapshotOr& snapshot) { reply(Fill(snapshot, response)); });
}

absl::Status TuningService::ListJobs(const v1::ListJobsRequest& request,
                                     v1::ListJobsResponse* response) {
  HONE_RETURN_IF_ERROR(CheckToken(request.page_token()));
  HONE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size()));
  absl::StatusOr<std::vector<std::shared_ptr<const task::JobSnapshot>>> jobs =
      deps_.jobs->List(page_size, request.page_token());
  if (absl::IsNotFound(jobs.status())) {
    return absl::InvalidArgumentError("page_token: not one that this server gave");
  }
  HONE_RETURN_IF_ERROR(jobs.status());
  for (const auto& job : *jobs) *response->add_jobs() = ToProto(*job);
  if (static_cast<int>(jobs->size()) == page_size) {
    response->set_next_page_token(jobs->back()->id);
  }
  return absl::OkStatus();
}

absl::Status TuningService::FindBest(const v1::LookupBestRequest& request, v1::Best* response) {
  if (!std::isfinite(request.tolerance()) || request.tolerance() < 0 || request.tolerance() > 1) {
    return absl::InvalidArgumentError("tolerance: not a number from 0 to 1");
  }
  HONE_ASSIGN_OR_RETURN(const task::WorkloadInfo workload,
                        deps_.environment->Describe(request.workload()));
  std::string target = request.target();
  if (target == kNative) {
    const std::set<std::string> keys = deps_.fleet->Targets();
    if (keys.size() != 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("target native: the server has workers of ", keys.size(),
                       " targets; name one", keys.empty() ? "" : ": ", absl::StrJoin(keys, ", ")));
    }
    target = *keys.begin();
  }
  absl::StatusOr<store::BestRow> row = deps_.store->LookupBest(
      {.workload_digest = workload.digest, .target = target, .tolerance = request.tolerance()});
  if (absl::IsNotFound(row.status()) && request.nearest()) {
    return FindNearest(request, workload, target, response);
  }
  HONE_RETURN_IF_ERROR(row.status());
  task::Best best = WithPeaks(row->record, workload.flops);
  best.workload = row->workload;
  HONE_ASSIGN_OR_RETURN(best.trace, deps_.environment->TraceText(row->workload, row->space,
                                                                 row->record.candidate.decisions));
  *response = ToProto(best);
  return absl::OkStatus();
}

task::Best TuningService::WithPeaks(const record::Record& record, double flops) const {
  const std::optional<fleet::Capabilities> device = deps_.fleet->DeviceOf(record.target);
  if (device && device->peak_gflops > 0) {
    task::Best best = task::BestOf(record, flops, device->peak_gflops);
    best.read_gbps = device->read_gbps;
    return best;
  }
  // No worker of the target is there: the job that measured it knows them.
  task::Best best = task::BestOf(record, flops, /*peak_gflops=*/0);
  const task::SnapshotOr job = deps_.jobs->Get(record.job_id);
  if (job.ok() && (*job)->best && (*job)->best->record.id == record.id) {
    best.peak_gflops = (*job)->best->peak_gflops;
    best.read_gbps = (*job)->best->read_gbps;
  }
  return best;
}

absl::StatusOr<std::string> TuningService::TargetText(const std::string& key,
                                                      const std::string& op) const {
  if (const auto device = deps_.fleet->DeviceOf(key)) return device->target;
  // No worker of it has come since the server began: a job that measured on it knows.
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records,
                        deps_.store->Query({.target = key, .op = op, .page_size = 1}));
  if (records.empty()) {
    return absl::NotFoundError(absl::StrCat("no best of a ", op, " is known on ", key));
  }
  HONE_ASSIGN_OR_RETURN(const auto job, deps_.jobs->Get(records[0].job_id));
  return job->spec.target;
}

absl::Status TuningService::FindNearest(const v1::LookupBestRequest& request,
                                        const task::WorkloadInfo& workload,
                                        const std::string& target, v1::Best* response) {
  HONE_ASSIGN_OR_RETURN(const std::string text, TargetText(target, workload.op));
  HONE_ASSIGN_OR_RETURN(const task::NearestBest nearest,
                        task::FindNearest(*deps_.store, *deps_.environment, workload, target, text,
                                          request.tolerance()));
  *response = ToProto(nearest, workload);
  HONE_ASSIGN_OR_RETURN(
      std::string trace,
      deps_.environment->TraceText(workload.text, nearest.space, nearest.candidate.decisions));
  response->set_trace(std::move(trace));
  return absl::OkStatus();
}

void TuningService::LookupBest(Context*, const v1::LookupBestRequest* request, v1::Best* response,
                               Reply reply) {
  if (!request->nearest()) return reply(FindBest(*request, response));
  // It makes design spaces, which takes longer.
  deps_.executor->Schedule(
      [this, request, response, reply] { reply(FindBest(*request, response)); });
}

absl::Status TuningService::ListWorkers(const v1::ListWorkersRequest& request,
                                        v1::ListWorkersResponse* response) {
  HONE_RETURN_IF_ERROR(CheckToken(request.page_token()));
  HONE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size()));
  for (const fleet::WorkerInfo& worker : deps_.fleet->KnownWorkers()) {  // by id
    if (worker.id <= request.page_token()) continue;
    if (response->workers_size() == page_size) {
      response->set_next_page_token(response->workers(page_size - 1).id());
      break;
    }
    *response->add_workers() = ToProto(worker, deps_.clock->Now());
  }
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* TuningService::GetArtifact(
    grpc::CallbackServerContext*, const v1::GetArtifactRequest* request) {
  return new ArtifactWriter<v1::ArtifactChunk>(
      request->digest(), FindArtifact(request->digest(), *deps_.artifacts, *deps_.store));
}

absl::Status TuningService::DescribeFeatures(const v1::DescribeFeaturesRequest& request,
                                             v1::FeatureTable* response) {
  if (request.target().size() > kMaxTargetBytes) {
    return absl::InvalidArgumentError("target: too long");
  }
  if (request.feature_set().size() > kMaxIdBytes) {
    return absl::InvalidArgumentError("feature_set: too long");
  }
  std::string target = request.target();
  if (target.find(' ') == std::string::npos) {  // a text form has words
    std::set<std::string> keys;
    for (const fleet::WorkerInfo& worker : deps_.fleet->Workers()) {
      const fleet::Capabilities& capabilities = worker.capabilities;
      keys.insert(capabilities.target_key);
      if (capabilities.target_key == request.target()) target = capabilities.target;
    }
    if (!keys.contains(request.target())) {
      return absl::FailedPreconditionError(
          absl::StrCat("target: no worker of '", request.target(),
                       "' is registered, and a key alone does not "
                       "say what it stands for; there are: ",
                       keys.empty() ? "none" : absl::StrJoin(keys, ", ")));
    }
  }
  HONE_ASSIGN_OR_RETURN(
      const task::FeatureTable table,
      deps_.environment->DescribeFeatures(request.trace(), target, request.feature_set()));
  *response = ToProto(table);
  return absl::OkStatus();
}

}  // namespace hone::service
