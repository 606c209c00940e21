// Schedules that other programs propose for the search of a job.

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/search/proposals.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const char kFastest[] = "1,2,3";  // FakeLatency

// Traces of n different candidates, which no search proposes.
std::vector<std::string> Traces(int n, int first = 0) {
  std::vector<std::string> traces;
  for (int i = first; i < first + n; ++i) {
    traces.push_back(absl::StrCat("foreign ", i / 144 % 12, ",", i / 12 % 12, ",", i % 12));
  }
  return traces;
}

class JobProposalsTest : public ::testing::Test, protected JobHarness {
 protected:
  // Proposes and returns the answer, which `answer_` gets, too.
  absl::StatusOr<Verdicts> Propose(const std::string& id, std::vector<std::string> traces,
                                   const std::string& proposer = "mutator",
                                   const std::string& caller = "caller") {
    answer_ = absl::UnknownError("there is no answer");
    jobs->Propose(id, caller, {.proposer = proposer, .traces = std::move(traces)},
                  [this](absl::StatusOr<Verdicts> verdicts) { answer_ = std::move(verdicts); });
    executor->RunAll();
    return answer_;
  }
  std::vector<Refusal> Refusals(const absl::StatusOr<Verdicts>& verdicts) {
    std::vector<Refusal> refusals;
    EXPECT_THAT(verdicts, IsOk());
    if (!verdicts.ok()) return refusals;
    for (const Verdict& verdict : verdicts->each) refusals.push_back(verdict.refusal);
    return refusals;
  }
  std::vector<record::Record> RecordsOf(const std::string& id, const std::string& proposer) {
    return *store.Query({.page_size = 1000, .job_id = id, .proposer = proposer});
  }
  JobSpec ExternalSpec(int64_t trials, absl::Duration time) {
    JobSpec spec = Spec(trials);
    spec.strategy = kExternalStrategy;
    spec.max_time = time;
    return spec;
  }

  absl::StatusOr<Verdicts> answer_;
};

TEST_F(JobProposalsTest, AreMeasuredConfirmedAndAttributed) {
  const std::string id = Create(Spec(60));
  Step(2);
  const absl::StatusOr<Verdicts> verdicts = Propose(id, {kFastest, "11,11,11"});
  EXPECT_THAT(Refusals(verdicts), Each(Refusal::kNone));
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 60) << "proposals count";
  EXPECT_EQ(job->proposers.at("mutator").accepted, 2);
  EXPECT_EQ(job->proposers.at("mutator").measured, 2);
  EXPECT_EQ(job->proposers.at("mutator").latency_ns, FakeLatency({1, 2, 3}));
  EXPECT_EQ(job->best->record.candidate.decisions, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(job->best->record.proposer, "mutator");
  EXPECT_EQ(job->best->record.policy.name, "confirm");
  for (const record::Record& record : RecordsOf(id, "mutator")) {
    EXPECT_TRUE(record.trial == verdicts->each[0].trial || record.trial == verdicts->each[1].trial);
  }
  EXPECT_THAT(RecordsOf(id, "mutator"), SizeIs(testing::Ge(3u)));
}

TEST_F(JobProposalsTest, EachRefusalHasAReason) {
  const std::string id = Create(Spec(60));
  Step(2);
  const auto verdicts = Propose(id, {"nonsense", "1,2,300", "5,5,5", "5,5,5", "foreign 5,5,5"});
  EXPECT_THAT(Refusals(verdicts),
              testing::ElementsAre(Refusal::kMalformed, Refusal::kIllegal, Refusal::kNone,
                                   Refusal::kKnown, Refusal::kNone));
  EXPECT_EQ(verdicts->each[0].trial, -1);
  EXPECT_EQ(verdicts->each[3].why, absl::StrCat("it is trial ", verdicts->each[2].trial));
  EXPECT_EQ(verdicts->waiting, 2);
  RunToEnd(id);
  // What an earlier job has measured is known, too.
  const std::string later = Create(Spec(60, "later"));
  Step(2);
  const auto again = Propose(later, {"5,5,5", "foreign 5,5,5", "foreign 6,6,6"});
  ASSERT_THAT(Refusals(again),
              testing::ElementsAre(Refusal::kKnown, Refusal::kKnown, Refusal::kNone));
  for (int i = 0; i < 2; ++i) EXPECT_THAT(again->each[i].why, HasSubstr("an earlier job"));
}

