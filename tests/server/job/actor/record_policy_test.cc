#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_task.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

record::Record Quiet(const std::string& policy) {
  record::Record record;
  record.policy.name = policy;
  record.result.latency_ns = 100;
  record.result.samples_ns = {99, 100, 101, 100};
  record.result.dispersion = 0.01;
  record.result.reference_drift = 1.1;
  record.result.machine = {.frequency_mhz = 2500, .temperature_c = 60, .load = 3, .steal = 0.01};
  return record;
}

TEST(RecordPolicyTest, QuietMeasurementIsWithinPolicy) {
  EXPECT_THAT(WhyOutOfPolicy(Quiet("screen")), IsEmpty());
  EXPECT_THAT(WhyOutOfPolicy(Quiet("confirm")), IsEmpty());
}

TEST(RecordPolicyTest, MissingMachineStateIsAccepted) {
  record::Record record = Quiet("confirm");
  record.result.machine = {};
  EXPECT_THAT(WhyOutOfPolicy(record), IsEmpty());
}

TEST(RecordPolicyTest, ConfirmationThatIsManyTimesAsSlowAsTheScreeningWasDisturbed) {
  const record::Record slow = Quiet("confirm");  // all of its samples are equally slow
  const double steady = record::SteadyLatencyNs(slow.result);
  EXPECT_EQ(WhyOutOfPolicy(slow, steady / 12),
            "the kernel took 12 times as long as when it was measured first (5 times are "
            "tolerated)");
  EXPECT_THAT(WhyOutOfPolicy(slow, steady / 4), IsEmpty());
  EXPECT_THAT(WhyOutOfPolicy(slow, 0), IsEmpty()) << "there was no earlier process";
  EXPECT_THAT(WhyOutOfPolicy(Quiet("screen"), steady / 12), IsEmpty());
}

// A virtual machine may be slower for minutes than when its worker registered.
TEST(RecordPolicyTest, AConfirmationThatAgreesWithTheScreeningNeedsNoQuietMachine) {
  record::Record record = Quiet("confirm");
  record.result.reference_drift = 1.97;
  record.result.machine.steal = 0.4;
  const double steady = record::SteadyLatencyNs(record.result);
  EXPECT_THAT(WhyOutOfPolicy(record, steady), IsEmpty());
  EXPECT_THAT(WhyOutOfPolicy(record, steady * 1.1), IsEmpty());
  EXPECT_THAT(WhyOutOfPolicy(record, steady / 1.2), HasSubstr("2.0 times as slow as when its"));
  EXPECT_THAT(WhyOutOfPolicy(record, steady * 1.2), HasSubstr("2.0 times as slow as when its"));
  record.result.reference_drift = 3;
  EXPECT_THAT(WhyOutOfPolicy(record, record::SteadyLatencyNs(record.result)),
              HasSubstr("3.0 times as slow as when its"));
  record.result.reference_drift = 1;
  record.result.dispersion = 0.6;
  EXPECT_THAT(WhyOutOfPolicy(record, record::SteadyLatencyNs(record.result)),
              HasSubstr("differed by 60 %"));
}

TEST(RecordPolicyTest, EachDisturbanceHasAReasonAndFinalistsHaveStricterLimits) {
  record::Record record = Quiet("confirm");
  record.result.reference_drift = 1.97;
  EXPECT_EQ(WhyOutOfPolicy(record),
            "the machine was 2.0 times as slow as when its worker registered (1.5 times are "
            "tolerated)");
  record.policy.name = "screen";
  EXPECT_THAT(WhyOutOfPolicy(record), IsEmpty());

  record = Quiet("confirm");
  record.result.machine.steal = 0.4;
  EXPECT_THAT(WhyOutOfPolicy(record), HasSubstr("took away 40 %"));
  record.policy.name = "screen";
  EXPECT_THAT(WhyOutOfPolicy(record), IsEmpty());

  record = Quiet("confirm");
  record.result.dispersion = 0.6;
  EXPECT_EQ(WhyOutOfPolicy(record),
            "repeated runs differed by 60 % of their median (50 % are tolerated)");
  record.result.stopped_early = true;
  EXPECT_THAT(WhyOutOfPolicy(record), IsEmpty()) << "a spread of one or two samples means nothing";
  record.result.stopped_early = false;
  record.policy.name = "screen";
  EXPECT_THAT(WhyOutOfPolicy(record), IsEmpty());
  record = Quiet("screen");
  record.result.machine.temperature_c = 101;
  EXPECT_THAT(WhyOutOfPolicy(record), HasSubstr("101 °C"));
}

// The middle half of the samples agrees well enough, but the kernel takes a third of a millisecond.
TEST(RecordPolicyTest, AFastSampleShowsThatAllOthersWereDisturbed) {
  record::Record record = Quiet("confirm");
  record.result.samples_ns = {39.1e6, 0.328e6, 43.0e6, 60.6e6};
  record.result.dispersion = 0.44;
  EXPECT_EQ(WhyOutOfPolicy(record),
            "half of the runs took at least 125.2 times as long as the fastest (2 times are "
            "tolerated)");
  record.policy.name = "screen";
  EXPECT_THAT(WhyOutOfPolicy(record), IsEmpty());
}

TEST(RecordPolicyTest, FailuresAreNotJudged) {
  record::Record record = Quiet("confirm");
  record.result.outcome = record::Outcome::kCrash;
  record.result.dispersion = 9;
  EXPECT_THAT(WhyOutOfPolicy(record), IsEmpty());
}

}  // namespace
}  // namespace hone::job
