#include "worker/agent/server_link.h"

#include <grpcpp/client_context.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/deflate.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"
#include "common/record/reference_name.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "hone/v1/worker.grpc.pb.h"
#include "worker/agent/call_schedule.h"

namespace hone::agent {
namespace {

constexpr absl::Duration kSynchronizeMargin = absl::Seconds(10);  // beyond the server's hold time
constexpr absl::Duration kTransferLimit = absl::Seconds(60);
// For a download that continues after the connection broke.
constexpr absl::Duration kResumptionLimit = absl::Seconds(20);
constexpr int kMostResumptions = 20;
constexpr absl::Duration kProbeInterval = absl::Minutes(1);
constexpr absl::Duration kOtherProbeInterval = absl::Seconds(5);  // if another error appears
constexpr absl::Duration kProbeLimit = absl::Seconds(3);

// Appends the bytes of a chunk. DataLoss: it is damaged, or the artifact becomes too large.
absl::Status AppendChunk(const v1::WorkerArtifactChunk& chunk, std::string& bytes) {
  if (chunk.deflated().empty()) {
    bytes += chunk.data();
  } else {
    HONE_ASSIGN_OR_RETURN(const std::string inflated, Inflate(chunk.deflated(), rpc::kChunkBytes));
    bytes += inflated;
  }
  if (bytes.size() <= record::kMaxArtifactBytes) return absl::OkStatus();
  return absl::DataLossError("the artifact is too large");
}

bool WasInterrupted(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

class GrpcLink final : public ServerLink {
 public:
  GrpcLink(std::shared_ptr<grpc::Channel> channel, std::string address,
           const rpc::ChannelSecurity& security)
      : stub_(v1::WorkerService::NewStub(channel)),
        address_(std::move(address)),
        security_(security) {}

  ~GrpcLink() override {
    Shutdown();
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](absl::flat_hash_set<grpc::ClientContext*>* contexts) { return contexts->empty(); },
        &contexts_));
  }

  void Synchronize(const v1::SynchronizeRequest& request, SynchronizeDone done) override {
    struct Call {
      grpc::ClientContext context;
      v1::SynchronizeRequest request;
      v1::SynchronizeResponse response;
      SynchronizeDone done;
    };
    auto call = std::make_shared<Call>();
    call->request = request;
    call->done = std::move(done);
    rpc::SetDeadline(call->context, absl::Milliseconds(request.max_wait_ms()) + kSynchronizeMargin);
    if (!Begin(call->context)) {
      std::move(call->done)(absl::CancelledError("the agent ends"));
      return;
    }
    stub_->async()->Synchronize(&call->context, &call->request, &call->response,
                                [this, call](grpc::Status status) {
                                  if (status.ok()) {
                                    std::move(call->done)(std::move(call->response));
                                  } else {
                                    std::move(call->done)(Explain(rpc::FromGrpc(status)));
                                  }
                                  End(call->context);
                                });
  }

  absl::Status Upload(const std::string& digest, const std::string& bytes) override {
    grpc::ClientContext context;
    rpc::SetDeadline(context, kTransferLimit);
    if (!Begin(context)) return absl::CancelledError("the agent ends");
    v1::UploadArtifactResponse response;
    auto writer = stub_->UploadArtifact(&context, &response);
    size_t sent = 0;
    do {
      v1::WorkerArtifactChunk chunk;
      if (sent == 0) {
        chunk.set_digest(digest);
        chunk.set_total_bytes(static_cast<int64_t>(bytes.size()));
      }
      const size_t size = std::min<size_t>(rpc::kChunkBytes, bytes.size() - sent);
      chunk.set_data(bytes.data() + sent, size);
      sent += size;
      if (!writer->Write(chunk)) break;  // Finish returns the reason
    } while (sent < bytes.size());
    writer->WritesDone();
    const absl::Status status = rpc::FromGrpc(writer->Finish());
    End(context);
    return Explain(status);
  }

  absl::StatusOr<std::string> Download(const std::string& digest) override {
    // A reference kernel may be replaced between two calls, so parts of two calls are not joined.
    const bool resumable = !record::IsReferenceName(digest);
    std::string bytes;
    absl::Status status = Receive(digest, kTransferLimit, bytes);
    for (int i = 0; i < kMostResumptions && resumable && WasInterrupted(status); ++i) {
      const size_t before = bytes.size();
      if (before == 0) break;
      status = Receive(digest, kResumptionLimit, bytes);
      if (bytes.size() <= before) break;
    }
    if (!status.ok()) return Explain(status);
    if (resumable && Sha256Of(bytes) != digest) {
      return absl::DataLossError(absl::StrCat("artifact ", digest, " arrived damaged"));
    }
    return bytes;
  }

  void Shutdown() override {
    absl::MutexLock lock(&mutex_);
    shut_down_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
  }

