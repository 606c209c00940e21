#include "client/cli/tune/running_job.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

v1::Job Running() {
  v1::Job job;
  job.set_id("12");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_target("t");
  job.set_workload_digest("a");
  return job;
}

TEST(CountTunedTest, AJobOfTheWorkloadHasNotEnded) {
  v1::Job job = Running();
  EXPECT_EQ(CountTuned(job, {"b", "a"}, "t", 0), 1u);
  EXPECT_EQ(CountTuned(job, {"b"}, "t", 0), 0u);
  EXPECT_EQ(CountTuned(job, {"a"}, "other", 0), 0u);
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0.001), 0u) << "its best does not count for this tolerance";
  job.set_state(v1::JOB_STATE_CONFIRMING);
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 1u);
  for (const v1::JobState ended :
       {v1::JOB_STATE_DONE, v1::JOB_STATE_CANCELLED, v1::JOB_STATE_FAILED}) {
    job.set_state(ended);
    EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
  }
}

TEST(CountTunedTest, AJobThatPublishesNothingDoesNotCount) {
  v1::Job job = Running();
  job.mutable_request()->set_unpublished(true);
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
}

TEST(CountTunedTest, AJobThatDoesNotSearchDoesNotCount) {
  v1::Job job = Running();
  job.mutable_request()->set_revalidate(3);
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
  job.mutable_request()->set_revalidate(0);
  job.set_is_check(true);
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
}

TEST(CountTunedTest, ANetworkTunesItsTasks) {
  v1::Job job = Running();
  job.clear_workload_digest();
  job.mutable_network();
  while (job.network().tasks_size() < 2) job.mutable_network()->add_tasks();
  job.mutable_network()->mutable_tasks(0)->set_workload_digest("b");
  job.mutable_network()->mutable_tasks(1)->set_workload_digest("a");
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 1u);
  EXPECT_EQ(CountTuned(job, {"a", "c", "b"}, "t", 0), 2u);
  EXPECT_EQ(CountTuned(job, {"c"}, "t", 0), 0u);
  job.mutable_network()->mutable_tasks(1)->set_error("it cannot be built");
  EXPECT_EQ(CountTuned(job, {"a"}, "t", 0), 0u);
}

TEST(RunningJobTextTest, SaysWhatTheJobDoes) {
  GoldenOfTest golden;
  RunningJob job{.id = "12", .tuned = 1};
  EXPECT_EQ(RunningJobText(job, 1), "job 12 is tuning it; hone jobs watch 12 follows the job");
  golden.Add(RunningJobText(job, 3));
  job.tuned = 2;
  golden.Add(RunningJobText(job, 3));
  golden.Add(RunningJobText(job, 2));
  job.waits = true;
  golden.Add(RunningJobText(job, 2));
}

}  // namespace
}  // namespace hone::cli
