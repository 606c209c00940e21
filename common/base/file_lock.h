#ifndef HONE_COMMON_BASE_FILE_LOCK_H_
#define HONE_COMMON_BASE_FILE_LOCK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// A lock on a file, which processes of all users share (flock). The kernel frees it when its holder
// dies. Not recursive. Move-only. Thread-compatible.
class FileLock {
 public:
  enum class Mode { kShared, kExclusive };

  // Opens the file without locking it. Creates it, readable for all users, if it does not exist.
  // PermissionDenied, Internal: it cannot be created or opened; the message names the path.
  static absl::StatusOr<FileLock> Open(const std::string& path);

  FileLock() = default;  // has no file
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock() { Close(); }

  // REQUIRES of all below: is_open().
  // Waits for the lock. DeadlineExceeded: it was not free in time.
  absl::Status Lock(Mode mode, absl::Time deadline);
  // Returns false if the lock is not free now.
  bool TryLock(Mode mode);
  void Unlock();

  bool is_open() const { return fd_ >= 0; }
  // Frees the lock and the file. No effect if it is not open.
  void Close();

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_FILE_LOCK_H_
