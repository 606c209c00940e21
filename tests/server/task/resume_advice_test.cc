#include "server/task/resume_advice.h"

#include "gtest/gtest.h"

namespace hone::task {
namespace {

const absl::Status kNoWorker = absl::FailedPreconditionError("no worker runs target t");

TEST(ResumeAdviceTest, IsGivenIfTheReasonIsOutsideOfTheJob) {
  const JobSnapshot job{.id = "12"};
  constexpr char kAdvice[] = "; \"hone jobs resume 12\" continues it";
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), kAdvice);
  EXPECT_EQ(ResumeAdvice(job, absl::ResourceExhaustedError("the disk is full")), kAdvice);
  EXPECT_EQ(ResumeAdvice(job, absl::UnavailableError("the database is away")), kAdvice);
  EXPECT_EQ(ResumeAdvice(job, absl::InternalError("a defect")), "");
  EXPECT_EQ(ResumeAdvice(job, absl::InvalidArgumentError("a wrong space")), "");
  EXPECT_EQ(ResumeAdvice(job, absl::AbortedError("no candidate ran")), "");
  EXPECT_EQ(ResumeAdvice(job, absl::FailedPreconditionError("\"hone jobs resume 12\" does it")), "")
      << "it is given already";
}

TEST(ResumeAdviceTest, AJobWhoseTimeIsOverNeedsMore) {
  JobSnapshot job{.id = "12", .wall = absl::Milliseconds(5100)};
  job.spec.max_time = absl::Seconds(20);
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "; \"hone jobs resume 12\" continues it");
  job.spec.max_time = absl::Seconds(5);
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "; \"hone jobs resume 12 --time 11s\" continues it");
}

TEST(ResumeAdviceTest, ATaskIsContinuedWithItsNetwork) {
  JobSnapshot job{.id = "12.3"};
  job.spec.parent = "12";
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "; \"hone jobs resume 12\" continues its network");
}

TEST(ResumeAdviceTest, AJobThatPublishesNothingIsNotContinued) {
  JobSnapshot job{.id = "12"};
  job.spec.unpublished = true;
  EXPECT_EQ(ResumeAdvice(job, kNoWorker), "");
}

}  // namespace
}  // namespace hone::task
