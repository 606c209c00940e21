// Jobs of networks: how trials are spread over the tasks, and how such a job ends.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/confirm/finalist.h"
#include "server/job/job_manager.h"
#include "tests/server/job/network/network_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NetworkJobTest : public ::testing::Test, protected NetworkHarness {};

TEST_F(NetworkJobTest, TunesEveryTaskWithinTheLimit) {
  const std::string id = Create(NetworkOf(120));
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 120);
  EXPECT_EQ(job->note, "");
  EXPECT_EQ(job->outcomes.at(record::Outcome::kOk), 120);
  EXPECT_EQ(Trials(),
            (std::map<std::string, int64_t>{{id + ".0", 40}, {id + ".1", 40}, {id + ".2", 40}}));
  double latency = 0;
  for (size_t i = 0; i < 3; ++i) {
    const NetworkTaskState& task = job->network->tasks[i];
    EXPECT_EQ(task.state, "done");
    EXPECT_TRUE(task.confirmed);
    EXPECT_EQ(task.default_latency_ns, 1000);
    EXPECT_GT(task.seconds, 0);
    EXPECT_EQ(task.trials, 40);
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto best,
        store.LookupBest({.workload_digest = task.workload_digest, .target = "t"}));
    EXPECT_EQ(best.record.result.latency_ns, task.latency_ns);
    latency += job->spec.network->tasks[i].weights[0] * task.latency_ns;
  }
  EXPECT_EQ(job->network->estimates.back().latency_ns, latency);
  EXPECT_EQ(DefaultNetworkLatency(*job->spec.network, *job->network), 8000);
}