TEST_F(JobProposalsTest, GetHalfOfEachBatch) {
  const std::string id = Create(Spec(13 * options.max_batch));
  Step(0);
  EXPECT_THAT(Refusals(Propose(id, Traces(64))), Each(Refusal::kNone));
  const auto job = RunToEnd(id, 5000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 13 * options.max_batch);
  EXPECT_EQ(job->proposers.at("mutator").measured, 64);
  int halves = 0;
  const std::vector<store::JobEvent> events = *store.Events(id);
  for (const store::JobEvent& event : events) {
    if (event.kind != kProposeKind) continue;
    const ProposeEvent propose = *DecodePropose(event);
    EXPECT_GE(propose.asked, options.max_batch / 2) << "the search has at least half";
    halves += propose.asked == options.max_batch / 2;
  }
  EXPECT_EQ(halves, 64 / (options.max_batch / 2));
}

TEST_F(JobProposalsTest, OfAnExhaustedSearchGetWholeBatches) {
  JobSpec spec = Spec(40);
  spec.workload = "fake tiny 2";
  const std::string id = Create(spec);
  Step(0);
  std::vector<std::string> traces;
  for (int i = 0; i < 8; ++i) {
    traces.push_back(absl::StrCat("foreign ", i / 4, ",", i / 2 % 2, ",", i % 2));
  }
  EXPECT_THAT(Refusals(Propose(id, traces)), Each(Refusal::kNone));
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 16) << "eight of the search's own space";
  EXPECT_EQ(job->proposers.at("mutator").measured, 8);
}

TEST_F(JobProposalsTest, MayBelongToASpaceThatNoRuleMakes) {
  const std::string id = Create(Spec(30));
  Step(2);
  EXPECT_THAT(Refusals(Propose(id, {"foreign 1,2,3"})), Each(Refusal::kNone));
  Restart();
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->best->record.proposer, "mutator");
  EXPECT_THAT(job->best->trace, HasSubstr("a foreign space"));
  bool sent = false;
  for (const fleet::LeaseGrant& lease : device.seen) {
    sent |= lease.work->space == "a foreign space searched";
  }
  EXPECT_TRUE(sent);
  // Later jobs know it as the incumbent, and still say who proposed it.
  const auto later = RunToEnd(Create(Spec(8, "later")));
  ASSERT_EQ(later->state, JobState::kDone) << later->error;
  EXPECT_EQ(later->best->record.proposer, "mutator");
}

TEST_F(JobProposalsTest, SurviveARestart) {
  const std::string id = Create(Spec(80));
  Step(2);
  const auto verdicts = Propose(id, Traces(20, 1000));
  EXPECT_THAT(Refusals(verdicts), Each(Refusal::kNone));
  for (int i = 0; i < 4; ++i) {
    Restart();
    Step(3);
    EXPECT_EQ(Get(id)->proposers.at("mutator").accepted, 20);
  }
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 80);
  EXPECT_EQ(job->proposers.at("mutator").measured, 20);
  std::set<std::pair<std::string, std::vector<int64_t>>> candidates;
  std::set<int64_t> trials;
  const std::vector<record::Record> records = *store.Query({.page_size = 1000, .job_id = id});
  for (const record::Record& record : records) {
    if (record.policy.name != "screen" || record.is_default) continue;
    const record::Candidate& candidate = record.candidate;
    EXPECT_TRUE(candidates.emplace(candidate.space_digest, candidate.decisions).second)
        << "measured twice";
    if (record.proposer == "mutator") trials.insert(record.trial);
  }
  for (const Verdict& verdict : verdicts->each) EXPECT_TRUE(trials.contains(verdict.trial));
  // No restart has made the search begin again: every event is of one sequence.
  std::set<int64_t> proposed;
  const std::vector<store::JobEvent> events = *store.Events(id);
  for (const store::JobEvent& event : events) {
    if (event.kind == kExternalKind) proposed.insert(DecodeExternal(event)->proposal.trial);
  }
  EXPECT_EQ(proposed, trials);
}

TEST_F(JobProposalsTest, AreAcceptedOnlyOnceTheyAreStored) {
  const std::string id = Create(Spec(40));
  Step(2);
  store.Hold();
  EXPECT_THAT(Propose(id, {kFastest}), StatusIs(absl::StatusCode::kUnknown));
  store.Commit();
  executor->RunAll();
  EXPECT_THAT(Refusals(answer_), Each(Refusal::kNone));
}

