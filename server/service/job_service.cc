#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/record/message_fields.h"
#include "common/record/record.h"
#include "common/rpc/status.h"
#include "server/job/actor/job_types.h"
#include "server/service/job_convert.h"
#include "server/service/services.h"

namespace hone::service {
namespace {

constexpr int kMostTraces = 64;  // of a call of Propose
constexpr size_t kMostProposerBytes = 64;
constexpr size_t kMostReasonBytes = 8 << 10;  // of a refusal, which may print the program

absl::Status CheckProposer(const std::string& name) {
  if (name.empty()) return FieldError("proposer", "missing; name the program that proposes");
  if (name.size() > kMostProposerBytes) {
    return FieldError("proposer", absl::StrCat("longer than ", kMostProposerBytes, " bytes"));
  }
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("._-+/", c)) {
      continue;
    }
    return FieldError("proposer", "it may only have letters, digits and . _ - + /");
  }
  return absl::OkStatus();
}

absl::StatusOr<job::Proposals> ToProposals(const v1::ProposeRequest& request) {
  if (request.job().empty()) return FieldError("job", "missing");
  HONE_RETURN_IF_ERROR(CheckProposer(request.proposer()));
  if (request.traces().empty()) return FieldError("traces", "missing");
  if (request.traces_size() > kMostTraces) {
    return FieldError("traces", absl::StrCat("more than ", kMostTraces, "; use several calls"));
  }
  return job::Proposals{.proposer = request.proposer(),
                        .traces = {request.traces().begin(), request.traces().end()}};
}

v1::ProposeResponse ToProto(const job::Verdicts& verdicts) {
  static_assert(static_cast<int>(job::Refusal::kFull) == v1::ProposalVerdict::REFUSAL_FULL);
  v1::ProposeResponse message;
  message.set_waiting(verdicts.waiting);
  for (const job::Verdict& verdict : verdicts.each) {
    v1::ProposalVerdict& row = *message.add_verdicts();
    row.set_trial(verdict.trial);
    row.set_refusal(static_cast<v1::ProposalVerdict::Refusal>(verdict.refusal));
    row.set_why(record::CleanText(verdict.why, kMostReasonBytes));
  }
  return message;
}

// Without the trace.
v1::MeasuredTrial ToTrial(const record::Record& record) {
  v1::MeasuredTrial message;
  message.set_record(record.id);
  message.set_trial(record.trial);
  message.set_proposer(record.proposer);
  message.set_purpose(record.policy.name);
  message.set_outcome(static_cast<v1::Outcome>(record.result.outcome));
  message.set_detail(record.result.detail);
  message.set_latency_ns(record::SteadyLatencyNs(record.result));
  message.set_quarantined(record.quarantined);
  return message;
}

}  // namespace

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

void JobService::CreateJob(const Call& call, const v1::CreateJobRequest* request, v1::Job* response,
                           Reply reply) {
  absl::StatusOr<job::JobSpec> spec = ReadSpec(*request);
  if (!spec.ok()) return reply(spec.status());
  absl::Status writable = deps_.store->CheckWritable();
  if (!request->validate_only()) writable.Update(deps_.store->CheckSpace());
  if (!writable.ok() || request->validate_only()) return reply(writable);
  spec->owner = call.caller.name;
  const std::string key = spec->requested_target == kNativeTarget ? "" : spec->requested_target;
  // A request that waits for its target counts among the owner's jobs from now on.
  absl::StatusOr<std::shared_ptr<void>> place = nullptr;
  if (absl::IsUnavailable(deps_.fleet->FindTarget(key).status())) {
    place = deps_.jobs->Reserve(*spec);
  }
  if (!place.ok()) return reply(place.status());
  deps_.fleet->AwaitTarget(
      key, deps_.target_wait,
      [this, call, reply, response, place = *std::move(place),
       spec = *std::move(spec)](absl::StatusOr<fleet::TargetChoice> target) mutable {
        if (!target.ok()) return reply(target.status());
        // The caller no longer waits for the job.
        if (call.context->IsCancelled()) return reply(absl::CancelledError("the caller has gone"));
        spec.target_key = std::move(target->key);
        spec.target = std::move(target->text);
        // This may be a thread of the fleet, which must not read the store.
        ReaderThreads::Read read = ReadOf(ReaderLane::kShort, call);
        read.continues = true;
        deps_.readers->Run(std::move(read),
                           [this, reply, response, place = std::move(place),
                            spec = std::move(spec)](const absl::Status& admitted) mutable {
                             if (!admitted.ok()) return reply(admitted);
                             deps_.jobs->Create(
                                 std::move(spec),
                                 [this, reply, response](const job::SnapshotOr& snapshot) {
                                   reply(Fill(snapshot, response));
                                 },
                                 std::move(place));
                           });
      });
}

