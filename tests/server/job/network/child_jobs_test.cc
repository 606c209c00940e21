#include <utility>

#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "server/job/job_book.h"
#include "tests/server/job/starter_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

class ChildJobsTest : public StarterHarness {
 protected:
  JobStarter::ChildDone Keep() {
    status_ = absl::UnknownError("not called");
    return [this](const absl::Status& status) { status_ = status; };
  }

  absl::Status status_;
};

TEST_F(ChildJobsTest, AChildIsCreatedOnce) {
  EXPECT_THAT(starter_.GetChild("1.0"), StatusIs(absl::StatusCode::kNotFound));
  starter_.CreateChild("1.0", {.parent = "1"}, 8, /*skips_default=*/false, Keep());
  EXPECT_THAT(status_, IsOk());
  const std::shared_ptr<JobActor> job = book_.Find("1.0");
  starter_.CreateChild("1.0", {.parent = "1"}, 16, /*skips_default=*/false, Keep());
  EXPECT_THAT(status_, IsOk());
  EXPECT_EQ(book_.Find("1.0"), job);
  HONE_ASSERT_OK_AND_ASSIGN(const JobStarter::Child child, starter_.GetChild("1.0"));
  EXPECT_FALSE(child.begun);
  EXPECT_EQ(child.snapshot->allowance, 8);
  EXPECT_EQ(child.snapshot->unmeasured, 8);
}

TEST_F(ChildJobsTest, AnEndedChildIsReopenedWithItsAllowance) {
  JobSnapshot ended{.id = "1.0", .spec = {.parent = "1"}, .state = JobState::kFailed};
  ended.cancelled = true;
  ended.error = "why";
  ended.note = "a note";
  ended.allowance = 24;
  store_.PutJob(RowOf(ended, clock_.Now()), [](const absl::Status&) {});
  EXPECT_EQ(starter_.GetChild("1.0")->snapshot->state, JobState::kFailed);
  EXPECT_FALSE(starter_.GetChild("1.0")->begun) << "it is not in memory";
  starter_.AllowChild("1.0", 100);  // these have no effect
  starter_.ConfirmChild("1.0", {.limit = absl::Seconds(1)});
  starter_.CancelChild("1.0");

  starter_.ReopenChild("1.0", 16, Keep());
  EXPECT_THAT(status_, IsOk());
  ASSERT_NE(book_.Find("1.0"), nullptr);
  for (const JobSnapshot& reopened :
       {*book_.Find("1.0")->snapshot(), *FromRow(*store_.GetJob("1.0"))}) {
    EXPECT_EQ(reopened.state, JobState::kPending);
    EXPECT_FALSE(reopened.cancelled);
    EXPECT_EQ(reopened.error, "");
    EXPECT_EQ(reopened.note, "");
    EXPECT_EQ(reopened.allowance, 24);
  }
  starter_.ReopenChild("1.1", 16, Keep());
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hone::job
