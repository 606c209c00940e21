#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/host_lock.h"

namespace hone {
namespace {

using Mode = HostLock::Mode;

class HostShareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/hone-share-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/lock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  bool IsShared() {
    return !HostLock::Acquire(Mode::kExclusive, absl::Now() + absl::Milliseconds(2), path_).ok();
  }

  std::string folder_;
  std::string path_;
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
    EXPECT_TRUE(lock.ok()) << lock.status();
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
