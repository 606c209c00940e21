#include "client/cli/job_remark.h"

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

TEST(RemarkOnTest, SaysOnceThatNothingIsConfirmed) {
  client::Job job;
  job.state = client::JobState::kDone;
  job.best.emplace();
  EXPECT_EQ(RemarkOn(job), "best not confirmed");
  job.note = "no best could be confirmed: other work disturbed every measurement";
  EXPECT_EQ(RemarkOn(job), job.note);
  job.note = "another note";
  EXPECT_EQ(RemarkOn(job), "best not confirmed; another note");
}

}  // namespace
}  // namespace hone::cli
