#include "tests/fault/message_tap.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "common/rpc/listener.h"

namespace hone::fault {
namespace {

const grpc::Status& Lost() {
  static const auto* const lost =
      new grpc::Status(grpc::StatusCode::UNAVAILABLE, "the message was lost on its way");
  return *lost;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MessageTap>> MessageTap::Start(const std::string& listen,
                                                              const std::string& server,
                                                              Ledger* ledger) {
  auto tap = std::unique_ptr<MessageTap>(new MessageTap(ledger));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel,
                        rpc::CreateChannel(server, /*insecure=*/false));
  tap->stub_ = v1::WorkerService::NewStub(channel);
  HONE_ASSIGN_OR_RETURN(const rpc::Address address, rpc::Address::Parse(listen));
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  int port = 0;
  HONE_RETURN_IF_ERROR(rpc::AddListener(builder, address, /*insecure=*/false, &port));
  builder.RegisterService(tap.get());
  tap->server_ = builder.BuildAndStart();
  if (tap->server_ == nullptr) return absl::UnavailableError("the tap cannot listen");
  return tap;
}

MessageTap::~MessageTap() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

void MessageTap::Trouble(FaultKind kind, int calls, absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  calls_[kind] = calls;
  if (delay > absl::ZeroDuration()) delay_ = delay;
}

int64_t MessageTap::troubled() const {
  absl::MutexLock lock(&mutex_);
  return troubled_;
}

bool MessageTap::Meets(FaultKind kind) {
  absl::MutexLock lock(&mutex_);
  auto calls = calls_.find(kind);
  if (calls == calls_.end() || calls->second == 0) return false;
  --calls->second;
  ++troubled_;
  return true;
}

grpc::Status MessageTap::Pass(grpc::ServerContext* context, const v1::SynchronizeRequest& request,
                              v1::SynchronizeResponse* response) {
  const auto onward = grpc::ClientContext::FromServerContext(*context);
  ledger_->Told(request);
  const grpc::Status status = stub_->Synchronize(onward.get(), request, response);
  if (status.ok()) ledger_->Answered(*response);
  return status;
}

v1::SynchronizeRequest MessageTap::Earlier(const v1::SynchronizeRequest& request) {
  absl::MutexLock lock(&mutex_);
  v1::SynchronizeRequest& last = last_[request.worker_id()];
  v1::SynchronizeRequest earlier = last;
  if (request.finished_size() > 0) last = request;
  return earlier;
}

grpc::Status MessageTap::Synchronize(grpc::ServerContext* context,
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

grpc::Status MessageTap::UploadArtifact(grpc::ServerContext* context,
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

grpc::Status MessageTap::DownloadArtifact(grpc::ServerContext* context,
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

}  // namespace hone::fault
