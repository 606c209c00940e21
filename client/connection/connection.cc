#include "client/connection/connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/connection/artifact_stream.h"
#include "client/connection/best_lookups.h"
#include "client/connection/job_watch.h"
#include "client/connection/server_caller.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/dashboard.grpc.pb.h"
#include "hone/v1/tuning.grpc.pb.h"

namespace hone::client {
namespace {

constexpr absl::Duration kLongTimeout = absl::Hours(2);     // to read or write the whole store
constexpr absl::Duration kDraftTimeout = absl::Minutes(5);  // of the spaces, on a busy machine
constexpr absl::Duration kArtifactTimeout = absl::Minutes(2);
constexpr absl::Duration kWatchTimeout = absl::Minutes(10);   // then the stream is opened again
constexpr absl::Duration kWatchPatience = absl::Minutes(10);  // to find a server again
constexpr absl::Duration kTakeOverPatience = absl::Seconds(20);
constexpr absl::Duration kProposeTimeout = absl::Minutes(2);
constexpr char kServerTimeHeader[] = "hone-unix-ms";  // in every answer

// An id for all attempts of a call. The first attempt that arrives creates the job.
std::string NewRequestId() { return absl::StrCat(absl::Hex(RandomSeed(), absl::kZeroPad16)); }

class GrpcConnection final : public Connection {
 public:
  GrpcConnection(std::string address, const std::shared_ptr<grpc::Channel>& channel,
                 const ConnectionOptions& options)
      : channel_(channel), caller_(std::move(address), channel, options) {}

  const std::string& address() const override { return caller_.address(); }

  bool IsConnected() override {
    return channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
  }

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& spec,
                                    const KeepWaiting& waiting) override {
    v1::CreateJobRequest request = spec;
    request.set_request_id(NewRequestId());
    return Create(request, waiting);
  }

  absl::Status CheckJob(const v1::CreateJobRequest& spec) override {
    v1::CreateJobRequest request = spec;
    request.set_validate_only(true);
    return caller_.Call(&Stub::CreateJob, request).status();
  }

  absl::StatusOr<v1::Job> GetJob(const std::string& id) override {
    v1::GetJobRequest request;
    request.set_id(id);
    return caller_.Ask(&Stub::GetJob, request);
  }

  absl::StatusOr<v1::Job> WatchJob(
      const std::string& id,
      const std::function<bool(const v1::Job& job, JobNews news)>& report) override {
    HONE_ASSIGN_OR_RETURN(v1::Job job, GetJob(id));
    Backoff backoff(caller_.options().retry);
    JobNews quiet = JobNews::kNone;  // what to report while no state arrives
    absl::Time broken_at = absl::InfiniteFuture();
    while (true) {
      JobWatch watch(caller_.stub(), id, kWatchTimeout);
      while (!watch.Ended()) {
        if (std::optional<v1::Job> message = watch.Next(kTick)) {
          HONE_RETURN_IF_ERROR(Check(*message));
          job = *std::move(message);
          broken_at = absl::InfiniteFuture();
          quiet = JobNews::kNone;
          backoff = Backoff(caller_.options().retry);
          if (!report(job, JobNews::kChanged)) return absl::CancelledError("no longer watched");
        } else if (!report(job, quiet)) {
          return absl::CancelledError("no longer watched");
        }
      }
      if (HasEnded(job.state())) return job;
      const absl::Status status = watch.status();
      const bool comes_back =
          status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
      broken_at = std::min(broken_at, absl::Now());
      if (!comes_back || absl::Now() - broken_at > kWatchPatience) return caller_.Explained(status);
      if (absl::IsUnavailable(status)) {
        quiet = JobNews::kNoServer;
        // A server that cannot reach its database says so.
        const bool answers = absl::StartsWith(status.message(), "the server ");
        job.set_wait_reason(answers ? std::string(status.message()) : "");
      }
      const absl::Time again = absl::Now() + std::max(backoff.Next(), absl::Milliseconds(20));
      while (absl::Now() < again) {
        absl::SleepFor(std::min(kTick, again - absl::Now()));
        if (!report(job, quiet)) return absl::CancelledError("no longer watched");
      }
    }
  }

