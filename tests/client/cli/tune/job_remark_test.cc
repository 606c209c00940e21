#include "client/cli/tune/job_remark.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(JobFactsTest, NamesWhatIsNotTheDefault) {
  client::Job job = DoneJob();
  job.workload = "relu";
  job.wall_ms = 18'000;
  EXPECT_THAT(JobFacts(job), AllOf(HasSubstr(" on t; created "), EndsWith(", took 0:18")));
  job.spec.priority = "normal";
  EXPECT_THAT(JobFacts(job), HasSubstr(" on t; created "));
  job.spec.priority = "high";
  job.owner = "ann";
  job.state = client::JobState::kPending;
  EXPECT_THAT(JobFacts(job), AllOf(HasSubstr(" on t with high priority; created "),
                                   EndsWith(" by ann, has worked for 0:18")));
}

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

TEST(RemarkOnTest, SaysWhyAFasterResultIsNotTheBest) {
  client::Job job = DoneJob();
  job.best->record.job_id = "2";
  EXPECT_THAT(RemarkOn(job), EndsWith("; its own takes 1.000 us")) << "as fast";
  job.own_best->record.result.latency_ns = 900;
  EXPECT_THAT(RemarkOn(job), EndsWith("; its own takes 900.0 ns, not significantly faster"));
  job.best->pinned_unix_ms = 1;
  EXPECT_THAT(RemarkOn(job), EndsWith("; its own takes 900.0 ns, but the best is pinned"));
  job.own_best->record.policy.name = "screen";
  EXPECT_THAT(RemarkOn(job), EndsWith("; its own takes ~900.0 ns, not confirmed"));
}

}  // namespace
}  // namespace hone::cli