TEST_F(JobProposalsTest, CallsAreAnsweredAtAShutdown) {
  const std::string id = Create(Spec(40));
  Step(2);
  store.Hold();
  EXPECT_THAT(Propose(id, {kFastest}), StatusIs(absl::StatusCode::kUnknown));
  jobs->Suspend();
  store.Crash();
  executor->RunAll();
  EXPECT_THAT(answer_, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(JobProposalsTest, BeforeTheDesignSpacesWaitForThem) {
  store.Hold();
  std::string id;
  jobs->Create(Spec(40), [&](const SnapshotOr& job) { id = (*job)->id; });
  store.Commit();
  EXPECT_THAT(Propose(id, {kFastest}), StatusIs(absl::StatusCode::kUnknown));
  for (int i = 0; i < 5; ++i) {
    store.Commit();
    executor->RunAll();
  }
  EXPECT_THAT(Refusals(answer_), Each(Refusal::kNone));
}

TEST_F(JobProposalsTest, WaitOnlyAsLongAsTheirCallerAndTheServer) {
  store.Hold();
  std::string id;
  jobs->Create(Spec(40), [&](const SnapshotOr& job) { id = (*job)->id; });
  EXPECT_THAT(Propose("1", {kFastest}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("propose again in a moment")));
  store.Commit();
  ASSERT_EQ(id, "1");
  absl::Status caller;
  jobs->Propose(id, "caller",
                {.proposer = "a", .traces = Traces(64), .check = [&caller] { return caller; }},
                [this](absl::StatusOr<Verdicts> verdicts) { answer_ = std::move(verdicts); });
  const auto wait = [this] {
    answer_ = absl::UnknownError("there is no answer");
    for (int i = 0; i < 3; ++i) {
      jobs->Tick();
      executor->RunAll();
    }
  };
  wait();
  EXPECT_THAT(answer_, StatusIs(absl::StatusCode::kUnknown)) << "it waits for the design spaces";
  EXPECT_THAT(Propose(id, {kFastest}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of this caller")));
  caller = absl::CancelledError("the caller has gone");
  wait();
  EXPECT_THAT(answer_, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Propose(id, {kFastest}), StatusIs(absl::StatusCode::kUnknown)) << "has a place again";
  // The server waits for its calls before it destroys the jobs.
  jobs->Suspend();
  executor->RunAll();
  EXPECT_THAT(answer_, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(JobProposalsTest, OtherWorkHasItsTurnBetweenTraces) {
  const std::string id = Create(Spec(400));
  Step(2);
  std::string order;
  environment.WatchSteps([&](absl::string_view step, absl::string_view) {
    if (step == "read") order += "r";
  });
  jobs->Propose(id, "caller", {.proposer = "a", .traces = Traces(3)}, [](const auto&) {});
  executor->Schedule([&] { executor->Schedule([&] { order += "x"; }); });
  executor->RunAll();
  EXPECT_EQ(order, "rxrr");
}

TEST_F(JobProposalsTest, AreKnownAfterAChangeOfTheSearch) {
  const std::string id = Create(Spec(80));
  Step(2);
  const std::vector<std::string> traces = Traces(20, 1000);
  EXPECT_THAT(Refusals(Propose(id, traces)), Each(Refusal::kNone));
  environment.ChangeStrategies();
  Restart();
  Step(0);
  EXPECT_THAT(Refusals(Propose(id, traces)), Each(Refusal::kKnown));
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->proposers.at("mutator").measured, 20);
}

TEST_F(JobProposalsTest, AreNoLongerTakenWithoutTrialsLeft) {
  const std::string id = Create(Spec(16));
  Step(0);
  const std::vector<Refusal> refusals = Refusals(Propose(id, Traces(30)));
  EXPECT_EQ(std::count(refusals.begin(), refusals.end(), Refusal::kFull), 30 - (16 - 4))
      << "the first batch has four";
  EXPECT_THAT(answer_->each.back().why, HasSubstr("no trials left of its 16"));
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->trials, 16);
}

TEST_F(JobProposalsTest, OnlySoManyWait) {
  const std::string id = Create(Spec(4000));
  Step(0);
  for (int program = 0; program < 4; ++program) {
    const std::string name = absl::StrCat("program ", program);
    EXPECT_THAT(Refusals(Propose(id, Traces(64, 64 * program), name)), Each(Refusal::kNone));
    EXPECT_THAT(Refusals(Propose(id, {"foreign 11,11,11"}, name)), Each(Refusal::kFull));
  }
  // Another one may have a few nevertheless.
  const std::vector<Refusal> another = Refusals(Propose(id, Traces(9, 1000), "another"));
  EXPECT_EQ(std::count(another.begin(), another.end(), Refusal::kNone), 8);
  EXPECT_EQ(another.back(), Refusal::kFull);
  EXPECT_THAT(answer_->each[8].why, HasSubstr("264 proposals wait"));
}

TEST_F(JobProposalsTest, OnlySoManyBytesOfSpacesAreKept) {
  const std::string id = Create(ExternalSpec(1000, absl::Minutes(10)));
  int accepted = 0;
  const std::string blanks(1 << 20, ' ');
  for (int i = 0; i < 70; ++i) {
    Step();
    accepted += Refusals(Propose(id, {"foreign " + blanks + std::string(i, ' ') + "1,1,1"})) ==
                std::vector<Refusal>{Refusal::kNone};
  }
  EXPECT_EQ(accepted, 63);
  EXPECT_EQ(answer_->each[0].refusal, Refusal::kFull);
  EXPECT_THAT(answer_->each[0].why, HasSubstr("64 MiB"));
  // Other decisions of what is known need no memory.
  EXPECT_THAT(Refusals(Propose(id, {"foreign " + blanks + "2,2,2", "5,6,7"})),
              Each(Refusal::kNone));
  Restart();
  Step(0);
  EXPECT_THAT(Refusals(Propose(id, {"foreign " + blanks + std::string(70, ' ') + "1,1,1"})),
              Each(Refusal::kFull));
}

TEST_F(JobProposalsTest, OnlySoManyProgramsPropose) {
  const std::string id = Create(Spec(400));
  Step(0);
  for (int i = 0; i < 32; ++i) {
    EXPECT_THAT(
        Propose(id, Traces(1, i), absl::StrCat("program ", i), absl::StrCat("caller ", i / 8)),
        IsOk());
  }
  EXPECT_THAT(Propose(id, {"foreign 11,11,11"}, "one more", "caller 4"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("32 programs")));
  EXPECT_THAT(Propose(id, {"foreign 11,11,11"}, "program 3"), IsOk());
}

TEST_F(JobProposalsTest, OneCallerCannotUseUpTheNamesOfPrograms) {
  const std::string id = Create(Spec(400));
  Step(0);
  for (int i = 0; i < 8; ++i) {
    EXPECT_THAT(Propose(id, Traces(1, i), absl::StrCat("program ", i), "ann"), IsOk());
  }
  EXPECT_THAT(
      Propose(id, Traces(1, 20), "one more", "ann"),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("'ann' has proposed for job " + id + " in the names of 8 programs")));
  EXPECT_THAT(Propose(id, Traces(1, 20), "program 7", "ann"), IsOk());
  EXPECT_THAT(Propose(id, Traces(1, 21), "one more", "bob"), IsOk());
  EXPECT_THAT(Propose(id, Traces(1, 22), "one more", "ann"), IsOk()) << "it is known by now";
  for (int i = 0; i < 9; ++i) {
    EXPECT_THAT(Propose(id, Traces(1, 30 + i), absl::StrCat("local ", i), ""), IsOk())
        << "without authentication, everybody is the same caller";
  }
}

TEST_F(JobProposalsTest, AJobThatDoesNotSearchRefusesThemWithAdvice) {
  EXPECT_THAT(Propose("4711", {kFastest}), StatusIs(absl::StatusCode::kNotFound));
  const std::string id = Create(Spec(16));
  RunToEnd(id);
  const auto is_refused = [](const char* why) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why));
  };
  EXPECT_THAT(Propose(id, {kFastest}), is_refused("is done; propose for another job"));
  JobSpec given = Spec(16, "given");
  given.space = "2,2,2";
  given.is_check = true;
  const std::string one = Create(given);
  Step(0);
  EXPECT_THAT(Propose(one, {kFastest}), is_refused("has one schedule and does not search"));
  JobSpec again = Spec(16, "again");
  again.revalidate = 2;
  const std::string revalidation = Create(again);
  Step(0);
  EXPECT_THAT(Propose(revalidation, {kFastest}), is_refused("revalidates stored candidates"));
  const std::string cancelled = Create(Spec(400, "cancelled"));
  Step(2);
  ASSERT_THAT(jobs->Cancel(cancelled, /*confirm=*/true), IsOk());
  executor->RunAll();
  EXPECT_THAT(Propose(cancelled, {kFastest}), is_refused("or after \"hone jobs resume"));
}

