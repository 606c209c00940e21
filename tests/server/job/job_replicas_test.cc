// Server replicas that share a store: the job of a dead replica continues on another, and a replica
// that lost a job writes nothing more to it.
#include <memory>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/job/network/network_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

// A server on a shared store.
class Replica {
 public:
  Replica(const Clock* clock, store::Store* store, const TaskEnvironment* environment)
      : fleet(clock, &artifacts),
        jobs(JobServices{.clock = clock,
                         .store = store,
                         .fleet = &fleet,
                         .artifacts = &artifacts,
                         .environment = environment,
                         .executor = &executor},
             JobHarness::DefaultOptions()),
        device("of a replica") {}

  void Step(int finish = 1000) {
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

class JobReplicasTest : public testing::Test {
 protected:
  JobReplicasTest()
      : one_(std::make_unique<Replica>(&clock_, &store_, &environment_)),
        two_(std::make_unique<Replica>(&clock_, &store_, &environment_)) {
    store_.Share();
    EXPECT_THAT(one_->jobs.Restore(), IsOk());
    EXPECT_THAT(two_->jobs.Restore(), IsOk());
  }
  std::string Create(Replica& replica, const std::string& request = "r") {
    return Create(replica, JobHarness::Spec(60, request));
  }
  std::string Create(Replica& replica, JobSpec spec) {
    std::string id;
    replica.jobs.Create(std::move(spec), [&](SnapshotOr snapshot) {
      ASSERT_THAT(snapshot, IsOk());
      id = (*snapshot)->id;
    });
    return id;
  }
  // Lets time pass for these replicas only.
  void Run(const std::vector<Replica*>& replicas, int steps, absl::Duration each) {
    for (int i = 0; i < steps; ++i) {
      for (Replica* const replica : replicas) replica->Step(2);
      clock_.Advance(each);
    }
  }

  FakeClock clock_;
  store::ManualStore store_;
  FakeTaskEnvironment environment_;
  std::unique_ptr<Replica> one_;
  std::unique_ptr<Replica> two_;
};

TEST_F(JobReplicasTest, DeadReplicasJobContinuesAtTheOther) {
  const std::string id = Create(*one_);
  Run({one_.get(), two_.get()}, 6, absl::Milliseconds(100));
  EXPECT_THAT(two_->jobs.Unfinished(), testing::IsEmpty()) << "the first replica holds the job";
  const int64_t measured = (*one_->jobs.Get(id))->trials;
  ASSERT_GT(measured, 0);
  ASSERT_LT(measured, 60);
  // The first replica dies without releasing its claim, which lasts for a while.
  Run({two_.get()}, 20, absl::Seconds(1));
  EXPECT_THAT(two_->jobs.Unfinished(), testing::IsEmpty());
  Run({two_.get()}, 20, absl::Seconds(1));
  EXPECT_THAT(two_->jobs.Unfinished(), testing::ElementsAre(id));
  Run({two_.get()}, 200, absl::Milliseconds(100));
  const auto ended = *two_->jobs.Get(id);
  EXPECT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_EQ(ended->trials, 60) << "no trial is measured again";
}

TEST_F(JobReplicasTest, ReplicaReleasesJobAfterSleeping) {
  const std::string id = Create(*one_);
  Run({one_.get(), two_.get()}, 3, absl::Milliseconds(100));
  clock_.Advance(absl::Minutes(1));  // the first replica was stopped for this time
  Run({two_.get()}, 3, absl::Seconds(6));
  ASSERT_THAT(two_->jobs.Unfinished(), testing::ElementsAre(id));
  const size_t events = store_.Events(id)->size();
  one_->Step();
  EXPECT_EQ(store_.Events(id)->size(), events) << "its writes are refused";
  Run({one_.get(), two_.get()}, 3, absl::Milliseconds(100));
  EXPECT_THAT(one_->jobs.Unfinished(), testing::IsEmpty());
  Run({one_.get(), two_.get()}, 200, absl::Milliseconds(100));
  EXPECT_EQ((*two_->jobs.Get(id))->state, JobState::kDone);
  EXPECT_EQ((*one_->jobs.Get(id))->state, JobState::kDone) << "both read the same store";
}

// Results that reach the old replica after it lost the job are not recorded.
TEST_F(JobReplicasTest, ResultsOfAReplicaThatSleptAreNotRecorded) {
  const std::string id = Create(*one_);
  Run({one_.get(), two_.get()}, 3, absl::Milliseconds(100));
  clock_.Advance(absl::Minutes(1));
  Run({two_.get()}, 3, absl::Seconds(6));
  ASSERT_THAT(two_->jobs.Unfinished(), testing::ElementsAre(id));
  const size_t records = store_.Query({.page_size = 1000})->size();
  // The old replica does not know yet: its device finishes its leases and the job is told.
  one_->executor.RunAll();
  one_->device.Step(one_->fleet, one_->artifacts, 1000);
  one_->executor.RunAll();
  EXPECT_EQ(store_.Query({.page_size = 1000})->size(), records);
  EXPECT_EQ(one_->fleet.Counts().items_leased + one_->fleet.Counts().items_waiting, 0)
      << "the old replica measures nothing more for the job";
  Run({one_.get(), two_.get()}, 200, absl::Milliseconds(100));
  EXPECT_EQ((*two_->jobs.Get(id))->state, JobState::kDone);
  std::set<int64_t> trials;
  for (const record::Record& record : *store_.Query({.page_size = 1000})) {
    if (record.policy.name != "screen") continue;
    EXPECT_TRUE(trials.insert(record.trial).second)
        << "trial " << record.trial << " is recorded twice";
  }
}

TEST_F(JobReplicasTest, ARunningReplicaKeepsItsJobs) {
  const std::string id = Create(*one_);
  for (int i = 0; i < 20; ++i) {
    one_->Step(0);  // no lease is finished
    two_->Step(0);
    clock_.Advance(absl::Seconds(5));
  }
  EXPECT_THAT(one_->jobs.Unfinished(), testing::ElementsAre(id));
  EXPECT_THAT(two_->jobs.Unfinished(), testing::IsEmpty());
}

TEST_F(JobReplicasTest, AReplicaThatShutsDownReleasesItsJobsAtOnce) {
  const std::string id = Create(*one_);
  Run({one_.get(), two_.get()}, 2, absl::Milliseconds(100));
  one_->jobs.Suspend();
  Run({two_.get()}, 2, absl::Seconds(6));
  EXPECT_THAT(two_->jobs.Unfinished(), testing::ElementsAre(id));
}

TEST_F(JobReplicasTest, OtherReplicaShowsJobAndItsHolder) {
  const std::string id = Create(*one_);
  Run({one_.get(), two_.get()}, 3, absl::Milliseconds(100));
  ASSERT_THAT(two_->jobs.Get(id), IsOk());
  EXPECT_EQ(two_->jobs.List(10, "")->size(), 1u);
  EXPECT_THAT(two_->jobs.Cancel(id, false), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(one_->jobs.Cancel(id, false), IsOk());
  EXPECT_EQ(Create(*two_), id) << "a repeated request gives the same job on every replica";
}

TEST_F(JobReplicasTest, AJobThatCannotBeReadIsReleasedAndListed) {
  const std::string id = Create(*one_);
  store_.PutJob({.id = "newer", .request = "of a newer release", .state = "running"},
                [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  const int64_t fence = store_.GetJob("newer")->fence;
  Run({one_.get()}, 2, absl::Seconds(6));
  const store::JobRow row = *store_.GetJob("newer");
  EXPECT_GT(row.fence, fence) << "it was claimed";
  EXPECT_EQ(row.replica, "");
  EXPECT_EQ(row.lease_until_unix_ms, 0) << "a replica of the newer release can claim it at once";

  HONE_ASSERT_OK_AND_ASSIGN(const auto list, one_->jobs.List(10, ""));
  ASSERT_EQ(list.size(), 2u);
  const auto& newer = list.front()->id == "newer" ? list.front() : list.back();
  EXPECT_EQ(newer->id, "newer");
  EXPECT_EQ(newer->state, JobState::kRunning);
  EXPECT_THAT(newer->error, testing::HasSubstr("cannot be read"));
  EXPECT_THAT(one_->jobs.Unfinished(), testing::ElementsAre(id));
}

TEST_F(JobReplicasTest, ARenewalBeforeANewJobIsStoredKeepsIt) {
  clock_.Advance(absl::Seconds(6));  // the next tick renews the claims
  store_.BeforePutJob([this] { one_->jobs.Tick(); });
  const std::string id = Create(*one_);
  EXPECT_THAT(one_->jobs.Unfinished(), testing::ElementsAre(id));
  Run({one_.get(), two_.get()}, 200, absl::Milliseconds(100));
  EXPECT_EQ((*one_->jobs.Get(id))->state, JobState::kDone);
}

// The jobs of a network's tasks are at the replica that has the network's job.
TEST_F(JobReplicasTest, ANetworkOfADeadReplicaContinuesAtTheOther) {
  const std::string id = Create(*one_, NetworkHarness::NetworkOf(96));
  Run({one_.get(), two_.get()}, 20, absl::Milliseconds(100));
  ASSERT_GT((*one_->jobs.Get(id))->trials, 0);
  Run({two_.get()}, 40, absl::Seconds(1));
  ASSERT_THAT(two_->jobs.Unfinished(), testing::ElementsAre(id));
  Run({two_.get()}, 400, absl::Milliseconds(100));
  const auto ended = *two_->jobs.Get(id);
  EXPECT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_EQ(ended->trials, 96);
}

TEST_F(JobReplicasTest, ANetworkMovesFromASleepingReplicaWithItsTasks) {
  const std::string id = Create(*one_, NetworkHarness::NetworkOf(96));
  Run({one_.get(), two_.get()}, 20, absl::Milliseconds(100));
  clock_.Advance(absl::Minutes(1));  // the first replica was stopped for this time
  Run({two_.get()}, 3, absl::Seconds(6));
  ASSERT_THAT(two_->jobs.Unfinished(), testing::ElementsAre(id));
  Run({one_.get(), two_.get()}, 400, absl::Milliseconds(100));
  EXPECT_THAT(one_->jobs.Unfinished(), testing::IsEmpty());
  const auto ended = *two_->jobs.Get(id);
  EXPECT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_EQ(ended->trials, 96);
  for (const NetworkTaskState& task : ended->network->tasks) EXPECT_TRUE(task.confirmed);
}

// The jobs of its tasks have ended. After they are reopened, they get no messages until a replica
// claims them.
TEST_F(JobReplicasTest, AResumedNetworkContinuesItsTasks) {
  const std::string id = Create(*one_, NetworkHarness::NetworkOf(120));
  Run({one_.get(), two_.get()}, 20, absl::Milliseconds(100));
  ASSERT_THAT(one_->jobs.Cancel(id, /*confirm=*/true), IsOk());
  Run({one_.get(), two_.get()}, 310, absl::Milliseconds(100));
  ASSERT_EQ((*one_->jobs.Get(id))->state, JobState::kCancelled);
  one_->jobs.Resume(id, 240, absl::ZeroDuration(),
                    [](const SnapshotOr& resumed) { EXPECT_THAT(resumed, IsOk()); });
  Run({one_.get(), two_.get()}, 1500, absl::Milliseconds(100));
  const auto ended = *one_->jobs.Get(id);
  EXPECT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_EQ(ended->trials, 240);
}

// A replica may claim a task of a network whose own job another replica has just claimed.
TEST_F(JobReplicasTest, ATaskIsLeftToTheReplicaThatHasItsNetwork) {
  const std::string id = Create(*one_, NetworkHarness::NetworkOf(96));
  Run({one_.get(), two_.get()}, 20, absl::Milliseconds(100));
  const std::string task = TaskJobId(id, 0);
  const int64_t fence = store_.GetJob(task)->fence;
  store_.ReleaseJob(task, fence, [](const absl::Status&) {});
  Run({two_.get()}, 2, absl::Seconds(6));
  EXPECT_GT(store_.GetJob(task)->fence, fence) << "the second replica claimed it";
  Run({one_.get(), two_.get()}, 400, absl::Seconds(1));
  const auto ended = *one_->jobs.Get(id);
  EXPECT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_EQ(ended->trials, 96);
}

}  // namespace
}  // namespace hone::job
