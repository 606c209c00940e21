#include "worker/runner/timing_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::runner {
namespace {

constexpr char kHost[] = "";

// Locks of the same process exclude each other like those of several processes.
class TimingLockTest : public testing::Test {
 protected:
  TimingLockTest() {
    for (const char* const gpu : {"0000:01:00.0", "0000:02:00.0"}) {
      std::ofstream(absl::StrCat(path_, ".", gpu));
    }
  }

  bool Take(TimingLock& lock, const std::string& device) {
    const absl::Status taken = lock.Acquire(path_, device, SteadyNow());
    EXPECT_TRUE(taken.ok() || absl::IsDeadlineExceeded(taken)) << taken;
    EXPECT_EQ(lock.held(), taken.ok());
    return taken.ok();
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "lock";
  TimingLock mine_, other_;
};

TEST_F(TimingLockTest, DifferentGpusTimeAtTheSameTime) {
  ASSERT_TRUE(Take(mine_, "0000:01:00.0"));
  EXPECT_TRUE(Take(other_, "0000:02:00.0"));
}

TEST_F(TimingLockTest, TheUsersOfAGpuTakeTurns) {
  ASSERT_TRUE(Take(mine_, "0000:01:00.0"));
  EXPECT_FALSE(Take(other_, "0000:01:00.0"));
  mine_.Release();
  EXPECT_TRUE(Take(other_, "0000:01:00.0"));
}

TEST_F(TimingLockTest, GpusWithoutAFileTakeTurns) {
  ASSERT_TRUE(Take(mine_, "gpu"));
  EXPECT_FALSE(Take(other_, "0000:03:00.0"));
  EXPECT_TRUE(Take(other_, "0000:01:00.0"));
}

TEST_F(TimingLockTest, TheHostAndAGpuTakeTurns) {
  ASSERT_TRUE(Take(mine_, kHost));
  EXPECT_FALSE(Take(other_, "0000:01:00.0"));
  mine_.Release();
  ASSERT_TRUE(Take(mine_, "0000:01:00.0"));
  EXPECT_FALSE(Take(other_, kHost));
}

TEST_F(TimingLockTest, AFailedWaitLeavesTheGpuFree) {
  const auto build = HostLock::Acquire(HostLock::Mode::kShared, SteadyNow(), path_);
  ASSERT_THAT(build, IsOk());
  EXPECT_FALSE(Take(mine_, "0000:01:00.0"));
  HONE_ASSERT_OK_AND_ASSIGN(auto gpu, FileLock::Open(path_ + ".0000:01:00.0"));
  EXPECT_TRUE(gpu.TryLock(FileLock::Mode::kExclusive));
}

TEST_F(TimingLockTest, TheFilesExistBeforeTheSandbox) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto files, TimingLock::MakeFiles(path_));
  for (const char* const end : {"", ".gate", ".devices", ".gpu"}) {
    EXPECT_THAT(files, testing::Contains(path_ + end));
  }
  for (const std::string& file : files) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  EXPECT_FALSE(TimingLock::MakeFiles("/no/such/folder/lock").ok());
}

}  // namespace
}  // namespace hone::runner