 private:
  // Downloads the bytes that are missing from the beginning of an artifact. If the connection
  // breaks or is slow, `bytes` keeps those that have arrived (WasInterrupted). DataLoss: the
  // artifact is too large, or the server sends another part of it.
  absl::Status Receive(const std::string& digest, absl::Duration limit, std::string& bytes) {
    grpc::ClientContext context;
    rpc::SetDeadline(context, limit);
    // The channel needs some time to connect again.
    context.set_wait_for_ready(!bytes.empty());
    if (!Begin(context)) return absl::CancelledError("the agent ends");
    v1::DownloadArtifactRequest request;
    request.set_digest(digest);
    request.set_offset(static_cast<int64_t>(bytes.size()));
    request.set_deflate(true);
    auto reader = stub_->DownloadArtifact(&context, request);
    absl::Status wrong;
    bool is_first = true;
    for (v1::WorkerArtifactChunk chunk; reader->Read(&chunk); is_first = false) {
      if (is_first && chunk.offset() != static_cast<int64_t>(bytes.size())) {
        wrong = absl::DataLossError("the server sends another part of the artifact");
      }
      if (const absl::Status added = AppendChunk(chunk, bytes); wrong.ok()) wrong = added;
      if (!wrong.ok()) {
        context.TryCancel();
        break;
      }
    }
    const absl::Status status = rpc::FromGrpc(reader->Finish());
    End(context);
    return wrong.ok() ? status : wrong;
  }
  bool Begin(grpc::ClientContext& context) {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return false;
    contexts_.insert(&context);
    return true;
  }
  void End(grpc::ClientContext& context) {
    absl::MutexLock lock(&mutex_);
    contexts_.erase(&context);
  }

  // Connects again to find the reason, at most once a minute for the same error, which has the same
  // reason meanwhile.
  absl::Status Explain(const absl::Status& status) {
    const absl::Status plain =
        rpc::ExplainCallError(status, address_, security_, absl::ZeroDuration());
    if (!absl::IsUnavailable(status)) return plain;
    {
      absl::MutexLock lock(&mutex_);
      const bool is_known = plain == probed_;
      const absl::Duration interval = is_known ? kProbeInterval : kOtherProbeInterval;
      if (SteadyNow() - probed_at_ < interval) return is_known ? explained_ : plain;
      probed_at_ = SteadyNow();
    }
    const absl::Status explained = rpc::ExplainCallError(status, address_, security_, kProbeLimit);
    absl::MutexLock lock(&mutex_);
    probed_ = plain;
    explained_ = explained;
    return explained;
  }

  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  const std::string address_;
  const rpc::ChannelSecurity security_;
  absl::Mutex mutex_;
  absl::Time probed_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Status probed_ ABSL_GUARDED_BY(mutex_);     // the last error for which it connected again
  absl::Status explained_ ABSL_GUARDED_BY(mutex_);  // the reason that it found
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
};

// How long an upload is retried while the server has no room for it.
constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr absl::Duration kPause = absl::Milliseconds(50);

}  // namespace

absl::StatusOr<std::unique_ptr<ServerLink>> ConnectToServer(const std::string& address,
                                                            const rpc::ChannelSecurity& security) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel,
                        rpc::CreateChannel(address, security));
  return std::make_unique<GrpcLink>(std::move(channel), address, security);
}

Uploader::Uploader(ServerLink* link, BoundedDir* artifacts)
    : link_(link), artifacts_(artifacts), thread_([this] { Loop(); }) {}

void Uploader::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool Uploader::IsStopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

absl::Status Uploader::Upload(const std::string& name, const std::string& bytes) {
  const absl::Time give_up = SteadyNow() + kPatience;
  for (int refusals = 0;; ++refusals) {
    absl::Status sent = link_->Upload(name, bytes);
    const absl::Time again = SteadyNow() + BackoffAfter(refusals);
    if (!absl::IsResourceExhausted(sent) || again > give_up) return sent;
    while (SteadyNow() < again) {
      if (IsStopping()) return sent;
      absl::SleepFor(kPause);
    }
  }
}

absl::Status Uploader::UploadArtifact(const std::string& digest) {
  if (!IsSha256(digest) || !artifacts_->Pin(digest)) {
    return absl::NotFoundError("it is no longer stored on this worker");
  }
  const absl::StatusOr<std::string> bytes = ReadFile(artifacts_->PathOf(digest));
  absl::Status sent = bytes.ok() ? Upload(digest, *bytes) : bytes.status();
  artifacts_->Unpin(digest);
  return sent;
}

void Uploader::Enqueue(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  if (std::find(queue_.begin(), queue_.end(), digest) == queue_.end()) queue_.push_back(digest);
}

void Uploader::Loop() {
  for (;;) {
    std::string digest;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      digest = queue_.front();
    }
    if (const absl::Status sent = UploadArtifact(digest); !sent.ok()) {
      spdlog::warn("artifact {} was not uploaded: {}", digest, std::string(sent.message()));
    }
    absl::MutexLock lock(&mutex_);
    queue_.pop_front();
  }
}

}  // namespace hone::agent
