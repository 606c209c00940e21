#include "gtest/gtest.h"
#include "server/job/actor/job_actor.h"

namespace hone::job {
namespace {

constexpr char kNoWorker[] = "no worker runs target t";

JobSnapshot FailedJob() { return {.id = "12", .is_resumable = true}; }

TEST(ResumeAdviceTest, IsGivenIfTheReasonIsOutsideOfTheJob) {
  EXPECT_TRUE(IsOfTheSurroundings(absl::FailedPreconditionError(kNoWorker)));
  EXPECT_TRUE(IsOfTheSurroundings(absl::ResourceExhaustedError("the disk is full")));
  EXPECT_TRUE(IsOfTheSurroundings(absl::UnavailableError("the database is away")));
  EXPECT_FALSE(IsOfTheSurroundings(absl::InternalError("a defect")));
  EXPECT_FALSE(IsOfTheSurroundings(absl::InvalidArgumentError("a wrong space")));
  EXPECT_FALSE(IsOfTheSurroundings(absl::AbortedError("no candidate ran")));
  JobSnapshot job = FailedJob();
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "; \"hone jobs resume 12\" continues it");
  EXPECT_EQ(ResumeAdvice(job, "\"hone jobs resume 12\" does it"), "") << "it is given already";
  job.is_resumable = false;
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "");
}

TEST(ResumeAdviceTest, AJobWhoseTimeIsOverNeedsMore) {
  JobSnapshot job = FailedJob();
  job.wall = absl::Milliseconds(5100);
  job.spec.max_time = absl::Seconds(20);
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "; \"hone jobs resume 12\" continues it");
  job.spec.max_time = absl::Seconds(5);
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "; \"hone jobs resume 12 --time 11s\" continues it");
  job.after_cancel = absl::Seconds(1);
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "; \"hone jobs resume 12\" continues it")
      << "the time after Ctrl-C does not count";
}

TEST(ResumeAdviceTest, ATaskIsContinuedByItsNetwork) {
  JobSnapshot job = FailedJob();
  job.id = "12.3";
  job.spec.parent = "12";
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "");
}

TEST(ResumeAdviceTest, AJobThatPublishesNothingIsNotContinued) {
  JobSnapshot job = FailedJob();
  job.spec.unpublished = true;
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "");
}

}  // namespace
}  // namespace hone::job
