#ifndef HONE_SERVER_SERVICE_READS_READER_THREADS_H_
#define HONE_SERVER_SERVICE_READS_READER_THREADS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hone::service {

// The limits of the reads of one kind.
struct ReaderLaneOptions {
  int threads = 4;
  // Reads that wait or run: of one caller, and of all. More are refused.
  size_t max_of_caller = 256;
  size_t max_of_all = 4096;
  // A read that has waited longer is refused. Less than the 20 s deadline of the clients' calls, so
  // that they are told why.
  absl::Duration max_wait = absl::Seconds(5);
  absl::Duration max_time = absl::Seconds(10);  // of a read, once it runs
  int nice = 0;                                 // priority of the threads
};

struct ReaderOptions {
  ReaderLaneOptions short_reads;
  ReaderLaneOptions long_reads = {.max_of_caller = 64,
                                  .max_of_all = 512,
                                  .max_wait = absl::Seconds(15),
                                  .max_time = absl::Minutes(1),
                                  .nice = 4};
};

// Which threads run a read: those for look-ups of a few rows, or those for lists, exports and
// everything else that may read many rows.
enum class ReaderLane { kShort, kLong };

// Reads the store for calls, because neither gRPC's threads, which also renew leases, nor those of
// jobs may wait for a read. A read ends soon once its caller has gone or its time is over
// (store::ReadLimit). Callers take turns, and none may use all threads of a lane. Thread-safe.
class ReaderThreads {
 public:
  struct Read {
    ReaderLane lane = ReaderLane::kShort;
    std::string caller;                    // whom limits count, and messages name
    std::function<bool()> cancelled = {};  // whether the caller has gone; may be null
    bool has_time_limit = true;            // false: max_time does not apply
    // The read continues a call that was admitted before, so it is not refused for a limit.
    bool continues = false;
  };
  // Gets OK and runs on a thread of the lane, where the store's reads obey the limits; or gets the
  // reason why it must not read. Runs once.
  using Work = absl::AnyInvocable<void(const absl::Status& admitted) &&>;

  explicit ReaderThreads(const ReaderOptions& options = {})
      : short_(options.short_reads), long_(options.long_reads) {}
  ~ReaderThreads();

  // `work` gets these errors, in any thread, also within the call. ResourceExhausted: the caller
  // has too many reads or waited too long; rpc::RetryAfter says when to try again. Cancelled: the
  // caller has gone. Unavailable: the server is shutting down. While it runs, its reads return
  // DeadlineExceeded once its time is over, or one of the last two errors.
  void Run(Read read, Work work);

  // Refuses reads that have waited too long or whose callers have gone. Called a few times a
  // second.
  void Tick();
  // The reads of a lane, for metrics.
  struct Counts {
    int64_t waiting = 0;
    int64_t running = 0;
    int64_t refused = 0;  // since the start, for a limit
  };
  Counts counts(ReaderLane lane) const {
    return (lane == ReaderLane::kShort ? short_ : long_).counts();
  }
  // Ends waiting and running reads, and refuses later ones. Returns at once.
  void Stop();
  // Ends the threads. Returns false if some still run after `limit`. REQUIRES: Stop was called.
  bool Join(absl::Duration limit);

 private:
  // A lane with its queue, in which each caller has its own one.
  class Lane {
   public:
    explicit Lane(const ReaderLaneOptions& options);

    void Add(Read read, Work work);
    void Tick();
    Counts counts() const;
    void Stop();
    bool Join(absl::Duration limit);

   private:
    struct Waiting {
      Read read;
      Work work;
      absl::Time since;
    };
    struct Caller {
      std::deque<Waiting> waiting;
      size_t running = 0;
      bool is_next = false;  // whether it is in turns_
    };
    using Callers = std::map<std::string, Caller>;

    absl::Status CheckLimits(const Read& read) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
    // Gives the caller a turn if it has a read that may run, and forgets it if it has no read.
    void Update(Callers::iterator caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
    // The work of a thread.
    void Serve();
    void RunOne(Waiting& one);

    const ReaderLaneOptions options_;
    const size_t max_running_;  // of one caller
    mutable absl::Mutex mutex_;
    Callers callers_ ABSL_GUARDED_BY(mutex_);
    std::deque<Callers::iterator> turns_ ABSL_GUARDED_BY(mutex_);
    size_t all_ ABSL_GUARDED_BY(mutex_) = 0;  // reads that wait or run
    size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
    int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
    int serving_ ABSL_GUARDED_BY(mutex_);  // threads
    std::atomic<bool> stopped_ = false;    // set under mutex_
    std::vector<std::thread> threads_;     // last: they use the others
  };

  Lane short_, long_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_READS_READER_THREADS_H_
