#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"
#include "common/record/given_inputs.h"
#include "common/record/proto_convert.h"
#include "common/target/target.h"
#include "server/job/actor/executor.h"
#include "server/job/search/draft_work.h"
#include "server/service/artifact_stream.h"
#include "server/service/job_convert.h"
#include "server/service/services.h"
#include "server/store/read_limit.h"
#include "spdlog/spdlog.h"

namespace hone::service {
namespace {

// In how many of the last jobs an artifact that is not published is looked for.
constexpr int kNewestJobs = 100;

}  // namespace

void BestService::LookupBest(const Call& call, const v1::LookupBestRequest* request,
                             v1::Best* response, Reply reply) {
  const absl::Status found = FindBest(*request, response);
  if (!absl::IsNotFound(found) || !request->nearest()) return reply(found);
  // The search for a related workload reads more and makes design spaces.
  deps_.readers->Run(ReadOf(ReaderLane::kLong, call),
                     [this, request, response, reply](const absl::Status& admitted) {
                       if (!admitted.ok()) return reply(admitted);
                       reply(job::Attempt([&] { return FindNearest(*request, response); }));
                     });
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* BestService::GetArtifact(
    const Call& call, const v1::GetArtifactRequest* request) {
  const rpc::Identity& caller = call.caller;
  const std::string& digest = request->digest();
  if (caller.role == rpc::Role::kAdmin || caller.role == rpc::Role::kWorker) {
    return SendArtifact<v1::ArtifactChunk>(deps_, call, digest);
  }
  return SendArtifact<v1::ArtifactChunk>(
      deps_, call, digest, /*offset=*/0, /*deflate=*/false,
      [this, caller, digest] { return IsBestOfOwnJob(caller, digest); });
}

bool BestService::IsBestOfOwnJob(const rpc::Identity& caller, const std::string& digest) const {
  if (caller.role != rpc::Role::kClient) return false;
  const auto jobs = deps_.jobs->List(kNewestJobs, /*after_id=*/"");
  if (!jobs.ok()) return false;
  return std::any_of(jobs->begin(), jobs->end(), [&](const auto& job) {
    return job->spec.owner == caller.name && job->best.has_value() &&
           job->best->record.result.artifact_digest == digest;
  });
}

grpc::ServerReadReactor<v1::ArtifactChunk>* BestService::UploadInputs(
    const Call& call, v1::UploadInputsResponse* response) {
  const auto check = [](const std::string& name) {
    if (IsSha256(name)) return absl::OkStatus();
    return absl::InvalidArgumentError("digest: not 64 hex digits");
  };
  const auto keep = [this](const std::string& name, std::string bytes, const auto& done) {
    absl::Status kept = record::DecodeGivenInputs(bytes).status();
    if (kept.ok()) kept = deps_.artifacts->Put(name, bytes);  // checks the digest
    if (!kept.ok()) return done(kept);
    // The store has them when the cache no longer does.
    deps_.store->PutArtifact(name, bytes, [name](const absl::Status& stored) {
      if (stored.ok()) return;
      spdlog::warn("data to measure on, {}, are kept in memory only: {}", name,
                   std::string(stored.message()));
    });
    done(absl::OkStatus());
  };
  return new ArtifactReader<v1::ArtifactChunk, v1::UploadInputsResponse>(
      deps_, call.context, response, {.check = check, .keep = keep});
}

absl::StatusOr<std::string> BestService::TargetOf(const v1::LookupBestRequest& request) const {
  if (request.target() != kNativeTarget) return request.target();
  const std::set<std::string> keys = deps_.fleet->Targets();
  if (keys.size() == 1) return *keys.begin();
  return absl::FailedPreconditionError(
      absl::StrCat("target native: the server has workers of ", keys.size(), " targets; name one",
                   keys.empty() ? "" : ": ", absl::StrJoin(keys, ", ")));
}

absl::Status BestService::FindBest(const v1::LookupBestRequest& request, v1::Best* response) {
  HONE_RETURN_IF_ERROR(CheckTolerance(request.tolerance()));
  HONE_ASSIGN_OR_RETURN(const job::WorkloadInfo workload,
                        deps_.environment->Describe(request.workload()));
  HONE_ASSIGN_OR_RETURN(const std::string target, TargetOf(request));
  HONE_ASSIGN_OR_RETURN(const store::BestRow row,
                        deps_.store->LookupBest({.workload_digest = workload.digest,
                                                 .target = target,
                                                 .tolerance = request.tolerance()}));
  job::Best best = MakeBest(row, workload.flops);
  HONE_ASSIGN_OR_RETURN(best.trace,
                        deps_.environment->TraceText(row.space, row.record.candidate.decisions));
  *response = ToProto(best);
  SetPeaks(*deps_.fleet, workload, *response);
  return absl::OkStatus();
}

absl::Status BestService::GetCached(const Call&, const v1::GetCachedRequest& request,
                                    v1::CachedValue* response) {
  HONE_ASSIGN_OR_RETURN(store::CachedRow row,
                        deps_.store->GetCached(request.name(), request.environment()));
  response->set_name(row.name);
  response->set_environment(row.environment);
  response->set_value(std::move(row.value));
  response->set_put_unix_ms(row.put_unix_ms);
  return absl::OkStatus();
}

void BestService::PutCached(const Call&, const v1::CachedValue* request, v1::PutCachedResponse*,
                            Reply reply) {
  deps_.store->PutCached(
      {.name = request->name(), .environment = request->environment(), .value = request->value()},
      reply);
}

absl::StatusOr<v1::Best> BestService::FindRecord(int64_t id) const {
  HONE_ASSIGN_OR_RETURN(const record::Record record, deps_.store->GetRecord(id));
  HONE_ASSIGN_OR_RETURN(const std::string text, deps_.store->GetText(record.workload_digest));
  HONE_ASSIGN_OR_RETURN(const job::WorkloadInfo workload, deps_.environment->Describe(text));
  job::Best best = WithPeaks(record, workload.flops);
  best.workload = text;
  HONE_ASSIGN_OR_RETURN(const std::string space,
                        deps_.store->GetText(record.candidate.space_digest));
  HONE_ASSIGN_OR_RETURN(best.trace,
                        deps_.environment->TraceText(space, record.candidate.decisions));
  v1::Best message = ToProto(best);
  SetPeaks(*deps_.fleet, workload, message);
  return message;
}

absl::Status BestService::ExplainSchedule(const Call&, const v1::ExplainScheduleRequest& request,
                                          v1::Explanation* response) {
  if ((request.record() > 0) == !request.trace().empty()) {
    return absl::InvalidArgumentError("name a record or send a trace, and not both");
  }
  Explained what;
  v1::Best& best = *response->mutable_best();
  if (request.record() > 0) {
    HONE_ASSIGN_OR_RETURN(best, FindRecord(request.record()));
    HONE_ASSIGN_OR_RETURN(what.record, record::FromProto(best.record()));
    HONE_ASSIGN_OR_RETURN(what.target, TargetText(what.record->target, what.record->op));
    what.speed = {
        .gflops = best.gflops(), .peak_gflops = best.peak_gflops(), .read_gbps = best.read_gbps()};
  } else {
    best.set_trace(request.trace());
    HONE_ASSIGN_OR_RETURN(what.target, DescribedTarget(request.target(), *deps_.fleet));
  }
  what.trace = best.trace();
  return service::Explain(*deps_.store, *deps_.environment, what, *response);
}

absl::Status BestService::ListPins(const Call&, const v1::ListPinsRequest&,
                                   v1::ListPinsResponse* response) {
  HONE_ASSIGN_OR_RETURN(const std::vector<store::BestRow> rows, deps_.store->PinnedBests());
  for (const store::BestRow& row : rows) {
    HONE_ASSIGN_OR_RETURN(*response->add_bests(), Describe(row));
  }
  return absl::OkStatus();
}

void BestService::PinBest(const Call& call, const v1::PinBestRequest* request, v1::Best* response,
                          Reply reply) {
  const absl::StatusOr<store::TaskKey> task = TaskOf(*request);
  if (!task.ok()) return reply(task.status());
  if (request->record() < 0) return reply(FieldError("record", "negative"));
  const auto answer = [this, task = *task, response, reply] {
    reply(job::Attempt([&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(const store::BestRow row,
                            deps_.store->LookupBest({.workload_digest = task.workload_digest,
                                                     .target = task.target,
                                                     .tolerance = task.tolerance}));
      HONE_ASSIGN_OR_RETURN(*response, Describe(row));
      return absl::OkStatus();
    }));
  };
  const auto refuse = [this, task = *task, record = request->record(),
                       reply](const absl::Status& status) {
    reply(job::Attempt([&] { return Explain(status, task, record); }));
  };
  deps_.store->PinBest(*task, request->record(), call.caller.name,
                       [this, answer, refuse](absl::Status status) {
                         // Both read the store.
                         if (status.ok()) return deps_.executor->Schedule(answer);
                         deps_.executor->Schedule([refuse, status] { refuse(status); });
                       });
}

absl::Status BestService::Explain(const absl::Status& status, const store::TaskKey& task,
                                  int64_t record_id) const {
  if (!absl::IsInvalidArgument(status) || record_id == 0) return status;
  const absl::StatusOr<record::Record> record = deps_.store->GetRecord(record_id);
  if (!record.ok() || record->workload_digest == task.workload_digest) return status;
  const absl::StatusOr<std::string> its = deps_.store->GetText(record->workload_digest);
  const absl::StatusOr<std::string> wanted = deps_.store->GetText(task.workload_digest);
  if (!its.ok() || !wanted.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("record ", record_id, " is of another workload, ", ir::SignatureOfText(*its),
                   "; the best to replace is of ", ir::SignatureOfText(*wanted)));
}

void BestService::UnpinBest(const Call&, const v1::UnpinBestRequest* request,
                            v1::UnpinBestResponse*, Reply reply) {
  const absl::StatusOr<store::TaskKey> task = TaskOf(*request);
  if (!task.ok()) return reply(task.status());
  deps_.store->UnpinBest(*task, reply);
}

job::Best BestService::MakeBest(const store::BestRow& row, double flops) const {
  job::Best best = WithPeaks(row.record, flops);
  best.workload = row.workload;
  best.pinned_by = row.pin.by;
  best.pinned_unix_ms = row.pin.unix_ms;
  return best;
}

absl::StatusOr<v1::Best> BestService::Describe(const store::BestRow& row) const {
  HONE_ASSIGN_OR_RETURN(const job::WorkloadInfo workload,
                        deps_.environment->Describe(row.workload));
  v1::Best best = ToProto(MakeBest(row, workload.flops));
  SetPeaks(*deps_.fleet, workload, best);
  return best;
}

job::Best BestService::WithPeaks(const record::Record& record, double flops) const {
  job::Best best = job::BestOf(record, flops, /*peak_gflops=*/0);
  const job::SnapshotOr job = deps_.jobs->Get(record.job_id);
  if (!job.ok()) return best;
  for (const std::optional<job::Best>* result :
       {&(*job)->best, &(*job)->default_schedule, &(*job)->given, &(*job)->own_best}) {
    if (!result->has_value()) continue;
    best.peak_gflops = std::max(best.peak_gflops, (*result)->peak_gflops);
    best.read_gbps = std::max(best.read_gbps, (*result)->read_gbps);
  }
  return best;
}

absl::Status BestService::FindNearest(const v1::LookupBestRequest& request, v1::Best* response) {
  HONE_ASSIGN_OR_RETURN(const job::WorkloadInfo workload,
                        deps_.environment->Describe(request.workload()));
  HONE_ASSIGN_OR_RETURN(const std::string target, TargetOf(request));
  HONE_ASSIGN_OR_RETURN(const std::string text, TargetText(target, workload.op));
  HONE_ASSIGN_OR_RETURN(
      const job::NearestBest nearest,
      deps_.drafts->Nearest(workload, target, text, request.tolerance(), &store::ReadLimit::Check));
  *response = ToProto(nearest, workload);
  HONE_ASSIGN_OR_RETURN(std::string trace,
                        deps_.environment->TraceText(nearest.space, nearest.candidate.decisions));
  response->set_trace(std::move(trace));
  return absl::OkStatus();
}

absl::StatusOr<std::string> BestService::TargetText(const std::string& key,
                                                    const std::string& op) const {
  if (const auto device = deps_.fleet->DeviceOf(key)) return device->target;
  // If no worker of the target is registered, take the text from a job that measured on the target.
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records,
                        deps_.store->Query({.target = key, .op = op, .page_size = 1}));
  if (records.empty()) {
    return absl::NotFoundError(absl::StrCat("no best of a ", op, " is known on ", key));
  }
  const job::SnapshotOr job = deps_.jobs->Get(records[0].job_id);
  if (job.ok()) return (*job)->spec.target;
  if (!absl::IsNotFound(job.status())) return job.status();
  // The job is of another store, or its row was compacted.
  for (const std::string& name : target::TargetNames()) {
    const absl::StatusOr<target::Target> known = target::TargetByName(name);
    if (known.ok() && known->Key() == key) return known->ToText();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "no worker of ", key,
      " has connected since the server began, and a key alone does not describe the target; "
      "connect a worker of it"));
}

}  // namespace hone::service
