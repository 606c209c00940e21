// An exception from a library fails that job alone.

#include <functional>
#include <new>
#include <stdexcept>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class JobFailureTest : public ::testing::Test, protected JobHarness {
 protected:
  // Creates a job whose workload the hook recognizes.
  std::string CreateBad() {
    JobSpec spec = Spec(40, "bad");
    spec.workload = "fake bad 12";
    return Create(spec);
  }
  // Makes `step` of the bad job throw the exception.
  template <typename Exception>
  void ThrowAt(absl::string_view step, Exception exception) {
    environment.WatchSteps([step, exception](absl::string_view at, absl::string_view name) {
      if (at == step && name == "bad") throw exception;
    });
  }
  void ExpectOnlyTheBadOneFails(const ::testing::Matcher<std::string>& error) {
    const std::string bad = CreateBad(), good = Create(Spec(40));
    const auto failed = RunToEnd(bad);
    EXPECT_EQ(failed->state, JobState::kFailed);
    EXPECT_THAT(failed->error, error);
    EXPECT_EQ(RunToEnd(good)->state, JobState::kDone) << Get(good)->error;
  }
};

TEST_F(JobFailureTest, ExceptionWhileMakingSpacesFailsOnlyItsJob) {
  ThrowAt("open", std::bad_alloc());
  ExpectOnlyTheBadOneFails(
      AllOf(HasSubstr("std::bad_alloc"), HasSubstr("making the design spaces")));
}

TEST_F(JobFailureTest, ExceptionWhileProposingFailsOnlyItsJob) {
  ThrowAt("propose", std::length_error("a vector of 2^60"));
  ExpectOnlyTheBadOneFails(
      AllOf(HasSubstr("std::length_error: a vector of 2^60"), HasSubstr("proposing candidates")));
}

TEST_F(JobFailureTest, ExceptionWhileTrainingFailsOnlyItsJob) {
  ThrowAt("train", std::runtime_error("no tree"));
  ExpectOnlyTheBadOneFails(AllOf(HasSubstr("no tree"), HasSubstr("training the model")));
}

TEST_F(JobFailureTest, AJobThatFailedCanBeResumed) {
  ThrowAt("propose", std::bad_alloc());
  const std::string id = CreateBad();
  ASSERT_EQ(RunToEnd(id)->state, JobState::kFailed);
  Step();
  environment.WatchSteps(nullptr);
  jobs->Resume(id, 0, absl::ZeroDuration(), [](const SnapshotOr& s) { EXPECT_THAT(s, IsOk()); });
  EXPECT_EQ(RunToEnd(id)->state, JobState::kDone) << Get(id)->error;
}

// Jobs whose time ends, or which are cancelled, while the first work keeps the strand busy.
class JobInterruptionTest : public ::testing::Test, protected JobHarness {
 protected:
  JobSpec Limited() {
    JobSpec spec = Spec(/*trials=*/0);
    spec.max_time = absl::Seconds(20);
    return spec;
  }
  // Runs `work` in the first such step.
  void Once(absl::string_view step, std::function<void()> work) {
    environment.WatchSteps(
        [this, step, work = std::move(work)](absl::string_view at, absl::string_view) {
          if (at == step && !std::exchange(did_, true)) work();
        });
  }
  bool did_ = false;
};

TEST_F(JobInterruptionTest, TimeThatEndsWhileSpacesAreMadeIsNoDefect) {
  Once("open", [&] { clock.Advance(absl::Seconds(30)); });
  const auto ended = RunToEnd(Create(Limited()));
  EXPECT_EQ(ended->state, JobState::kFailed);
  EXPECT_EQ(ended->trials, 0);
  EXPECT_THAT(ended->error, AllOf(HasSubstr("20 s was over while making the design spaces"),
                                  HasSubstr("more time"), ::testing::Not(HasSubstr("defect"))));
}

TEST_F(JobInterruptionTest, FirstCandidatesAreMeasuredAfterTheTimeIsOver) {
  Once("propose", [&] { clock.Advance(absl::Seconds(30)); });
  const auto ended = RunToEnd(Create(Limited()));
  EXPECT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_GT(ended->trials, 0);
  EXPECT_TRUE(ended->best.has_value());
}

TEST_F(JobInterruptionTest, CancelledWhileSpacesAreMadeItEndsBeforeASearch) {
  for (const bool confirm : {false, true}) {
    did_ = false;
    bool proposed = false;
    const std::string id = Create(Spec(40, confirm ? "confirmed" : "not confirmed"));
    environment.WatchSteps([&](absl::string_view at, absl::string_view) {
      if (at == "open" && !std::exchange(did_, true)) {
        EXPECT_THAT(jobs->Cancel(id, confirm), IsOk());
      }
      proposed |= at == "propose";
    });
    const auto ended = RunToEnd(id);
    EXPECT_EQ(ended->state, JobState::kCancelled) << ended->error;
    EXPECT_TRUE(did_);
    EXPECT_FALSE(proposed);
  }
}

}  // namespace
}  // namespace hone::job