TEST_F(JobProposalsTest, AThrownExceptionRefusesOneTrace) {
  bool armed = true;
  environment.WatchSteps([&](absl::string_view step, absl::string_view) {
    if (step == "read" && std::exchange(armed, false)) throw std::runtime_error("a defect");
  });
  const std::string id = Create(Spec(40));
  Step(2);
  const auto verdicts = Propose(id, {kFastest, "11,11,11"});
  EXPECT_THAT(Refusals(verdicts), testing::ElementsAre(Refusal::kIllegal, Refusal::kNone));
  EXPECT_THAT(verdicts->each[0].why, AllOf(HasSubstr("a defect"), HasSubstr("please report")));
  EXPECT_EQ(RunToEnd(id)->state, JobState::kDone);
}

TEST_F(JobProposalsTest, AnExternalJobOnlyMeasuresThem) {
  const std::string id = Create(ExternalSpec(6, absl::Seconds(60)));
  for (int i = 0; i < 5; ++i) Step();
  EXPECT_EQ(Get(id)->phase.kind, PhaseKind::kWaitingForProposals);
  EXPECT_EQ(Get(id)->trials, 0);
  EXPECT_TRUE(Get(id)->default_schedule.has_value());
  EXPECT_THAT(Refusals(Propose(id, {kFastest, "11,11,11", "2,2,2"})), Each(Refusal::kNone));
  for (int i = 0; i < 30; ++i) Step();
  EXPECT_EQ(Get(id)->trials, 3);
  EXPECT_EQ(Get(id)->phase.kind, PhaseKind::kWaitingForProposals);
  Restart();
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_THAT(Refusals(Propose(id, Traces(4))),
              testing::ElementsAre(Refusal::kNone, Refusal::kNone, Refusal::kNone, Refusal::kFull));
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 6);
  EXPECT_EQ(job->best->record.proposer, "mutator");
  EXPECT_EQ(job->note, "");
}

