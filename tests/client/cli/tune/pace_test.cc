#include "client/cli/output/progress.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

class PaceTest : public ::testing::Test {
 protected:
  PaceTest() { job_.set_state(v1::JOB_STATE_RUNNING); }
  // Reports the job as it is this much later.
  void Later(int64_t ms, int64_t trials) {
    job_.set_wall_ms(job_.wall_ms() + ms);
    job_.set_trials(job_.trials() + trials);
    pace_.Look(job_);
  }

  v1::Job job_;
  Pace pace_;
};

TEST_F(PaceTest, IsUnknownAtFirst) {
  EXPECT_EQ(pace_.TrialsPerSecond(), 0);
  Later(0, 0);
  Later(1000, 0);
  EXPECT_EQ(pace_.TrialsPerSecond(), 0);
  EXPECT_EQ(pace_.TimeFor(10), absl::InfiniteDuration());
  Later(1000, 4);
  EXPECT_EQ(pace_.TrialsPerSecond(), 2);
  EXPECT_EQ(pace_.TimeFor(10), absl::InfiniteDuration()) << "too few trials";
  Later(2000, 4);
  EXPECT_EQ(pace_.TimeFor(10), absl::Seconds(5));
}

TEST_F(PaceTest, TheTimeForTrialsFallsUntilTheNextOne) {
  Later(0, 0);
  Later(8000, 8);
  EXPECT_EQ(pace_.TimeFor(10), absl::Seconds(10));
  Later(3000, 0);
  EXPECT_EQ(pace_.TimeFor(10), absl::Seconds(7));
  Later(60'000, 0);
  EXPECT_EQ(pace_.TimeFor(10), absl::InfiniteDuration()) << "it takes longer than expected";
}

TEST_F(PaceTest, AWaitDoesNotCount) {
  job_.set_state(v1::JOB_STATE_PENDING);
  Later(0, 0);
  Later(50'000, 0);
  job_.set_state(v1::JOB_STATE_RUNNING);
  Later(50'000, 0);
  Later(4000, 8);
  EXPECT_EQ(pace_.TrialsPerSecond(), 2) << "it waited for its turn";
  job_.set_wait_reason("no worker runs target t");
  Later(0, 0);
  Later(600'000, 0);
  job_.clear_wait_reason();
  Later(1000, 0);
  EXPECT_EQ(pace_.TimeFor(10), absl::Seconds(5));
  Later(4000, 8);
  EXPECT_EQ(pace_.TrialsPerSecond(), 2) << "no worker was there";
  job_.set_state(v1::JOB_STATE_CONFIRMING);
  Later(0, 0);
  Later(20'000, 0);
  EXPECT_EQ(pace_.TrialsPerSecond(), 2) << "its search has ended";
}

TEST_F(PaceTest, TrialsThatARestartedServerFindsAgainDoNotCount) {
  for (const auto kind : {v1::JobPhase::KIND_MAKING_SPACES, v1::JobPhase::KIND_RESTORING}) {
    job_.mutable_phase()->set_kind(kind);
    Later(0, 0);
    job_.clear_phase();
    Later(1000, 170);
  }
  EXPECT_EQ(pace_.TrialsPerSecond(), 0);
  Later(4000, 8);
  EXPECT_EQ(pace_.TrialsPerSecond(), 2);
}

// Between two reports, a worker came and measured the first candidates.
TEST_F(PaceTest, TrialsAtTheEndOfAWaitDoNotCount) {
  job_.set_wait_reason("no worker runs target t");
  Later(0, 0);
  job_.clear_wait_reason();
  Later(1000, 8);
  EXPECT_EQ(pace_.TrialsPerSecond(), 0);
  EXPECT_EQ(pace_.TimeFor(10), absl::InfiniteDuration()) << "not 0:00";
  Later(4000, 8);
  EXPECT_EQ(pace_.TrialsPerSecond(), 2);
  EXPECT_EQ(pace_.TimeFor(10), absl::Seconds(5));
}

TEST_F(PaceTest, OnlyTheTimeInWhichItIsFollowedCounts) {
  job_.set_trials(100);
  job_.set_wall_ms(1'000'000);
  Later(0, 0);
  EXPECT_EQ(pace_.TrialsPerSecond(), 0);
  Later(1000, 3);
  EXPECT_EQ(pace_.TrialsPerSecond(), 3);
}

TEST_F(PaceTest, TrialsThatARestartedServerCountsAgainAreNotNew) {
  Later(0, 0);
  Later(10'000, 20);
  Later(0, -20);
  Later(0, 20);
  EXPECT_EQ(pace_.TrialsPerSecond(), 2);
}

}  // namespace
}  // namespace hone::cli
