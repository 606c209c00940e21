#include "server/job/job_claims.h"

#include <optional>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "tests/server/job/starter_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobClaimsTest : public StarterHarness {
 protected:
  void Put(const std::string& id, JobState state, const std::string& parent = "",
           std::optional<RiskyStep> step = std::nullopt) {
    JobSnapshot snapshot{.id = id, .spec = {.parent = parent}, .state = state};
    snapshot.risky_step = std::move(step);
    store_.PutJob(RowOf(snapshot, clock_.Now()),
                  [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  }

  JobClaims claims_{services_, options_, &book_, &starter_};
};

TEST_F(JobClaimsTest, UnfinishedJobsAreTakenUp) {
  Put("1", JobState::kRunning);
  Put("2", JobState::kDone);
  Put("3", JobState::kConfirming);
  ASSERT_THAT(claims_.Restore(), IsOk());
  EXPECT_THAT(book_.StoredIds(), ElementsAre("1", "3"));
  EXPECT_EQ(book_.Find("1")->snapshot()->fence, store_.GetJob("1")->fence);
  EXPECT_EQ(store_.GetJob("1")->replica, "host/2");
  EXPECT_EQ(store_.GetJob("2")->replica, "");
}

TEST_F(JobClaimsTest, ACrashInARiskyStepIsCounted) {
  Put("1", JobState::kRunning, "", RiskyStep{"proposing", "host/1", ThisBoot()});
  Put("2", JobState::kRunning, "", RiskyStep{"proposing", "host/1", "before a restart"});
  ASSERT_THAT(claims_.Restore(), IsOk());
  EXPECT_EQ(book_.Find("1")->snapshot()->crashes, 1);
  EXPECT_EQ(book_.Find("2")->snapshot()->crashes, 0) << "the machine was restarted";
}

TEST_F(JobClaimsTest, AJobThatAnotherReplicaHasClaimedIsLetGoWithItsChildren) {
  store_.Share();
  Put("1", JobState::kRunning);
  Put("1.0", JobState::kRunning, "1");
  Put("2", JobState::kRunning);
  ASSERT_THAT(claims_.Restore(), IsOk());
  ASSERT_THAT(book_.StoredIds(), ElementsAre("1", "1.0", "2"));
  const int64_t later = absl::ToUnixMillis(clock_.Now() + absl::Hours(1));
  store_.ClaimJobs({.replica = "another", .now_unix_ms = later, .until_unix_ms = later}, 1,
                   [](const absl::StatusOr<std::vector<store::JobRow>>& rows) {
                     ASSERT_THAT(rows, IsOk());
                     ASSERT_EQ(rows->size(), 1u);
                     EXPECT_EQ(rows->front().id, "1");
                   });
  claims_.Tick();
  EXPECT_THAT(book_.StoredIds(), ElementsAre("1", "1.0", "2")) << "renewed a moment ago";
  clock_.Advance(options_.claim_lease / 2);
  claims_.Tick();
  EXPECT_THAT(book_.StoredIds(), ElementsAre("2"));
  EXPECT_EQ(store_.GetJob("1.0")->replica, "") << "the replica that has its parent may claim it";
  EXPECT_GT(store_.GetJob("2")->lease_until_unix_ms,
            absl::ToUnixMillis(clock_.Now() + options_.claim_lease / 2));
}

TEST_F(JobClaimsTest, ASuspendedBookGetsNoJobs) {
  Put("1", JobState::kRunning);
  book_.Suspend();
  ASSERT_THAT(claims_.Restore(), IsOk());
  EXPECT_THAT(book_.StoredIds(), IsEmpty());
}

}  // namespace
}  // namespace hone::job
