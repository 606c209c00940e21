#include "tests/fault/message_tap.h"

#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "common/rpc/listener.h"
#include "common/rpc/status.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "hone/v1/worker.grpc.pb.h"

namespace hone::fault {
namespace {

// The service whose health the clients of several servers ask for.
constexpr char kAskedService[] = "hone.v1.TuningService";
constexpr absl::Duration kHealthInterval = absl::Milliseconds(50);
constexpr absl::Duration kHealthLimit = absl::Seconds(1);

const grpc::Status& Lost() {
  static const auto* const lost =
      new grpc::Status(grpc::StatusCode::UNAVAILABLE, "the message was lost on its way");
  return *lost;
}

class GrpcTap final : public MessageTap, public v1::WorkerService::Service {
 public:
  explicit GrpcTap(Ledger* ledger) : ledger_(ledger) {}
  ~GrpcTap() override;
  absl::Status Listen(const std::string& listen, const std::string& server);

  void Trouble(FaultKind kind, int calls, absl::Duration delay) override;
  int64_t troubled() const override;
  absl::Time serves_since() const override;

 private:
  grpc::Status Synchronize(grpc::ServerContext* context, const v1::SynchronizeRequest* request,
                           v1::SynchronizeResponse* response) override;
  grpc::Status UploadArtifact(grpc::ServerContext* context,
                              grpc::ServerReader<v1::WorkerArtifactChunk>* reader,
                              v1::UploadArtifactResponse* response) override;
  grpc::Status DownloadArtifact(grpc::ServerContext* context,
                                const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::WorkerArtifactChunk>* writer) override;

  // Passes a call on and records it.
  grpc::Status Pass(grpc::ServerContext* context, const v1::SynchronizeRequest& request,
                    v1::SynchronizeResponse* response);
  // Whether this call gets the fault, which is then used up.
  bool Meets(FaultKind kind);
  // Asks for the health of the server until the end.
  void FollowHealth();
  absl::StatusOr<bool> AskHealth();
  // Returns this worker's previous call with results.
  v1::SynchronizeRequest Earlier(const v1::SynchronizeRequest& request);

