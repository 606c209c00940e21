// The evaluation of cost models on recorded trials: which trials are held out, and which requests
// are refused.

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/search/model_work.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/fakes/manual_store.h"
#include "tests/server/job/search/model_records.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;

class ModelEvaluationTest : public ::testing::Test {
 protected:
  absl::StatusOr<ModelEvaluation> Evaluate(EvaluationQuery query) {
    if (query.models.empty()) query.models = {{"nearest", ""}};
    return EvaluateModels({.clock = &clock_,
                           .store = &store_,
                           .environment = &environment_,
                           .pause = [this] { return pause_; }},
                          query);
  }
  void ExpectRefused(const EvaluationQuery& query, absl::StatusCode code,
                     const std::string& message) {
    const absl::Status status = Evaluate(query).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  FakeClock clock_;
  store::ManualStore store_;
  FakeTaskEnvironment environment_;
  absl::Status pause_;
};

TEST_F(ModelEvaluationTest, HoldsOutTrialsAndEveryTaskInTurn) {
  PutTrials(store_, "op", 10, 60);
  PutTrials(store_, "po", 9, 40, "job-2");
  HONE_ASSERT_OK_AND_ASSIGN(const ModelEvaluation evaluation, Evaluate({}));
  EXPECT_EQ(evaluation.target, "t");
  EXPECT_EQ(evaluation.tasks, 2);
  EXPECT_EQ(evaluation.candidates, 100);
  ASSERT_EQ(evaluation.scores.size(), 2u);
  const ModelScore& tasks = evaluation.scores[0];
  EXPECT_EQ(tasks.held_out, "tasks");
  EXPECT_EQ(tasks.model, "nearest");
  EXPECT_EQ(tasks.feature_set, "decisions");
  EXPECT_EQ(tasks.tasks, 2);
  EXPECT_EQ(tasks.evaluated_on, 100);
  EXPECT_EQ(tasks.trained_on, 50);  // 40 and 60 in the two folds
  const ModelScore& trials = evaluation.scores[1];
  EXPECT_EQ(trials.held_out, "trials");
  EXPECT_EQ(trials.evaluated_on, 18 + 12);  // 0.3 of each
  EXPECT_EQ(trials.trained_on, 70);
  // On the fake device, neighbors have similar latencies.
  EXPECT_GT(trials.pairwise, 0.75);
  EXPECT_GT(trials.top5, 0.8);
  EXPECT_LT(trials.rmse, 0.2);
  EXPECT_TRUE(std::isnan(trials.coverage1)) << "the model predicts no spread";
}

// No task can be held out: four candidates are too few to be asked for, and to learn from.
TEST_F(ModelEvaluationTest, HoldsOutOnlyTrialsOfALargeTaskAndATinyOne) {
  PutTrials(store_, "op", 10, 100);
  const std::string tiny = PutTrials(store_, "po", 9, 4, "job-2");
  HONE_ASSERT_OK_AND_ASSIGN(const ModelEvaluation evaluation, Evaluate({}));
  ASSERT_EQ(evaluation.scores.size(), 1u);
  EXPECT_EQ(evaluation.scores[0].held_out, "trials");
  EXPECT_EQ(evaluation.scores[0].evaluated_on, 30);
  ExpectRefused({.held_out = {tiny}}, absl::StatusCode::kNotFound, "too few measurements");
}

TEST_F(ModelEvaluationTest, HoldsOutTheNamedTasks) {
  PutTrials(store_, "op", 10, 60);
  const std::string digest = PutTrials(store_, "po", 9, 40, "job-2");
  for (const std::string& word : {std::string("po"), digest, digest.substr(0, 8)}) {
    HONE_ASSERT_OK_AND_ASSIGN(const ModelEvaluation evaluation, Evaluate({.held_out = {word}}));
    ASSERT_EQ(evaluation.scores.size(), 1u);
    EXPECT_EQ(evaluation.scores[0].evaluated_on, 40);
    EXPECT_EQ(evaluation.scores[0].trained_on, 60);
  }
  ExpectRefused({.held_out = {"conv2d"}}, absl::StatusCode::kNotFound, "there are: ");
  ExpectRefused({.held_out = {digest.substr(0, 3)}}, absl::StatusCode::kNotFound, "po");
  ExpectRefused({.held_out = {"op", "po"}}, absl::StatusCode::kNotFound, "0 to train on");
}

TEST_F(ModelEvaluationTest, EqualSeedsHoldOutEqualTrials) {
  PutTrials(store_, "op", 10, 60);
  const EvaluationQuery query{.held_out_trials = 0.4, .seed = 3};
  const double once = Evaluate(query)->scores[0].rmse;
  EXPECT_EQ(Evaluate(query)->scores[0].rmse, once);
  EXPECT_NE(Evaluate({.held_out_trials = 0.4, .seed = 4})->scores[0].rmse, once);
}

TEST_F(ModelEvaluationTest, ErrorsNameWhatIsMissing) {
  ExpectRefused({}, absl::StatusCode::kNotFound, "no measurements to learn from");
  PutTrials(store_, "op", 10, 12);
  ExpectRefused({}, absl::StatusCode::kNotFound, "8 to train on and 4 of a workload");
  PutTrials(store_, "op", 10, 60);
  ExpectRefused({.records = {.op = "conv2d"}}, absl::StatusCode::kNotFound, "'conv2d'");
  ExpectRefused({.records = {.target = "board"}}, absl::StatusCode::kNotFound, "board");
  ExpectRefused({.models = {{"crystal ball", ""}}}, absl::StatusCode::kNotFound, "nearest");
  ExpectRefused({.models = {{"oracle", ""}}}, absl::StatusCode::kFailedPrecondition, "temple");
  ExpectRefused({.held_out_trials = 1.0}, absl::StatusCode::kInvalidArgument, "not 1");
  ExpectRefused({.held_out_trials = 0.3, .k = 0}, absl::StatusCode::kInvalidArgument,
                "k must be at least 1");
}

TEST_F(ModelEvaluationTest, StopsWhenCancelled) {
  PutTrials(store_, "op", 10, 60);
  pause_ = absl::DeadlineExceededError("enough");
  ExpectRefused({}, absl::StatusCode::kDeadlineExceeded, "enough");
}

// Records that the store may contain but that a model must not see.
TEST_F(ModelEvaluationTest, ImplausibleAndQuarantinedRecordsAreExcluded) {
  PutTrials(store_, "op", 10, 60);
  const double rmse = Evaluate({.held_out_trials = 0.3})->scores[0].rmse;
  for (const double latency : {1e-9, 1e18}) {
    record::Record record = TrialOf("op", 10, {9, 9, 9});
    record.result.latency_ns = latency;
    PutRecord(store_, record);
  }
  record::Record quarantined = TrialOf("op", 10, {8, 8, 8});
  quarantined.quarantined = true;
  PutRecord(store_, quarantined);
  record::Record confirmed = TrialOf("op", 10, {6, 6, 6});
  confirmed.policy.name = "confirm";
  PutRecord(store_, confirmed);

  HONE_ASSERT_OK_AND_ASSIGN(const ModelEvaluation evaluation, Evaluate({.held_out_trials = 0.3}));
  EXPECT_EQ(evaluation.candidates, 60);
  EXPECT_EQ(evaluation.left_out.implausible, 2);
  EXPECT_EQ(evaluation.left_out.quarantined, 1);
  EXPECT_EQ(evaluation.left_out.Total(), 3);
  EXPECT_EQ(evaluation.left_out.ToText(),
            "3 left out: 1 quarantined, 2 with an implausible latency");
  EXPECT_EQ(evaluation.scores[0].rmse, rmse);
}

// Imported records have no job in this store. They are used once another job describes the same
// target key.
TEST_F(ModelEvaluationTest, RecordsOfUnknownJobsAreUsedIfTheirTargetIsKnown) {
  for (int64_t i = 0; i < 60; ++i) {
    PutRecord(store_, TrialOf("op", 10, {i % 4, i / 4 % 4, i / 16}, "an unknown job"));
  }
  EXPECT_THAT(Evaluate({.held_out_trials = 0.3}),
              StatusIs(absl::StatusCode::kNotFound,
                       testing::HasSubstr(
                           "60 left out: 60 of a target that no job in this store describes")));
  PutTrials(store_, "op", 10, 1);
  HONE_ASSERT_OK_AND_ASSIGN(const ModelEvaluation evaluation, Evaluate({.held_out_trials = 0.3}));
  EXPECT_GE(evaluation.candidates, 60);
  EXPECT_EQ(evaluation.left_out.Total(), 0);
}

TEST_F(ModelEvaluationTest, TheLatestMeasurementOfACandidateCounts) {
  PutTrials(store_, "op", 10, 60);
  record::Record again = TrialOf("op", 10, {0, 0, 0});
  again.result.latency_ns = 5;
  PutRecord(store_, again);
  HONE_ASSERT_OK_AND_ASSIGN(const RecordedTasks tasks,
                            ReadRecordedTasks(store_, {}, [] { return absl::OkStatus(); }));
  ASSERT_EQ(tasks.tasks.size(), 1u);
  EXPECT_EQ(tasks.tasks[0].candidates.size(), 60u);
  EXPECT_EQ(tasks.tasks[0].target, "target of the fake");
  int found = 0;
  for (const RecordedCandidate& each : tasks.tasks[0].candidates) found += each.latency_ns == 5;
  EXPECT_EQ(found, 1);
}

TEST_F(ModelEvaluationTest, ALimitIsSharedAmongWorkloads) {
  PutTrials(store_, "op", 10, 60);
  PutTrials(store_, "po", 10, 30, "job-2");
  HONE_ASSERT_OK_AND_ASSIGN(
      const RecordedTasks tasks,
      ReadRecordedTasks(store_, {.max_records = 40}, [] { return absl::OkStatus(); }));
  ASSERT_EQ(tasks.tasks.size(), 2u);
  for (const RecordedTask& task : tasks.tasks) EXPECT_EQ(task.candidates.size(), 20u);
  HONE_ASSERT_OK_AND_ASSIGN(
      const RecordedTasks more,
      ReadRecordedTasks(store_, {.max_records = 80}, [] { return absl::OkStatus(); }));
  for (const RecordedTask& task : more.tasks) {
    EXPECT_EQ(task.candidates.size(), task.op == "po" ? 30u : 50u);
  }
}

// A stored model is judged as it is, on all records of its target.
TEST_F(ModelEvaluationTest, JudgesAStoredModelWithoutTraining) {
  PutTrials(store_, "op", 10, 60);
  PutTrials(store_, "po", 9, 40, "job-2");
  PutTrials(store_, "tiny", 2, 3, "job-3");
  const auto model = environment_.CreateModel("nearest", {}).value();
  const auto put = [&](const std::string& bytes) {
    int64_t row = 0;
    store_.PutModel({.key = {"nearest", "decisions", "t", ""},
                     .records = 777,
                     .bytes = bytes,
                     .origin = "another server"},
                    [&](absl::StatusOr<int64_t> id) { row = id.value_or(-1); });
    return row;
  };
  const int64_t id = put(model->Save().value());
  HONE_ASSERT_OK_AND_ASSIGN(const ModelEvaluation evaluation,
                            Evaluate({.models = {{.stored = id}}}));
  ASSERT_EQ(evaluation.scores.size(), 1u);
  const ModelScore& score = evaluation.scores[0];
  EXPECT_EQ(score.model, "nearest");
  EXPECT_EQ(score.stored, id);
  EXPECT_EQ(score.held_out, "stored");
  EXPECT_EQ(score.trained_on, 777);
  EXPECT_EQ(score.evaluated_on, 100);
  EXPECT_EQ(score.tasks, 2) << "a workload with three results says nothing";
  EXPECT_TRUE(std::isnan(score.train_ms));
  ExpectRefused({.models = {{.stored = 4711}}}, absl::StatusCode::kNotFound, "4711");
  ExpectRefused({.models = {{.stored = put("no model")}}}, absl::StatusCode::kInvalidArgument,
                "stored model");
}

// The sample is drawn from old records as well as from new ones, with the same share of every
// workload, and does not depend on the order in which they were measured.
TEST_F(ModelEvaluationTest, TheSampleIsDrawnFromAllRecords) {
  PutTrials(store_, "op", 30, 900);
  PutTrials(store_, "po", 30, 900, "job-2");
  PutTrials(store_, "few", 3, 7, "job-3");
  const auto read = [&] {
    return ReadRecordedTasks(store_, {.max_records = 107}, [] { return absl::OkStatus(); });
  };
  HONE_ASSERT_OK_AND_ASSIGN(const RecordedTasks sample, read());
  EXPECT_EQ(sample.records, 1807);
  ASSERT_EQ(sample.tasks.size(), 3u);
  int old = 0;
  for (const RecordedTask& task : sample.tasks) {
    EXPECT_EQ(task.candidates.size(), task.op == "few" ? 7u : 50u) << task.op;
    for (const RecordedCandidate& each : task.candidates) old += each.candidate.decisions[1] < 15;
  }
  EXPECT_GT(old, 30) << "about half of the 107";
  EXPECT_LT(old, 77);
}

}  // namespace
}  // namespace hone::job
