#include "client/cli/tune/job_remark.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

using ::testing::EndsWith;

TEST(JobFactsTest, NamesWhatIsNotTheDefault) {
  GoldenOfTest golden;
  v1::Job job = DoneJob();
  job.set_workload("relu");
  job.set_wall_ms(18'000);
  golden.Add(WithoutTimes(JobFacts(job)));
  job.mutable_request()->set_priority("normal");
  golden.Add(WithoutTimes(JobFacts(job)));
  job.mutable_request()->set_priority("high");
  job.set_owner("ann");
  job.set_state(v1::JOB_STATE_PENDING);
  golden.Add(WithoutTimes(JobFacts(job)));
}

TEST(RemarkOnTest, SaysOnceThatNothingIsConfirmed) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_DONE);
  job.mutable_best();
  EXPECT_EQ(RemarkOn(job), "best not confirmed");
  job.set_unconfirmed(true);
  job.set_note("no best could be confirmed: other work disturbed every measurement");
  EXPECT_EQ(RemarkOn(job), job.note());
  job.set_unconfirmed(false);
  job.set_note("another note");
  EXPECT_EQ(RemarkOn(job), "best not confirmed; another note");
}

TEST(RemarkOnTest, SaysWhyAFasterResultIsNotTheBest) {
  v1::Job job = DoneJob();
  job.mutable_best()->mutable_record()->set_job_id("2");
  EXPECT_THAT(RemarkOn(job), EndsWith("; its own takes 1.000 us")) << "as fast";
  job.mutable_own_best()->set_latency_ns(900);
  EXPECT_THAT(RemarkOn(job), EndsWith("; its own takes 900.0 ns, not significantly faster"));
  job.mutable_best()->set_pinned_unix_ms(1);
  EXPECT_THAT(RemarkOn(job), EndsWith("; its own takes 900.0 ns, but the best is pinned"));
  job.mutable_own_best()->set_confirmed(false);
  EXPECT_THAT(RemarkOn(job), EndsWith("; its own takes ~900.0 ns, not confirmed"));
}

}  // namespace
}  // namespace hone::cli
