#include "server/job/search/draft_work.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/compiler_environment.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

JobServices ServicesOf(JobHarness& harness) {
  return {.store = &harness.store,
          .environment = &harness.environment,
          .executor = harness.executor.get()};
}

absl::Status GoOn() { return absl::OkStatus(); }

absl::StatusOr<std::string> Draft(const JobServices& services, ManualExecutor& executor,
                                  const JobSpec& spec) {
  DraftWork work(services, JobHarness::DefaultOptions());
  std::optional<absl::StatusOr<std::string>> answer;
  work.Draft(spec, GoOn, [&](absl::StatusOr<std::string> trace) { answer = std::move(trace); });
  executor.RunAll();
  return answer.value_or(absl::InternalError("no answer"));
}

std::string FirstTrialOf(JobHarness& harness, const std::string& job) {
  const std::vector<record::Record> records = *harness.store.Query({.page_size = 1000});
  for (const record::Record& record : records) {
    if (record.job_id != job || record.trial != 1 || record.policy.name != "screen") continue;
    const std::string space = *harness.store.GetText(record.candidate.space_digest);
    return *harness.environment.TraceText(space, record.candidate.decisions);
  }
  return "no first trial";
}

// The batches of these jobs have different sizes, which changes the candidates of the fake
// strategy.
TEST(DraftWorkTest, IsTheFirstTrialOfTheJob) {
  for (const int64_t trials : {1, 8, 80, 256}) {
    JobHarness harness;
    const JobSpec spec = JobHarness::Spec(trials);
    HONE_ASSERT_OK_AND_ASSIGN(const auto drafted,
                              Draft(ServicesOf(harness), *harness.executor, spec));
    EXPECT_THAT(drafted, HasSubstr("searched ["));
    EXPECT_TRUE(harness.store.Query({.page_size = 1})->empty());
    const std::string job = harness.Create(spec);
    ASSERT_EQ(harness.RunToEnd(job)->state, JobState::kDone);
    EXPECT_EQ(drafted, FirstTrialOf(harness, job)) << trials << " trials";
  }
}

TEST(DraftWorkTest, DraftsForEveryTargetWithoutADevice) {
  const auto environment = MakeCompilerEnvironment(/*threads=*/1);
  ManualExecutor executor;
  for (const char* const name : {"x86-avx2", "x86-avx512", "arm-neon", "arm-dotprod"}) {
    const JobSpec spec{.workload =
                           "workload matmul\n"
                           "input A: f32[64, 64]\n"
                           "input B: f32[64, 64]\n"
                           "output C[i: 64, j: 64] = sum(k: 64) A[i, k] * B[k, j]\n",
                       .target = target::TargetByName(name)->ToText(),
                       .strategy = environment->default_strategy(),
                       .cost_model = environment->default_cost_model()};
    const JobServices services{.environment = environment.get(), .executor = &executor};
    HONE_ASSERT_OK_AND_ASSIGN(const auto drafted, Draft(services, executor, spec));
    EXPECT_THAT(drafted, AllOf(HasSubstr("workload matmul"), HasSubstr("trace 1"),
                               HasSubstr("register_tile")))
        << name;
    EXPECT_EQ(drafted, *Draft(services, executor, spec)) << name;
  }
}

TEST(DraftWorkTest, DraftsAreLimitedAndStop) {
  JobHarness harness;
  DraftWork work(ServicesOf(harness), JobHarness::DefaultOptions());
  std::vector<absl::Status> answers;
  const auto draft = [&] {
    work.Draft(JobHarness::Spec(8), GoOn, [&](const absl::StatusOr<std::string>& trace) {
      answers.push_back(trace.status());
    });
  };
  for (int i = 0; i <= DraftWork::kMaxAtOnce; ++i) draft();
  ASSERT_EQ(answers.size(), 1);
  EXPECT_THAT(answers[0], StatusIs(absl::StatusCode::kResourceExhausted));
  harness.executor->RunAll();
  ASSERT_EQ(answers.size(), DraftWork::kMaxAtOnce + 1);
  EXPECT_THAT(answers.back(), IsOk());
  draft();
  work.Stop();
  harness.executor->RunAll();
  draft();
  ASSERT_EQ(answers.size(), DraftWork::kMaxAtOnce + 3);
  for (size_t i = answers.size() - 2; i < answers.size(); ++i) {
    EXPECT_THAT(answers[i], StatusIs(absl::StatusCode::kUnavailable));
  }
}

// Making the design spaces may take minutes.
TEST(DraftWorkTest, EndsWhenItsCallerHasGone) {
  JobHarness harness;
  DraftWork work(ServicesOf(harness), JobHarness::DefaultOptions());
  for (const int patience : {0, 1, 2}) {  // 0: it has not begun
    int asked = 0;
    absl::Status answer;
    work.Draft(
        JobHarness::Spec(8),
        [&] { return asked++ < patience ? absl::OkStatus() : absl::CancelledError("gone"); },
        [&](const absl::StatusOr<std::string>& trace) { answer = trace.status(); });
    harness.executor->RunAll();
    EXPECT_THAT(answer, StatusIs(absl::StatusCode::kCancelled)) << patience;
  }
}

// The design spaces of a workload that a client sends are made in the server.
TEST(DraftWorkTest, AdaptsOnlyToModestWorkloads) {
  JobHarness harness;
  ASSERT_EQ(harness.RunToEnd(harness.Create(JobHarness::Spec(60)))->state, JobState::kDone);
  JobServices services = ServicesOf(harness);
  services.clock = &harness.clock;
  DraftWork work(services, JobHarness::DefaultOptions());
  const auto adapt = [&](const std::string& workload, const StopCheck& check = GoOn) {
    const WorkloadInfo info = *harness.environment.Describe(workload);
    return work.Nearest(info, "t", "target text", /*tolerance=*/0, check).status();
  };
  EXPECT_THAT(adapt("fake op 3"), IsOk());
  EXPECT_THAT(adapt(absl::StrCat("fake ", std::string(DraftWork::kMostNearestBytes, 'o'), " 3")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of at most 65536; tune it")));
  EXPECT_THAT(adapt("fake op 3", [] { return absl::CancelledError("gone"); }),
              StatusIs(absl::StatusCode::kCancelled));
  harness.environment.WatchSteps([&](absl::string_view step, absl::string_view) {
    if (step == "open") harness.clock.Advance(2 * DraftWork::kNearestLimit);
  });
  EXPECT_THAT(adapt("fake op 3"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("longer than 10 s")));
  harness.environment.WatchSteps(nullptr);
  work.Stop();
  EXPECT_THAT(adapt("fake op 3"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(DraftWorkTest, MistakesAndDefectsAreErrors) {
  JobHarness harness;
  JobSpec spec = JobHarness::Spec(8);
  spec.workload = "nonsense";
  EXPECT_THAT(Draft(ServicesOf(harness), *harness.executor, spec),
              StatusIs(absl::StatusCode::kInvalidArgument));

  spec = JobHarness::Spec(8);
  harness.environment.WatchSteps([](absl::string_view step, absl::string_view) {
    if (step == "propose") throw std::runtime_error("a defect");
  });
  EXPECT_THAT(Draft(ServicesOf(harness), *harness.executor, spec),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("a defect")));
}

}  // namespace
}  // namespace hone::job