  Ledger* const ledger_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::unique_ptr<grpc::Server> server_;
  std::thread health_;
  mutable absl::Mutex mutex_;
  std::map<FaultKind, int> calls_ ABSL_GUARDED_BY(mutex_);
  absl::Duration delay_ ABSL_GUARDED_BY(mutex_);
  int64_t troubled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, v1::SynchronizeRequest> last_ ABSL_GUARDED_BY(mutex_);  // by worker
  absl::Time serves_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status GrpcTap::Listen(const std::string& listen, const std::string& server) {
  HONE_ASSIGN_OR_RETURN(channel_, rpc::CreateChannel(server, {}));
  stub_ = v1::WorkerService::NewStub(channel_);
  HONE_ASSIGN_OR_RETURN(const rpc::Address address, rpc::Address::Parse(listen));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  int port = 0;
  rpc::ServerCertificates none{rpc::ServerSecurity()};
  HONE_RETURN_IF_ERROR(rpc::AddListener(builder, address, none, &port));
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError("the tap cannot listen");
  server_->GetHealthCheckService()->SetServingStatus(kAskedService, false);
  health_ = std::thread([this] { FollowHealth(); });
  return absl::OkStatus();
}

GrpcTap::~GrpcTap() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (health_.joinable()) health_.join();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

void GrpcTap::Trouble(FaultKind kind, int calls, absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  calls_[kind] = calls;
  if (delay > absl::ZeroDuration()) delay_ = delay;
}

// Unavailable: there is no server. Other errors: it does not answer.
absl::StatusOr<bool> GrpcTap::AskHealth() {
  // HealthCheckRequest{service = 1}; HealthCheckResponse{status = 1}, SERVING is 1.
  const grpc::Slice text(absl::StrCat(
      "\x0a", std::string(1, static_cast<char>(sizeof(kAskedService) - 1)), kAskedService));
  const grpc::ByteBuffer request(&text, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  rpc::SetDeadline(context, kHealthLimit);
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel_);
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  HONE_RETURN_IF_ERROR(rpc::FromGrpc(status));
  grpc::Slice bytes;
  return response.DumpToSingleSlice(&bytes).ok() && bytes.size() == 2 && bytes.begin()[1] == 1;
}

void GrpcTap::FollowHealth() {
  bool serves = false;
  while (true) {
    const absl::StatusOr<bool> now = AskHealth();
    // Workers of a server that hangs do not notice it either.
    const bool hangs = !now.ok() && !absl::IsUnavailable(now.status());
    const bool serves_now = hangs ? serves : now.value_or(false);
    if (serves_now != serves)
      server_->GetHealthCheckService()->SetServingStatus(kAskedService, serves_now);
    absl::MutexLock lock(&mutex_);
    if (serves_now != serves) serves_since_ = serves_now ? absl::Now() : absl::InfiniteFuture();
    serves = serves_now;
    if (mutex_.AwaitWithTimeout(absl::Condition(&stop_), kHealthInterval)) return;
  }
}

absl::Time GrpcTap::serves_since() const {
  absl::MutexLock lock(&mutex_);
  return serves_since_;
}

int64_t GrpcTap::troubled() const {
  absl::MutexLock lock(&mutex_);
  return troubled_;
}

bool GrpcTap::Meets(FaultKind kind) {
  absl::MutexLock lock(&mutex_);
  auto calls = calls_.find(kind);
  if (calls == calls_.end() || calls->second == 0) return false;
  --calls->second;
  ++troubled_;
  return true;
}

grpc::Status GrpcTap::Pass(grpc::ServerContext* context, const v1::SynchronizeRequest& request,
                           v1::SynchronizeResponse* response) {
  const auto onward = grpc::ClientContext::FromServerContext(*context);
  ledger_->Told(request);
  const grpc::Status status = stub_->Synchronize(onward.get(), request, response);
  if (status.ok()) ledger_->Answered(*response);
  return status;
}

v1::SynchronizeRequest GrpcTap::Earlier(const v1::SynchronizeRequest& request) {
  absl::MutexLock lock(&mutex_);
  v1::SynchronizeRequest& last = last_[request.worker_id()];
  v1::SynchronizeRequest earlier = last;
  if (request.finished_size() > 0) last = request;
  return earlier;
}

grpc::Status GrpcTap::Synchronize(grpc::ServerContext* context,
                                  const v1::SynchronizeRequest* request,
                                  v1::SynchronizeResponse* response) {
  v1::SynchronizeRequest earlier = Earlier(*request);
  if (Meets(FaultKind::kDropRequest)) return Lost();
  if (Meets(FaultKind::kDelayRequest)) {
    absl::Duration delay;
    {
      absl::MutexLock lock(&mutex_);
      delay = delay_;
    }
    absl::SleepFor(delay);
  }
  v1::SynchronizeResponse thrown_away;
  if (earlier.finished_size() > 0 && Meets(FaultKind::kReplayResults)) {
    earlier.set_max_wait_ms(0);
    Pass(context, earlier, &thrown_away);
  }
  if (Meets(FaultKind::kDuplicateRequest)) {
    v1::SynchronizeRequest twin = *request;
    twin.set_max_wait_ms(0);
    Pass(context, twin, &thrown_away);
  }
  const grpc::Status status = Pass(context, *request, response);
  return Meets(FaultKind::kDropReply) ? Lost() : status;
}

grpc::Status GrpcTap::UploadArtifact(grpc::ServerContext* context,
                                     grpc::ServerReader<v1::WorkerArtifactChunk>* reader,
                                     v1::UploadArtifactResponse* response) {
  const bool breaks = Meets(FaultKind::kBreakTransfer);
  const auto onward = grpc::ClientContext::FromServerContext(*context);
  const auto writer = stub_->UploadArtifact(onward.get(), response);
  v1::WorkerArtifactChunk chunk;
  while (reader->Read(&chunk)) {
    if (breaks) chunk.mutable_data()->resize(chunk.data().size() / 2);
    const bool taken = writer->Write(chunk);
    if (breaks) onward->TryCancel();
    if (breaks || !taken) break;
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  return breaks ? Lost() : status;
}

grpc::Status GrpcTap::DownloadArtifact(grpc::ServerContext* context,
                                       const v1::DownloadArtifactRequest* request,
                                       grpc::ServerWriter<v1::WorkerArtifactChunk>* writer) {
  const bool breaks = Meets(FaultKind::kBreakTransfer);
  const auto onward = grpc::ClientContext::FromServerContext(*context);
  const auto reader = stub_->DownloadArtifact(onward.get(), *request);
  v1::WorkerArtifactChunk chunk;
  while (reader->Read(&chunk)) {
    if (breaks) chunk.mutable_data()->resize(chunk.data().size() / 2);
    if (!writer->Write(chunk) || breaks) {
      onward->TryCancel();
      break;
    }
  }
  const grpc::Status status = reader->Finish();
  return breaks ? Lost() : status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MessageTap>> MessageTap::Start(const std::string& listen,
                                                              const std::string& server,
                                                              Ledger* ledger) {
  auto tap = std::make_unique<GrpcTap>(ledger);
  HONE_RETURN_IF_ERROR(tap->Listen(listen, server));
  return tap;
}

}  // namespace hone::fault
