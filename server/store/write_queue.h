#ifndef HONE_SERVER_STORE_WRITE_QUEUE_H_
#define HONE_SERVER_STORE_WRITE_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/store/read_limit.h"
#include "server/store/store.h"
#include "spdlog/spdlog.h"

namespace hone::store {

struct WriteQueueOptions {
  // Writes beyond these limits are refused with ResourceExhausted.
  size_t max_queued_writes = 1 << 14;
  size_t max_queued_bytes = size_t{256} << 20;
  // A group is committed when it is this large or this old, or when there was no new write for
  // idle_wait.
  size_t max_group_writes = 512;
  absl::Duration max_group_age = absl::Milliseconds(10);
  absl::Duration idle_wait = absl::Milliseconds(1);  // 0: all waiting writes form the next group
  absl::Duration full_wait =
      absl::Milliseconds(500);  // between two attempts while the disk is full
};

// A write in a queue. `Work` describes the write for one kind of database.
template <typename Work>
struct QueuedWrite {
  Work work;
  absl::AnyInvocable<void(absl::Status) &&> done;
  size_t bytes = 0;
  WhenFull when_full = WhenFull::kWait;
  absl::Status refused = absl::OkStatus();  // if not OK, `done` gets this error without a write
  absl::Status result = absl::OkStatus();
};

// Commits groups of writes, on the writing thread of a queue.
template <typename Work>
class GroupCommitter {
 public:
  virtual ~GroupCommitter() = default;
  // Commits the writes in one transaction and sets their results. Returns an error if none of them
  // was committed. May be called again with some of them.
  virtual absl::Status Commit(const std::vector<QueuedWrite<Work>*>& writes) = 0;
  // Whether the write must be committed in a separate group.
  virtual bool IsAlone(const Work&) const { return false; }
  // Called after each group, when its callbacks may already run.
  virtual void AfterGroup() {}
  // Called when the queue closes, on any thread: a commit that waits for the database should give
  // up soon.
  virtual void HurryUp() {}
};

// A bounded queue of writes. One thread commits them in order and in groups. A second thread calls
// the `done` of each write in the same order, while the next group is written. If a whole group
// fails, its writes are tried again one by one, so that only the writes that cannot be committed
// fail. While the disk is full (ResourceExhausted), writes wait, and those that must not wait fail
// at once. Thread-safe.
template <typename Work>
class WriteQueue {
 public:
  using Write = QueuedWrite<Work>;
  // Runs once after the commit, or with the error that prevented it. Must not block or call Flush.
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  // `name`: the database, for messages. REQUIRES: `committer` outlives the queue.
  WriteQueue(std::string name, GroupCommitter<Work>* committer,
             const WriteQueueOptions& options = {})
      : name_(std::move(name)),
        committer_(committer),
        options_(options),
        writing_([this] { WriteGroups(); }),
        telling_([this] { Tell(); }) {}
  ~WriteQueue() { Stop(); }

  // Queues a write. `bytes`: the approximate size of the write in memory. If `refused` is not OK,
  // nothing is written and `done` gets this error.
  void Enqueue(Work work, Done done, size_t bytes, WhenFull when_full = WhenFull::kWait,
               absl::Status refused = absl::OkStatus()) {
    Write write{std::move(work), std::move(done), bytes, when_full, std::move(refused)};
    absl::MutexLock lock(&mutex_);
    if (!full_.ok() && when_full == WhenFull::kFail) {
      write.result = full_;
      turned_away_.push_back(std::move(write));
      return;
    }
    const size_t waiting = queue_.size() - refused_writes_;
    if (waiting >= options_.max_queued_writes ||
        (queued_bytes_ > 0 && queued_bytes_ + bytes > options_.max_queued_bytes)) {
      write.refused.Update(absl::ResourceExhaustedError(
          absl::StrCat("store ", name_, ": ", waiting, " writes of ", queued_bytes_ >> 20,
                       " MiB wait for their commit; try again later")));
    }
    if (!write.refused.ok()) {
      // A refused write stays in the queue only for its callback, which must not run in the
      // caller's thread, because the caller may hold a lock that the callback needs.
      write.work = Work();
      write.bytes = 0;
      ++refused_writes_;
    }
    queued_bytes_ += write.bytes;
    ++enqueued_;
    queue_.push_back(std::move(write));
  }

