#ifndef HONE_SERVER_STORE_POSTGRES_WRITER_H_
#define HONE_SERVER_STORE_POSTGRES_WRITER_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/store/postgres/connection.h"

namespace hone::store {

struct PostgresWriterOptions {
  // A write beyond either is refused with ResourceExhausted.
  size_t max_queued_writes = 1 << 14;
  size_t max_queued_bytes = size_t{256} << 20;
  size_t max_group_writes = 256;
  // What waits for a database that cannot be reached fails after so long.
  absl::Duration patience = absl::Seconds(30);
};

// The one thread of a server replica that writes. Takes writes in order and commits what waits as
// one group: the statements of a group travel together, so that a group costs two round trips.
// Every transaction holds one lock of the database: the replicas' writes come one after another, as
// those of one writer, so that checks hold and ids grow in the order of commits. A connection that
// broke is made anew; whether the commit that it broke in took place is asked of the database, so
// that a write is done once. Thread-safe.
class PostgresWriter {
 public:
  // What a statement's rows mean; not OK: the statement changed nothing and the write has failed.
  using OnRows = absl::AnyInvocable<absl::Status(PostgresRows&)>;
  // Several statements that depend on each other; may be run again, the last run counts.
  using Apply = absl::AnyInvocable<absl::Status(PostgresConnection&)>;
  // Runs once, on the writer's thread. Must not block or call Flush.
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  PostgresWriter(std::string place, std::unique_ptr<PostgresConnection> connection,
                 const PostgresWriterOptions& options);
  ~PostgresWriter();

  // `refused`: not OK: the write is only told so.
  void Enqueue(PostgresCommand command, OnRows on_rows, Done done, size_t bytes,
               absl::Status refused = absl::OkStatus());
  void EnqueueApply(Apply apply, Done done, size_t bytes);
  // As Writer::Flush.
  absl::Status Flush();
  size_t Queued();
  // Commits what is queued, as far as the database can be reached, and ends the thread.
  void Stop();

 private:
  struct Write {
    PostgresCommand command;
    OnRows on_rows;
    Apply apply;  // instead of the command; such a write is a group of its own
    Done done;
    size_t bytes = 0;
    absl::Status refused;
    absl::Status result;
  };

  void Put(Write write);
  void Run();
  std::vector<Write> TakeGroup();
  void Commit(std::vector<Write>& group);
  // Tries until the database answers, for options_.patience.
  absl::Status CommitWithPatience(const std::vector<Write*>& writes);
  absl::Status TryGroup(const std::vector<Write*>& writes);
  absl::Status RunWrites(const std::vector<Write*>& writes);
  // The connection broke in the commit of this transaction: OK where it took place, Unavailable
  // where it did not or the database does not know yet.
  absl::Status AskAboutCommit();
  absl::Status Connect();
  void Finish(std::vector<Write> group);

  const std::string place_;
  const PostgresWriterOptions options_;
  std::unique_ptr<PostgresConnection> connection_;  // of the thread
  std::string pending_transaction_;                 // whose commit is not known; "" none

  absl::Mutex mutex_;
  std::deque<Write> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t enqueued_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses the others
};

// The lock that every transaction of a writer and every migration holds.
inline constexpr char kTakeWriteLock[] = "SELECT pg_advisory_xact_lock(1213156933)";

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_WRITER_H_
