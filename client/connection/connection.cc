#include "client/connection/connection.h"

#include <algorithm>
#include <optional>
#include <random>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/connection/artifact_stream.h"
#include "client/connection/best_lookups.h"
#include "client/connection/job_watch.h"
#include "common/base/digest.h"
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

constexpr int kPageSize = 200;
constexpr absl::Duration kLongTimeout = absl::Hours(2);     // to read or write the whole store
constexpr absl::Duration kDraftTimeout = absl::Minutes(5);  // of the spaces, on a busy machine
constexpr absl::Duration kArtifactTimeout = absl::Minutes(2);
constexpr absl::Duration kWatchTimeout = absl::Minutes(10);  // then the stream is opened again
constexpr absl::Duration kWatchPatience = absl::Minutes(1);  // to find a server again
constexpr absl::Duration kProbeLimit = absl::Seconds(5);
// In every answer: the time, and the state of the store unless it is in order.
constexpr char kServerTimeHeader[] = "hone-unix-ms", kStoreHeader[] = "hone-store-bin";
constexpr absl::string_view kStoreIsChecked = "checking";

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// An id for all attempts of a call. The first attempt that arrives creates the job.
std::string NewRequestId() { return absl::StrCat(absl::Hex(RandomSeed(), absl::kZeroPad16)); }

// The items on a page of a list.
const auto& Items(const v1::ListJobsResponse& page) { return page.jobs(); }
const auto& Items(const v1::ListRecordsResponse& page) { return page.records(); }
const auto& Items(const v1::ListWorkersResponse& page) { return page.workers(); }

class GrpcConnection final : public Connection {
 public:
  GrpcConnection(std::string address, std::shared_ptr<grpc::Channel> channel,
                 const ConnectionOptions& options)
      : address_(std::move(address)),
        options_(options),
        channel_(channel),
        stubs_(v1::TuningService::NewStub(channel), v1::AdminService::NewStub(channel),
               v1::DashboardService::NewStub(channel)) {}