// Another job publishes a faster schedule of a task that this job has confirmed.
TEST_F(NetworkJobTest, EndsWithTheBestsThatArePublishedNow) {
  const std::string id = Create(NetworkOf(60));
  StepUntilTrials(id, 30);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const NetworkTaskState task = RunToEnd(id)->network->tasks[0];
  ASSERT_TRUE(task.confirmed);
  record::Record faster =
      store.LookupBest({.workload_digest = task.workload_digest, .target = "t"})->record;
  faster.job_id = "elsewhere";
  faster.result.latency_ns /= 100;
  faster.result.samples_ns = {faster.result.latency_ns};
  store.Append(faster, [&](const absl::StatusOr<record::Record>& stored) {
    ASSERT_THAT(stored, IsOk());
    store.PublishBest(stored->id, [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  });
  ASSERT_THAT(Resume(id, 0), IsOk());
  EXPECT_EQ(RunToEnd(id)->network->tasks[0].latency_ns, faster.result.latency_ns);
}

TEST_F(NetworkJobTest, TheEstimateFallsWhileTrialsAreMade) {
  const std::string id = Create(NetworkOf(240));
  const auto job = RunToEnd(id);
  const std::vector<NetworkEstimate>& estimates = job->network->estimates;
  ASSERT_GT(estimates.size(), 3u);
  for (size_t i = 1; i < estimates.size(); ++i) {
    EXPECT_GE(estimates[i].trials, estimates[i - 1].trials);
    EXPECT_GE(estimates[i].wall_ms, estimates[i - 1].wall_ms);
    EXPECT_LE(estimates[i].latency_ns, estimates[i - 1].latency_ns);
  }
}

TEST_F(NetworkJobTest, TheDefaultSchedulerFavoursTheHeavyTask) {
  JobSpec spec = NetworkOf(240);
  spec.network->scheduler = "expected-gain";
  spec.network->tasks[1].weights = {50};
  const std::string id = Create(spec);
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  const std::map<std::string, int64_t> trials = Trials();
  EXPECT_GT(trials.at(id + ".1"), trials.at(id + ".0"));
  EXPECT_GT(trials.at(id + ".1"), trials.at(id + ".2"));
  EXPECT_GE(trials.at(id + ".0"), 8) << "every task has a first batch";
}

TEST_F(NetworkJobTest, ListsAndQuotasCountOneJob) {
  options.max_jobs_per_owner = 2;
  Restart();
  const std::string id = Create(NetworkOf(120));
  for (int i = 0; i < 10; ++i) Step(5);
  EXPECT_GE(Trials().size(), 2u);
  EXPECT_EQ(jobs->Unfinished(), std::vector<std::string>{id});
  const std::string other = Create(Spec(10, "other"));
  EXPECT_NE(other, "");
  for (const int page_size : {1, 2, 10}) {
    std::vector<std::string> ids;
    std::string last;
    while (true) {
      const auto page = *jobs->List(page_size, last);
      for (const auto& job : page) ids.push_back(last = job->id);
      if (static_cast<int>(page.size()) < page_size) break;
    }
    EXPECT_EQ(ids, (std::vector<std::string>{other, id})) << "pages of " << page_size;
  }
  EXPECT_EQ(RunToEnd(id)->state, JobState::kDone);
}

TEST_F(NetworkJobTest, ATaskCannotBeForgottenMeanwhile) {
  const std::string id = Create(NetworkOf(120));
  for (int i = 0; i < 5; ++i) Step(5);
  const std::string digest = environment.Describe("fake beta 12")->digest;
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto job,
      FindUnfinishedJob(*jobs, environment,
                        {.workload_digest = digest, .target = "t", .tolerance = 0}));
  EXPECT_EQ(job, id);
  const auto none = FindUnfinishedJob(*jobs, environment,
                                      {.workload_digest = "x", .target = "t", .tolerance = 0});
  EXPECT_EQ(*none, "");
}

TEST_F(NetworkJobTest, OnlyMissingTasksGetTrials) {
  JobSpec one = Spec(40, "first");
  one.workload = "fake beta 12";
  ASSERT_EQ(RunToEnd(Create(one))->state, JobState::kDone);
  JobSpec spec = NetworkOf(80);
  spec.network->only_missing = true;
  const std::string id = Create(spec);
  std::set<int64_t> confirmed;
  for (int i = 0; i < 500 && !HasEnded(Get(id)->state); ++i) {
    Step();
    const JobPhase phase = Get(id)->phase;
    if (phase.kind != PhaseKind::kTasksConfirmed) continue;
    confirmed.insert(phase.done);
    EXPECT_EQ(phase.whole, 3);
  }
  EXPECT_FALSE(confirmed.empty());
  EXPECT_FALSE(confirmed.contains(0)) << "one has nothing to confirm";
  const auto job = Get(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 80);
  const NetworkTaskState& known = job->network->tasks[1];
  EXPECT_EQ(known.trials, 0);
  EXPECT_EQ(known.state, "");
  EXPECT_TRUE(known.confirmed);
  EXPECT_GT(known.latency_ns, 0);
  EXPECT_EQ(known.peak_gflops, 50) << "of the worker, although nothing was measured";
  EXPECT_FALSE(store.GetJob(id + ".1").ok());

  const auto again = RunToEnd(Create([&] {
    spec.request_id = "again";
    return spec;
  }()));
  EXPECT_EQ(again->state, JobState::kDone) << again->error;
  EXPECT_EQ(again->trials, 0) << "all are known";
  EXPECT_EQ(again->note, "every task already has a known best");
}

TEST_F(NetworkJobTest, AKnownTaskStartsFromItsBest) {
  JobSpec one = Spec(60, "first");
  one.workload = "fake beta 12";
  const auto first = RunToEnd(Create(one));
  const std::string id = Create(NetworkOf(60));
  for (int i = 0; i < 2; ++i) Step();
  const NetworkTaskState& task = Get(id)->network->tasks[1];
  EXPECT_EQ(task.latency_ns, first->best->record.result.latency_ns);
  EXPECT_GE(task.earlier_trials, 50);
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_LE(job->network->tasks[1].latency_ns, first->best->record.result.latency_ns);
}

// Other work disturbs every confirmation of the network, but not that of an earlier job.
TEST_F(NetworkJobTest, DefaultSchedulesThatAreConfirmedBeforeArePreferred) {
  bool disturbed = false;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    if (disturbed && IsConfirmation(lease)) result.reference_drift = 3.5;
    return result;
  };
  JobSpec one = Spec(60, "first");
  one.workload = "fake beta 12";
  ASSERT_EQ(RunToEnd(Create(one))->state, JobState::kDone);
  disturbed = true;
  const std::string id = Create(NetworkOf(60));
  Step();
  EXPECT_EQ(Get(id)->network->tasks[0].default_latency_ns, 0);
  EXPECT_EQ(Get(id)->network->tasks[1].default_latency_ns, 1000);
  const auto job = RunToEnd(id, 1500);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_LT(job->network->tasks[0].default_latency_ns, 1000) << "corrected for the drift";
  EXPECT_EQ(job->network->tasks[1].default_latency_ns, 1000);
}

