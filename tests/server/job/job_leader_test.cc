// A leader and the next one on the same store: the jobs of a server that died or was deposed
// continue, and it writes nothing more to them.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "tests/server/job/network/network_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

// A server with the store of all.
class Leader {
 public:
  // `run`: its name; "": a new one.
  Leader(const Clock* clock, store::Store* store, const TaskEnvironment* environment,
         const std::string& run = "")
      : fleet(clock, &artifacts),
        jobs(JobServices{.clock = clock,
                         .store = store,
                         .fleet = &fleet,
                         .artifacts = &artifacts,
                         .environment = environment,
                         .executor = &executor,
                         .server = run},
             JobHarness::DefaultOptions()),
        device("of a leader") {
    EXPECT_THAT(jobs.Restore(), IsOk());
  }

  void Step(int finish = 2) {
    executor.RunAll();
    device.Step(fleet, artifacts, finish);
    executor.RunAll();
    fleet.Tick();
    jobs.Tick();
    executor.RunAll();
  }

  ManualExecutor executor;
  fleet::ArtifactCache artifacts;
  fleet::Fleet fleet;
  JobManager jobs;
  FakeDevice device;
};

class JobLeaderTest : public testing::Test {
 protected:
  std::unique_ptr<Leader> Next(const std::string& run = "") {
    return std::make_unique<Leader>(&clock_, &store_, &environment_, run);
  }
  static std::string Create(Leader& leader, JobSpec spec) {
    std::string id;
    leader.jobs.Create(std::move(spec), [&](SnapshotOr snapshot) {
      ASSERT_THAT(snapshot, IsOk());
      id = (*snapshot)->id;
    });
    return id;
  }
  void Run(Leader& leader, int steps) {
    for (int i = 0; i < steps; ++i) {
      leader.Step();
      clock_.Advance(absl::Milliseconds(100));
    }
  }
  // From now on, this server does not lead: all its writes are refused.
  void Depose(Leader& leader) {
    store_.FailWrites(absl::AbortedError("this server does not lead any more"));
    leader.Step();
    leader.jobs.Suspend();
    leader.executor.RunAll();
    store_.FailWrites(absl::OkStatus());
  }
  void ExpectEachTrialOnce() {
    std::set<int64_t> trials;
    for (const record::Record& record : *store_.Query({.page_size = 1000})) {
      if (record.policy.name != "screen") continue;
      EXPECT_TRUE(trials.insert(record.trial).second)
          << "trial " << record.trial << " is recorded twice";
    }
  }

  FakeClock clock_;
  store::ManualStore store_;
  FakeTaskEnvironment environment_;
  std::unique_ptr<Leader> one_ = Next();
};

TEST_F(JobLeaderTest, TheJobOfADeadLeaderContinues) {
  const std::string id = Create(*one_, JobHarness::Spec(60));
  Run(*one_, 6);
  const int64_t measured = (*one_->jobs.Get(id))->trials;
  ASSERT_GT(measured, 0);
  ASSERT_LT(measured, 60);
  const auto two = Next();
  EXPECT_THAT(two->jobs.Unfinished(), testing::ElementsAre(id));
  EXPECT_EQ(Create(*two, JobHarness::Spec(60)), id) << "a repeated request gives the same job";
  Run(*two, 200);
  const auto ended = *two->jobs.Get(id);
  EXPECT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_EQ(ended->trials, 60) << "no trial is measured again";
  ExpectEachTrialOnce();
}

TEST_F(JobLeaderTest, ADeposedLeaderDoesNotFailItsJobs) {
  const std::string id = Create(*one_, JobHarness::Spec(60));
  Run(*one_, 3);
  Depose(*one_);
  const size_t records = store_.Query({.page_size = 1000})->size();
  const size_t events = store_.Events(id)->size();
  EXPECT_FALSE(HasEnded((*one_->jobs.Get(id))->state));
  Run(*one_, 3);
  EXPECT_EQ(store_.Query({.page_size = 1000})->size(), records);
  EXPECT_EQ(store_.Events(id)->size(), events);
  const auto two = Next();
  Run(*two, 200);
  EXPECT_EQ((*two->jobs.Get(id))->state, JobState::kDone);
  ExpectEachTrialOnce();
}

