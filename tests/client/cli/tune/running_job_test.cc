#include "client/cli/tune/running_job.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

client::Job Running() {
  client::Job job;
  job.id = "12";
  job.state = client::JobState::kRunning;
  job.target = "t";
  job.workload_digest = "a";
  return job;
}

TEST(CountTunedTest, AJobOfTheWorkloadHasNotEnded) {
  client::Job job = Running();
  EXPECT_EQ(CountTuned(job, {"b", "a"}, "t", 0), 1u);
  EXPECT_EQ(CountTuned(job, {"b"}, "t", 0), 0u);
  EXPECT_EQ(CountTuned(job, {"a"}, "other", 0), 0u);
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0.001), 0u) << "its best does not count for this tolerance";
  job.state = client::JobState::kConfirming;
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 1u);
  for (const client::JobState ended :
       {client::JobState::kDone, client::JobState::kCancelled, client::JobState::kFailed}) {
    job.state = ended;
    EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
  }
}

TEST(CountTunedTest, AJobThatPublishesNothingDoesNotCount) {
  client::Job job = Running();
  job.spec.unpublished = true;
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
}

TEST(CountTunedTest, AJobThatDoesNotSearchDoesNotCount) {
  client::Job job = Running();
  job.spec.revalidate = 3;
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
  job.spec.revalidate = 0;
  job.spec.space = SpaceOfOneSchedule();
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
}

TEST(CountTunedTest, ANetworkTunesItsTasks) {
  client::Job job = Running();
  job.workload_digest.clear();
  job.network.emplace();
  job.network->tasks.resize(2);
  job.network->tasks[0].workload_digest = "b";
  job.network->tasks[1].workload_digest = "a";
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 1u);
  EXPECT_EQ(CountTuned(job, {"a", "c", "b"}, "t", 0), 2u);
  EXPECT_EQ(CountTuned(job, {"c"}, "t", 0), 0u);
  job.network->tasks[1].error = "it cannot be built";
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
}

TEST(RunningJobTextTest, SaysWhatTheJobDoes) {
  RunningJob job{.id = "12", .tuned = 1};
  EXPECT_EQ(RunningJobText(job, 1), "job 12 is tuning it; hone jobs watch 12 follows the job");
  EXPECT_THAT(RunningJobText(job, 3), HasSubstr("is tuning one of them;"));
  job.tuned = 2;
  EXPECT_THAT(RunningJobText(job, 3), HasSubstr("is tuning some of them;"));
  EXPECT_THAT(RunningJobText(job, 2), HasSubstr("is tuning them;"));
  job.waits = true;
  EXPECT_THAT(RunningJobText(job, 2), HasSubstr("job 12 waits for a worker to tune them;"));
}

}  // namespace
}  // namespace hone::cli
