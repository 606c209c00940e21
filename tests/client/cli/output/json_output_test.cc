#include "client/cli/output/json_output.h"

#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"

namespace hone::cli {
namespace {

client::Best MeasuredBy(const std::string& policy, const std::string& job) {
  client::Best best = Measured(12, job, 1000, 2);
  best.record.policy.name = policy;
  return best;
}

client::Job JobWith(const client::Best& best) {
  client::Job job = DoneJob();
  job.disturbed = 5;
  job.best = best;
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
  client::Best best = MeasuredBy("confirm", "7");
  EXPECT_EQ(BestJson(best)["best"]["confirmed"], true);
  best.record.result.detail = record::kOnlyDisturbed;
  EXPECT_EQ(BestJson(best)["best"]["confirmed"], false);
  EXPECT_EQ(ToJson(JobWith(best))["best"]["confirmed"], false);
}

TEST(TuneJsonTest, HasTheSpeedOfTheSearchThatTheProgressLineShows) {
  EXPECT_EQ(TuneJson(JobWith(MeasuredBy("confirm", "7")), 0, 2.5)["trials_per_min"], 150);
}

// A candidate that other work disturbed was quarantined from the start.
TEST(JobJsonTest, OnlyAConfirmedBestIsWithdrawn) {
  for (const std::string policy : {"confirm", "screen"}) {
    client::Best best = MeasuredBy(policy, "7");
    best.record.quarantined = true;
    best.record.quarantine_reason = "why";
    EXPECT_EQ(ToJson(JobWith(best))["best"].contains("quarantine_reason"), policy == "confirm");
  }
}

TEST(JobJsonTest, AWithdrawnOwnBestSaysWhy) {
  client::Job job = JobWith(MeasuredBy("confirm", "3"));
  job.own_best = MeasuredBy("confirm", "7");
  EXPECT_FALSE(ToJson(job)["own_best"].contains("quarantine_reason"));
  job.own_best->record.quarantined = true;
  job.own_best->record.quarantine_reason = "why";
  EXPECT_EQ(ToJson(job)["own_best"]["quarantine_reason"], "why");
}

TEST(BestJsonTest, SaysHowManyProcessesItRestsOn) {
  EXPECT_EQ(BestJson(MeasuredBy("confirm", "3"))["best"]["processes"], 2);
}

}  // namespace
}  // namespace hone::cli
