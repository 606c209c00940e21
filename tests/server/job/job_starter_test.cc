#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "server/job/job_book.h"
#include "tests/server/job/starter_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

class JobStarterTest : public StarterHarness {
 protected:
  static JobSnapshot Snapshot(const std::string& id, const std::string& request = "") {
    return {.id = id, .spec = {.request_id = request}};
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
  EXPECT_FALSE(answer_.has_value());
  store_.Commit();
  ASSERT_TRUE(answer_.has_value() && answer_->ok());
  EXPECT_EQ((**answer_)->id, "1");
  EXPECT_THAT(store_.GetJob("1"), IsOk());
}

TEST_F(JobStarterTest, AJobThatCannotBeStoredIsForgotten) {
  store_.FailWrites(absl::ResourceExhaustedError("the disk is full"));
  starter_.StartNew(Snapshot("1"), Keep());
  ASSERT_TRUE(answer_.has_value());
  EXPECT_THAT(answer_->status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(book_.Find("1"), nullptr);
}

// A failed read is not taken for "there is none": the job would use another draft, and a child that
// is stored would begin anew.
TEST_F(JobStarterTest, NoJobIsMadeWhileTheStoreCannotBeRead) {
  store_.BeforeReads([] { return absl::UnavailableError("the database cannot be reached"); });
  EXPECT_THAT(starter_.NewSnapshot("1", {.workload = "fake op 12"}),
              StatusIs(absl::StatusCode::kUnavailable));
  absl::Status created;
  starter_.CreateChild("1.0", {.workload = "fake op 12", .parent = "1"}, 8, /*skips_default=*/false,
                       [&](const absl::Status& status) { created = status; });
  EXPECT_THAT(created, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(book_.Find("1.0"), nullptr);
  store_.BeforeReads(nullptr);
  EXPECT_THAT(starter_.NewSnapshot("1", {.workload = "fake op 12"}), IsOk());
  EXPECT_THAT(store_.GetJob("1.0"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(JobStarterTest, TheJobThatAnotherCallMadeForTheRequestIsReturned) {
  store_.PutJob(RowOf(Snapshot("7", "r"), clock_.Now()), [](const absl::Status&) {});
  store_.FailWrites(absl::AlreadyExistsError("the request has a job"));
  starter_.StartNew(Snapshot("8", "r"), Keep());
  EXPECT_FALSE(answer_.has_value()) << "the thread of the store does not read it";
  executor_.RunAll();
  ASSERT_TRUE(answer_.has_value() && answer_->ok());
  EXPECT_EQ((**answer_)->id, "7");
  EXPECT_EQ(book_.Find("8"), nullptr);
}

// After a crash, a job that cannot be continued does not hold up those behind it for ever.
TEST_F(JobStarterTest, AJobThatDoesNotBeginLosesItsTurn) {
  JobSnapshot first = Snapshot("1"), second = Snapshot("2");
  first.spec.workload = second.spec.workload = "fake op 12";
  const std::shared_ptr<JobActor> stuck = starter_.Make(first), next = starter_.Make(second);
  store_.Hold();  // a job begins once its first step is stored
  JobTurns turns(services_);
  turns.Add({stuck, next});
  executor_.RunAll();
  EXPECT_EQ(stuck->snapshot()->state, JobState::kRunning);
  clock_.Advance(JobTurns::kLongest - absl::Seconds(1));
  turns.Pass();
  executor_.RunAll();
  EXPECT_EQ(next->snapshot()->state, JobState::kPending) << "another crash would have two suspects";
  clock_.Advance(absl::Seconds(1));
  turns.Pass();
  executor_.RunAll();
  EXPECT_EQ(next->snapshot()->state, JobState::kRunning);
  stuck->Suspend();
  next->Suspend();
  store_.Crash();  // the callbacks of held writes use the services
}

TEST_F(JobStarterTest, ASuspendedBookGetsNoJobs) {
  book_.Suspend();
  bool called = false;
  starter_.CreateChild("1.0", {.parent = "1"}, 8, /*skips_default=*/false,
                       [&](const absl::Status&) { called = true; });
  EXPECT_FALSE(called) << "the next server continues";
  starter_.StartNew(Snapshot("2"), Keep());
  ASSERT_TRUE(answer_.has_value());
  EXPECT_THAT(answer_->status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store_.GetJob("1.0"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_.GetJob("2"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hone::job