TEST_F(JobProposalsTest, AnExternalJobEndsWithItsTime) {
  const std::string id = Create(ExternalSpec(0, absl::Seconds(8)));
  const auto job = RunToEnd(id, 200);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 0);
  EXPECT_TRUE(job->best->record.is_default);
}

TEST(CheckingLimitTest, CountsTracesOfCallersAndOfAll) {
  const auto limit = std::make_shared<CheckingLimit>();
  std::vector<std::shared_ptr<void>> places;
  for (int caller = 0; caller < kMostChecked / kMostCheckedOfOne; ++caller) {
    const std::string name = absl::StrCat("caller ", caller);
    places.push_back(*limit->Enter(name, kMostCheckedOfOne - 1));
    EXPECT_THAT(limit->Enter(name, 2), StatusIs(absl::StatusCode::kResourceExhausted,
                                                HasSubstr("63 traces of this caller")));
    places.push_back(*limit->Enter(name, 1));
  }
  EXPECT_THAT(limit->Enter("another", 1),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("256 traces are")));
  places.pop_back();
  EXPECT_THAT(limit->Enter("another", 1), IsOk());
}

TEST(WaitingProposalsTest, ProgramsTakeTurnsWithWhatIsStored) {
  WaitingProposals waiting;
  for (const int trial : {1, 2, 3, 4}) waiting.Add(trial, "a", /*stored=*/true);
  waiting.Add(5, "b", /*stored=*/false);
  waiting.Add(6, "b", /*stored=*/true);
  EXPECT_EQ(waiting.Ready(), 5);
  EXPECT_EQ(waiting.CountOf("a"), 4u);
  EXPECT_THAT(waiting.Take(3), testing::ElementsAre(1, 6, 2));
  waiting.SetStored(5);
  waiting.Add(7, "c", /*stored=*/true);
  EXPECT_THAT(waiting.Take(4), testing::ElementsAre(7, 5, 3, 4));
  EXPECT_EQ(waiting.size(), 0u);
}

TEST(ShareOfProposalsTest, IsHalfOrEveryOtherCandidate) {
  EXPECT_EQ(ShareOfProposals(32, 0), 16);
  EXPECT_EQ(ShareOfProposals(5, 0), 2);
  EXPECT_EQ(ShareOfProposals(1, 6), 0);
  EXPECT_EQ(ShareOfProposals(1, 7), 1);
}

}  // namespace
}  // namespace hone::job