  const std::string& address() const override { return address_; }

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
    return Call(&Stub::CreateJob, request).status();
  }

  absl::StatusOr<v1::Job> GetJob(const std::string& id) override {
    v1::GetJobRequest request;
    request.set_id(id);
    return Ask(&Stub::GetJob, request);
  }

  absl::StatusOr<v1::Job> WatchJob(
      const std::string& id,
      const std::function<bool(const v1::Job& job, JobNews news)>& report) override {
    HONE_ASSIGN_OR_RETURN(v1::Job job, GetJob(id));
    Backoff backoff(options_.retry);
    JobNews quiet = JobNews::kNone;  // what to report while no state arrives
    absl::Time broken_at = absl::InfiniteFuture();
    while (true) {
      JobWatch watch(*stub_, id, kWatchTimeout);
      while (!watch.Ended()) {
        if (std::optional<v1::Job> message = watch.Next(kTick)) {
          HONE_RETURN_IF_ERROR(Check(*message));
          job = *std::move(message);
          broken_at = absl::InfiniteFuture();
          quiet = JobNews::kNone;
          backoff = Backoff(options_.retry);
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
      if (!comes_back || absl::Now() - broken_at > kWatchPatience) return Explain(status);
      if (absl::IsUnavailable(status)) quiet = JobNews::kNoServer;
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
    return Ask(&Stub::CancelJob, request);
  }

  absl::StatusOr<v1::Job> ResumeJob(const std::string& id, int64_t max_trials,
                                    int64_t max_time_ms) override {
    v1::ResumeJobRequest request;
    request.set_id(id);
    request.set_max_trials(max_trials);
    request.set_max_time_ms(max_time_ms);
    return Ask(&Stub::ResumeJob, request);
  }

  absl::StatusOr<absl::Duration> ClockSkew() override {
    v1::ListWorkersRequest request;
    request.set_page_size(1);
    v1::ListWorkersResponse response;
    grpc::ClientContext context;
    rpc::SetDeadline(context, options_.call_timeout);
    const absl::Time begin = absl::Now();
    HONE_RETURN_IF_ERROR(Explain(rpc::FromGrpc(stub_->ListWorkers(&context, request, &response))));
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

  StoreReport LastStoreReport() override {
    absl::MutexLock lock(&mutex_);
    return store_;
  }

  absl::StatusOr<std::vector<v1::Job>> ListJobs(int limit) override {
    return List<v1::Job>(&Stub::ListJobs, v1::ListJobsRequest(), limit);
  }

  absl::StatusOr<v1::Best> LookupBest(const std::string& workload, const std::string& target,
                                      double tolerance, bool nearest) override {
    return Ask(&Stub::LookupBest, BestQuery(workload, target, tolerance, nearest));
  }

  absl::StatusOr<std::vector<std::optional<v1::Best>>> LookupBests(
      absl::Span<const v1::LookupBestRequest> queries) override {
    std::vector<std::optional<v1::Best>> answers;
    HONE_RETURN_IF_ERROR(Retry([&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(answers, BestLookups(*stub_, queries, options_.call_timeout).Run());
      return absl::OkStatus();
    }));
    for (const std::optional<v1::Best>& best : answers) {
      if (best.has_value()) HONE_RETURN_IF_ERROR(Check(*best));
    }
    return answers;
  }

  absl::StatusOr<std::vector<v1::Best>> ListPins() override {
    HONE_ASSIGN_OR_RETURN(const v1::ListPinsResponse response,
                          Call(&Stub::ListPins, v1::ListPinsRequest()));
    std::vector<v1::Best> bests;
    HONE_RETURN_IF_ERROR(Append(response.bests(), bests));
    return bests;
  }

  absl::StatusOr<std::vector<record::Record>> ListRecords(const v1::ListRecordsRequest& filter,
                                                          int limit) override {
    return List<record::Record>(&Stub::ListRecords, filter, limit);
  }

  absl::StatusOr<std::vector<record::Record>> RecordPage(const v1::ListRecordsRequest& filter,
                                                         int page_size,
                                                         std::string& page_token) override {
    v1::ListRecordsRequest request = filter;
    request.set_page_size(page_size);
    request.set_page_token(page_token);
    HONE_ASSIGN_OR_RETURN(const v1::ListRecordsResponse page, Call(&Stub::ListRecords, request));
    page_token = page.next_page_token();
    std::vector<record::Record> records;
    HONE_RETURN_IF_ERROR(Append(page.records(), records));
    return records;
  }

  absl::Status ExportRecords(const v1::ListRecordsRequest& filter,
                             const std::function<absl::Status(absl::string_view)>& write) override {
    grpc::ClientContext context;
    rpc::SetDeadline(context, kLongTimeout);
    auto reader = stub_->ExportRecords(&context, filter);
    v1::TextChunk chunk;
    while (reader->Read(&chunk)) {
      if (absl::Status written = write(chunk.data()); !written.ok()) {
        context.TryCancel();
        reader->Finish();
        return written;
      }
    }
    return Explain(rpc::FromGrpc(reader->Finish()));
  }

  absl::StatusOr<v1::ImportRecordsResponse> ImportRecords(
      const std::function<absl::StatusOr<std::string>()>& read) override {
    grpc::ClientContext context;
    rpc::SetDeadline(context, kLongTimeout);
    v1::ImportRecordsResponse response;
    auto writer = std::get<1>(stubs_)->ImportRecords(&context, &response);
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
    HONE_RETURN_IF_ERROR(Explain(rpc::FromGrpc(writer->Finish())));
    return response;
  }

  absl::StatusOr<v1::ForgetRecordsResponse> ForgetRecords(const Task& task) override {
    return CallOnce(&AdminStub::ForgetRecords, About<v1::ForgetRecordsRequest>(task));
  }

  absl::StatusOr<v1::Best> PinBest(const Task& task, int64_t record) override {
    auto request = About<v1::PinBestRequest>(task);
    request.set_record(record);
    return Ask(&AdminStub::PinBest, request);
  }

  absl::Status UnpinBest(const Task& task) override {
    return CallOnce(&AdminStub::UnpinBest, About<v1::UnpinBestRequest>(task)).status();
  }

  absl::StatusOr<v1::BackupStoreResponse> BackupStore(const std::string& path) override {
    v1::BackupStoreRequest request;
    request.set_path(path);
    return Call(&AdminStub::BackupStore, request, kLongTimeout);
  }

  absl::StatusOr<v1::CompactStoreResponse> CompactStore(
      const v1::CompactStoreRequest& retention) override {
    return Call(&AdminStub::CompactStore, retention, kLongTimeout);
  }

  absl::StatusOr<std::vector<v1::WorkerInfo>> ListWorkers() override {
    return List<v1::WorkerInfo>(&Stub::ListWorkers, v1::ListWorkersRequest(), /*limit=*/0);
  }

  absl::StatusOr<v1::OpenDashboardResponse> OpenDashboard(
      const v1::OpenDashboardRequest& request) override {
    return Call(&DashboardStub::OpenDashboard, request);
  }

  absl::StatusOr<v1::FeatureTable> DescribeFeatures(const std::string& trace,
                                                    const std::string& target,
                                                    const std::string& feature_set) override {
    v1::DescribeFeaturesRequest request;
    request.set_trace(trace);
    request.set_target(target);
    request.set_feature_set(feature_set);
    HONE_ASSIGN_OR_RETURN(v1::FeatureTable table, Call(&Stub::DescribeFeatures, request));
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
    return CallOnce(&Stub::DraftSchedule, request, kDraftTimeout);
  }

  absl::StatusOr<v1::Explanation> Explain(const v1::ExplainScheduleRequest& request) override {
    return Ask(&Stub::ExplainSchedule, request);
  }

  absl::StatusOr<std::string> Artifact(const std::string& digest) override {
    std::string bytes;
    HONE_RETURN_IF_ERROR(Retry([&] {
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
    const std::string digest = DigestOf(bytes).ToHex();
    HONE_RETURN_IF_ERROR(Retry([&] { return SendInputs(digest, bytes); }));
    return digest;
  }

  absl::StatusOr<v1::ListModelsResponse> ListModels(const std::string& target) override {
    v1::ListModelsRequest request;
    request.set_target(target);
    return Call(&Stub::ListModels, request);
  }

  absl::StatusOr<v1::StoredModel> TrainModel(const v1::TrainModelRequest& request,
                                             absl::Duration limit) override {
    return Call(&Stub::TrainModel, request, limit);
  }

  absl::StatusOr<v1::EvaluateModelsResponse> EvaluateModels(
      const v1::EvaluateModelsRequest& request, absl::Duration limit) override {
    return Call(&Stub::EvaluateModels, request, limit);
  }

  absl::StatusOr<std::string> ExportModel(int64_t id) override {
    v1::ExportModelRequest request;
    request.set_id(id);
    std::string file;
    HONE_RETURN_IF_ERROR(Retry([&] {
      file.clear();
      grpc::ClientContext context;
      rpc::SetDeadline(context, kArtifactTimeout);
      std::string digest;
      HONE_RETURN_IF_ERROR(ReceiveArtifact(context, *stub_->ExportModel(&context, request),
                                           absl::StrCat("model ", id), file, digest));
      return DigestOf(file).ToHex() == digest
                 ? absl::OkStatus()
                 : absl::DataLossError(absl::StrCat("model ", id, " does not match its digest"));
    }));
    return file;
  }

  absl::StatusOr<v1::StoredModel> ImportModel(const std::string& file) override {
    v1::StoredModel response;
    HONE_RETURN_IF_ERROR(Retry([&] {
      grpc::ClientContext context;
      rpc::SetDeadline(context, kArtifactTimeout);
      return SendArtifact(*std::get<1>(stubs_)->ImportModel(&context, &response),
                          DigestOf(file).ToHex(), file);
    }));
    return response;
  }

  absl::StatusOr<v1::WorkerInfo> DrainWorker(const std::string& id, bool resume) override {
    v1::DrainWorkerRequest request;
    request.set_id(id);
    request.set_resume(resume);
    return Ask(&AdminStub::DrainWorker, request);
  }

  absl::StatusOr<int> RemoveWorker(const std::string& id) override {
    v1::RemoveWorkerRequest request;
    request.set_id(id);
    HONE_ASSIGN_OR_RETURN(const v1::RemoveWorkerResponse response,
                          Call(&AdminStub::RemoveWorker, request));
    return response.requeued();
  }

 private:
  using Stub = v1::TuningService::Stub;
  using AdminStub = v1::AdminService::Stub;
  using DashboardStub = v1::DashboardService::Stub;

  template <typename S, typename Request, typename Response>
  using Method = grpc::Status (S::*)(grpc::ClientContext*, const Request&, Response*);

  // A request about a task.
  template <typename Request>
  static Request About(const Task& task) {
    Request request;
    request.set_workload_digest(task.workload_digest);
    request.set_target(task.target);
    request.set_tolerance(task.tolerance);
    return request;
  }

  // Makes a unary call, and repeats it while the server is unavailable. `timeout` applies to each
  // attempt; 0: ConnectionOptions::call_timeout.
  template <typename S, typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<S, Request, Response> method, const Request& request,
                                absl::Duration timeout = absl::ZeroDuration()) {
    if (timeout == absl::ZeroDuration()) timeout = options_.call_timeout;
    Response response;
    HONE_RETURN_IF_ERROR(Retry([&] { return Attempt(method, request, timeout, response); }));
    return response;
  }

  // The same for calls that must not be repeated, because a second attempt would find nothing to
  // do: waits until the server answers another call, and then makes the call once.
  template <typename S, typename Request, typename Response>
  absl::StatusOr<Response> CallOnce(Method<S, Request, Response> method, const Request& request,
                                    absl::Duration timeout = absl::ZeroDuration()) {
    if (timeout == absl::ZeroDuration()) timeout = options_.call_timeout;
    HONE_RETURN_IF_ERROR(Call(&Stub::ListPins, v1::ListPinsRequest()).status());
    Response response;
    HONE_RETURN_IF_ERROR(Explain(Attempt(method, request, timeout, response)));
    return response;
  }

  template <typename S, typename Request, typename Response>
  absl::Status Attempt(Method<S, Request, Response> method, const Request& request,
                       absl::Duration timeout, Response& response) {
    response.Clear();
    grpc::ClientContext context;
    rpc::SetDeadline(context, timeout);
    const absl::Status status = rpc::FromGrpc(
        ((*std::get<std::unique_ptr<S>>(stubs_)).*method)(&context, request, &response));
    if (status.ok()) NoteStore(context);
    return status;
  }

  void NoteStore(const grpc::ClientContext& context) {
    const auto& headers = context.GetServerInitialMetadata();
    const auto header = headers.find(kStoreHeader);
    const std::string text =
        header == headers.end() ? "" : std::string(header->second.data(), header->second.size());
    absl::MutexLock lock(&mutex_);
    store_.is_being_checked = text == kStoreIsChecked;
    store_.damage = store_.is_being_checked ? "" : text;
  }

  // The same; the answer is checked.
  template <typename S, typename Request, typename Response>
  absl::StatusOr<Response> Ask(Method<S, Request, Response> method, const Request& request) {
    HONE_ASSIGN_OR_RETURN(Response response, Call(method, request));
    HONE_RETURN_IF_ERROR(Check(response));
    return response;
  }

  static absl::Status Append(const google::protobuf::RepeatedPtrField<v1::Record>& messages,
                             std::vector<record::Record>& records) {
    for (const v1::Record& message : messages) {
      HONE_ASSIGN_OR_RETURN(records.emplace_back(), record::FromProto(message));
    }
    return absl::OkStatus();
  }
  template <typename Message>
  static absl::Status Append(const google::protobuf::RepeatedPtrField<Message>& messages,
                             std::vector<Message>& checked) {
    for (const Message& message : messages) {
      HONE_RETURN_IF_ERROR(Check(message));
      checked.push_back(message);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Job> Create(const v1::CreateJobRequest& request, const KeepWaiting& waiting) {
    v1::Job response;
    HONE_RETURN_IF_ERROR(Retry([&] {
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
    rpc::SetDeadline(context, options_.call_timeout);
    grpc::Status status;
    absl::Notification done;
    stub_->async()->CreateJob(&context, &request, &response, [&](grpc::Status result) {
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

  // All items of a list that comes in pages, `limit` at most (0: all).
  template <typename Item, typename Request, typename Page>
  absl::StatusOr<std::vector<Item>> List(Method<Stub, Request, Page> method, Request request,
                                         int limit) {
    std::vector<Item> all;
    const auto left = [&] { return limit == 0 ? kPageSize : limit - static_cast<int>(all.size()); };
    do {
      request.set_page_size(std::min(kPageSize, left()));
      HONE_ASSIGN_OR_RETURN(const Page page, Call(method, request));
      HONE_RETURN_IF_ERROR(Append(Items(page), all));
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty() && left() > 0);
    return all;
  }

  absl::Status Retry(const std::function<absl::Status()>& attempt) const {
    RetryOptions retry = options_.retry;
    retry.seed = RandomSeed();
    const auto checked = [&] {
      absl::Status status = attempt();
      if (absl::IsUnavailable(status) && options_.check != nullptr) {
        if (absl::Status known = options_.check(); !known.ok()) return known;
      }
      return status;
    };
    return Explain(RetryUnavailable(retry, checked, [] { return absl::Now(); }, absl::SleepFor));
  }

  absl::Status Explain(const absl::Status& status) const {
    return rpc::ExplainCallError(status, address_, options_.security, kProbeLimit);
  }

  absl::Status DownloadArtifact(const std::string& digest, std::string& bytes) {
    v1::GetArtifactRequest request;
    request.set_digest(digest);
    grpc::ClientContext context;
    rpc::SetDeadline(context, kArtifactTimeout);
    std::string named;
    HONE_RETURN_IF_ERROR(ReceiveArtifact(context, *stub_->GetArtifact(&context, request),
                                         absl::StrCat("artifact ", digest), bytes, named));
    if (DigestOf(bytes).ToHex() != digest) {
      return absl::DataLossError(absl::StrCat(
          "artifact ", digest, " does not match its digest; the store may be damaged"));
    }
    return absl::OkStatus();
  }

  absl::Status SendInputs(const std::string& digest, const std::string& bytes) {
    grpc::ClientContext context;
    rpc::SetDeadline(context, kArtifactTimeout);
    v1::UploadInputsResponse response;
    return SendArtifact(*stub_->UploadInputs(&context, &response), digest, bytes);
  }

  const std::string address_;
  const ConnectionOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::tuple<std::unique_ptr<Stub>, std::unique_ptr<AdminStub>,
                   std::unique_ptr<DashboardStub>>
      stubs_;
  Stub* const stub_ = std::get<0>(stubs_).get();
  absl::Mutex mutex_;
  StoreReport store_ ABSL_GUARDED_BY(mutex_);
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
  return std::make_unique<GrpcConnection>(address, *std::move(channel), options);
}

}  // namespace hone::client
