#include "server/web/api.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "common/target/gpu_module.h"
#include "server/web/message_json.h"

namespace hone::web {
namespace {

using Tuning = v1::TuningService::Stub;
using Admin = v1::AdminService::Stub;

constexpr absl::Duration kCallLimit = absl::Seconds(20);
constexpr size_t kMaxShownBytes = size_t{1} << 20;
constexpr int kCurvePage = 1000;

// A call in this process on behalf of the session.
class CallContext {
 public:
  explicit CallContext(const std::string& token) {
    context_.AddMetadata(rpc::kTokenHeader, absl::StrCat(rpc::kTokenPrefix, token));
    rpc::SetDeadline(context_, kCallLimit);
  }
  grpc::ClientContext* get() { return &context_; }

 private:
  grpc::ClientContext context_;
};

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Do(Stub& stub, const std::string& token,
                            grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                         Response*),
                            const Request& request) {
  CallContext context(token);
  Response response;
  HONE_RETURN_IF_ERROR(rpc::FromGrpc((stub.*method)(context.get(), request, &response)));
  return response;
}

Tuning& StubOf(const Api& api, Tuning*) { return api.tuning(); }
Admin& StubOf(const Api& api, Admin*) { return api.admin(); }

// Removes from an answer what the page does not show there.
template <typename Response>
void Trim(Response&) {}
void Trim(v1::ListWorkersResponse& list) {
  for (v1::WorkerInfo& worker : *list.mutable_workers()) worker.clear_constants();
}
void Trim(v1::ListRecordsResponse& list) {
  for (v1::Record& record : *list.mutable_records()) {
    record.mutable_result()->clear_samples_ns();
    record.mutable_result()->clear_counters();
    record.mutable_candidate()->clear_decisions();
  }
}
void Trim(v1::ListJobsResponse& list) {
  for (v1::Job& job : *list.mutable_jobs()) {
    job.clear_request();
    job.clear_own_best();
    job.clear_given();
    job.clear_default_schedule();
    if (!job.has_best()) continue;
    job.mutable_best()->clear_trace();
    job.mutable_best()->clear_workload();
  }
}

// The answer of one method, whose request has the parameters as fields.
template <typename Stub, typename Request, typename Response,
          grpc::Status (Stub::*kMethod)(grpc::ClientContext*, const Request&, Response*)>
absl::StatusOr<std::string> Forward(const Api::Call& call) {
  Request request;
  HONE_RETURN_IF_ERROR(SetFields(call.parameters, request));
  HONE_ASSIGN_OR_RETURN(Response response, Do(StubOf(call.api, static_cast<Stub*>(nullptr)),
                                              call.token, kMethod, request));
  Trim(response);
  std::string json;
  AppendJson(response, &json);
  return json;
}

// Returns a parameter, or "" without one.
std::string Get(const Api::Call& call, const std::string& name) {
  const auto found = call.parameters.find(name);
  return found == call.parameters.end() ? "" : found->second;
}

// The trials of a job after the record `after`, without those that failed or are quarantined:
//   {"points": [[trial, created_unix_ms, latency_ns], …], "after": id, "more": bool}
absl::StatusOr<std::string> Curve(const Api::Call& call) {
  v1::ListRecordsRequest request;
  request.set_job_id(Get(call, "id"));
  if (request.job_id().empty()) return absl::InvalidArgumentError("id: the job is missing");
  request.set_page_token(Get(call, "after"));
  request.set_page_size(kCurvePage);
  HONE_ASSIGN_OR_RETURN(const v1::ListRecordsResponse page,
                        Do(call.api.tuning(), call.token, &Tuning::ListRecords, request));
  std::string json = "{\"points\":[";
  const char* separator = "";
  int64_t last = 0;
  for (const v1::Record& record : page.records()) {
    last = record.id();
    const v1::MeasureResult& result = record.result();
    if (result.outcome() != v1::OUTCOME_OK || record.quarantined() || record.trial() < 0) continue;
    const double drift = result.reference_drift() > 0 ? result.reference_drift() : 1;
    absl::StrAppend(&json, separator, "[", record.trial(), ",", record.created_unix_ms(), ",",
                    result.latency_ns() / drift, "]");
    separator = ",";
  }
  absl::StrAppend(&json, "],\"after\":\"", last > 0 ? absl::StrCat(last) : request.page_token(),
                  "\",\"more\":", page.next_page_token().empty() ? "false" : "true", "}");
  return json;
}

absl::StatusOr<record::Artifact> ReadArtifact(const Api::Call& call, const std::string& digest) {
  v1::GetArtifactRequest request;
  request.set_digest(digest);
  CallContext context(call.token);
  const auto reader = call.api.tuning().GetArtifact(context.get(), request);
  std::string bytes;
  v1::ArtifactChunk chunk;
  while (reader->Read(&chunk)) bytes += chunk.data();
  HONE_RETURN_IF_ERROR(rpc::FromGrpc(reader->Finish()));
  return record::DecodeArtifact(bytes);
}

// The source and the assembly of a GPU's kernel; empty for a CPU, whose machine code the server
// cannot read.
target::GpuSources SourcesOf(const record::Artifact& artifact) {
  if (!record::HoldsGpuModule(artifact)) return {};
  absl::StatusOr<target::GpuSources> sources = target::GpuSources::Decode(artifact.object);
  if (sources.ok()) return *std::move(sources);
  const absl::StatusOr<target::GpuModule> module =
      target::GpuModule::Decode(artifact.shared_object);
  if (!module.ok() || module->kind != target::Kind::kOpenCl) return {};
  return {.source = module->code};
}

// The best of a job, or else the published best of a workload, target and tolerance.
absl::StatusOr<v1::Best> FindBest(const Api::Call& call) {
  if (const std::string id = Get(call, "job"); !id.empty()) {
    v1::GetJobRequest request;
    request.set_id(id);
    HONE_ASSIGN_OR_RETURN(v1::Job job, Do(call.api.tuning(), call.token, &Tuning::GetJob, request));
    if (!job.has_best()) return absl::NotFoundError("the job has no kernel yet");
    if (job.best().workload().empty()) job.mutable_best()->set_workload(job.workload());
    return job.best();
  }
  HONE_ASSIGN_OR_RETURN(std::string workload, call.api.Text(Get(call, "workload_digest")));
  v1::LookupBestRequest request;
  request.set_workload(std::move(workload));
  HONE_RETURN_IF_ERROR(
      SetFields({{"target", Get(call, "target")}, {"tolerance", Get(call, "tolerance")}}, request));
  return Do(call.api.tuning(), call.token, &Tuning::LookupBest, request);
}

void AppendText(absl::string_view key, absl::string_view text, std::string* json) {
  absl::StrAppend(json, ",\"", key, "\":");
  AppendJson(text.substr(0, kMaxShownBytes), json);
}

// A kernel with everything that is shown of it: the best as LookupBest returns it, the program, the
// sources of a GPU's kernel, and the operations and bytes for the roofline.
absl::StatusOr<std::string> Kernel(const Api::Call& call) {
  HONE_ASSIGN_OR_RETURN(const v1::Best best, FindBest(call));
  std::string json = "{\"best\":";
  AppendJson(best, &json);
  const absl::StatusOr<record::Artifact> artifact =
      ReadArtifact(call, best.record().result().artifact_digest());
  if (artifact.ok()) {
    const target::GpuSources sources = SourcesOf(*artifact);
    AppendText("program", artifact->program, &json);
    AppendText("target_text", artifact->target, &json);
    AppendText("source", sources.source, &json);
    AppendText("assembly", sources.assembly, &json);
  }
  if (const auto workload = ir::ParseWorkload(best.workload()); workload.ok()) {
    double bytes = 0;
    for (const ir::Tensor& tensor : workload->tensors) {
      if (tensor.input || tensor.output) bytes += static_cast<double>(tensor.bytes());
    }
    absl::StrAppend(&json, ",\"flops\":", ir::FlopCount(*workload), ",\"bytes\":", bytes);
  }
  return json + "}";
}

// What ExplainSchedule says; {"problem": …} for a kernel that it cannot explain, such as one whose
// design space is of an earlier version: the page shows the rest of the kernel.
absl::StatusOr<std::string> Explain(const Api::Call& call) {
  absl::StatusOr<std::string> json =
      Forward<Tuning, v1::ExplainScheduleRequest, v1::Explanation, &Tuning::ExplainSchedule>(call);
  const absl::Status status = json.status();
  if (!absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status) &&
      !absl::IsNotFound(status)) {
    return json;
  }
  std::string problem = "{\"problem\":";
  AppendJson(status.message(), &problem);
  return problem + "}";
}

