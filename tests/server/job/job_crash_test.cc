// Servers that crash in the middle of a job, with a store on disk: the crashes that the next server
// counts, and the jobs that it no longer resumes.

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/fleet/fleet.h"
#include "server/job/actor/job_codec.h"
#include "server/job/job_manager.h"
#include "server/store/store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/fakes/manual_executor.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::job {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A server on a store, without workers.
class ServerRun {
 public:
  explicit ServerRun(const std::string& path) : path_(path) {
    auto opened = store::OpenStore(path);
    EXPECT_THAT(opened, IsOk());
    store = *std::move(opened);
    JobOptions options;
    options.respect_timing_lock = false;
    jobs = std::make_unique<JobManager>(JobServices{.clock = &clock,
                                                    .store = store.get(),
                                                    .fleet = &fleet,
                                                    .artifacts = &artifacts,
                                                    .environment = &environment,
                                                    .executor = &executor},
                                        options);
  }
  ~ServerRun() {
    environment.WatchSteps(nullptr);
    if (jobs != nullptr) jobs->Suspend();
    fleet.Shutdown();
    store.reset();
    executor.RunAll();
  }

  std::string Create(const std::string& workload) {
    std::string id;
    jobs->Create({.workload = workload,
                  .target_key = "t",
                  .target = "target text",
                  .max_trials = 40,
                  .seed = 7,
                  .strategy = "picky",
                  .cost_model = "nearest"},
                 [&](const SnapshotOr& snapshot) { id = (*snapshot)->id; });
    EXPECT_THAT(store->Flush(), IsOk());
    return id;
  }
  // Runs until only workers could continue.
  void Run() {
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(store->Flush(), IsOk());
      executor.RunAll();
      clock.Advance(absl::Milliseconds(100));
      jobs->Tick();
      executor.RunAll();
    }
  }
  std::shared_ptr<const JobSnapshot> Get(const std::string& id) { return *jobs->Get(id); }
  JobSnapshot Stored(const std::string& id) { return *DecodeSnapshot(store->GetJob(id)->summary); }
  // At the first `step` of the workload, copies the store to `path` as a crash would leave it.
  void CrashAt(const std::string& step, const std::string& name, const std::string& path) {
    environment.WatchSteps([=, this](absl::string_view at, absl::string_view of) {
      if (at != step || of != name || std::filesystem::exists(path)) return;
      EXPECT_THAT(store->Flush(), IsOk());
      for (const char* part : {"", "-wal"}) {
        if (std::filesystem::exists(path_ + part))
          std::filesystem::copy_file(path_ + part, path + part);
      }
    });
  }

  const std::string path_;
  FakeClock clock;
  ManualExecutor executor;
  fleet::ArtifactCache artifacts;
  fleet::Fleet fleet{&clock, &artifacts, {}};
  FakeTaskEnvironment environment;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<JobManager> jobs;
};

class JobCrashTest : public ::testing::Test {
 protected:
  std::string Path(int run) const { return folder_ / absl::StrCat(run, ".db"); }

  // The first server crashes in a step of the second of two jobs. Returns the id of that job and of
  // the other.
  std::pair<std::string, std::string> FirstRun(const std::string& step) {
    ServerRun server(Path(1));
    const std::string beside = server.Create("fake beside 12");
    server.Run();  // the job waits for a worker
    server.CrashAt(step, "bad", Path(2));
    const std::string bad = server.Create("fake bad 12");
    server.Run();
    EXPECT_TRUE(std::filesystem::exists(Path(2)));
    return {bad, beside};
  }

  const TemporaryFolder folder_;
};

