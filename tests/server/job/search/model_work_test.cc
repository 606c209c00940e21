// Training and evaluation as the service runs them: one at a time, with a limit, and with the
// result stored.

#include "server/job/search/model_work.h"

#include <new>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/job/search/draft_work.h"
#include "server/store/read_limit.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/manual_store.h"
#include "tests/server/job/search/model_records.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;

class ModelWorkTest : public ::testing::Test {
 protected:
  ModelWorkTest()
      : work_({.clock = &clock_,
               .steady_clock = &steady_clock_,
               .store = &store_,
               .environment = &environment_,
               .executor = &executor_},
              /*respect_timing_lock=*/false) {
    PutTrials(store_, "op", 10, 60);
  }
  // Starts a training. The result is in row_ once the executor has run.
  void Train(WorkLimit limit = {}) {
    work_.Train({.records = {.op = "op"}, .model = {"nearest", ""}}, std::move(limit),
                [this](absl::StatusOr<store::ModelRow> row) { row_ = std::move(row); });
  }
  void ExpectFailed(absl::StatusCode code) {
    executor_.RunAll();
    ASSERT_TRUE(row_.has_value());
    EXPECT_EQ(row_->status().code(), code) << row_->status();
    row_.reset();
    EXPECT_THAT(store_.ListModels("", "").value(), testing::IsEmpty());
  }

  FakeClock clock_, steady_clock_;
  store::ManualStore store_;
  FakeTaskEnvironment environment_;
  ManualExecutor executor_;
  ModelWork work_;
  std::optional<absl::StatusOr<store::ModelRow>> row_;
};

TEST_F(ModelWorkTest, ATrainedModelIsInTheStore) {
  clock_.Advance(absl::Hours(1));
  Train();
  EXPECT_FALSE(row_.has_value()) << "training does not run in the caller's thread";
  executor_.RunAll();
  ASSERT_TRUE(row_.has_value() && row_->ok()) << row_->status();
  const store::ModelKey key{"nearest", "decisions", "t", "op"};
  EXPECT_EQ((*row_)->key, key);
  EXPECT_EQ((*row_)->bytes, "");
  const store::ModelRow kept = store_.GetModel(key).value();
  EXPECT_EQ(kept.id, (*row_)->id);
  EXPECT_EQ(kept.version, 7);
  EXPECT_EQ(kept.records, 60);
  EXPECT_EQ(kept.workloads, 1);
  EXPECT_EQ(kept.created_unix_ms, absl::ToUnixMillis(clock_.Now()));
  const auto metrics = nlohmann::json::parse(kept.metrics);
  EXPECT_EQ(metrics["evaluated_on"], 12);
  EXPECT_GT(metrics["pairwise"].get<double>(), 0.7);
}

// A server that starts with old records learns from them at the first result; later, when there are
// many new ones.
TEST_F(ModelWorkTest, LearnsTheDraftOfATargetInTheBackground) {
  const store::ModelKey key{kLearnedDraft, kLearnedDraft, "t", ""};
  PutTrials(store_, "other", 10, 240, "another job");
  work_.Tick();
  EXPECT_TRUE(absl::IsNotFound(store_.GetModel(key).status())) << "no job has had a result";
  work_.NoteResult("t");
  work_.Tick();
  EXPECT_TRUE(absl::IsNotFound(store_.GetModel(key).status())) << "not in the caller's thread";
  executor_.RunAll();
  const store::ModelRow first = store_.GetModel(key).value();
  EXPECT_EQ(first.records, 300);
  EXPECT_EQ(first.metrics, R"({"candidates": 300})");
  for (int i = 0; i < 74; ++i) work_.NoteResult("t");
  work_.Tick();
  executor_.RunAll();
  EXPECT_EQ(store_.GetModel(key)->id, first.id) << "too few new results";
  work_.NoteResult("t");
  work_.Tick();
  executor_.RunAll();
  EXPECT_GT(store_.GetModel(key)->id, first.id);
}

