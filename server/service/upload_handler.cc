#include "server/service/upload_handler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/record/reference_name.h"
#include "common/target/target.h"

namespace hone::service {
namespace {

absl::Status CheckReference(const std::string& name, const std::string& bytes) {
  HONE_ASSIGN_OR_RETURN(const record::ReferenceName wanted, record::ParseReferenceName(name));
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, record::DecodeArtifact(bytes));
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(artifact.workload));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(artifact.target));
  const record::ReferenceName is{workload.StructuralDigest().ToHex(), target.Key()};
  if (is == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it is ", is.ToText(), ", not ", name));
}

}  // namespace

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

void UploadHandler::Received(int64_t upload) {
  absl::MutexLock lock(&mutex_);
  uploads_.at(upload).may_stall = false;
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
    if (!upload.may_stall || upload.last_progress + limits_.stall_limit > now) continue;
    upload.may_stall = false;
    upload.cancel();
  }
}

absl::Status ReferenceCache::Put(const std::string& name, std::string bytes) {
  HONE_RETURN_IF_ERROR(CheckReference(name, bytes));
  cache_.Put(name, std::move(bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const std::string>> ReferenceCache::Get(const std::string& name) {
  if (auto bytes = cache_.Get(name); bytes != nullptr) return bytes;
  return absl::NotFoundError("no builder has sent the reference of this workload yet");
}

}  // namespace hone::service