#define HONE_FORWARD(Service, Method, Request, Response) \
  Forward<Service, v1::Request, v1::Response, &Service::Method>

constexpr absl::Duration kNever = absl::ZeroDuration();

constexpr Api::Route kRoutes[] = {
    {"/api/fleet", false, absl::Seconds(2),
     HONE_FORWARD(Tuning, ListWorkers, ListWorkersRequest, ListWorkersResponse)},
    {"/api/jobs", false, absl::Seconds(1),
     HONE_FORWARD(Tuning, ListJobs, ListJobsRequest, ListJobsResponse)},
    {"/api/job", false, absl::Milliseconds(500), HONE_FORWARD(Tuning, GetJob, GetJobRequest, Job)},
    {"/api/curve", false, kNever, Curve},
    {"/api/records", false, kNever,
     HONE_FORWARD(Tuning, ListRecords, ListRecordsRequest, ListRecordsResponse)},
    {"/api/kernel", false, kNever, Kernel},
    {"/api/explain", false, kNever, Explain},
    {"/api/models", false, absl::Seconds(5),
     HONE_FORWARD(Tuning, ListModels, ListModelsRequest, ListModelsResponse)},
    {"/api/cancel-job", true, kNever, HONE_FORWARD(Tuning, CancelJob, CancelJobRequest, Job)},
    {"/api/resume-job", true, kNever, HONE_FORWARD(Tuning, ResumeJob, ResumeJobRequest, Job)},
    {"/api/drain-worker", true, kNever,
     HONE_FORWARD(Admin, DrainWorker, DrainWorkerRequest, WorkerInfo)},
    {"/api/pin-best", true, kNever, HONE_FORWARD(Admin, PinBest, PinBestRequest, Best)},
    {"/api/unpin-best", true, kNever,
     HONE_FORWARD(Admin, UnpinBest, UnpinBestRequest, UnpinBestResponse)},
};
#undef HONE_FORWARD

}  // namespace

Api::Api(std::shared_ptr<grpc::Channel> channel, FindText find_text)
    : tuning_(v1::TuningService::NewStub(channel)),
      admin_(v1::AdminService::NewStub(channel)),
      find_text_(std::move(find_text)) {}

const Api::Route* Api::Find(absl::string_view path) {
  const auto* found = std::find_if(std::begin(kRoutes), std::end(kRoutes),
                                   [&](const Route& route) { return route.path == path; });
  return found == std::end(kRoutes) ? nullptr : found;
}

absl::StatusOr<std::string> Api::Answer(const Route& route, const std::string& token,
                                        const Parameters& parameters) const {
  return route.answer({*this, token, parameters});
}

}  // namespace hone::web
