#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/host_lock.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone {
namespace {

using Mode = HostLock::Mode;

class HostShareTest : public ::testing::Test {
 protected:
  bool IsShared() {
    return !HostLock::Acquire(Mode::kExclusive, absl::Now() + absl::Milliseconds(2), path_).ok();
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "lock";
};

TEST_F(HostShareTest, HoldsTheLockForItsLifetime) {
  {
    const HostShare share(true, path_);
    EXPECT_TRUE(IsShared());
  }
  EXPECT_FALSE(IsShared());
  const HostShare none(false, path_);
  EXPECT_FALSE(IsShared()) << "the server was told to ignore the lock";
}

TEST_F(HostShareTest, YieldsToAWaitingTimer) {
  const HostShare share(true, path_);
  absl::Notification timed;
  std::thread timer([&] {
    const auto lock = HostLock::Acquire(Mode::kExclusive, absl::Now() + absl::Seconds(20), path_);
    EXPECT_THAT(lock, IsOk());
    timed.Notify();
  });
  while (!timed.HasBeenNotified()) YieldToTimers();  // otherwise the timer never gets the lock
  timer.join();
  EXPECT_TRUE(IsShared()) << "the share takes the lock again";
}

TEST_F(HostShareTest, YieldWithoutAShareReleasesNothing) {
  YieldToTimers();
  const HostShare share(true, path_);
  std::thread([] { YieldToTimers(); }).join();
  EXPECT_TRUE(IsShared());
}

}  // namespace
}  // namespace hone