void JobService::DraftSchedule(const Call& call, const v1::DraftScheduleRequest* request,
                               v1::DraftedSchedule* response, Reply reply) {
  absl::StatusOr<job::JobSpec> spec = ToSpec(*request, *deps_.environment);
  if (!spec.ok()) return reply(spec.status());
  absl::StatusOr<std::string> target = DescribedTarget(request->target(), *deps_.fleet);
  if (!target.ok()) return reply(target.status());
  spec->target = *target;
  deps_.drafts->Draft(
      *std::move(spec), StopWithCaller(call),
      [reply, response, target = *std::move(target)](absl::StatusOr<std::string> trace) {
        if (trace.ok()) {
          response->set_trace(*std::move(trace));
          response->set_target(target);
        }
        reply(trace.status());
      });
}

void JobService::GetJob(const Call& call, const v1::GetJobRequest* request, v1::Job* response,
                        Reply reply) {
  if (auto job = deps_.jobs->FindUnfinished(request->id())) return reply(Fill(job, response));
  deps_.readers->Run(ReadOf(ReaderLane::kShort, call), [this, request, response,
                                                        reply](const absl::Status& admitted) {
    if (!admitted.ok()) return reply(admitted);
    reply(job::Attempt([&] { return Fill(deps_.jobs->Get(request->id()), response); }));
  });
}

grpc::ServerWriteReactor<v1::Job>* JobService::WatchJob(const Call& call,
                                                        const v1::GetJobRequest* request) {
  return deps_.watches->Open(request->id(), ReadOf(ReaderLane::kShort, call).caller);
}

absl::Status JobService::CheckMayControl(const rpc::Identity& caller, const std::string& id) const {
  if (caller.role == rpc::Role::kAdmin) return absl::OkStatus();
  const job::SnapshotOr job = deps_.jobs->Get(id);
  if (!job.ok()) return job.status();
  const std::string& owner = (*job)->spec.owner;
  if (owner == caller.name) return absl::OkStatus();
  return rpc::WithReason(
      absl::PermissionDeniedError(absl::StrCat(
          "job ", id, " belongs to ",
          owner.empty() ? "a caller without credentials" : absl::StrCat("'", owner, "'"), ", and '",
          caller.name,
          "' may only cancel and resume its own jobs; ask its owner or an administrator")),
      "OWNER");
}

absl::Status JobService::CancelJob(const Call& call, const v1::CancelJobRequest& request,
                                   v1::Job* response) {
  HONE_RETURN_IF_ERROR(CheckMayControl(call.caller, request.id()));
  return Fill(deps_.jobs->Cancel(request.id(), request.confirm_finalists()), response);
}

