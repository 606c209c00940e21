#include "client/cli/running_job.h"

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

client::Job Running() {
  client::Job job;
  job.id = "12";
  job.state = client::JobState::kRunning;
  job.target = "t";
  job.workload_digest = "a";
  return job;
}

TEST(IsTuningTest, AJobOfTheWorkloadHasNotEnded) {
  client::Job job = Running();
  EXPECT_TRUE(IsTuning(job, {"b", "a"}, "t", 0));
  EXPECT_FALSE(IsTuning(job, {"b"}, "t", 0));
  EXPECT_FALSE(IsTuning(job, {"a"}, "other", 0));
  EXPECT_FALSE(IsTuning(job, {"a"}, "t", 0.001)) << "its best does not count for this tolerance";
  job.state = client::JobState::kConfirming;
  EXPECT_TRUE(IsTuning(job, {"a"}, "t", 0));
  for (const client::JobState ended :
       {client::JobState::kDone, client::JobState::kCancelled, client::JobState::kFailed}) {
    job.state = ended;
    EXPECT_FALSE(IsTuning(job, {"a"}, "t", 0));
  }
}

TEST(IsTuningTest, AJobThatPublishesNothingDoesNotCount) {
  client::Job job = Running();
  job.spec.unpublished = true;
  EXPECT_FALSE(IsTuning(job, {"a"}, "t", 0));
}

TEST(IsTuningTest, ANetworkTunesItsTasks) {
  client::Job job = Running();
  job.workload_digest.clear();
  job.network.emplace();
  job.network->tasks.resize(2);
  job.network->tasks[0].workload_digest = "b";
  job.network->tasks[1].workload_digest = "a";
  EXPECT_TRUE(IsTuning(job, {"a"}, "t", 0));
  EXPECT_FALSE(IsTuning(job, {"c"}, "t", 0));
  job.network->tasks[1].error = "it cannot be built";
  EXPECT_FALSE(IsTuning(job, {"a"}, "t", 0));
}

}  // namespace
}  // namespace hone::cli