  absl::StatusOr<v1::Job> CancelJob(const std::string& id, bool confirm_finalists) override {
    v1::CancelJobRequest request;
    request.set_id(id);
    request.set_confirm_finalists(confirm_finalists);
    return caller_.Ask(&Stub::CancelJob, request);
  }

  absl::StatusOr<v1::Job> ResumeJob(const std::string& id, int64_t max_trials,
                                    int64_t max_time_ms) override {
    v1::ResumeJobRequest request;
    request.set_id(id);
    request.set_max_trials(max_trials);
    request.set_max_time_ms(max_time_ms);
    return caller_.Ask(&Stub::ResumeJob, request);
  }

  absl::StatusOr<v1::ProposeResponse> Propose(const v1::ProposeRequest& request) override {
    HONE_ASSIGN_OR_RETURN(v1::ProposeResponse response,
                          caller_.Call(&Stub::Propose, request, kProposeTimeout));
    if (response.verdicts_size() == request.traces_size()) return response;
    return absl::InternalError(absl::StrCat("the server answered ", response.verdicts_size(),
                                            " of ", request.traces_size(), " schedules"));
  }

  absl::StatusOr<absl::Duration> ClockSkew() override {
    v1::ListWorkersRequest request;
    request.set_page_size(1);
    v1::ListWorkersResponse response;
    grpc::ClientContext context;
    rpc::SetDeadline(context, caller_.options().call_timeout);
    const absl::Time begin = absl::Now();
    HONE_RETURN_IF_ERROR(
        caller_.Explained(rpc::FromGrpc(caller_.stub().ListWorkers(&context, request, &response))));
    const absl::Time middle = begin + (absl::Now() - begin) / 2;
    const auto& headers = context.GetServerInitialMetadata();
    const auto header = headers.find(kServerTimeHeader);
    int64_t unix_ms = 0;
    if (header == headers.end() ||
        !absl::SimpleAtoi(absl::string_view(header->second.data(), header->second.size()),
                          &unix_ms)) {
      return absl::FailedPreconditionError("the server does not report its time");
    }
    return absl::FromUnixMillis(unix_ms) - middle;
  }

  StoreReport LastStoreReport() override { return caller_.LastStoreReport(); }

  absl::StatusOr<std::vector<v1::Job>> ListJobs(int limit) override {
    return caller_.List<v1::Job>(&Stub::ListJobs, v1::ListJobsRequest(), limit);
  }

  absl::StatusOr<v1::Best> LookupBest(const std::string& workload, const std::string& target,
                                      double tolerance, bool nearest) override {
    return caller_.Ask(&Stub::LookupBest, BestQuery(workload, target, tolerance, nearest));
  }

  absl::StatusOr<std::vector<std::optional<v1::Best>>> LookupBests(
      absl::Span<const v1::LookupBestRequest> queries) override {
    std::vector<std::optional<v1::Best>> answers;
    HONE_RETURN_IF_ERROR(caller_.Retry([&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(
          answers, BestLookups(caller_.stub(), queries, caller_.options().call_timeout).Run());
      return absl::OkStatus();
    }));
    for (const std::optional<v1::Best>& best : answers) {
      if (best.has_value()) HONE_RETURN_IF_ERROR(Check(*best));
    }
    return answers;
  }

  absl::StatusOr<std::vector<v1::Best>> ListPins() override {
    HONE_ASSIGN_OR_RETURN(const v1::ListPinsResponse response,
                          caller_.Call(&Stub::ListPins, v1::ListPinsRequest()));
    std::vector<v1::Best> bests;
    HONE_RETURN_IF_ERROR(caller_.Append(response.bests(), bests));
    return bests;
  }

  absl::StatusOr<std::vector<record::Record>> ListRecords(const v1::ListRecordsRequest& filter,
                                                          int limit) override {
    return caller_.List<record::Record>(&Stub::ListRecords, filter, limit);
  }

