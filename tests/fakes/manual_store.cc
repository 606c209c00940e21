#include "tests/fakes/manual_store.h"

#include <cstdlib>
#include <iostream>

#include "common/base/status_macros.h"
#include "server/store/sqlite/sqlite_store.h"

namespace hone::store {
namespace {

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << "\n";
  std::abort();
}

}  // namespace

ManualStore::ManualStore() : Store(nullptr) {
  connection_ = SqliteConnection::OpenInMemory().value();
  Require(connection_->Execute("PRAGMA foreign_keys = ON"));
  Require(Migrate(*connection_, SqliteMigrations()));
}

void ManualStore::Hold() {
  absl::MutexLock lock(&mutex_);
  held_ = true;
}

void ManualStore::Commit() {
  while (true) {
    HeldWrite write;
    absl::Status status;
    {
      absl::MutexLock lock(&mutex_);
      if (writes_.empty()) return;
      write = std::move(writes_.front());
      writes_.pop_front();
      status = CommitOne(write.apply);
    }
    std::move(write.done)(status);
  }
}

void ManualStore::Crash() {
  std::deque<HeldWrite> lost;
  absl::MutexLock lock(&mutex_);
  std::swap(lost, writes_);
  held_ = false;
}

void ManualStore::SetLeads(absl::StatusOr<bool> leads) {
  absl::MutexLock lock(&mutex_);
  leads_ = std::move(leads);
  failure_ = leads_.value_or(false) ? absl::OkStatus()
                                    : absl::AbortedError("this server does not lead any more");
}

absl::StatusOr<bool> ManualStore::Lead() {
  absl::MutexLock lock(&mutex_);
  return leads_;
}

absl::Status ManualStore::KeepLeading() {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

void ManualStore::FailWrites(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  failure_ = std::move(status);
}

void ManualStore::BeforeReads(std::function<absl::Status()> hook) {
  absl::MutexLock lock(&mutex_);
  before_reads_ = std::move(hook);
}

void ManualStore::AppendEvent(JobEvent event, Done done) {
  if (event.kind == "propose" && !proposal_failure_.ok()) {
    return Write([failure = proposal_failure_](Connection&) { return failure; }, std::move(done), 0,
                 WhenFull::kWait);
  }
  Store::AppendEvent(std::move(event), std::move(done));
}

absl::Status ManualStore::Flush() {
  Commit();
  absl::MutexLock lock(&mutex_);
  return failure_;
}

absl::StatusOr<BackupReport> ManualStore::Backup(const std::string&, const std::function<bool()>&) {
  return absl::UnimplementedError("kept in memory");
}

absl::Status ManualStore::Read(absl::FunctionRef<absl::Status(Connection&)> read) {
  absl::MutexLock lock(&mutex_);
  if (before_reads_ != nullptr) HONE_RETURN_IF_ERROR(before_reads_());
  return read(*connection_);
}

void ManualStore::SetSpace(const absl::Status& space) {
  {
    absl::MutexLock lock(&mutex_);
    space_ = space;
    if (!space.ok()) held_ = true;
  }
  while (space.ok()) {
    Commit();
    absl::MutexLock lock(&mutex_);
    held_ = !writes_.empty();  // callbacks and other threads may have added some
    if (!held_) return;
  }
}

absl::Status ManualStore::CheckSpace() {
  absl::MutexLock lock(&mutex_);
  return space_;
}

void ManualStore::Write(Apply apply, Done done, size_t, WhenFull when_full) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (!space_.ok() && when_full == WhenFull::kFail) {
      status = space_;
    } else if (held_) {
      writes_.push_back({std::move(apply), std::move(done)});
      return;
    } else {
      status = CommitOne(apply);
    }
  }
  std::move(done)(status);
}

absl::Status ManualStore::CommitOne(Apply& apply) {
  HONE_RETURN_IF_ERROR(failure_);
  HONE_RETURN_IF_ERROR(connection_->Execute("BEGIN"));
  absl::Status status = apply(*connection_);
  status.Update(connection_->Execute(status.ok() ? "COMMIT" : "ROLLBACK"));
  return status;
}

}  // namespace hone::store
