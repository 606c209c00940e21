#include "client/cli/output/json_output.h"

#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"

namespace hone::cli {
namespace {

v1::Best MeasuredBy(const std::string& policy, const std::string& job) {
  v1::Best best = Measured(12, job, 1000, 2);
  best.set_confirmed(policy == "confirm");
  return best;
}

v1::Job JobWith(const v1::Best& best) {
  v1::Job job = DoneJob();
  job.set_disturbed(5);
  *job.mutable_best() = best;
  return job;
}

TEST(JobJsonTest, SaysWhereTheBestComesFrom) {
  const Json json = ToJson(JobWith(MeasuredBy("confirm", "3")));
  EXPECT_EQ(json["disturbed"], 5);
  EXPECT_EQ(json["best"]["confirmed"], true);
  EXPECT_EQ(json["best"]["job"], "3");
  EXPECT_EQ(json["best"]["processes"], 2);
  EXPECT_EQ(json["best"]["measured_unix_ms"], 1'700'000'000'000);
}

// A job whose confirmation was disturbed is done, and so is one that publishes nothing.
TEST(JobJsonTest, AScreenedBestIsNotConfirmed) {
  EXPECT_EQ(ToJson(JobWith(MeasuredBy("screen", "7")))["best"]["confirmed"], false);
  EXPECT_EQ(TuneJson(JobWith(MeasuredBy("screen", "7")), 0, 0)["best"]["confirmed"], false);
  EXPECT_EQ(TuneJson(JobWith(MeasuredBy("confirm", "7")), 0, 0)["best"]["confirmed"], true);
}

TEST(JobJsonTest, ABestThatWasOnlyMeasuredWhileDisturbedIsNotConfirmed) {
  v1::Best best = MeasuredBy("confirm", "7");
  EXPECT_EQ(BestJson(best)["best"]["confirmed"], true);
  best.set_disturbed(true);
  EXPECT_EQ(BestJson(best)["best"]["confirmed"], false);
  EXPECT_EQ(ToJson(JobWith(best))["best"]["confirmed"], false);
}

TEST(TuneJsonTest, HasTheSpeedOfTheSearchThatTheProgressLineShows) {
  EXPECT_EQ(TuneJson(JobWith(MeasuredBy("confirm", "7")), 0, 2.5)["trials_per_min"], 150);
}

// A candidate that other work disturbed was quarantined from the start.
TEST(JobJsonTest, OnlyAConfirmedBestIsWithdrawn) {
  for (const std::string policy : {"confirm", "screen"}) {
    v1::Best best = MeasuredBy(policy, "7");
    best.mutable_record()->set_quarantined(true);
    best.mutable_record()->set_quarantine_reason("why");
    EXPECT_EQ(ToJson(JobWith(best))["best"].contains("quarantine_reason"), policy == "confirm");
  }
}

TEST(JobJsonTest, AWithdrawnOwnBestSaysWhy) {
  v1::Job job = JobWith(MeasuredBy("confirm", "3"));
  *job.mutable_own_best() = MeasuredBy("confirm", "7");
  EXPECT_FALSE(ToJson(job)["own_best"].contains("quarantine_reason"));
  job.mutable_own_best()->mutable_record()->set_quarantined(true);
  job.mutable_own_best()->mutable_record()->set_quarantine_reason("why");
  EXPECT_EQ(ToJson(job)["own_best"]["quarantine_reason"], "why");
}

TEST(BestJsonTest, SaysHowManyProcessesItRestsOn) {
  EXPECT_EQ(BestJson(MeasuredBy("confirm", "3"))["best"]["processes"], 2);
}

}  // namespace
}  // namespace hone::cli