class JobCrashAtStep : public JobCrashTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(JobCrashAtStep, JobThatCrashedTheServerTwiceIsNotResumed) {
  const auto [bad, beside] = FirstRun(GetParam());
  {
    ServerRun server(Path(2));
    server.CrashAt(GetParam(), "bad", Path(3));
    ASSERT_THAT(server.jobs->Restore(), IsOk());
    server.Run();
    ASSERT_TRUE(std::filesystem::exists(Path(3))) << "the job is resumed once";
    EXPECT_EQ(server.Get(bad)->crashed_servers.size(), 1u);
    EXPECT_EQ(server.Get(beside)->crashed_servers.size(), 0u) << "the other job only waited";
  }
  ServerRun server(Path(3));
  server.CrashAt("open", "bad", Path(4));
  ASSERT_THAT(server.jobs->Restore(), IsOk());
  server.Run();
  EXPECT_FALSE(std::filesystem::exists(Path(4))) << "the job was not started";
  EXPECT_EQ(server.Get(bad)->state, JobState::kFailed);
  EXPECT_THAT(server.Get(bad)->error,
              AllOf(HasSubstr("ended abnormally 2 times"), HasSubstr("hone jobs resume " + bad),
                    HasSubstr(GetParam() == std::string("open") ? "making the design spaces"
                                                                : "proposing candidates")));
  EXPECT_EQ(server.Get(beside)->state, JobState::kRunning) << server.Get(beside)->error;
  EXPECT_EQ(server.Get(beside)->crashed_servers.size(), 0u);

  // A user may try once more.
  server.jobs->Resume(bad, 0, absl::ZeroDuration(),
                      [](const SnapshotOr& s) { EXPECT_THAT(s, IsOk()); });
  server.Run();
  EXPECT_EQ(server.Get(bad)->state, JobState::kRunning) << server.Get(bad)->error;
  EXPECT_TRUE(std::filesystem::exists(Path(4)));
}
INSTANTIATE_TEST_SUITE_P(All, JobCrashAtStep, ::testing::Values("open", "propose"));

TEST_F(JobCrashTest, AfterACrashJobsStartOneByOneSuspectLast) {
  const auto [bad, beside] = FirstRun("propose");
  ServerRun server(Path(2));
  std::vector<std::string> order;
  server.environment.WatchSteps([&, one = bad, other = beside](absl::string_view step,
                                                               absl::string_view name) {
    if (step != "open") return;
    order.emplace_back(name);
    EXPECT_THAT(server.store->Flush(), IsOk());
    const std::string& waiting = name == "bad" ? other : one;
    const auto risky = server.Stored(waiting).risky_step;
    // A step recorded by the earlier server is not counted twice.
    EXPECT_TRUE(!risky.has_value() || server.Stored(waiting).crashed_servers.empty()) << waiting;
    if (name == "bad") {
      EXPECT_FALSE(risky.has_value());
    }
  });
  ASSERT_THAT(server.jobs->Restore(), IsOk());
  server.Run();
  EXPECT_THAT(order, ::testing::ElementsAre("beside", "bad"));
}

TEST_F(JobCrashTest, ShutdownInARiskyStepIsNotACrash) {
  std::string id;
  {
    ServerRun server(Path(1));
    bool ended = false;
    server.environment.WatchSteps([&](absl::string_view step, absl::string_view) {
      if (step == "propose" && !std::exchange(ended, true)) server.jobs->Suspend();
    });
    id = server.Create("fake op 12");
    server.Run();
    ASSERT_TRUE(ended);
  }
  ServerRun server(Path(1));
  EXPECT_FALSE(server.Stored(id).risky_step.has_value());
  ASSERT_THAT(server.jobs->Restore(), IsOk());
  server.Run();
  EXPECT_EQ(server.Get(id)->state, JobState::kRunning);
  EXPECT_EQ(server.Get(id)->crashed_servers.size(), 0u);
}

TEST_F(JobCrashTest, ShutdownResetsTheCrashCount) {
  const auto [bad, beside] = FirstRun("propose");
  {
    ServerRun server(Path(2));
    ASSERT_THAT(server.jobs->Restore(), IsOk());
    server.Run();
    ASSERT_EQ(server.Get(bad)->crashed_servers.size(), 1u);
  }
  ServerRun server(Path(2));
  EXPECT_EQ(server.Stored(bad).crashed_servers.size(), 0u);
}

}  // namespace
}  // namespace hone::job