  absl::StatusOr<std::vector<record::Record>> RecordPage(const v1::ListRecordsRequest& filter,
                                                         int page_size,
                                                         std::string& page_token) override {
    v1::ListRecordsRequest request = filter;
    request.set_page_size(page_size);
    request.set_page_token(page_token);
    HONE_ASSIGN_OR_RETURN(const v1::ListRecordsResponse page,
                          caller_.Call(&Stub::ListRecords, request));
    page_token = page.next_page_token();
    std::vector<record::Record> records;
    HONE_RETURN_IF_ERROR(caller_.Append(page.records(), records));
    return records;
  }

  absl::Status ExportRecords(const v1::ListRecordsRequest& filter,
                             const std::function<absl::Status(absl::string_view)>& write) override {
    grpc::ClientContext context;
    rpc::SetDeadline(context, kLongTimeout);
    auto reader = caller_.stub().ExportRecords(&context, filter);
    v1::TextChunk chunk;
    while (reader->Read(&chunk)) {
      if (absl::Status written = write(chunk.data()); !written.ok()) {
        context.TryCancel();
        reader->Finish();
        return written;
      }
    }
    return caller_.Explained(rpc::FromGrpc(reader->Finish()));
  }

  absl::StatusOr<v1::ImportRecordsResponse> ImportRecords(
      const std::function<absl::StatusOr<std::string>()>& read) override {
    grpc::ClientContext context;
    rpc::SetDeadline(context, kLongTimeout);
    v1::ImportRecordsResponse response;
    auto writer = caller_.admin().ImportRecords(&context, &response);
    v1::TextChunk chunk;
    while (true) {
      absl::StatusOr<std::string> piece = read();
      if (!piece.ok()) {
        context.TryCancel();
        writer->Finish();
        return piece.status();
      }
      if (piece->empty()) break;
      chunk.set_data(*std::move(piece));
      if (!writer->Write(chunk)) break;  // the server has refused: Finish says why
    }
    writer->WritesDone();
    HONE_RETURN_IF_ERROR(caller_.Explained(rpc::FromGrpc(writer->Finish())));
    return response;
  }

  absl::StatusOr<v1::ForgetRecordsResponse> ForgetRecords(const Task& task) override {
    return caller_.CallOnce(&AdminStub::ForgetRecords, About<v1::ForgetRecordsRequest>(task));
  }

  absl::StatusOr<v1::Best> PinBest(const Task& task, int64_t record) override {
    auto request = About<v1::PinBestRequest>(task);
    request.set_record(record);
    return caller_.Ask(&AdminStub::PinBest, request);
  }

  absl::Status UnpinBest(const Task& task) override {
    return caller_.CallOnce(&AdminStub::UnpinBest, About<v1::UnpinBestRequest>(task)).status();
  }

  absl::StatusOr<v1::BackupStoreResponse> BackupStore(const std::string& path) override {
    v1::BackupStoreRequest request;
    request.set_path(path);
    return caller_.Call(&AdminStub::BackupStore, request, kLongTimeout);
  }

  absl::StatusOr<v1::CompactStoreResponse> CompactStore(
      const v1::CompactStoreRequest& retention) override {
    return caller_.Call(&AdminStub::CompactStore, retention, kLongTimeout);
  }

  absl::StatusOr<std::vector<v1::WorkerInfo>> ListWorkers() override {
    return caller_.List<v1::WorkerInfo>(&Stub::ListWorkers, v1::ListWorkersRequest(), /*limit=*/0);
  }

  absl::StatusOr<v1::OpenDashboardResponse> OpenDashboard(
      const v1::OpenDashboardRequest& request) override {
    return caller_.Call(&DashboardStub::OpenDashboard, request);
  }

