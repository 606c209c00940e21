#include "server/store/sqlite/writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/base/steady_clock.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

constexpr size_t kMostCommitted = 4;  // groups that wait to be told

}  // namespace

Writer::Writer(std::unique_ptr<SqliteConnection> connection, const WriterOptions& options)
    : connection_(std::move(connection)),
      options_(options),
      writing_([this] { Run(); }),
      telling_([this] { Tell(); }) {}

Writer::~Writer() { Stop(); }

void Writer::Stop() {
  if (!writing_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  writing_.join();
  telling_.join();
}

void Writer::Enqueue(Apply apply, Done done, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  Write write{std::move(apply), std::move(done), bytes};
  const size_t waiting = queue_.size() - refused_writes_;
  if (!refusal_.ok()) {
    write.refused = refusal_;
  } else if (waiting >= options_.max_queued_writes) {
    write.refused =
        absl::ResourceExhaustedError(absl::StrCat("store ", connection_->path(), ": ", waiting,
                                                  " writes wait for the disk; try again later"));
  } else if (queued_bytes_ > 0 && queued_bytes_ + bytes > options_.max_queued_bytes) {
    write.refused = absl::ResourceExhaustedError(
        absl::StrCat("store ", connection_->path(), ": ", queued_bytes_ >> 20,
                     " MiB of writes wait for the disk; try again later"));
  }
  if (!write.refused.ok()) {
    // It keeps only its place in the queue: `done` never runs inside the caller, who may hold a
    // lock that it takes.
    write.apply = nullptr;
    write.bytes = 0;
    ++refused_writes_;
  }
  queued_bytes_ += write.bytes;
  ++enqueued_;
  queue_.push_back(std::move(write));
}

absl::Status Writer::Flush() {
  if (std::this_thread::get_id() == telling_.get_id()) {
    return absl::FailedPreconditionError("Flush was called from a done callback of the store");
  }
  absl::MutexLock lock(&mutex_);
  const size_t target = enqueued_;
  ++flushing_;
  const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finished_ >= target; };
  mutex_.Await(absl::Condition(&reached));
  --flushing_;
  return std::exchange(first_error_, absl::OkStatus());
}

size_t Writer::Queued() {
  absl::MutexLock lock(&mutex_);
  return enqueued_ - finished_;
}

void Writer::Refuse(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  if (refusal_.ok()) refusal_ = std::move(reason);
}

void Writer::Run() {
  while (true) {
    std::vector<Write> group = TakeGroup();
    if (!group.empty()) Commit(group);
    {
      absl::MutexLock lock(&mutex_);
      written_ = group.empty();
      if (written_) return;
      const auto room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return committed_.size() < kMostCommitted;
      };
      mutex_.Await(absl::Condition(&room));
      committed_.push_back(std::move(group));
    }
    CheckpointWhenDue();
  }
}

void Writer::Tell() {
  const auto any = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !committed_.empty() || written_;
  };
  mutex_.Lock();
  while (true) {
    mutex_.Await(absl::Condition(&any));
    if (committed_.empty()) break;
    std::vector<Write>& group = committed_.front();
    mutex_.Unlock();
    Finish(group);
    mutex_.Lock();
    committed_.pop_front();
  }
  mutex_.Unlock();
}

std::vector<Writer::Write> Writer::TakeGroup() {
  absl::MutexLock lock(&mutex_);
  const auto any = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !queue_.empty() || (stopping_ && committed_.empty());
  };
  mutex_.Await(absl::Condition(&any));
  const absl::Time deadline = SteadyNow() + options_.max_group_age;
  const auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queue_.size() >= options_.max_group_writes || stopping_ || flushing_ > 0;
  };
  // Waiting for the time and not for each write spares a wake-up per write. It sleeps: a timed wait
  // for the mutex ends by the wall clock, and would keep all writes for a day when that is set back
  // by one.
  for (size_t seen = 0; seen < queue_.size() && SteadyNow() < deadline && !due();) {
    seen = queue_.size();
    mutex_.Unlock();
    absl::SleepFor(options_.idle_wait);
    mutex_.Lock();
  }
  const size_t count = std::min(queue_.size(), options_.max_group_writes);
  std::vector<Write> group;
  group.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Write& write = queue_.front();
    queued_bytes_ -= write.bytes;
    if (!write.refused.ok()) --refused_writes_;
    group.push_back(std::move(write));
    queue_.pop_front();
  }
  return group;
}

