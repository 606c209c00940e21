#include "server/service/transfer_handler.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hone::service {

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

}  // namespace hone::service