  absl::StatusOr<v1::FeatureTable> DescribeFeatures(const std::string& trace,
                                                    const std::string& target,
                                                    const std::string& feature_set) override {
    v1::DescribeFeaturesRequest request;
    request.set_trace(trace);
    request.set_target(target);
    request.set_feature_set(feature_set);
    HONE_ASSIGN_OR_RETURN(v1::FeatureTable table, caller_.Call(&Stub::DescribeFeatures, request));
    for (v1::FeatureRow& row : *table.mutable_rows()) {
      row.mutable_values()->Resize(table.columns_size(), 0);
    }
    return table;
  }

  absl::StatusOr<v1::DraftedSchedule> DraftSchedule(const std::string& workload,
                                                    const std::string& target,
                                                    double tolerance) override {
    v1::DraftScheduleRequest request;
    request.set_workload(workload);
    request.set_target(target);
    request.set_tolerance(tolerance);
    // Not repeated: if it ended the server, a second attempt would do so again.
    return caller_.CallOnce(&Stub::DraftSchedule, request, kDraftTimeout);
  }

  absl::StatusOr<v1::Explanation> Explain(const v1::ExplainScheduleRequest& request) override {
    return caller_.Ask(&Stub::ExplainSchedule, request);
  }

  absl::StatusOr<std::string> Artifact(const std::string& digest) override {
    std::string bytes;
    HONE_RETURN_IF_ERROR(caller_.Retry([&] {
      bytes.clear();
      return DownloadArtifact(digest, bytes);
    }));
    return bytes;
  }

