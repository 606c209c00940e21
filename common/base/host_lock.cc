#include "common/base/host_lock.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/base/steady_clock.h"

namespace hone {
namespace {

constexpr auto kShare = FileLock::Mode::kShared;
constexpr auto kExclude = FileLock::Mode::kExclusive;
constexpr absl::Duration kRetryPause = absl::Milliseconds(2);
// After this time, a shared holder keeps new device timers out. Otherwise, those of several devices
// could follow each other for ever. Well below the patience of a HostShare.
constexpr absl::Duration kImpatientAfter = absl::Seconds(1);

}  // namespace

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

}  // namespace hone
