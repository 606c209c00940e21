#include "common/base/host_lock.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/status.h"
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
    HONE_ASSERT_OK_AND_ASSIGN(auto holder, Now(Mode::kDevice));
    std::thread waiter([&] {
      auto lock = Soon(mode);
      EXPECT_THAT(lock, IsOk());
    });
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    bool free = true;
    while (free && absl::Now() < limit) free = Now(Mode::kDevice).ok();
    EXPECT_FALSE(free);
    holder.Release();
    waiter.join();
    EXPECT_THAT(Now(Mode::kDevice), IsOk());
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "lock";
};

TEST_F(HostLockTest, SharedHoldersCoexistAndATimerIsExclusive) {
  HONE_ASSERT_OK_AND_ASSIGN(auto first, Now(Mode::kShared));
  HONE_ASSERT_OK_AND_ASSIGN(auto second, Now(Mode::kShared));
  EXPECT_THAT(Now(Mode::kExclusive), StatusIs(absl::StatusCode::kDeadlineExceeded));
  first.Release();
  second.Release();
  EXPECT_FALSE(first.held());
  HONE_ASSERT_OK_AND_ASSIGN(auto timer, Now(Mode::kExclusive));
  EXPECT_FALSE(Now(Mode::kShared).ok());
  EXPECT_FALSE(Now(Mode::kExclusive).ok());
  timer.Release();
  EXPECT_THAT(Now(Mode::kShared), IsOk());
}

TEST_F(HostLockTest, AFailedWaitLeavesNothingLocked) {
  auto holder = Now(Mode::kShared);
  ASSERT_THAT(holder, IsOk());
  EXPECT_FALSE(Now(Mode::kExclusive).ok());
  EXPECT_THAT(Now(Mode::kShared), IsOk());  // the gate is open again
}

TEST_F(HostLockTest, WaitingTimerPrecedesNewSharedHolders) {
  HONE_ASSERT_OK_AND_ASSIGN(auto holder, Now(Mode::kShared));
  std::atomic<bool> timing = false;
  std::thread timer([&] {
    auto lock = Soon(Mode::kExclusive);
    ASSERT_THAT(lock, IsOk());
    timing = true;
  });
  // No new shared holder acquires the lock while the timer waits.
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (Now(Mode::kShared).ok()) ASSERT_LT(absl::Now(), limit);
  EXPECT_FALSE(timing);
  holder.Release();
  timer.join();
  EXPECT_TRUE(timing);
  EXPECT_THAT(Now(Mode::kShared), IsOk());
}

TEST_F(HostLockTest, ASharedHolderYieldsOnlyToAWaitingTimer) {
  HONE_ASSERT_OK_AND_ASSIGN(auto holder, Soon(Mode::kShared));
  ASSERT_THAT(holder.YieldToTimers(), IsOk());
  EXPECT_TRUE(holder.held());
  std::atomic<bool> timed = false;
  std::thread timer([&] {
    auto lock = Soon(Mode::kExclusive);
    timed = lock.ok();
  });
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!timed) {
    ASSERT_THAT(holder.YieldToTimers(), IsOk());
    ASSERT_TRUE(holder.held());
    ASSERT_LT(absl::Now(), limit);
  }
  timer.join();
}

TEST_F(HostLockTest, DeviceTimersCoexistAndExcludeAllOthers) {
  HONE_ASSERT_OK_AND_ASSIGN(auto first, Now(Mode::kDevice));
  HONE_ASSERT_OK_AND_ASSIGN(auto second, Now(Mode::kDevice));
  for (HostLock* const holder : {&first, &second}) {
    EXPECT_THAT(Now(Mode::kShared), StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_THAT(Now(Mode::kExclusive), StatusIs(absl::StatusCode::kDeadlineExceeded));
    holder->Release();
  }
  for (const Mode mode : {Mode::kShared, Mode::kExclusive}) {
    auto other = Now(mode);
    ASSERT_THAT(other, IsOk());
    EXPECT_THAT(Now(Mode::kDevice), StatusIs(absl::StatusCode::kDeadlineExceeded));
  }
  EXPECT_THAT(Now(Mode::kDevice), IsOk());
}

TEST_F(HostLockTest, AWaitingExclusiveTimerPrecedesNewDeviceTimers) {
  ExpectToPrecedeDeviceTimers(Mode::kExclusive);
}

// Otherwise, the timers of several devices could keep a build waiting for ever.
TEST_F(HostLockTest, AnImpatientSharedHolderPrecedesNewDeviceTimers) {
  ExpectToPrecedeDeviceTimers(Mode::kShared);
}

TEST_F(HostLockTest, ASharedHolderYieldsToAWaitingDeviceTimer) {
  HONE_ASSERT_OK_AND_ASSIGN(auto holder, Soon(Mode::kShared));
  std::atomic<bool> timed = false;
  std::thread timer([&] { timed = Soon(Mode::kDevice).ok(); });
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!timed) {
    ASSERT_THAT(holder.YieldToTimers(), IsOk());
    ASSERT_TRUE(holder.held());
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
  EXPECT_THAT(Soon(Mode::kShared), IsOk());
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(HostLockTest, MoveTransfersTheLock) {
  HostLock owner;
  EXPECT_FALSE(owner.held());
  {
    HONE_ASSERT_OK_AND_ASSIGN(owner, Now(Mode::kExclusive));
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
