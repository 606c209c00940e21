#include "tests/bench/load/transfers.h"

#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
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

void Transfers::Count(absl::string_view what, const grpc::Status& status, bool whole,
                      std::atomic<int64_t>& good) {
  if (status.ok() && whole) {
    ++good;
  } else if (counts_->failed_transfers++ == 0) {
    const std::string message =
        absl::StrCat(what, " failed: ", status.ok() ? "damaged" : status.error_message(), "\n");
    std::fputs(message.c_str(), stderr);
  }
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
    Count("an upload", writer->Finish(), written, counts_->uploads);
  });
}

void Transfers::Download(const std::string& digest, std::function<void(bool)> done) {
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
    const grpc::Status status = reader->Finish();
    const bool whole = Sha256Of(bytes) == digest;
    Count("a download", status, whole, counts_->downloads);
    done(status.ok() && whole);
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
