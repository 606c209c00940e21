#include "server/store/reader_pool.h"

namespace hone::store {

ReaderPool::ReaderPool(std::string path, size_t max_readers)
    : path_(std::move(path)), max_readers_(max_readers) {}

absl::StatusOr<std::unique_ptr<SqliteConnection>> ReaderPool::Take() {
  {
    absl::MutexLock lock(&mutex_);
    const auto available = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !free_.empty() || open_ < max_readers_;
    };
    mutex_.Await(absl::Condition(&available));
    if (!free_.empty()) {
      std::unique_ptr<SqliteConnection> connection = std::move(free_.back());
      free_.pop_back();
      return connection;
    }
    ++open_;
  }
  absl::StatusOr<std::unique_ptr<SqliteConnection>> opened =
      SqliteConnection::OpenForReading(path_);
  if (!opened.ok()) {
    absl::MutexLock lock(&mutex_);
    --open_;
  }
  return opened;
}

void ReaderPool::Return(std::unique_ptr<SqliteConnection> connection) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(std::move(connection));
}

}  // namespace hone::store
