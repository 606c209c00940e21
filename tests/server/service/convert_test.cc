#include "common/record/processes.h"
#include "gtest/gtest.h"
#include "server/service/job_convert.h"
#include "server/service/services.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/status.h"

namespace hone::service {
namespace {

TEST(ConvertTest, DefaultsAreFilledIn) {
  v1::CreateJobRequest request;
  request.set_workload("fake op 12");
  request.set_target("native");
  request.set_max_time_ms(1500);
  HONE_ASSERT_OK_AND_ASSIGN(job::JobSpec spec, ToSpec(request, job::FakeTaskEnvironment()));
  EXPECT_EQ(spec.strategy, "picky");
  EXPECT_EQ(spec.cost_model, "nearest");
  EXPECT_EQ(spec.max_time, absl::Milliseconds(1500));
}

TEST(ConvertTest, EveryStateHasItsOwnValue) {
  using job::JobState;
  job::JobSnapshot snapshot;
  const std::pair<JobState, v1::JobState> states[] = {
      {JobState::kPending, v1::JOB_STATE_PENDING},
      {JobState::kRunning, v1::JOB_STATE_RUNNING},
      {JobState::kConfirming, v1::JOB_STATE_CONFIRMING},
      {JobState::kDone, v1::JOB_STATE_DONE},
      {JobState::kCancelled, v1::JOB_STATE_CANCELLED},
      {JobState::kFailed, v1::JOB_STATE_FAILED}};
  for (const auto& [state, expected] : states) {
    snapshot.state = state;
    EXPECT_EQ(ToProto(snapshot).state(), expected);
  }
}

// A best that was measured in a number of processes; 0: by the search alone.
job::Best MeasuredBest(int processes, double latency_ns) {
  job::Best best;
  best.record.id = 2;
  best.record.job_id = "7";
  best.record.policy.name = processes > 0 ? "confirm" : "screen";
  best.record.result.outcome = record::Outcome::kOk;
  best.record.result.latency_ns = latency_ns;
  best.record.result.reference_drift = 2;
  best.record.result.processes = processes;
  return best;
}

TEST(ConvertTest, ABestSaysHowItWasMeasured) {
  job::Best best = MeasuredBest(/*processes=*/3, 1000);
  v1::Best message = ToProto(best);
  EXPECT_EQ(message.latency_ns(), 500);
  EXPECT_EQ(message.processes(), 3);
  EXPECT_TRUE(message.confirmed());
  EXPECT_FALSE(message.disturbed());
  best.record.result.detail = record::kOnlyDisturbed;
  EXPECT_TRUE(ToProto(best).disturbed());
  best.record.id = 0;
  EXPECT_FALSE(ToProto(best).confirmed()) << "the leader of a search is not stored";
  EXPECT_FALSE(ToProto(MeasuredBest(/*processes=*/0, 1000)).confirmed());
}

TEST(ConvertTest, ADefaultIsConfirmedByAsManyProcessesAsABest) {
  job::JobSnapshot snapshot;
  snapshot.id = "7";
  EXPECT_FALSE(ToProto(snapshot).default_confirmed());
  snapshot.best = MeasuredBest(/*processes=*/3, 1000);
  snapshot.default_schedule = MeasuredBest(/*processes=*/3, 2000);
  EXPECT_TRUE(ToProto(snapshot).default_confirmed());
  snapshot.default_schedule = MeasuredBest(/*processes=*/2, 2000);
  EXPECT_FALSE(ToProto(snapshot).default_confirmed());
}

TEST(ConvertTest, ADefaultThatIsTheBestIsAsConfirmedAsTheBest) {
  job::JobSnapshot snapshot;
  snapshot.id = "7";
  snapshot.best = snapshot.default_schedule = MeasuredBest(/*processes=*/2, 1000);
  snapshot.best->record.is_default = true;
  EXPECT_TRUE(ToProto(snapshot).default_confirmed());
  snapshot.best->record.result.detail = record::kOnlyDisturbed;
  EXPECT_FALSE(ToProto(snapshot).default_confirmed());
  snapshot.best->record.policy.name = "screen";
  EXPECT_FALSE(ToProto(snapshot).default_confirmed());
}

TEST(ConvertTest, AGrantCarriesEverything) {
  fleet::SynchronizeReply reply;
  reply.start.push_back({.lease_id = "l",
                         .build = true,
                         .run = true,
                         .limit = absl::Seconds(3),
                         .work = std::make_shared<const fleet::WorkItem>(
                             fleet::WorkItem{.job_id = "j",
                                             .priority = 3,
                                             .workload = "w",
                                             .workload_digest = "wd",
                                             .space = "s",
                                             .space_digest = "sd",
                                             .decisions = {1, -2},
                                             .target = "t",
                                             .policy = {.name = "confirm", .threads = 2},
                                             .tolerance = 0.5}),
                         .artifact_digest = "a",
                         .best_latency_ns = 7});
  reply.cancel = {"c"};
  reply.durable = reply.stored = {"d"};
  reply.keep_artifacts = {"k"};
  reply.next_call = absl::Seconds(1);
  reply.gather = absl::Seconds(2);
  const v1::SynchronizeResponse response = ToProto(reply);
  EXPECT_EQ(response.ShortDebugString(),
            "start { lease_id: \"l\" build: true run: true deadline_ms: 3000 workload: \"w\" "
            "workload_digest: \"wd\" space_digest: \"sd\" space: \"s\" decisions: 1 decisions: -2 "
            "target: \"t\" artifact_digest: \"a\" policy { name: \"confirm\" cache: \"warm\" "
            "threads: 2 } tolerance: 0.5 best_latency_ns: 7 job_id: \"j\" priority: 3 } cancel: "
            "\"c\" durable: \"d\" next_call_ms: 1000 keep_artifacts: \"k\" "
            "gather_ms: 2000 stored: \"d\"");
}

// A board with a slow link downloads an artifact that is hardly larger than the design space's
// text.
TEST(ConvertTest, OnlyBuildsCarryTheDesignSpace) {
  fleet::SynchronizeReply reply;
  const auto work = std::make_shared<const fleet::WorkItem>(
      fleet::WorkItem{.space = "s", .space_digest = "sd", .decisions = {1}});
  reply.start.push_back({.build = true, .work = work});
  reply.start.push_back({.run = true, .work = work});
  const v1::SynchronizeResponse response = ToProto(reply);
  EXPECT_EQ(response.start(0).space(), "s");
  EXPECT_EQ(response.start(1).space(), "");
  EXPECT_EQ(response.start(1).space_digest(), "sd");
}

TEST(ConvertTest, PageSizesAreBounded) {
  EXPECT_EQ(*PageSize(0), kDefaultPage);
  EXPECT_EQ(*PageSize(5), 5);
  EXPECT_EQ(*PageSize(1 << 20), kMaxPage);
  EXPECT_FALSE(PageSize(-1).ok());
}

}  // namespace
}  // namespace hone::service
