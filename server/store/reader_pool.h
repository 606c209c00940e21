#ifndef HONE_SERVER_STORE_READER_POOL_H_
#define HONE_SERVER_STORE_READER_POOL_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/store/sqlite_connection.h"

namespace hone::store {

// Read-only connections, opened when needed, at most `max_readers`; a further reader waits for one.
// Thread-safe. REQUIRES: the writing connection outlives it.
class ReaderPool {
 public:
  ReaderPool(std::string path, size_t max_readers);
  // REQUIRES: no read runs.
  ~ReaderPool() = default;

  // Calls read(connection), which returns a StatusOr, with a connection that nobody else uses
  // meanwhile.
  template <typename Read>
  auto With(Read read) -> decltype(read(std::declval<SqliteConnection&>())) {
    absl::StatusOr<std::unique_ptr<SqliteConnection>> connection = Take();
    if (!connection.ok()) return std::move(connection).status();
    auto result = read(**connection);
    Return(*std::move(connection));
    return result;
  }

 private:
  absl::StatusOr<std::unique_ptr<SqliteConnection>> Take();
  void Return(std::unique_ptr<SqliteConnection> connection);

  const std::string path_;
  const size_t max_readers_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> free_ ABSL_GUARDED_BY(mutex_);
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_READER_POOL_H_
