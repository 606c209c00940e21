#include "server/service/upload_handler.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hone::service {

int64_t UploadHandler::Enter(std::function<void()> cancel) {
  absl::MutexLock lock(&mutex_);
  uploads_[++last_] = {.cancel = std::move(cancel), .last_progress = clock_->Now()};
  return last_;
}

absl::Status UploadHandler::Reserve(int64_t upload, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (bytes > limits_.max_bytes - bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("upload: not enough memory for ", bytes, " bytes in addition to the ", bytes_,
                     " of ", uploads_.size() - 1, " other uploads; the limit of all uploads is ",
                     limits_.max_bytes, "; try again in a second"));
  }
  uploads_.at(upload).bytes += bytes;
  bytes_ += bytes;
  return absl::OkStatus();
}

void UploadHandler::Progress(int64_t upload) {
  absl::MutexLock lock(&mutex_);
  uploads_.at(upload).last_progress = clock_->Now();
}

void UploadHandler::Leave(int64_t upload) {
  absl::MutexLock lock(&mutex_);
  auto found = uploads_.find(upload);
  bytes_ -= found->second.bytes;
  uploads_.erase(found);
}

void UploadHandler::Tick() {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_->Now();
  for (auto& [number, upload] : uploads_) {
    if (upload.cancelled || upload.last_progress + limits_.stall_limit > now) continue;
    upload.cancelled = true;
    upload.cancel();
  }
}

}  // namespace hone::service