TEST_F(NetworkJobTest, PatienceEndsTheJob) {
  JobSpec spec = NetworkOf(100000);
  spec.network->patience = 100;
  const std::string id = Create(spec);
  const auto job = RunToEnd(id, 3000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_THAT(job->note, HasSubstr("the last 100 trials"));
  EXPECT_LT(job->trials, 5000);
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_TRUE(task.confirmed);
}

TEST_F(NetworkJobTest, LatencyLimitsEndTheJob) {
  JobSpec spec = NetworkOf(1000);
  spec.network->objective = "latency-limits";
  spec.network->limits_ns = {7900};  // all default schedules have 8000
  const auto job = RunToEnd(Create(spec));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_LT(job->trials, 1000);
}

TEST_F(NetworkJobTest, TheTimeLimitIncludesTheConfirmation) {
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(20);
  const std::string id = Create(spec);
  const auto job = RunToEnd(id, 400);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(job->wall, absl::Seconds(10));
  EXPECT_LT(job->wall, absl::Seconds(22));
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_TRUE(task.confirmed);
}

// Every task gets its first choice measured and confirmed before any gets a second batch.
TEST_F(NetworkJobTest, AJobWithATimeLimitBeginsWithAFirstPass) {
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(40);
  const std::string id = Create(spec);
  Step();
  // What is published stays so, while the shown state of a task may have changed again.
  const auto published = [&] {
    std::vector<record::Record> bests;
    for (const NetworkTaskState& task : Get(id)->network->tasks) {
      const auto best = store.LookupBest({.workload_digest = task.workload_digest, .target = "t"});
      if (best.ok()) bests.push_back(best->record);
    }
    return bests;
  };
  for (int i = 0; i < 200 && published().size() < 3; ++i) {
    EXPECT_LE(Get(id)->trials, 3) << "no task has a second batch yet";
    Step();
  }
  const std::vector<record::Record> first = published();
  ASSERT_EQ(first.size(), 3);
  EXPECT_LT(Get(id)->wall, absl::Seconds(10));
  for (const record::Record& best : first) {
    EXPECT_EQ(best.result.processes, 1);
    EXPECT_LT(best.policy.repeats, ConfirmPolicy().repeats) << "it was brief";
  }
  for (const NetworkTaskState& task : Get(id)->network->tasks) EXPECT_FALSE(task.closed);
  // The search goes on, with the default schedules, and confirms more thoroughly.
  const auto job = RunToEnd(id, 1000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(job->trials, 30);
  EXPECT_EQ(job->trials, AllTrials());
  for (size_t i = 0; i < 3; ++i) {
    const NetworkTaskState& task = job->network->tasks[i];
    EXPECT_GT(task.trials, 1);
    EXPECT_TRUE(task.confirmed);
    EXPECT_LE(task.latency_ns, record::SteadyLatencyNs(first[i].result));
    EXPECT_EQ(task.default_latency_ns, 1000);
  }
}

// The time is over in the first pass. What was measured is confirmed, and the heaviest tasks were.
TEST_F(NetworkJobTest, AFirstPassThatIsTooLongHasConfirmedSomeTasks) {
  JobSpec spec = NetworkOf(0);
  spec.network->tasks.clear();
  for (int i = 0; i < 40; ++i) {
    spec.network->tasks.push_back({absl::StrCat("fake task", i, " 12"), {1}});
  }
  spec.max_time = absl::Seconds(12);
  const std::string id = Create(spec);
  // The device takes a second for each measurement.
  for (int i = 0; i < 600 && !HasEnded(Get(id)->state); ++i) Step(i % 10 == 9 ? 1 : 0);
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  const std::vector<NetworkTaskState>& tasks = job->network->tasks;
  const auto confirmed =
      std::count_if(tasks.begin(), tasks.end(), [](const auto& task) { return task.confirmed; });
  EXPECT_GE(confirmed, 2);
  for (const NetworkTaskState& task : tasks) EXPECT_LE(task.trials, 1);
  EXPECT_THAT(job->note, HasSubstr("tasks have no confirmed kernel"));
}

// The first process that confirms a candidate takes 35 times as long as the search measured.
TEST_F(NetworkJobTest, AConfirmationThatContradictsTheSearchIsRepeated) {
  std::set<std::pair<std::string, std::vector<int64_t>>> confirmed;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    if (IsConfirmation(lease) &&
        confirmed.insert({lease.work->workload, lease.work->decisions}).second) {
      return Took(35 * result.latency_ns);
    }
    return result;
  };
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(40);
  const auto job = RunToEnd(Create(spec), 1000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(job->disturbed, 0);
  EXPECT_THAT(job->disturbance, HasSubstr("35 times as long as when it was measured first"));
  for (const NetworkTaskState& task : job->network->tasks) {
    EXPECT_TRUE(task.confirmed);
    EXPECT_FALSE(task.disturbed);
    EXPECT_LE(task.latency_ns, 1000);
  }
}

// The server is restarted in the first pass.
TEST_F(NetworkJobTest, AFirstPassContinuesAfterARestart) {
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(40);
  const std::string id = Create(spec);
  for (int i = 0; i < 100 && Get(id)->trials < 1; ++i) Step();
  Restart();
  const auto job = RunToEnd(id, 1000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  for (const NetworkTaskState& task : job->network->tasks) {
    EXPECT_TRUE(task.confirmed);
    EXPECT_GT(task.trials, 1);
  }
}

// The server ends after a task has confirmed its first choice, and before it stores that with the
// network.
TEST_F(NetworkJobTest, ATaskThatWasOnlyConfirmedBrieflyContinuesAfterARestart) {
  options.save_interval = absl::Hours(1);
  Restart();
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(40);
  const std::string id = Create(spec);
  const auto one_is_done = [&] {
    for (int i = 0; i < 3; ++i) {
      const auto row = store.GetJob(absl::StrCat(id, ".", i));
      if (row.ok() && row->state == "done") return true;
    }
    return false;
  };
  for (int i = 0; i < 200 && !one_is_done(); ++i) Step();
  ASSERT_TRUE(one_is_done());
  Restart();
  const auto job = RunToEnd(id, 1000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_GT(task.trials, 1);
}

// A best of an earlier job was confirmed in several processes, and one does not replace it.
TEST_F(NetworkJobTest, AFirstPassConfirmsNothingBrieflyWhereABestIsKnown) {
  ASSERT_EQ(RunToEnd(Create(NetworkOf(30)), 1000)->state, JobState::kDone);
  JobSpec spec = NetworkOf(36, "again");
  spec.max_time = absl::Seconds(40);
  spec.seed = 5;
  const std::string id = Create(spec);
  const auto job = RunToEnd(id, 1000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  for (const fleet::LeaseGrant& lease : device.seen) {
    const bool is_slow_default = lease.work->policy.repeats == 0;
    if (!IsConfirmation(lease) || is_slow_default) continue;
    EXPECT_EQ(lease.work->policy.repeats, ConfirmPolicy().repeats);
  }
}

// The device takes 1 s for each measurement.
TEST_F(NetworkJobTest, EveryTaskGetsTrialsWithinAShortTime) {
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(24);
  const std::string id = Create(spec);
  for (int i = 0; i < 400 && !HasEnded(Get(id)->state); ++i) Step(i % 10 == 9 ? 1 : 0);
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->note, "");
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_GT(task.trials, 0);
}

// The confirmation after Ctrl-C takes the rest of the time limit here.
TEST_F(NetworkJobTest, TheTimeAfterACancelDoesNotCount) {
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(40);
  const std::string id = Create(spec);
  while (Get(id)->wall < absl::Seconds(15)) Step();
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  for (int i = 0; i < 100; ++i) Step(0);
  EXPECT_GT(Get(id)->after_cancel, absl::Seconds(8)) << "for a server that continues it now";
  for (int i = 0; i < 400 && !HasEnded(Get(id)->state); ++i) Step(0);
  const auto cancelled = Get(id);
  ASSERT_EQ(cancelled->state, JobState::kCancelled);
  EXPECT_GT(cancelled->after_cancel, absl::Seconds(22)) << "the rest of the limit";
  for (int i = 0; i < 3; ++i) Step();
  ASSERT_THAT(Resume(id, 0), IsOk());
  const auto job = RunToEnd(id, 400);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(job->trials, cancelled->trials) << "the search went on";
  EXPECT_GT(job->CountedWall(), absl::Seconds(30));
  EXPECT_LT(job->CountedWall(), absl::Seconds(42));
  EXPECT_GT(job->wall, absl::Seconds(52)) << "30 s and 22 s";
}

// The device, which is connected, does not finish the measurements of the confirmation.
TEST_F(NetworkJobTest, TheTimeLimitEndsAConfirmationThatHangs) {
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(20);
  const std::string id = Create(spec);
  const absl::Time began = clock.Now();
  for (int i = 0; i < 400 && Get(id)->state != JobState::kConfirming; ++i) Step();
  for (int i = 0; i < 400 && !HasEnded(Get(id)->state); ++i) Step(0);
  EXPECT_GT(clock.Now() - began, absl::Seconds(19));
  EXPECT_LT(clock.Now() - began, absl::Seconds(24));
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->note, "");
  for (const NetworkTaskState& task : job->network->tasks) {
    EXPECT_TRUE(task.confirmed) << "in the first pass";
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto best,
        store.LookupBest({.workload_digest = task.workload_digest, .target = "t"}));
    EXPECT_EQ(best.record.result.processes, 1);
  }
}

// No best can be published, because the device sends no artifacts.
TEST_F(NetworkJobTest, AJobThatConfirmsNothingInTimeFailsAndCanBeResumed) {
  device.uploads = false;
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(20);
  const std::string id = Create(spec);
  const absl::Time began = clock.Now();
  auto job = RunToEnd(id, 800);
  EXPECT_LT(clock.Now() - began, absl::Seconds(25));
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("when the time was over, 3 tasks were not confirmed"));
  device.uploads = true;
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_THAT(Resume(id, 0).status().message(), HasSubstr("all of its time"));
  EXPECT_THAT(Resume(id, 0, absl::Seconds(10)).status().message(), HasSubstr("must be longer"));
  ASSERT_THAT(Resume(id, 0, absl::Seconds(60)), IsOk());
  job = RunToEnd(id, 1000);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_TRUE(task.confirmed);
}

// The device takes 1.5 s for each measurement.
TEST_F(NetworkJobTest, ASlowDeviceGetsMoreTimeForTheConfirmation) {
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(40);
  const std::string id = Create(spec);
  const absl::Time began = clock.Now();
  const auto step = [&](int i) { Step(i % 15 == 14 ? 1 : 0); };
  for (int i = 0; i < 600 && Get(id)->state != JobState::kConfirming; ++i) step(i);
  EXPECT_LT(clock.Now() - began, absl::Seconds(26)) << "a quarter would begin at 30 s";
  for (int i = 0; i < 600 && !HasEnded(Get(id)->state); ++i) step(i);
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_LT(clock.Now() - began, absl::Seconds(43));
}

// A machine that is always disturbed. The waits of the tasks are shown, and limited.
TEST_F(NetworkJobTest, AConfirmationWaitsForAQuieterMachineForABoundedTime) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    if (IsConfirmation(lease)) result.reference_drift = 3.5;
    return result;
  };
  const std::string id = Create(NetworkOf(60));
  StepUntilTrials(id, 30);
  for (int i = 0; i < 300 && Get(id)->phase.kind != PhaseKind::kWaitingForQuiet; ++i) Step();
  EXPECT_EQ(Get(id)->phase.done, 0);
  EXPECT_EQ(Get(id)->phase.whole, 3);
  EXPECT_THAT(Get(id)->phase.detail, HasSubstr("on worker device, the machine was 3.5"));
  EXPECT_GT(Get(id)->disturbed, 0);
  EXPECT_LE(Get(id)->left, absl::Minutes(1)) << "20 s for each task";
  const auto job = RunToEnd(id, 900);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  for (const NetworkTaskState& task : job->network->tasks) {
    EXPECT_TRUE(task.confirmed);
    EXPECT_TRUE(task.disturbed);
  }
  // A later job measures the tasks again on a quiet machine.
  device.measure = nullptr;
  const auto later = RunToEnd(Create(NetworkOf(60, "later")), 900);
  for (const NetworkTaskState& task : later->network->tasks) EXPECT_FALSE(task.disturbed);
}

