// How long a runner keeps the timing lock of the host.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/host_lock.h"
#include "tests/worker/builder/measured_trace.h"

namespace hone {
namespace {

constexpr char kTrace[] =
    "workload doubled\ninput X: f32[64]\noutput Y[i: 64] = X[i] + X[i]\ntrace 1\n";

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

}  // namespace
}  // namespace hone