  // Returns why writes wait: the disk is full. Otherwise OK.
  absl::Status CheckSpace() {
    absl::MutexLock lock(&mutex_);
    return full_;
  }

  // Waits until every write that was queued before is committed and its `done` has run, but not for
  // a full disk. Returns the first error since the last Flush. FailedPrecondition: called from a
  // `done`.
  absl::Status Flush() {
    if (std::this_thread::get_id() == telling_.get_id()) {
      return absl::FailedPreconditionError("Flush was called from a done callback of the store");
    }
    absl::MutexLock lock(&mutex_);
    const size_t target = enqueued_;
    ++flushing_;
    const auto reached = [&]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finished_ >= target; };
    mutex_.Await(absl::Condition(&reached));
    --flushing_;
    return std::exchange(first_error_, absl::OkStatus());
  }

  // Returns the number of writes whose `done` has not run yet.
  size_t Queued() {
    absl::MutexLock lock(&mutex_);
    return enqueued_ - finished_;
  }

  // Commits all queued writes, including those that callbacks add meanwhile, and ends the threads.
  // REQUIRES: no other thread uses the queue.
  void Stop() {
    if (!writing_.joinable()) return;
    committer_->HurryUp();
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    writing_.join();
    telling_.join();
  }

 private:
  static constexpr size_t kMostCommitted = 4;  // groups whose callbacks have not run

  void WriteGroups() {
    while (true) {
      std::vector<Write> group = TakeGroup();
      if (!group.empty()) CommitGroup(group);
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
      committer_->AfterGroup();
    }
  }

