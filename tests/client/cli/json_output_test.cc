#include "client/cli/json_output.h"

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

client::Best Measured(const std::string& policy, int64_t record, const std::string& job) {
  client::Best best;
  best.record.id = record;
  best.record.job_id = job;
  best.record.policy.name = policy;
  best.record.created_unix_ms = 1'700'000'000'000;
  best.record.result.latency_ns = 1000;
  best.record.result.reference_drift = 1;
  best.record.result.processes = 2;
  return best;
}

client::Job Done(const client::Best& best) {
  client::Job job;
  job.id = "7";
  job.state = client::JobState::kDone;
  job.disturbed = 5;
  job.best = best;
  return job;
}

TEST(JobJsonTest, SaysWhereTheBestComesFrom) {
  const Json json = ToJson(Done(Measured("confirm", 12, "3")));
  EXPECT_EQ(json["disturbed"], 5);
  EXPECT_EQ(json["best"]["confirmed"], true);
  EXPECT_EQ(json["best"]["job"], "3");
  EXPECT_EQ(json["best"]["processes"], 2);
  EXPECT_EQ(json["best"]["measured_unix_ms"], 1'700'000'000'000);
}

// A job whose confirmation was disturbed is done, and so is one that publishes nothing.
TEST(JobJsonTest, AScreenedBestIsNotConfirmed) {
  EXPECT_EQ(ToJson(Done(Measured("screen", 12, "7")))["best"]["confirmed"], false);
  EXPECT_EQ(TuneJson(Done(Measured("screen", 12, "7")), 0)["best"]["confirmed"], false);
  EXPECT_EQ(TuneJson(Done(Measured("confirm", 12, "7")), 0)["best"]["confirmed"], true);
}

// A candidate that other work disturbed was quarantined from the start.
TEST(JobJsonTest, OnlyAConfirmedBestIsWithdrawn) {
  for (const std::string policy : {"confirm", "screen"}) {
    client::Best best = Measured(policy, 12, "7");
    best.record.quarantined = true;
    best.record.quarantine_reason = "why";
    EXPECT_EQ(ToJson(Done(best))["best"].contains("quarantine_reason"), policy == "confirm");
  }
}

TEST(JobJsonTest, AWithdrawnOwnBestSaysWhy) {
  client::Job job = Done(Measured("confirm", 12, "3"));
  job.own_best = Measured("confirm", 9, "7");
  EXPECT_FALSE(ToJson(job)["own_best"].contains("quarantine_reason"));
  job.own_best->record.quarantined = true;
  job.own_best->record.quarantine_reason = "why";
  EXPECT_EQ(ToJson(job)["own_best"]["quarantine_reason"], "why");
}

TEST(BestJsonTest, SaysHowManyProcessesItRestsOn) {
  EXPECT_EQ(BestJson(Measured("confirm", 12, "3"))["best"]["processes"], 2);
}

}  // namespace
}  // namespace hone::cli