TEST_F(JobLeaderTest, ANetworkContinuesWithItsTasks) {
  const std::string id = Create(*one_, NetworkHarness::NetworkOf(96));
  Run(*one_, 20);
  ASSERT_GT((*one_->jobs.Get(id))->trials, 0);
  Depose(*one_);
  const auto two = Next();
  ASSERT_THAT(two->jobs.Unfinished(), testing::ElementsAre(id));
  Run(*two, 400);
  const auto ended = *two->jobs.Get(id);
  EXPECT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_EQ(ended->trials, 96);
  for (const NetworkTaskState& task : ended->network->tasks) EXPECT_TRUE(task.confirmed);
}

TEST_F(JobLeaderTest, AJobThatCannotBeReadIsListed) {
  store_.PutJob({.id = "newer", .request = "of a newer release", .state = "running"},
                [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  const auto two = Next();
  EXPECT_THAT(two->jobs.Unfinished(), testing::IsEmpty());
  HONE_ASSERT_OK_AND_ASSIGN(const auto list, two->jobs.List(10, ""));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]->id, "newer");
  EXPECT_EQ(list[0]->state, JobState::kRunning);
  EXPECT_THAT(list[0]->error, testing::HasSubstr("cannot be read"));
}

TEST_F(JobLeaderTest, ACrashInARiskyStepIsCounted) {
  const std::map<std::string, std::string> boots = {{"1", ThisBoot()}, {"2", "before a restart"}};
  for (const auto& [id, boot] : boots) {
    JobSnapshot snapshot{.id = id, .spec = JobHarness::Spec(60, id), .state = JobState::kRunning};
    snapshot.risky_step = RiskyStep{"proposing", NameARun(), boot};
    store_.PutJob(RowOf(snapshot, clock_.Now()), [](const absl::Status&) {});
  }
  const auto two = Next();
  EXPECT_EQ(CountedCrashes(**two->jobs.Get("1")), 1);
  EXPECT_EQ(CountedCrashes(**two->jobs.Get("2")), 0) << "the machine was restarted";
}

TEST_F(JobLeaderTest, CrashesOfThreeMachinesGiveAJobUp) {
  for (const auto& [id, more] : std::map<std::string, std::vector<std::string>>{
           {"1", {"a/1"}}, {"2", {"a/1", "b/1"}}, {"3", {"c/2"}}}) {
    JobSnapshot snapshot{.id = id, .spec = JobHarness::Spec(60, id), .state = JobState::kRunning};
    snapshot.risky_step = RiskyStep{"proposing", "c/1", ThisBoot()};
    snapshot.crashed_servers = more;
    store_.PutJob(RowOf(snapshot, clock_.Now()), [](const absl::Status&) {});
  }
  const auto next = Next("d/1");
  Run(*next, 30);
  EXPECT_NE((*next->jobs.Get("1"))->state, JobState::kFailed) << "one may have been cut off";
  EXPECT_THAT((*next->jobs.Get("2"))->error, testing::HasSubstr("ended abnormally 3 times"));
  EXPECT_THAT((*next->jobs.Get("3"))->error, testing::HasSubstr("ended abnormally 2 times"));
}

// Three servers lead in turn. Each is cut off from the database while it makes the design spaces,
// but none crashes.
TEST_F(JobLeaderTest, ServersThatWereCutOffHaveNotCrashed) {
  environment_.WatchSteps([&](absl::string_view step, absl::string_view) {
    if (step == "open") store_.FailWrites(absl::AbortedError("the database cannot be reached"));
  });
  std::string id;
  for (const char* run : {"a/1", "b/2", "a/1", "b/2", "c/3", "a/1", "b/2", "c/3"}) {
    const auto leader = Next(run);
    if (id.empty()) id = Create(*leader, JobHarness::Spec(60));
    leader->executor.RunAll();
    EXPECT_LE(CountedCrashes(**leader->jobs.Get(id)), 1);
    leader->jobs.Suspend();
    leader->executor.RunAll();
    store_.FailWrites(absl::OkStatus());
    ASSERT_TRUE(DecodeSnapshot(store_.GetJob(id)->summary)->risky_step.has_value());
  }
  environment_.WatchSteps(nullptr);
  const auto last = Next("a/1");
  Run(*last, 200);
  EXPECT_EQ((*last->jobs.Get(id))->state, JobState::kDone) << (*last->jobs.Get(id))->error;
}

}  // namespace
}  // namespace hone::job