  absl::StatusOr<std::string> UploadInputs(const std::string& bytes) override {
    constexpr size_t kMostInputBytes = 64 << 20;  // as for artifacts
    if (bytes.size() > kMostInputBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the data to measure on have ", bytes.size() >> 20,
          " MiB; at most 64 MiB can be sent. Give only the inputs whose values matter, "
          "as NAME=FILE; the others are seeded"));
    }
    const std::string digest = Sha256Of(bytes);
    HONE_RETURN_IF_ERROR(caller_.Retry([&] { return SendInputs(digest, bytes); }));
    return digest;
  }

  absl::StatusOr<v1::ListModelsResponse> ListModels(const std::string& target) override {
    v1::ListModelsRequest request;
    request.set_target(target);
    return caller_.Call(&Stub::ListModels, request);
  }

  absl::StatusOr<v1::StoredModel> TrainModel(const v1::TrainModelRequest& request,
                                             absl::Duration limit) override {
    return caller_.Call(&Stub::TrainModel, request, limit);
  }

  absl::StatusOr<v1::EvaluateModelsResponse> EvaluateModels(
      const v1::EvaluateModelsRequest& request, absl::Duration limit) override {
    return caller_.Call(&Stub::EvaluateModels, request, limit);
  }

  absl::StatusOr<std::string> ExportModel(int64_t id) override {
    v1::ExportModelRequest request;
    request.set_id(id);
    std::string file;
    HONE_RETURN_IF_ERROR(caller_.Retry([&] {
      file.clear();
      grpc::ClientContext context;
      rpc::SetDeadline(context, kArtifactTimeout);
      std::string digest;
      HONE_RETURN_IF_ERROR(ReceiveArtifact(context, *caller_.stub().ExportModel(&context, request),
                                           absl::StrCat("model ", id), file, digest));
      return Sha256Of(file) == digest
                 ? absl::OkStatus()
                 : absl::DataLossError(absl::StrCat("model ", id, " does not match its digest"));
    }));
    return file;
  }

  absl::StatusOr<v1::StoredModel> ImportModel(const std::string& file) override {
    v1::StoredModel response;
    HONE_RETURN_IF_ERROR(caller_.Retry([&] {
      grpc::ClientContext context;
      rpc::SetDeadline(context, kArtifactTimeout);
      return SendArtifact(*caller_.admin().ImportModel(&context, &response), Sha256Of(file), file);
    }));
    return response;
  }

  absl::StatusOr<v1::WorkerInfo> DrainWorker(const std::string& id, bool resume) override {
    v1::DrainWorkerRequest request;
    request.set_id(id);
    request.set_resume(resume);
    return caller_.Ask(&AdminStub::DrainWorker, request);
  }

  absl::StatusOr<int> RemoveWorker(const std::string& id) override {
    v1::RemoveWorkerRequest request;
    request.set_id(id);
    HONE_ASSIGN_OR_RETURN(const v1::RemoveWorkerResponse response,
                          caller_.Call(&AdminStub::RemoveWorker, request));
    return response.requeued();
  }

 private:
  using Stub = ServerCaller::Stub;
  using AdminStub = ServerCaller::AdminStub;
  using DashboardStub = ServerCaller::DashboardStub;

  // A request about a task.
  template <typename Request>
  static Request About(const Task& task) {
    Request request;
    request.set_workload_digest(task.workload_digest);
    request.set_target(task.target);
    request.set_tolerance(task.tolerance);
    return request;
  }

  absl::StatusOr<v1::Job> Create(const v1::CreateJobRequest& request, const KeepWaiting& waiting) {
    v1::Job response;
    HONE_RETURN_IF_ERROR(caller_.Retry([&] {
      absl::Status status = CreateOnce(request, waiting, response);
      const bool again = absl::IsUnavailable(status);
      return again && waiting != nullptr && !waiting() ? NotAwaited() : status;
    }));
    HONE_RETURN_IF_ERROR(Check(response));
    return response;
  }

  // One attempt. A job that was created before the call could be cancelled is returned.
  absl::Status CreateOnce(const v1::CreateJobRequest& request, const KeepWaiting& waiting,
                          v1::Job& response) {
    response.Clear();
    grpc::ClientContext context;
    rpc::SetDeadline(context, caller_.options().call_timeout);
    grpc::Status status;
    absl::Notification done;
    caller_.stub().async()->CreateJob(&context, &request, &response, [&](grpc::Status result) {
      status = std::move(result);
      done.Notify();
    });
    while (!done.WaitForNotificationWithTimeout(kTick)) {
      if (waiting == nullptr || waiting()) continue;
      context.TryCancel();
      done.WaitForNotification();
      return status.ok() ? absl::OkStatus() : NotAwaited();
    }
    return rpc::FromGrpc(status);
  }

  static absl::Status NotAwaited() { return absl::CancelledError("no longer waited for"); }

  absl::Status DownloadArtifact(const std::string& digest, std::string& bytes) {
    v1::GetArtifactRequest request;
    request.set_digest(digest);
    grpc::ClientContext context;
    rpc::SetDeadline(context, kArtifactTimeout);
    std::string named;
    HONE_RETURN_IF_ERROR(ReceiveArtifact(context, *caller_.stub().GetArtifact(&context, request),
                                         absl::StrCat("artifact ", digest), bytes, named));
    if (Sha256Of(bytes) != digest) {
      return absl::DataLossError(absl::StrCat(
          "artifact ", digest, " does not match its digest; the store may be damaged"));
    }
    return absl::OkStatus();
  }

  absl::Status SendInputs(const std::string& digest, const std::string& bytes) {
    grpc::ClientContext context;
    rpc::SetDeadline(context, kArtifactTimeout);
    v1::UploadInputsResponse response;
    return SendArtifact(*caller_.stub().UploadInputs(&context, &response), digest, bytes);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  ServerCaller caller_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& address,
                                                             const ConnectionOptions& options) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      rpc::CreateChannel(address, options.security);
  // Nothing was sent, so a forbidden address is reported like a malformed one.
  if (absl::IsPermissionDenied(channel.status())) {
    return absl::InvalidArgumentError(channel.status().message());
  }
  HONE_RETURN_IF_ERROR(channel.status());
  ConnectionOptions patient = options;
  // Of several servers, none may lead for a while: the standbys notice that the leader is gone.
  if (absl::StrContains(address, ',')) {
    patient.retry.give_up_after = std::max(patient.retry.give_up_after, kTakeOverPatience);
  }
  return std::make_unique<GrpcConnection>(address, *std::move(channel), patient);
}

}  // namespace hone::client
