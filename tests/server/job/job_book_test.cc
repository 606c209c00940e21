#include "server/job/job_book.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

// A job that does nothing.
class IdleJob final : public JobActor {
 public:
  using JobActor::JobActor;

 private:
  void Initialize() override {}
  void OnCancel(bool) override {}
  void OnTick() override {}
  void BeforeSave() override {}
  void OnEnd() override {}
};

class JobBookTest : public ::testing::Test {
 protected:
  JobBook::JobPtr Make(const std::string& id, JobSpec spec = {}) {
    JobSnapshot snapshot;
    snapshot.id = id;
    snapshot.spec = std::move(spec);
    return std::make_shared<IdleJob>(services_, options_, std::move(snapshot));
  }

  FakeClock clock_;
  ManualExecutor executor_;
  fleet::ArtifactCache artifacts_;
  fleet::Fleet fleet_{&clock_, &artifacts_};
  const JobServices services_{.clock = &clock_, .fleet = &fleet_, .executor = &executor_};
  const JobOptions options_;
  JobBook book_{/*max_jobs=*/2, /*max_jobs_per_owner=*/1};
};

TEST_F(JobBookTest, ARequestHasOneJob) {
  const JobBook::JobPtr first = Make("1", {.request_id = "r"});
  EXPECT_EQ(book_.AddNew(first), std::nullopt);
  const std::optional<SnapshotOr> other = book_.AddNew(Make("2", {.request_id = "r"}));
  ASSERT_TRUE(other.has_value() && other->ok());
  EXPECT_EQ((**other)->id, "1");
  EXPECT_EQ(book_.Find("1"), first);
  EXPECT_EQ(book_.Find("2"), nullptr);
}

TEST_F(JobBookTest, LimitsCountPlacesButNoChildren) {
  EXPECT_EQ(book_.AddNew(Make("1", {.owner = "a"})), std::nullopt);
  EXPECT_TRUE(book_.Add(Make("1.0", {.owner = "a", .parent = "1"})));
  const std::optional<SnapshotOr> second = book_.AddNew(Make("2", {.owner = "a"}));
  ASSERT_TRUE(second.has_value());
  EXPECT_THAT(second->status(), StatusIs(absl::StatusCode::kResourceExhausted));
  absl::StatusOr<std::shared_ptr<void>> place = book_.Reserve("", "b");
  ASSERT_THAT(place, IsOk());
  EXPECT_THAT(book_.Reserve("", "c"), StatusIs(absl::StatusCode::kResourceExhausted));
  *place = nullptr;
  EXPECT_EQ(book_.AddNew(Make("2", {.owner = "b"})), std::nullopt);
  EXPECT_THAT(book_.Unfinished(), ElementsAre("1", "2"));
  EXPECT_THAT(book_.States(), ElementsAre(Pair(JobState::kPending, 2)));
}

TEST_F(JobBookTest, AJobThatIsResumedCountsLikeANewOne) {
  EXPECT_EQ(book_.AddNew(Make("1", {.owner = "a"})), std::nullopt);
  const std::optional<SnapshotOr> own = book_.AddAgain(Make("2", {.owner = "a"}));
  ASSERT_TRUE(own.has_value());
  EXPECT_THAT(own->status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(book_.Find("2"), nullptr);
  EXPECT_EQ(book_.AddAgain(Make("3", {.owner = "b"})), std::nullopt);
  const std::optional<SnapshotOr> any = book_.AddAgain(Make("4", {.owner = "c"}));
  ASSERT_TRUE(any.has_value());
  EXPECT_THAT(any->status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(book_.AddAgain(Make("1.0", {.owner = "a", .parent = "1"})), std::nullopt)
      << "children do not count";
}

// The next leader continues it, so it stays in the book until this server ends.
TEST_F(JobBookTest, AJobThatCouldNotBeStoredWithoutTheLeadershipIsSuspended) {
  const JobBook::JobPtr job = Make("1");
  EXPECT_TRUE(book_.Add(job));
  job->OnNotStored(absl::AbortedError("this server does not lead any more"));
  EXPECT_TRUE(job->HasBegun()) << "it is suspended";
  EXPECT_FALSE(HasEnded(job->snapshot()->state));
  EXPECT_THAT(book_.RemoveOver(), SizeIs(1));
}

TEST_F(JobBookTest, ASuspendedBookTakesNoJobs) {
  EXPECT_TRUE(book_.Add(Make("1")));
  EXPECT_THAT(book_.Suspend(), SizeIs(1));
  EXPECT_FALSE(book_.Add(Make("2")));
  EXPECT_FALSE(book_.Add(Make("1.0", {.parent = "1"})));
  EXPECT_THAT(book_.AddNew(Make("3"))->status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(book_.AddAgain(Make("4"))->status(), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace hone::job