void Writer::Commit(std::vector<Write>& group) {
  std::vector<Write*> writes;
  for (Write& write : group) {
    write.result = write.refused;
    if (write.refused.ok()) writes.push_back(&write);
  }
  if (writes.empty()) return;
  const absl::Status status = TryGroup(writes);
  if (status.ok()) return;
  // A lock that another program holds for seconds would hold up each of them again.
  if (writes.size() == 1 || absl::IsUnavailable(status)) {
    for (Write* const write : writes) write->result = status;
    return;
  }
  spdlog::warn("store: a group of {} writes was lost and is written one by one: {}", writes.size(),
               std::string(status.message()));
  for (Write* const write : writes) {
    std::vector<Write*> alone = {write};
    if (const absl::Status one = TryGroup(alone); !one.ok()) write->result = one;
  }
}

absl::Status Writer::TryGroup(std::vector<Write*>& writes) {
  for (Write* const write : writes) write->result = absl::OkStatus();
  const absl::Status status = TryGroup(writes, /*savepoints=*/false);
  const bool failed = std::any_of(writes.begin(), writes.end(),
                                  [](const Write* write) { return !write->result.ok(); });
  return failed ? TryGroup(writes, /*savepoints=*/true) : status;
}

absl::Status Writer::TryGroup(std::vector<Write*>& writes, bool savepoints) {
  HONE_RETURN_IF_ERROR(connection_->Execute("BEGIN IMMEDIATE"));
  absl::Status status;
  for (Write* const write : writes) {
    write->result = savepoints ? ApplyOne(*write) : write->apply(*connection_);
    // SQLite rolls the whole transaction back by itself after some errors: the earlier writes of
    // the group are gone too.
    if (!connection_->InTransaction()) {
      return write->result.ok() ? absl::InternalError("the transaction ended too early")
                                : write->result;
    }
    if (!savepoints && !write->result.ok()) return UndoAll(write->result);
  }
  status = connection_->Execute("COMMIT");
  return status.ok() ? status : UndoAll(status);
}

absl::Status Writer::UndoAll(const absl::Status& why) {
  if (!connection_->InTransaction()) return why;
  if (const absl::Status undone = connection_->Execute("ROLLBACK"); !undone.ok()) {
    spdlog::error("store: {}", std::string(undone.message()));
  }
  return why;
}

absl::Status Writer::ApplyOne(Write& write) {
  {
    HONE_ASSIGN_OR_RETURN(Statement begin, connection_->Prepare("SAVEPOINT one"));
    HONE_RETURN_IF_ERROR(begin.Run());
  }
  absl::Status status = write.apply(*connection_);
  if (!connection_->InTransaction()) return status;
  if (!status.ok()) {
    HONE_ASSIGN_OR_RETURN(Statement undo, connection_->Prepare("ROLLBACK TO one"));
    HONE_RETURN_IF_ERROR(undo.Run());
  }
  HONE_ASSIGN_OR_RETURN(Statement end, connection_->Prepare("RELEASE one"));
  HONE_RETURN_IF_ERROR(end.Run());
  return status;
}

void Writer::Finish(std::vector<Write>& group) {
  absl::Status first_error;
  for (Write& write : group) {
    first_error.Update(write.result);
    std::move(write.done)(std::move(write.result));
  }
  const size_t count = group.size();
  group.clear();  // what the callbacks hold goes before a Flush returns
  absl::MutexLock lock(&mutex_);
  first_error_.Update(first_error);
  finished_ += count;
}

void Writer::CheckpointWhenDue() {
  if (connection_->LogPages() < options_.checkpoint_pages) return;
  // Nothing is lost when it fails: the log holds every page. It is tried again after the next
  // group.
  if (const absl::Status status = connection_->Checkpoint(); !status.ok()) {
    spdlog::warn("store: the log stays for now: {}", std::string(status.message()));
  }
}

}  // namespace hone::store