  // Waits for writes, then for the group to fill. Returns an empty group when the queue is stopped
  // and every callback has run.
  std::vector<Write> TakeGroup() {
    absl::MutexLock lock(&mutex_);
    const auto any = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !queue_.empty() || (stopping_ && committed_.empty());
    };
    mutex_.Await(absl::Condition(&any));
    const absl::Time deadline = SteadyNow() + options_.max_group_age;
    const auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return queue_.size() >= options_.max_group_writes || stopping_ || flushing_ > 0 ||
             options_.idle_wait == absl::ZeroDuration();
    };
    // One sleep for many writes costs less than a wake-up for each. A timed wait for the mutex
    // would follow the wall clock: if the clock were set back by a day, writes would wait for a
    // day.
    for (size_t seen = 0; seen < queue_.size() && SteadyNow() < deadline && !due();) {
      seen = queue_.size();
      mutex_.Unlock();
      absl::SleepFor(options_.idle_wait);
      mutex_.Lock();
    }
    std::vector<Write> group;
    while (!queue_.empty() && group.size() < options_.max_group_writes) {
      Write& write = queue_.front();
      const bool alone = write.refused.ok() && committer_->IsAlone(write.work);
      if (alone && !group.empty()) break;
      queued_bytes_ -= write.bytes;
      if (!write.refused.ok()) --refused_writes_;
      group.push_back(std::move(write));
      queue_.pop_front();
      if (alone) break;
    }
    return group;
  }

  void CommitGroup(std::vector<Write>& group) {
    std::vector<Write*> writes;
    for (Write& write : group) {
      write.result = write.refused;
      if (write.refused.ok()) writes.push_back(&write);
    }
    if (writes.empty()) return;
    const absl::Status status = committer_->Commit(writes);
    if (status.ok()) return SetFull(status);
    // If the database cannot be reached or locked, each write would wait for it again. If it is
    // damaged or another server leads, nothing more may be written.
    const bool is_full = absl::IsResourceExhausted(status);
    if ((writes.size() == 1 && !is_full) || absl::IsUnavailable(status) ||
        absl::IsDataLoss(status) || absl::IsAborted(status)) {
      for (Write* const write : writes) write->result = status;
      return;
    }
    spdlog::info("store {}: a group of {} writes was lost and is written one by one: {}", name_,
                 writes.size(), std::string(status.message()));
    for (Write* const write : writes) CommitAlone(*write);
  }

  // Commits one write. While the disk is full, tries again, unless the write is to fail then.
  void CommitAlone(Write& write) {
    while (true) {
      const absl::Status status = committer_->Commit({&write});
      if (!status.ok()) write.result = status;
      const bool is_full = absl::IsResourceExhausted(status);
      if (is_full && write.when_full == WhenFull::kFail) return;
      SetFull(status);
      if (!is_full) return;
      if (AwaitAttempt()) continue;
      return SetFull(absl::CancelledError("nothing waits any more"));
    }
  }

  // Notes the status of a commit.
  void SetFull(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    const bool was_full = !full_.ok();
    full_ = absl::IsResourceExhausted(status) ? status : absl::OkStatus();
    if (was_full && status.ok()) {
      spdlog::info("store {}: there is space again, and what waited is written", name_);
    } else if (!was_full && !full_.ok()) {
      spdlog::error("store {}: writes wait: {}", name_, std::string(status.message()));
    }
  }

  // Waits until a write may be tried again. Returns false if the queue does not wait for space,
  // because it is flushed or stopped.
  bool AwaitAttempt() {
    const absl::Time end = SteadyNow() + options_.full_wait;
    while (true) {
      {
        absl::MutexLock lock(&mutex_);
        if (stopping_ || flushing_ > 0) return false;
      }
      if (SteadyNow() >= end) return true;
      absl::SleepFor(std::min(options_.full_wait, absl::Milliseconds(20)));
    }
  }

  void Tell() {
    const NoReads no_reads("the thread that ends the writes of the store");
    const auto any = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !committed_.empty() || !turned_away_.empty() || written_;
    };
    mutex_.Lock();
    while (true) {
      mutex_.Await(absl::Condition(&any));
      while (!turned_away_.empty()) {
        Write write = std::move(turned_away_.front());
        turned_away_.pop_front();
        mutex_.Unlock();
        std::move(write.done)(std::move(write.result));
        mutex_.Lock();
      }
      if (committed_.empty()) {
        if (written_) break;
        continue;
      }
      std::vector<Write>& group = committed_.front();
      mutex_.Unlock();
      Finish(group);
      mutex_.Lock();
      committed_.pop_front();
    }
    mutex_.Unlock();
  }

  void Finish(std::vector<Write>& group) {
    absl::Status first_error;
    for (Write& write : group) {
      first_error.Update(write.result);
      std::move(write.done)(std::move(write.result));
    }
    const size_t count = group.size();
    group.clear();  // the callbacks' captures are destroyed before a Flush returns
    absl::MutexLock lock(&mutex_);
    first_error_.Update(first_error);
    finished_ += count;
  }

  const std::string name_;
  GroupCommitter<Work>* const committer_;
  const WriteQueueOptions options_;

  absl::Mutex mutex_;
  std::deque<Write> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t refused_writes_ ABSL_GUARDED_BY(mutex_) = 0;  // of those in the queue
  size_t enqueued_ ABSL_GUARDED_BY(mutex_) = 0;        // writes ever put into the queue
  size_t finished_ ABSL_GUARDED_BY(mutex_) = 0;        // writes whose done has run
  int flushing_ ABSL_GUARDED_BY(mutex_) = 0;  // callers in Flush: do not wait for more writes
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Committed groups whose callbacks have not run. The first group stays here until all its
  // callbacks have run.
  std::deque<std::vector<Write>> committed_ ABSL_GUARDED_BY(mutex_);
  // Writes that fail because the disk is full. They are not counted.
  std::deque<Write> turned_away_ ABSL_GUARDED_BY(mutex_);
  absl::Status full_ ABSL_GUARDED_BY(mutex_);     // why writes wait
  bool written_ ABSL_GUARDED_BY(mutex_) = false;  // the last group was written and is in committed_
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);

  std::thread writing_, telling_;  // last: they use the others
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_WRITE_QUEUE_H_