absl::Status JobService::ListJobs(const Call&, const v1::ListJobsRequest& request,
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

void JobService::Propose(const Call& call, const v1::ProposeRequest* request,
                         v1::ProposeResponse* response, Reply reply) {
  absl::StatusOr<job::Proposals> proposals = ToProposals(*request);
  if (!proposals.ok()) return reply(proposals.status());
  absl::Status writable = deps_.store->CheckWritable();
  writable.Update(deps_.store->CheckSpace());
  if (!writable.ok()) return reply(writable);
  proposals->check = StopWithCaller(call);
  deps_.jobs->Propose(request->job(), call.caller.name, *std::move(proposals),
                      [reply, response](const absl::StatusOr<job::Verdicts>& verdicts) {
                        if (verdicts.ok()) *response = ToProto(*verdicts);
                        reply(verdicts.status());
                      });
}

absl::Status JobService::ListTrials(const Call&, const v1::ListTrialsRequest& request,
                                    v1::ListTrialsResponse* response) {
  if (request.job().empty()) return FieldError("job", "missing");
  if (request.after() < 0) return FieldError("after", "negative");
  HONE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size()));
  // Before the records, so that no record is missed once the job has ended.
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const job::JobSnapshot> job,
                        deps_.jobs->Get(request.job()));
  if (job->spec.network.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job->id, " tunes networks, and its measurements are those of the jobs of its ",
        "tasks, such as ", job::TaskJobId(job->id, 0)));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records,
                        deps_.store->Query({.page_size = page_size,
                                            .after_id = request.after(),
                                            .job_id = request.job(),
                                            .proposed = request.proposed(),
                                            .proposer = request.proposer()}));
  std::map<std::string, std::string> spaces;  // by digest; "": not in the store
  size_t bytes = 0;
  response->set_next(request.after());
  for (const record::Record& record : records) {
    response->set_next(record.id);
    v1::MeasuredTrial& trial = *response->add_trials() = ToTrial(record);
    trial.set_is_best(job->best && job->best->record.candidate == record.candidate);
    if (request.with_traces()) {
      const std::string& digest = record.candidate.space_digest;
      const auto [space, is_new] = spaces.try_emplace(digest);
      if (is_new) space->second = deps_.store->GetText(digest).value_or("");
      trial.set_trace(
          deps_.environment->TraceText(space->second, record.candidate.decisions).value_or(""));
    }
    if ((bytes += trial.ByteSizeLong()) >= kPageBytes) break;
  }
  const bool is_cut = response->trials_size() < static_cast<int>(records.size());
  response->set_more(is_cut || static_cast<int>(records.size()) == page_size);
  response->set_state(ToProto(job->state));
  if (job->best) *response->mutable_best() = ToProto(*job->best);
  return absl::OkStatus();
}

void JobService::ResumeJob(const Call& call, const v1::ResumeJobRequest* request, v1::Job* response,
                           Reply reply) {
  if (const absl::Status may = CheckMayControl(call.caller, request->id()); !may.ok()) {
    return reply(may);
  }
  if (request->max_trials() < 0 || request->max_time_ms() < 0) {
    return reply(absl::InvalidArgumentError("the limits of a job must not be negative"));
  }
  deps_.jobs->Resume(request->id(), request->max_trials(),
                     absl::Milliseconds(request->max_time_ms()),
                     [this, reply, response](const job::SnapshotOr& snapshot) {
                       reply(Fill(snapshot, response));
                     });
}

absl::Status DashboardService::OpenDashboard(const Call& call,
                                             const v1::OpenDashboardRequest& request,
                                             v1::OpenDashboardResponse* response) {
  if (deps_.dashboard == nullptr) {
    return absl::FailedPreconditionError(
        "the server serves no web page: start it with --web-listen, such as localhost:7080");
  }
  if (request.may_act() && call.caller.role == rpc::Role::kViewer) {
    return absl::PermissionDeniedError(
        absl::StrCat(call.caller.name, " may only read: open the page without its actions"));
  }
  rpc::Identity session = call.caller;
  if (!request.may_act()) session.role = rpc::Role::kViewer;
  HONE_ASSIGN_OR_RETURN(const Dashboard::Opened opened, deps_.dashboard->Open(session));
  response->set_url(opened.url);
  response->set_expires_unix_ms(absl::ToUnixMillis(opened.expires));
  return absl::OkStatus();
}

}  // namespace hone::service
