#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/confirm/publication.h"

namespace hone::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kClaimed = 1000;

record::MeasureResult Ran(double latency_ns) {
  return {.outcome = record::Outcome::kOk, .latency_ns = latency_ns};
}

class SpotCheckVerdictTest : public ::testing::Test {
 protected:
  // Asks a worker, which answers immediately.
  void Ask(const std::string& worker, const record::MeasureResult& result) {
    check_.Ask(worker, now_ + absl::Seconds(10));
    check_.Report(now_, worker, result);
  }

  absl::Time now_ = absl::UnixEpoch();
  SpotCheck check_{"a", kClaimed};
};

TEST_F(SpotCheckVerdictTest, OneWorkerThatAgreesIsEnough) {
  EXPECT_EQ(check_.verdict(), SpotCheck::Verdict::kOpen);
  Ask("b", Ran(2 * kClaimed));
  EXPECT_EQ(check_.verdict(), SpotCheck::Verdict::kConfirmed);
  EXPECT_EQ(check_.Outvoted(), "");
}

TEST_F(SpotCheckVerdictTest, TwoWorkersThatDisagreeRejectTheFinalist) {
  Ask("b", {.outcome = record::Outcome::kWrongOutput, .detail = "C: element 3"});
  EXPECT_EQ(check_.verdict(), SpotCheck::Verdict::kOpen);
  Ask("c", Ran(10 * kClaimed));
  EXPECT_EQ(check_.verdict(), SpotCheck::Verdict::kRejected);
  EXPECT_EQ(check_.claimant(), "a");
  EXPECT_THAT(check_.objection(), HasSubstr("b has wrong_output: C: element 3"));
  EXPECT_THAT(check_.asked(), ElementsAre("a", "b", "c"));
}

TEST_F(SpotCheckVerdictTest, MinorityIsOutvoted) {
  Ask("b", Ran(10 * kClaimed));
  Ask("c", Ran(kClaimed));
  EXPECT_EQ(check_.verdict(), SpotCheck::Verdict::kConfirmed);
  EXPECT_EQ(check_.Outvoted(), "b");
}

TEST_F(SpotCheckVerdictTest, AKilledRunnerHasNoOpinion) {
  Ask("b", {.outcome = record::Outcome::kDeviceLost});
  EXPECT_EQ(check_.verdict(), SpotCheck::Verdict::kOpen);
  EXPECT_FALSE(check_.IsWaiting(now_));
  EXPECT_FALSE(check_.IsLate(now_));
}

TEST_F(SpotCheckVerdictTest, LateAnswersChangeNothing) {
  check_.Ask("b", now_ + absl::Seconds(10));
  EXPECT_TRUE(check_.IsWaiting(now_));
  now_ += absl::Seconds(10);
  EXPECT_TRUE(check_.IsLate(now_));
  check_.Report(now_, "b", {.outcome = record::Outcome::kWrongOutput});
  EXPECT_EQ(check_.verdict(), SpotCheck::Verdict::kOpen);
}

TEST_F(SpotCheckVerdictTest, DecidesFromKnownAnswersWithoutMoreWorkers) {
  SpotCheck alone("a", kClaimed);
  alone.Close();
  EXPECT_EQ(alone.verdict(), SpotCheck::Verdict::kConfirmed);
  Ask("b", {.outcome = record::Outcome::kCrash});
  check_.Close();
  EXPECT_EQ(check_.verdict(), SpotCheck::Verdict::kRejected);
}

}  // namespace
}  // namespace hone::job
