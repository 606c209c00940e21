// Stores written by an earlier release: their records are read, and a job that was interrupted is
// continued to its end. testdata/README.md describes how the stores were made.

#include <sqlite3.h>

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/job_manager.h"
#include "server/store/store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/server/job/job_harness.h"

namespace hone::job {
namespace {

class StoredJobTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    const absl::StatusOr<std::string> sql =
        ReadFile(absl::StrCat("tests/server/job/testdata/", GetParam(), ".sql"));
    ASSERT_TRUE(sql.ok()) << sql.status();
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(Path().c_str(), &database), SQLITE_OK);
    const int made = sqlite3_exec(database, sql->c_str(), nullptr, nullptr, nullptr);
    EXPECT_EQ(made, SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
    auto opened = store::OpenStore(Path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  ~StoredJobTest() override {
    if (jobs_ != nullptr) jobs_->Suspend();
    fleet_.Shutdown();
    store_.reset();
    executor_.RunAll();
    std::filesystem::remove_all(folder_);
  }
  std::string Path() const { return folder_ + "/hone.db"; }
  std::vector<record::Record> Records(const std::string& job) {
    return *store_->Query({.page_size = 1000, .job_id = job});
  }
  void Restore() {
    JobOptions options;
    options.respect_timing_lock = false;
    jobs_ = std::make_unique<JobManager>(JobServices{.clock = &clock_,
                                                     .store = store_.get(),
                                                     .fleet = &fleet_,
                                                     .artifacts = &artifacts_,
                                                     .environment = environment_.get(),
                                                     .executor = &executor_},
                                         options);
    ASSERT_TRUE(jobs_->Restore().ok());
  }
  void Step(FakeDevice& device) {
    EXPECT_TRUE(store_->Flush().ok());
    executor_.RunAll();
    device.Step(fleet_, artifacts_);
    executor_.RunAll();
    clock_.Advance(absl::Milliseconds(100));
    fleet_.Tick();
    jobs_->Tick();
  }

  const std::string folder_ = ::testing::TempDir() + "/stored_job_test";
  const std::unique_ptr<TaskEnvironment> environment_ = MakeCompilerEnvironment(1);
  FakeClock clock_;
  ManualExecutor executor_;
  fleet::ArtifactCache artifacts_;
  fleet::Fleet fleet_{&clock_, &artifacts_, {}};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<JobManager> jobs_;
};

TEST_P(StoredJobTest, RecordsAndBestsAreRead) {
  EXPECT_EQ(Records("1").size(), 23u);
  const std::vector<record::Record> interrupted = Records("2");
  ASSERT_EQ(interrupted.size(), 9u);
  const record::Record& record = interrupted[3];
  EXPECT_EQ(record.trial, 4);
  EXPECT_EQ(record.op, "matmul");
  EXPECT_EQ(record.candidate.decisions, (std::vector<int64_t>{5, 2, 4, 4, 1, 4, 4, 1, 16, 4}));
  EXPECT_EQ(record.result.outcome, record::Outcome::kOk);
  EXPECT_EQ(record.result.latency_ns, 6465.070268652249);
  EXPECT_EQ(record.result.facts.program_digest, "5af253be55d73c0edc24797ca170bd7d");
  EXPECT_EQ(record.environment.compiler, "llvm 19.1.7");
  const auto best = store_->LookupBest(
      {.workload_digest = Records("1")[0].workload_digest, .target = record.target});
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.id, 23);
  EXPECT_TRUE(store_->GetArtifact(best->record.result.artifact_digest).ok());
}

TEST_P(StoredJobTest, AFinishedJobIsShown) {
  Restore();
  const SnapshotOr done = jobs_->Get("1");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ((*done)->state, JobState::kDone);
  EXPECT_EQ((*done)->spec.seed, 5u);
  EXPECT_EQ((*done)->trials, 4);
  EXPECT_EQ((*done)->wall, absl::Milliseconds(10010));
  EXPECT_EQ((*done)->outcomes, (std::map<record::Outcome, int64_t>{{record::Outcome::kOk, 4}}));
  ASSERT_TRUE((*done)->best.has_value());
  EXPECT_EQ((*done)->best->record.id, 23);
  EXPECT_EQ((*done)->best->record.policy.Key(), "confirm/warm/0");
  EXPECT_EQ((*done)->best->record.result.latency_ns, 2621.266958983766);
  EXPECT_EQ((*done)->best->record.result.machine.remeasured, 45);
  EXPECT_EQ((*done)->best->gflops, 28.126856651252137);
  EXPECT_THAT((*done)->best->trace, ::testing::HasSubstr("register_tile(b0"));
  ASSERT_TRUE((*done)->default_schedule.has_value());
  EXPECT_TRUE((*done)->default_schedule->record.is_default);
}

TEST_P(StoredJobTest, InterruptedJobContinuesAndFinishes) {
  Restore();
  const SnapshotOr begun = jobs_->Get("2");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ((*begun)->state, JobState::kRunning);
  EXPECT_EQ((*begun)->spec.max_trials, 24);
  FakeDevice device;
  device.target = (*begun)->spec.target;
  device.target_key = (*begun)->spec.target_key;
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = 20000 + 100 * static_cast<double>(lease.work->decisions.size());
    for (const int64_t decision : lease.work->decisions)
      result.latency_ns += static_cast<double>(decision);
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
  for (int i = 0; i < 600 && !HasEnded((*jobs_->Get("2"))->state); ++i) Step(device);
  const std::shared_ptr<const JobSnapshot> job = *jobs_->Get("2");
  EXPECT_EQ(job->state, JobState::kDone) << job->error << job->note << job->phase;
  EXPECT_EQ(job->trials, 24);
  std::set<int64_t> trials;
  for (const record::Record& record : Records("2")) {
    if (record.policy.name == "screen") {
      EXPECT_TRUE(trials.insert(record.trial).second) << record.trial;
    }
  }
  EXPECT_EQ(trials.size(), 25u) << "with the default; no earlier trial is measured again";
}

INSTANTIATE_TEST_SUITE_P(Releases, StoredJobTest, ::testing::Values("interrupted_job_1"));

}  // namespace
}  // namespace hone::job
