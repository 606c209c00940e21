// How long a runner keeps the timing lock of the host.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/host_lock.h"
#include "tests/status.h"
#include "tests/worker/builder/measured_trace.h"

namespace hone {
namespace {

constexpr char kTrace[] =
    "workload doubled\ninput X: f32[64]\noutput Y[i: 64] = X[i] + X[i]\ntrace 1\n";
// Its reference takes a while.
constexpr char kLargeTrace[] =
    "workload product\ninput A: f32[600, 600]\ninput B: f32[600, 600]\n"
    "output C[i: 600, j: 600] = sum(k: 600) A[i, k] * B[k, j]\ntrace 1\n";

// Whether another process could take the lock now.
bool IsFree(const std::string& path) {
  return HostLock::Acquire(HostLock::Mode::kExclusive, SteadyNow(), path).ok();
}

TEST(LockTurnTest, OthersGetTheLockBetweenCandidatesWhenATurnHasEnded) {
  std::unique_ptr<MeasuredTrace> trace;
  int pauses = 0;
  runner::RunnerOptions options;
  options.lock_turn = absl::ZeroDuration();
  options.sleep = [&](absl::Duration) {
    EXPECT_TRUE(IsFree(trace->lock_path()));
    ++pauses;
  };
  trace = std::make_unique<MeasuredTrace>(std::move(options));
  for (int run = 0; run < 3; ++run) {
    const record::MeasureResult result = trace->Run(kTrace, /*tolerance=*/0);
    ASSERT_EQ(result.outcome, record::Outcome::kOk) << result.detail;
    EXPECT_FALSE(IsFree(trace->lock_path()));
  }
  EXPECT_EQ(pauses, 2);
}

TEST(LockTurnTest, AShortBatchTakesTheLockOnce) {
  runner::RunnerOptions options;
  options.lock_turn = absl::InfiniteDuration();
  options.sleep = [](absl::Duration) { ADD_FAILURE() << "the lock was released"; };
  MeasuredTrace trace(std::move(options));
  for (int run = 0; run < 2; ++run) {
    const record::MeasureResult result = trace.Run(kTrace, /*tolerance=*/0);
    ASSERT_EQ(result.outcome, record::Outcome::kOk) << result.detail;
  }
  EXPECT_FALSE(IsFree(trace.lock_path()));
}

// The reference's file has another name until it is complete.
TEST(LockTurnTest, TimersGoFirstWhileAReferenceIsMade) {
  runner::RunnerOptions options;
  options.reference_turn = absl::ZeroDuration();
  MeasuredTrace trace(std::move(options));
  const std::filesystem::path folder = std::filesystem::path(trace.lock_path()).parent_path();
  bool was_unfinished = false;
  std::thread timer([&] {
    const absl::Time deadline = SteadyNow() + absl::Seconds(100);
    while (!std::filesystem::exists(folder / "reference.new") && SteadyNow() < deadline) {
    }
    const auto lock = HostLock::Acquire(HostLock::Mode::kExclusive, deadline, trace.lock_path());
    EXPECT_THAT(lock, IsOk());
    was_unfinished = !std::filesystem::exists(folder / "reference");
  });
  const record::MeasureResult result = trace.Run(kLargeTrace, /*tolerance=*/0);
  timer.join();
  EXPECT_EQ(result.outcome, record::Outcome::kOk) << result.detail;
  EXPECT_TRUE(was_unfinished) << "the lock was held until the reference was made";
}

TEST(LockTurnTest, AReferenceWaitsNoLongerThanItsPatience) {
  runner::RunnerOptions options;
  options.reference_turn = absl::ZeroDuration();
  options.lock_patience = absl::Milliseconds(20);
  MeasuredTrace trace(std::move(options));
  const std::filesystem::path folder = std::filesystem::path(trace.lock_path()).parent_path();
  absl::Notification ended;
  std::thread timer([&] {
    const absl::Time deadline = SteadyNow() + absl::Seconds(100);
    while (!std::filesystem::exists(folder / "reference.new") && SteadyNow() < deadline) {
    }
    const auto lock = HostLock::Acquire(HostLock::Mode::kExclusive, deadline, trace.lock_path());
    EXPECT_THAT(lock, IsOk());
    ended.WaitForNotification();
  });
  const record::MeasureResult result = trace.Run(kLargeTrace, /*tolerance=*/0);
  ended.Notify();
  timer.join();
  EXPECT_EQ(result.outcome, record::Outcome::kDeviceLost);
  EXPECT_TRUE(absl::StrContains(result.detail, "is not free")) << result.detail;
}

}  // namespace
}  // namespace hone
