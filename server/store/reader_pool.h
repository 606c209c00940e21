#ifndef HONE_SERVER_STORE_READER_POOL_H_
#define HONE_SERVER_STORE_READER_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "server/store/connection.h"
#include "server/store/read_limit.h"

namespace hone::store {

// A pool of at most `max_readers` connections for reads, which are opened when needed. Further
// readers wait for a free connection, at most a minute. A read whose connection broke, or that gets
// none because the database cannot be reached, is repeated for a few seconds, in which the database
// may restart. The ReadLimit of the thread ends all of it. Thread-safe. REQUIRES: on SQLite, the
// writing connection outlives the pool.
class ReaderPool {
 public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<Connection>>()>;
  explicit ReaderPool(Open open, size_t max_readers = 16)
      : open_one_(std::move(open)), max_(max_readers) {}

  // Calls `read` with a connection that no other thread uses during the call. ResourceExhausted:
  // other reads use all connections.
  absl::Status With(absl::FunctionRef<absl::Status(Connection&)> read) {
    const absl::Time deadline = SteadyNow() + kPatience;
    while (true) {
      HONE_RETURN_IF_ERROR(ReadLimit::Check());
      absl::StatusOr<std::unique_ptr<Connection>> connection = Take();
      absl::Status result = connection.status();
      bool lost = absl::IsUnavailable(result);
      if (connection.ok()) {
        result = read(**connection);
        lost = (*connection)->IsLost();
        Return(*std::move(connection), lost);
      }
      if (!lost || SteadyNow() > deadline) return result;
      absl::SleepFor(kWait);
    }
  }

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(6);
  static constexpr absl::Duration kWait = absl::Milliseconds(20);
  static constexpr absl::Duration kLongestWait = absl::Minutes(1);  // for a connection
  static constexpr absl::Duration kLook = absl::Milliseconds(100);

  absl::StatusOr<std::unique_ptr<Connection>> Take() {
    {
      const absl::Time deadline = SteadyNow() + kLongestWait;
      absl::MutexLock lock(&mutex_);
      const auto available = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !free_.empty() || open_ < max_;
      };
      while (!mutex_.AwaitWithTimeout(absl::Condition(&available), kLook)) {
        HONE_RETURN_IF_ERROR(ReadLimit::Check());
        if (SteadyNow() < deadline) continue;
        return absl::ResourceExhaustedError(absl::StrCat(
            "all ", max_, " connections for reads of the store are in use; try again later"));
      }
      if (!free_.empty()) {
        std::unique_ptr<Connection> connection = std::move(free_.back());
        free_.pop_back();
        return connection;
      }
      ++open_;
    }
    absl::StatusOr<std::unique_ptr<Connection>> opened = open_one_();
    if (!opened.ok()) {
      absl::MutexLock lock(&mutex_);
      --open_;
    }
    return opened;
  }
  void Return(std::unique_ptr<Connection> connection, bool lost) {
    std::vector<std::unique_ptr<Connection>> closed;  // destroyed without the lock
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(connection));
    if (!lost) return;
    // The free connections have most likely broken too.
    std::swap(closed, free_);
    open_ -= closed.size();
  }

  const Open open_one_;
  const size_t max_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> free_ ABSL_GUARDED_BY(mutex_);
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_READER_POOL_H_
