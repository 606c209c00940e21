#ifndef HONE_SERVER_STORE_POSTGRES_READER_POOL_H_
#define HONE_SERVER_STORE_POSTGRES_READER_POOL_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/store/postgres_connection.h"

namespace hone::store {

// Connections for reads, opened when needed, at most `max_readers`; a further reader waits for one.
// A read whose connection broke is done once more on a new one. Thread-safe.
class PostgresReaderPool {
 public:
  PostgresReaderPool(std::string place, size_t max_readers)
      : place_(std::move(place)), max_readers_(max_readers) {}

  // Calls read(connection), which returns a StatusOr or a Status.
  template <typename Read>
  auto With(Read read) -> decltype(read(std::declval<PostgresConnection&>())) {
    for (bool again = true;; again = false) {
      absl::StatusOr<std::unique_ptr<PostgresConnection>> connection = Take();
      if (!connection.ok()) return std::move(connection).status();
      auto result = read(**connection);
      const bool lost = (*connection)->IsLost();
      Return(*std::move(connection));
      if (!lost || !again) return result;
    }
  }

 private:
  absl::StatusOr<std::unique_ptr<PostgresConnection>> Take() {
    {
      absl::MutexLock lock(&mutex_);
      const auto available = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !free_.empty() || open_ < max_readers_;
      };
      mutex_.Await(absl::Condition(&available));
      if (!free_.empty()) {
        std::unique_ptr<PostgresConnection> connection = std::move(free_.back());
        free_.pop_back();
        return connection;
      }
      ++open_;
    }
    absl::StatusOr<std::unique_ptr<PostgresConnection>> opened = PostgresConnection::Open(place_);
    if (!opened.ok()) Forget();
    return opened;
  }
  void Return(std::unique_ptr<PostgresConnection> connection) {
    if (connection->IsLost()) {
      // Those that wait have most likely broken with it.
      std::vector<std::unique_ptr<PostgresConnection>> others;
      absl::MutexLock lock(&mutex_);
      std::swap(others, free_);
      open_ -= 1 + others.size();
      return;
    }
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(connection));
  }
  void Forget() {
    absl::MutexLock lock(&mutex_);
    --open_;
  }

  const std::string place_;
  const size_t max_readers_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<PostgresConnection>> free_ ABSL_GUARDED_BY(mutex_);
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_READER_POOL_H_
