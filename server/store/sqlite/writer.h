#ifndef HONE_SERVER_STORE_SQLITE_WRITER_H_
#define HONE_SERVER_STORE_SQLITE_WRITER_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/store/sqlite/connection.h"

namespace hone::store {

struct WriterOptions {
  // A write beyond either is refused with ResourceExhausted.
  size_t max_queued_writes = 1 << 14;
  size_t max_queued_bytes = size_t{256} << 20;
  // A group is committed when it is this large, this old, or when nothing came for idle_wait.
  size_t max_group_writes = 512;
  absl::Duration max_group_age = absl::Milliseconds(10);
  absl::Duration idle_wait = absl::Milliseconds(1);
  // The log is copied into the database file when it has this many pages.
  int checkpoint_pages = 4000;
};

// The one thread that writes: takes writes in order from a bounded queue and commits them in
// groups; a second one tells each of them, in the same order, while the next group is written. A
// write that fails is undone alone; when a whole group is lost (a full disk), its writes are tried
// again one by one, so that only those that cannot be done fail. Thread-safe.
class Writer {
 public:
  // Runs on the writer's thread inside a transaction, maybe more than once: the last run counts.
  using Apply = absl::AnyInvocable<absl::Status(SqliteConnection&)>;
  // Runs once, after the last Apply, on the thread that tells: after the commit, or with what
  // prevented it. Must not block or call Flush.
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  Writer(std::unique_ptr<SqliteConnection> connection, const WriterOptions& options);
  // Stops, if that was not done before.
  ~Writer();

  // `bytes`: about what the write holds in memory until it is done.
  void Enqueue(Apply apply, Done done, size_t bytes);
  // Returns when what was queued before is committed and done, with the first error since the last
  // Flush. FailedPrecondition: called from a Done.
  absl::Status Flush();
  // Writes that are not committed yet.
  size_t Queued();
  // Fails every later write with `reason`, which is not OK. The first reason stays.
  void Refuse(absl::Status reason);
  // Commits what is queued, also by callbacks meanwhile, and ends the thread; the connection stays
  // open. Called once no other thread uses the writer.
  void Stop();

 private:
  struct Write {
    Apply apply;
    Done done;
    size_t bytes = 0;
    absl::Status refused;  // not OK: not applied, only told
    absl::Status result;
  };

  void Run();
  void Tell();
  // Waits for writes, then for the group to fill. Empty: the writer ends, since it is stopped and
  // every write was told.
  std::vector<Write> TakeGroup();
  void Commit(std::vector<Write>& group);
  // Applies the writes in one transaction. Savepoints take time, and nearly all writes succeed:
  // only when one fails it is done again with one for each.
  absl::Status TryGroup(std::vector<Write*>& writes);
  absl::Status TryGroup(std::vector<Write*>& writes, bool savepoints);
  absl::Status ApplyOne(Write& write);
  // Rolls back what is left of the transaction, and returns `why`.
  absl::Status UndoAll(const absl::Status& why);
  void Finish(std::vector<Write>& group);
  void CheckpointWhenDue();

  const std::unique_ptr<SqliteConnection> connection_;
  const WriterOptions options_;

  absl::Mutex mutex_;
  std::deque<Write> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t refused_writes_ ABSL_GUARDED_BY(mutex_) = 0;  // of those in the queue
  size_t enqueued_ ABSL_GUARDED_BY(mutex_) = 0;        // writes ever put into the queue
  size_t finished_ ABSL_GUARDED_BY(mutex_) = 0;        // writes whose done has run
  int flushing_ ABSL_GUARDED_BY(mutex_) = 0;  // callers in Flush: do not wait for more writes
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Groups that are committed, to be told; the first one stays until that is done. A few at most.
  std::deque<std::vector<Write>> committed_ ABSL_GUARDED_BY(mutex_);
  bool written_ ABSL_GUARDED_BY(mutex_) = false;  // the last of them is there
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);

  std::thread writing_, telling_;  // last: they use the others
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_WRITER_H_