// Other work delays most runs of every confirmation.
TEST_F(NetworkJobTest, LatenciesOfADisturbedMachineLeaveOutDelayedRuns) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    const double alone = FakeLatency(lease.work->decisions);
    record::MeasureResult result;
    result.latency_ns = alone;
    result.samples_ns = {alone};
    if (IsConfirmation(lease)) {
      result.samples_ns = {90 * alone, alone, 50 * alone, alone, alone, 80 * alone, 70 * alone};
      result.latency_ns = 50 * alone;
      result.dispersion = 2;
    }
    return result;
  };
  const auto job = RunToEnd(Create(NetworkOf(60)), 900);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  for (const NetworkTaskState& task : job->network->tasks) {
    EXPECT_TRUE(task.confirmed);
    EXPECT_LE(task.latency_ns, FakeLatency({})) << "at most that of the default schedule";
  }
}

TEST_F(NetworkJobTest, OneFailedTaskDoesNotFailTheOthers) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    if (lease.work->workload == "fake beta 12") {
      result.outcome = record::Outcome::kCompileError;
      return result;
    }
    result.latency_ns = FakeLatency(lease.work->decisions);
    return result;
  };
  const std::string id = Create(NetworkOf(240));
  const auto job = RunToEnd(id, 1000);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_THAT(job->note, HasSubstr("1 of 3 tasks have no confirmed kernel"));
  EXPECT_EQ(job->network->tasks[1].state, "failed");
  EXPECT_NE(job->network->tasks[1].error, "");
  EXPECT_LE(job->network->tasks[1].trials, 60) << "a task without valid results is given up";
  EXPECT_TRUE(job->network->tasks[0].confirmed);
  EXPECT_EQ(NetworkLatency(*job->spec.network, *job->network), 0) << "not known for all tasks";
}

