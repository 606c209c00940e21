#include "common/base/host_lock.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/temporary_folder.h"

namespace hone {
namespace {

using Mode = HostLock::Mode;

// flock belongs to the open file, so two locks in one process exclude each other like those of two
// processes.
class HostLockTest : public ::testing::Test {
 protected:
  absl::StatusOr<HostLock> Now(Mode mode) {
    return HostLock::Acquire(mode, absl::Now() + absl::Milliseconds(2), path_);
  }
  absl::StatusOr<HostLock> Soon(Mode mode) {
    return HostLock::Acquire(mode, absl::Now() + absl::Seconds(20), path_);
  }
  // While a device timer holds the lock and another process waits for it in `mode`, no new device
  // timer gets it.
  void ExpectToPrecedeDeviceTimers(Mode mode) {
    auto holder = Now(Mode::kDevice);
    ASSERT_TRUE(holder.ok()) << holder.status();
    std::thread waiter([&] {
      auto lock = Soon(mode);
      EXPECT_TRUE(lock.ok()) << lock.status();
    });
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    bool free = true;
    while (free && absl::Now() < limit) free = Now(Mode::kDevice).ok();
    EXPECT_FALSE(free);
    holder->Release();
    waiter.join();
    EXPECT_TRUE(Now(Mode::kDevice).ok());
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "lock";
};

TEST_F(HostLockTest, SharedHoldersCoexistAndATimerIsExclusive) {
  auto first = Now(Mode::kShared);
  auto second = Now(Mode::kShared);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Now(Mode::kExclusive).status().code(), absl::StatusCode::kDeadlineExceeded);
  first->Release();
  second->Release();
  EXPECT_FALSE(first->held());
  auto timer = Now(Mode::kExclusive);
  ASSERT_TRUE(timer.ok()) << timer.status();
  EXPECT_FALSE(Now(Mode::kShared).ok());
  EXPECT_FALSE(Now(Mode::kExclusive).ok());
  timer->Release();
  EXPECT_TRUE(Now(Mode::kShared).ok());
}

TEST_F(HostLockTest, AFailedWaitLeavesNothingLocked) {
  auto holder = Now(Mode::kShared);
  ASSERT_TRUE(holder.ok());
  EXPECT_FALSE(Now(Mode::kExclusive).ok());
  EXPECT_TRUE(Now(Mode::kShared).ok());  // the gate is open again
}

TEST_F(HostLockTest, WaitingTimerPrecedesNewSharedHolders) {
  auto holder = Now(Mode::kShared);
  ASSERT_TRUE(holder.ok());
  std::atomic<bool> timing = false;
  std::thread timer([&] {
    auto lock = Soon(Mode::kExclusive);
    ASSERT_TRUE(lock.ok()) << lock.status();
    timing = true;
  });
  // No new shared holder acquires the lock while the timer waits.
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (Now(Mode::kShared).ok()) ASSERT_LT(absl::Now(), limit);
  EXPECT_FALSE(timing);
  holder->Release();
  timer.join();
  EXPECT_TRUE(timing);
  EXPECT_TRUE(Now(Mode::kShared).ok());
}

TEST_F(HostLockTest, ASharedHolderYieldsOnlyToAWaitingTimer) {
  auto holder = Soon(Mode::kShared);
  ASSERT_TRUE(holder.ok());
  ASSERT_TRUE(holder->YieldToTimers().ok());
  EXPECT_TRUE(holder->held());
  std::atomic<bool> timed = false;
  std::thread timer([&] {
    auto lock = Soon(Mode::kExclusive);
    timed = lock.ok();
  });
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!timed) {
    ASSERT_TRUE(holder->YieldToTimers().ok());
    ASSERT_TRUE(holder->held());
    ASSERT_LT(absl::Now(), limit);
  }
  timer.join();
}

TEST_F(HostLockTest, DeviceTimersCoexistAndExcludeAllOthers) {
  auto first = Now(Mode::kDevice);
  auto second = Now(Mode::kDevice);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  for (HostLock* const holder : {&*first, &*second}) {
    EXPECT_EQ(Now(Mode::kShared).status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(Now(Mode::kExclusive).status().code(), absl::StatusCode::kDeadlineExceeded);
    holder->Release();
  }
  for (const Mode mode : {Mode::kShared, Mode::kExclusive}) {
    auto other = Now(mode);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(Now(Mode::kDevice).status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_TRUE(Now(Mode::kDevice).ok());
}

TEST_F(HostLockTest, AWaitingExclusiveTimerPrecedesNewDeviceTimers) {
  ExpectToPrecedeDeviceTimers(Mode::kExclusive);
}

// Otherwise, the timers of several devices could keep a build waiting for ever.
TEST_F(HostLockTest, AnImpatientSharedHolderPrecedesNewDeviceTimers) {
  ExpectToPrecedeDeviceTimers(Mode::kShared);
}

TEST_F(HostLockTest, ASharedHolderYieldsToAWaitingDeviceTimer) {
  auto holder = Soon(Mode::kShared);
  ASSERT_TRUE(holder.ok());
  std::atomic<bool> timed = false;
  std::thread timer([&] { timed = Soon(Mode::kDevice).ok(); });
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!timed) {
    ASSERT_TRUE(holder->YieldToTimers().ok());
    ASSERT_TRUE(holder->held());
    ASSERT_LT(absl::Now(), limit);
  }
  timer.join();
}

TEST_F(HostLockTest, DeadHolderReleasesTheLock) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto lock = Now(Mode::kExclusive);
    const char held = lock.ok();
    if (write(ready[1], &held, 1) != 1) _exit(1);
    pause();
  }
  char held = 0;
  ASSERT_EQ(read(ready[0], &held, 1), 1);
  ASSERT_EQ(held, 1);
  EXPECT_FALSE(Now(Mode::kShared).ok());
  kill(child, SIGKILL);
  EXPECT_TRUE(Soon(Mode::kShared).ok());
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(HostLockTest, MoveTransfersTheLock) {
  HostLock owner;
  EXPECT_FALSE(owner.held());
  {
    auto lock = Now(Mode::kExclusive);
    ASSERT_TRUE(lock.ok());
    owner = *std::move(lock);
  }
  EXPECT_TRUE(owner.held());
  EXPECT_FALSE(Now(Mode::kShared).ok());
}

TEST_F(HostLockTest, MissingFolderIsNamed) {
  const auto lock =
      HostLock::Acquire(Mode::kShared, absl::InfiniteFuture(), "/no/such/folder/lock");
  EXPECT_NE(std::string(lock.status().message()).find("/no/such/folder/lock"), std::string::npos);
}

}  // namespace
}  // namespace hone
