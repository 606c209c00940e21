#include "server/job/job_starter.h"

#include <limits>
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

class JobStarterTest : public StarterHarness {
 protected:
  static JobSnapshot Snapshot(const std::string& id, const std::string& request = "") {
    JobSnapshot snapshot{.id = id, .spec = {.request_id = request}};
    snapshot.fence = 1;
    return snapshot;
  }
  JobStarter::Done Keep() {
    return [this](SnapshotOr answer) { answer_ = std::move(answer); };
  }

  std::optional<SnapshotOr> answer_;
};

TEST_F(JobStarterTest, ANewJobIsAnsweredWhenItIsStored) {
  store_.Hold();
  starter_.StartNew(Snapshot("1"), Keep());
  EXPECT_NE(book_.Find("1"), nullptr);
  EXPECT_THAT(book_.StoredIds(), IsEmpty());
  EXPECT_FALSE(answer_.has_value());
  store_.Commit();
  ASSERT_TRUE(answer_.has_value() && answer_->ok());
  EXPECT_EQ((**answer_)->id, "1");
  EXPECT_THAT(book_.StoredIds(), ElementsAre("1"));
  const store::JobRow row = *store_.GetJob("1");
  EXPECT_EQ(row.replica, "host/2");
  EXPECT_EQ(row.lease_until_unix_ms, std::numeric_limits<int64_t>::max());
}

TEST_F(JobStarterTest, AJobThatCannotBeStoredIsForgotten) {
  store_.FailWrites(absl::ResourceExhaustedError("the disk is full"));
  starter_.StartNew(Snapshot("1"), Keep());
  ASSERT_TRUE(answer_.has_value());
  EXPECT_THAT(answer_->status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(book_.Find("1"), nullptr);
}

TEST_F(JobStarterTest, TheJobThatAnotherReplicaMadeForTheRequestIsReturned) {
  store_.PutJob(RowOf(Snapshot("7", "r"), clock_.Now()), [](const absl::Status&) {});
  store_.FailWrites(absl::AlreadyExistsError("the request has a job"));
  starter_.StartNew(Snapshot("8", "r"), Keep());
  ASSERT_TRUE(answer_.has_value() && answer_->ok());
  EXPECT_EQ((**answer_)->id, "7");
  EXPECT_EQ(book_.Find("8"), nullptr);
}

TEST_F(JobStarterTest, ASuspendedBookGetsNoJobs) {
  book_.Suspend();
  starter_.StartChild(Snapshot("1.0"), Keep());
  EXPECT_FALSE(answer_.has_value()) << "the next server continues";
  starter_.StartNew(Snapshot("2"), Keep());
  ASSERT_TRUE(answer_.has_value());
  EXPECT_THAT(answer_->status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store_.GetJob("1.0"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_.GetJob("2"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(JobStarterTest, AnyReplicaMayContinueAJobThatIsStartedAgain) {
  store_.Share();
  const store::JobClaim claim = starter_.Claim();
  EXPECT_EQ(claim.until_unix_ms - claim.now_unix_ms,
            absl::ToInt64Milliseconds(options_.claim_lease));
  store::JobRow row = RowOf(Snapshot("1"), clock_.Now());
  row.replica = "another server";
  row.lease_until_unix_ms = claim.until_unix_ms;
  store_.PutJob(row, [](const absl::Status&) {});
  starter_.StartAgain(row, Snapshot("1"), Keep());
  ASSERT_TRUE(answer_.has_value() && answer_->ok());
  EXPECT_EQ(book_.Find("1"), nullptr);
  EXPECT_EQ(store_.GetJob("1")->replica, "");
  EXPECT_EQ(store_.GetJob("1")->lease_until_unix_ms, 0);
}

}  // namespace
}  // namespace hone::job
