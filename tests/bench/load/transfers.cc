#include "tests/bench/load/transfers.h"

#include <utility>

#include "common/base/digest.h"
#include "common/rpc/channel.h"

namespace hone::load {

Transfers::Transfers(const std::shared_ptr<grpc::Channel>& channel, Counts* counts)
    : stub_(v1::WorkerService::NewStub(channel)), counts_(counts), thread_([this] { Run(); }) {}

Transfers::~Transfers() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Transfers::Count(bool ok, std::atomic<int64_t>& good) {
  ++(ok ? good : counts_->failed_transfers);
}

void Transfers::Upload(const std::string& digest, std::string bytes) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back([this, digest, bytes = std::move(bytes)] {
    grpc::ClientContext context;
    rpc::SetDeadline(context);
    v1::UploadArtifactResponse response;
    const auto writer = stub_->UploadArtifact(&context, &response);
    v1::WorkerArtifactChunk chunk;
    chunk.set_digest(digest);
    chunk.set_total_bytes(static_cast<int64_t>(bytes.size()));
    chunk.set_data(bytes);
    const bool written = writer->Write(chunk) && writer->WritesDone();
    Count(writer->Finish().ok() && written, counts_->uploads);
  });
}

void Transfers::Download(const std::string& digest, std::function<void()> done) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back([this, digest, done = std::move(done)] {
    grpc::ClientContext context;
    rpc::SetDeadline(context);
    v1::DownloadArtifactRequest request;
    request.set_digest(digest);
    const auto reader = stub_->DownloadArtifact(&context, request);
    std::string bytes;
    v1::WorkerArtifactChunk chunk;
    while (reader->Read(&chunk)) bytes += chunk.data();
    Count(reader->Finish().ok() && DigestOf(bytes).ToHex() == digest, counts_->downloads);
    done();
  });
}

void Transfers::Run() {
  mutex_.Lock();
  while (true) {
    const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || !queue_.empty();
    };
    mutex_.Await(absl::Condition(&any));
    if (stopping_) break;
    const std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    mutex_.Unlock();
    next();
    mutex_.Lock();
  }
  mutex_.Unlock();
}

}  // namespace hone::load