TEST_F(NetworkJobTest, FailsIfNoTaskHasAKernel) {
  device.measure = [](const fleet::LeaseGrant&) {
    record::MeasureResult result;
    result.outcome = record::Outcome::kCompileError;
    return result;
  };
  const auto job = RunToEnd(Create(NetworkOf(60)), 1000);
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("task 0, alpha: "));
  EXPECT_THAT(job->error, Not(HasSubstr("hone jobs resume"))) << "it would fail again";
}

// A slow disk may need longer than the time between two ticks.
TEST_F(NetworkJobTest, ATickBeforeTheJobIsStoredDoesNotEndIt) {
  store.Hold();
  std::string id;
  jobs->Create(NetworkOf(60), [&](SnapshotOr snapshot) { id = (*snapshot)->id; });
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_EQ(id, "");
  store.Commit();
  ASSERT_NE(id, "");
  for (int i = 0; i < 500 && !HasEnded(Get(id)->state); ++i) {
    Step();
    store.Commit();
  }
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 60);
}

TEST_F(NetworkJobTest, AnExhaustedTaskLeavesItsTrialsToTheOthers) {
  JobSpec spec = NetworkOf(200);
  spec.network->tasks[0].workload = "fake alpha 2";  // 8 candidates
  const std::string id = Create(spec);
  const auto job = RunToEnd(id, 1000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 200);
  EXPECT_LE(job->network->tasks[0].trials, 8);
  EXPECT_TRUE(job->network->tasks[0].confirmed);
}

TEST_F(NetworkJobTest, SharedTasksWeighInEveryNetwork) {
  JobSpec spec = NetworkOf(120);
  spec.network->tasks[0].weights = {1, 10};
  spec.network->network_names = {"a", "b"};
  const auto job = RunToEnd(Create(spec));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  const std::vector<NetworkTaskState>& tasks = job->network->tasks;
  EXPECT_DOUBLE_EQ(NetworkLatency(*job->spec.network, *job->network),
                   11 * tasks[0].latency_ns + 5 * tasks[1].latency_ns + 2 * tasks[2].latency_ns);
}

}  // namespace
}  // namespace hone::job
