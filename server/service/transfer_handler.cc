#include "server/service/transfer_handler.h"

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

int64_t TransferHandler::Enter(std::function<void()> cancel) {
  absl::MutexLock lock(&mutex_);
  transfers_[++last_] = {.cancel = std::move(cancel), .last_progress = clock_->Now()};
  return last_;
}

absl::Status TransferHandler::Reserve(int64_t transfer, int64_t bytes, const void* shared) {
  absl::MutexLock lock(&mutex_);
  const bool is_held = shared != nullptr && shared_.contains(shared);
  if (!is_held && bytes > limits_.max_bytes - bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(word_, ": not enough memory for ", bytes, " bytes in addition to the ", bytes_,
                     " of ", transfers_.size() - 1, " other ", word_, "s; the limit of all ", word_,
                     "s is ", limits_.max_bytes, "; try again in a second"));
  }
  Transfer& entry = transfers_.at(transfer);
  entry.bytes += bytes;
  entry.shared = shared;
  if (shared != nullptr) ++shared_[shared];
  if (!is_held) bytes_ += bytes;
  return absl::OkStatus();
}

void TransferHandler::Progress(int64_t transfer) {
  absl::MutexLock lock(&mutex_);
  Transfer& entry = transfers_.at(transfer);
  entry.last_progress = clock_->Now();
  entry.may_stall = true;
}

void TransferHandler::Pause(int64_t transfer) {
  absl::MutexLock lock(&mutex_);
  transfers_.at(transfer).may_stall = false;
}

void TransferHandler::Leave(int64_t transfer) {
  absl::MutexLock lock(&mutex_);
  const auto found = transfers_.find(transfer);
  const auto shared = shared_.find(found->second.shared);
  const bool is_held = shared != shared_.end() && --shared->second > 0;
  if (shared != shared_.end() && !is_held) shared_.erase(shared);
  if (!is_held) bytes_ -= found->second.bytes;
  transfers_.erase(found);
}

void TransferHandler::Tick() {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_->Now();
  for (auto& [number, transfer] : transfers_) {
    if (!transfer.may_stall || transfer.last_progress + limits_.stall_limit > now) continue;
    transfer.may_stall = false;
    transfer.cancel();
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
