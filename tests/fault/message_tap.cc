#include "tests/fault/message_tap.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "common/rpc/listener.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/worker.grpc.pb.h"

namespace hone::fault {
namespace {

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
  // Returns this worker's previous call with results.
  v1::SynchronizeRequest Earlier(const v1::SynchronizeRequest& request);

  Ledger* const ledger_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::unique_ptr<grpc::Server> server_;
  mutable absl::Mutex mutex_;
  std::map<FaultKind, int> calls_ ABSL_GUARDED_BY(mutex_);
  absl::Duration delay_ ABSL_GUARDED_BY(mutex_);
  int64_t troubled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, v1::SynchronizeRequest> last_ ABSL_GUARDED_BY(mutex_);  // by worker
};

absl::Status GrpcTap::Listen(const std::string& listen, const std::string& server) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, rpc::CreateChannel(server, {}));
  stub_ = v1::WorkerService::NewStub(channel);
  HONE_ASSIGN_OR_RETURN(const rpc::Address address, rpc::Address::Parse(listen));
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  int port = 0;
  HONE_RETURN_IF_ERROR(rpc::AddListener(builder, address, /*insecure=*/false, &port));
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError("the tap cannot listen");
  return absl::OkStatus();
}

GrpcTap::~GrpcTap() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

void GrpcTap::Trouble(FaultKind kind, int calls, absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  calls_[kind] = calls;
  if (delay > absl::ZeroDuration()) delay_ = delay;
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
