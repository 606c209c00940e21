#include "common/base/host_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone {
namespace {

int OperationOf(FileLock::Mode mode) {
  return mode == FileLock::Mode::kExclusive ? LOCK_EX : LOCK_SH;
}

constexpr auto kShare = FileLock::Mode::kShared;
constexpr auto kExclude = FileLock::Mode::kExclusive;
constexpr absl::Duration kRetryPause = absl::Milliseconds(2);
constexpr absl::Duration kLongestPause = absl::Milliseconds(8);
// After this time, a shared holder keeps new device timers out. Otherwise, those of several devices
// could follow each other for ever. Well below the patience of a HostShare.
constexpr absl::Duration kImpatientAfter = absl::Seconds(1);

constexpr absl::Duration kPatience = absl::Seconds(5);

thread_local HostShare* share_of_thread = nullptr;

}  // namespace

absl::StatusOr<FileLock> FileLock::Open(const std::string& path) {
  FileLock lock;
  lock.path_ = path;
  // The first attempt omits O_CREAT: in a sticky folder, O_CREAT fails on another user's file.
  for (int attempt = 0; attempt < 2; ++attempt) {
    lock.fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (lock.is_open()) return lock;
    if (errno != ENOENT) return ErrnoStatus(errno, absl::StrCat("open the timing lock ", path));
    lock.fd_ = open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (lock.is_open()) {
      fchmod(lock.fd_, 0644);  // regardless of the umask: flock needs only read access
      return lock;
    }
    if (errno != EEXIST) return ErrnoStatus(errno, absl::StrCat("create the timing lock ", path));
  }
  return absl::InternalError(absl::StrCat("the timing lock ", path, " appears and disappears"));
}

FileLock::FileLock(FileLock&& other) noexcept { *this = std::move(other); }

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

absl::Status FileLock::Lock(Mode mode, absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) {
    while (flock(fd_, OperationOf(mode)) != 0) {
      if (errno != EINTR) return ErrnoStatus(errno, absl::StrCat("lock ", path_));
    }
    return absl::OkStatus();
  }
  // flock has no timeout: poll with growing pauses. Whoever times a kernel notices short ones.
  absl::Duration pause = absl::Microseconds(50);
  while (!TryLock(mode)) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return ErrnoStatus(errno, absl::StrCat("lock ", path_));
    }
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("the timing lock ", path_, " is not free"));
    }
    absl::SleepFor(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  return absl::OkStatus();
}

bool FileLock::TryLock(Mode mode) { return flock(fd_, OperationOf(mode) | LOCK_NB) == 0; }

void FileLock::Unlock() { flock(fd_, LOCK_UN); }

void FileLock::Close() {
  // Closing the only descriptor of an open file frees its lock. Children do not inherit it
  // (O_CLOEXEC).
  if (is_open()) close(std::exchange(fd_, -1));
}

std::string HostLock::DefaultPath() { return "/tmp/hone-timing.lock"; }

std::vector<std::string> HostLock::Files(const std::string& path) {
  return {path, absl::StrCat(path, ".gate"), absl::StrCat(path, ".devices")};
}

absl::StatusOr<HostLock> HostLock::Acquire(Mode mode, absl::Time deadline,
                                           const std::string& path) {
  HostLock lock;
  lock.mode_ = mode;
  lock.path_ = path;
  const std::vector<std::string> files = Files(path);
  HONE_ASSIGN_OR_RETURN(lock.lock_, FileLock::Open(files[0]));
  HONE_ASSIGN_OR_RETURN(lock.gate_, FileLock::Open(files[1]));
  HONE_ASSIGN_OR_RETURN(lock.devices_, FileLock::Open(files[2]));
  switch (mode) {
    case Mode::kShared:
      HONE_RETURN_IF_ERROR(lock.EnterShared(deadline));
      break;
    case Mode::kDevice:
      HONE_RETURN_IF_ERROR(lock.EnterDevice(deadline));
      break;
    case Mode::kExclusive:
      HONE_RETURN_IF_ERROR(lock.EnterExclusive(deadline));
      break;
  }
  return lock;
}

absl::Status HostLock::EnterShared(absl::Time deadline) {
  const absl::Time impatient = SteadyNow() + kImpatientAfter;
  for (;;) {
    if (SteadyNow() >= impatient) {
      HONE_RETURN_IF_ERROR(gate_.Lock(kExclude, deadline));
      HONE_RETURN_IF_ERROR(devices_.Lock(kExclude, deadline));
      break;
    }
    HONE_RETURN_IF_ERROR(gate_.Lock(kShare, deadline));
    if (devices_.TryLock(kExclude)) break;
    gate_.Unlock();  // lets timers go first
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("the timing lock ", path_, " is not free"));
    }
    absl::SleepFor(kRetryPause);
  }
  HONE_RETURN_IF_ERROR(lock_.Lock(kShare, deadline));
  devices_.Unlock();
  gate_.Unlock();
  return absl::OkStatus();
}

absl::Status HostLock::EnterDevice(absl::Time deadline) {
  HONE_RETURN_IF_ERROR(gate_.Lock(kShare, deadline));
  HONE_RETURN_IF_ERROR(devices_.Lock(kShare, deadline));
  gate_.Unlock();
  // Waits for the shared holders; no new one enters.
  HONE_RETURN_IF_ERROR(lock_.Lock(kExclude, deadline));
  lock_.Unlock();
  return absl::OkStatus();
}

absl::Status HostLock::EnterExclusive(absl::Time deadline) {
  for (FileLock* const file : {&gate_, &devices_, &lock_}) {
    HONE_RETURN_IF_ERROR(file->Lock(kExclude, deadline));
  }
  return absl::OkStatus();
}

void HostLock::Release() {
  for (FileLock* const file : {&lock_, &devices_, &gate_}) file->Close();
}

absl::Status HostLock::YieldToTimers(absl::Time deadline) {
  if (!held() || mode_ != Mode::kShared) return absl::OkStatus();
  if (gate_.TryLock(kShare)) {
    const bool free = devices_.TryLock(kExclude);
    if (free) devices_.Unlock();
    gate_.Unlock();
    if (free) return absl::OkStatus();
  }
  Release();
  HONE_ASSIGN_OR_RETURN(*this, Acquire(Mode::kShared, deadline, std::string(path_)));
  return absl::OkStatus();
}

HostLock ShareHost(bool respect, const std::string& path) {
  if (!respect) return HostLock();
  absl::StatusOr<HostLock> lock =
      HostLock::Acquire(HostLock::Mode::kShared, SteadyNow() + kPatience, path);
  return lock.ok() ? *std::move(lock) : HostLock();
}

HostShare::HostShare(bool respect, const std::string& path) : lock_(ShareHost(respect, path)) {
  share_of_thread = this;
}

HostShare::~HostShare() { share_of_thread = nullptr; }

void YieldToTimers() {
  // On timeout the caller continues without the lock.
  if (share_of_thread != nullptr) {
    share_of_thread->lock_.YieldToTimers(SteadyNow() + kPatience).IgnoreError();
  }
}

}  // namespace hone