TEST_F(ModelWorkTest, ItLearnsAfterAReadThatThrew) {
  const store::ModelKey key{kLearnedDraft, kLearnedDraft, "t", ""};
  PutTrials(store_, "other", 10, 240, "another job");
  work_.NoteResult("t");
  work_.Tick();
  store_.BeforeReads([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_THROW(executor_.RunAll(), std::bad_alloc);
  store_.BeforeReads(nullptr);
  for (int i = 0; i < 100; ++i) work_.NoteResult("t");
  work_.Tick();
  executor_.RunAll();
  EXPECT_THAT(store_.GetModel(key), IsOk());
}

// With thousands of workers, results come faster than they can be learned from.
TEST_F(ModelWorkTest, RestsTenTimesAsLongAsItLearned) {
  const store::ModelKey key{kLearnedDraft, kLearnedDraft, "t", ""};
  PutTrials(store_, "other", 10, 240, "another job");
  work_.NoteResult("t");
  work_.Tick();
  executor_.RunAll();
  for (int i = 0; i < 1000; ++i) work_.NoteResult("t");
  work_.Tick();
  steady_clock_.Advance(absl::Seconds(3));  // how long it takes
  executor_.RunAll();
  const int64_t first = store_.GetModel(key)->id;
  for (int i = 0; i < 1000; ++i) work_.NoteResult("t");
  steady_clock_.Advance(absl::Seconds(29));
  work_.Tick();
  executor_.RunAll();
  EXPECT_EQ(store_.GetModel(key)->id, first);
  steady_clock_.Advance(absl::Seconds(1));
  work_.Tick();
  executor_.RunAll();
  EXPECT_GT(store_.GetModel(key)->id, first);
}

TEST_F(ModelWorkTest, ATickReadsNothing) {
  const int64_t before = store::NoReads::count();
  {
    const store::NoReads no_reads("the test");
    work_.NoteResult("t");
    work_.Tick();
  }
  EXPECT_EQ(store::NoReads::count(), before);
  executor_.RunAll();
}

// A draft that was learned from one task cannot be judged, so it does not replace an imported one.
TEST_F(ModelWorkTest, OneTaskIsTooFewForADraft) {
  const store::ModelKey key{kLearnedDraft, kLearnedDraft, "t", ""};
  PutTrials(store_, "op", 10, 300);
  const int64_t imported = [&] {
    int64_t row = 0;
    store_.PutModel({.key = key, .records = 9000, .bytes = "file", .origin = "another server"},
                    [&](absl::StatusOr<int64_t> id) { row = id.value_or(-1); });
    return row;
  }();
  work_.NoteResult("t");
  work_.Tick();
  executor_.RunAll();
  EXPECT_EQ(store_.GetModel(key)->id, imported);
  // With a second task, the records of the imported draft do not delay the server's own.
  PutTrials(store_, "other", 10, 100, "another job");
  for (int i = 0; i < 256; ++i) work_.NoteResult("t");
  work_.Tick();
  executor_.RunAll();
  EXPECT_EQ(store_.GetModel(key)->origin, "");
}

TEST_F(ModelWorkTest, LearnsLaterIfAClientTrains) {
  PutTrials(store_, "other", 10, 240, "another job");
  work_.NoteResult("t");
  work_.Tick();
  Train();
  executor_.RunAll();
  const store::ModelKey key{kLearnedDraft, kLearnedDraft, "t", ""};
  EXPECT_TRUE(absl::IsNotFound(store_.GetModel(key).status()));
  work_.Tick();
  executor_.RunAll();
  EXPECT_TRUE(store_.GetModel(key).ok());
}

TEST_F(ModelWorkTest, OnlyOneTrainingOrEvaluationRunsAtATime) {
  Train();
  std::optional<absl::Status> refused;
  work_.Evaluate({.models = {{"nearest", ""}}}, {},
                 [&](absl::StatusOr<ModelEvaluation> result) { refused = result.status(); });
  ASSERT_TRUE(refused.has_value());
  EXPECT_THAT(*refused, StatusIs(absl::StatusCode::kResourceExhausted));
  executor_.RunAll();
  ASSERT_TRUE(row_->ok()) << row_->status();

  std::optional<absl::StatusOr<ModelEvaluation>> evaluation;
  work_.Evaluate({.models = {{"nearest", ""}}}, {},
                 [&](absl::StatusOr<ModelEvaluation> result) { evaluation = std::move(result); });
  executor_.RunAll();
  ASSERT_TRUE(evaluation.has_value() && evaluation->ok());
  EXPECT_EQ((*evaluation)->scores.size(), 1u);
}

TEST_F(ModelWorkTest, EndsAtItsLimit) {
  Train({.deadline = clock_.Now() - absl::Milliseconds(1)});
  ExpectFailed(absl::StatusCode::kDeadlineExceeded);
  Train({.cancelled = [] { return true; }});
  ExpectFailed(absl::StatusCode::kCancelled);
  Train();
  work_.Stop();
  ExpectFailed(absl::StatusCode::kUnavailable);
  Train();
  ExpectFailed(absl::StatusCode::kUnavailable);
}

TEST_F(ModelWorkTest, AnExceptionIsAnAnswerAndTheNextRequestRuns) {
  environment_.WatchSteps([](absl::string_view, absl::string_view) { throw std::bad_alloc(); });
  Train();
  ExpectFailed(absl::StatusCode::kInternal);
  std::optional<absl::Status> evaluated;
  const auto evaluate = [&] {
    work_.Evaluate({.models = {{"nearest", ""}}}, {},
                   [&](absl::StatusOr<ModelEvaluation> result) { evaluated = result.status(); });
    executor_.RunAll();
  };
  evaluate();
  ASSERT_TRUE(evaluated.has_value());
  EXPECT_EQ(evaluated->code(), absl::StatusCode::kInternal) << *evaluated;
  EXPECT_THAT(std::string(evaluated->message()), HasSubstr("std::bad_alloc"));

  environment_.WatchSteps(nullptr);
  evaluate();
  EXPECT_TRUE(evaluated->ok()) << *evaluated;
  Train();
  executor_.RunAll();
  EXPECT_TRUE(row_.has_value() && row_->ok()) << "the work is not busy any more";
}

TEST_F(ModelWorkTest, AModelThatCannotBeStoredIsAnError) {
  store_.FailWrites(absl::ResourceExhaustedError("the disk is full"));
  Train();
  executor_.RunAll();
  ASSERT_TRUE(row_.has_value());
  EXPECT_THAT(std::string(row_->status().message()), HasSubstr("disk is full"));
}

}  // namespace
}  // namespace hone::job
