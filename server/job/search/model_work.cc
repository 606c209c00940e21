#include "server/job/search/model_work.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/job/actor/executor.h"
#include "server/job/search/draft_work.h"
#include "server/job/search/recorded_task.h"
#include "server/tuner/cost_model/model_file.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

constexpr double kTrainingShare =
    0.2;  // of the trials; held out to evaluate a model before it is stored

// A draft is learned again from at least this many new results, and at least a quarter as many as
// it knows.
constexpr int64_t kLearningStep = 64;
constexpr int64_t kLearningRecords = 8000;  // bounds the time, evenly over workloads
constexpr size_t kLeastDraftTasks = 2;      // one to learn from and one to judge on
constexpr int kLearningRest = 10;           // after learning, in times of its duration

std::string MetricsJson(const ModelScore& score) {
  // NaN becomes null.
  return nlohmann::ordered_json{{"held_out", score.held_out},
                                {"evaluated_on", score.evaluated_on},
                                {"top1", score.top1},
                                {"top5", score.top5},
                                {"peak", score.peak},
                                {"recall", score.recall},
                                {"pairwise", score.pairwise},
                                {"rmse", score.rmse},
                                {"calibration_error", score.calibration_error}}
      .dump();
}

}  // namespace

absl::Status ModelWork::TakeTurn() {
  if (stopped_) return absl::UnavailableError("the server is shutting down");
  if (!busy_.exchange(true)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "another training or evaluation of cost models is in progress; try again when it has ended");
}

EvaluationServices ModelWork::Services(WorkLimit limit) const {
  auto lock = std::make_shared<HostLock>(ShareHost(respect_timing_lock_));
  auto pause = [this, lock, limit = std::move(limit)]() -> absl::Status {
    if (stopped_) return absl::UnavailableError("the server is shutting down");
    if (limit.cancelled != nullptr && limit.cancelled()) {
      return absl::CancelledError("the client has disconnected");
    }
    if (services_.clock->Now() > limit.deadline) {
      return absl::DeadlineExceededError(
          "the models were not finished in time; ask for fewer models or records");
    }
    // If the lock cannot be taken again, the only effect is disturbed timings.
    if (lock->held()) lock->YieldToTimers().IgnoreError();
    return absl::OkStatus();
  };
  return {.clock = services_.steady_clock != nullptr ? services_.steady_clock : services_.clock,
          .store = services_.store,
          .environment = services_.environment,
          .pause = std::move(pause)};
}

void ModelWork::Evaluate(EvaluationQuery query, WorkLimit limit,
                         absl::AnyInvocable<void(absl::StatusOr<ModelEvaluation>) &&> done) {
  if (absl::Status turn = TakeTurn(); !turn.ok()) return std::move(done)(std::move(turn));
  services_.executor->Schedule(
      [this, query = std::move(query), limit = std::move(limit), done = std::move(done)]() mutable {
        absl::StatusOr<ModelEvaluation> evaluation;
        const absl::Status status = Attempt([&] {
          evaluation = EvaluateModels(Services(std::move(limit)), query);
          return evaluation.status();
        });
        busy_ = false;
        if (!status.ok()) return std::move(done)(status);
        std::move(done)(std::move(evaluation));
      });
}

absl::StatusOr<std::string> ModelWork::Judge(const TrainingQuery& query, const std::string& target,
                                             const EvaluationServices& services) const {
  EvaluationQuery judge{.records = query.records,
                        .models = {query.model},
                        .held_out_trials = kTrainingShare,
                        .seed = query.seed};
  judge.records.target = target;
  const absl::StatusOr<ModelEvaluation> judged = EvaluateModels(services, judge);
  if (judged.ok()) return MetricsJson(judged->scores.front());
  if (absl::IsNotFound(judged.status()))
    return nlohmann::ordered_json{{"none", judged.status().message()}}.dump();
  return judged.status();
}

absl::StatusOr<store::ModelRow> ModelWork::MakeModel(const TrainingQuery& query,
                                                     const EvaluationServices& services) const {
  cost_model::CostModelOptions options{.seed = query.seed,
                                       .feature_set = query.model.feature_set,
                                       .threads = 1,
                                       .pause = services.pause};
  HONE_RETURN_IF_ERROR(services.environment->CreateModel(query.model.name, options).status());
  HONE_ASSIGN_OR_RETURN(RecordedTasks recorded,
                        ReadRecordedTasks(*services.store, query.records, services.pause));
  const bool is_draft = query.model.name == kLearnedDraft;
  if (is_draft)
    options.foreign = ForeignDrafts(*services.store, recorded.target, recorded.target_text);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> model,
                        services.environment->CreateModel(query.model.name, options));
  const bool can_learn = recorded.tasks.size() >= kLeastDraftTasks;
  if (is_draft && !can_learn && options.foreign.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the results on ", recorded.target,
                     " are of one task; a draft is judged on "
                     "tasks that it was not learned from: tune another workload"));
  }
  store::ModelRow row{.key = {.name = std::string(model->name()),
                              .feature_set = std::string(model->feature_set()),
                              .target = recorded.target,
                              .scope = query.records.op},
                      .workloads = static_cast<int64_t>(recorded.tasks.size())};
  if (const auto described = target::Target::FromText(recorded.target_text);
      described.ok() && described->Key() == recorded.target) {
    row.target_text = recorded.target_text;
  }
  if (!is_draft) {  // which judges itself
    HONE_ASSIGN_OR_RETURN(row.metrics, Judge(query, recorded.target, services));
  }
  LabelledRows material;
  for (size_t t = 0; t < recorded.tasks.size(); ++t) {
    // One task at a time, so that rows are not in memory twice.
    HONE_ASSIGN_OR_RETURN(
        const std::vector<TaskRows> rows,
        ExtractRows(*services.environment, *services.store, {&recorded.tasks[t], 1},
                    std::string(model->feature_set()), services.pause));
    recorded.tasks[t].candidates = {};
    if (!(rows[0].best_ns > 0)) continue;  // nothing ran, so there is no order to learn
    for (int i = 0; i < rows[0].candidates(); ++i)
      material.Add(rows[0], static_cast<int32_t>(t), i);
  }
  if (material.throughput.empty()) {
    return absl::FailedPreconditionError(
        "none of the recorded candidates can be replayed any more");
  }
  HONE_RETURN_IF_ERROR(model->Update(material.features, material.labels()));
  if (is_draft) row.metrics = model->Summary();
  HONE_RETURN_IF_ERROR(services.pause());
  HONE_ASSIGN_OR_RETURN(row.bytes, model->Save());
  HONE_ASSIGN_OR_RETURN(const cost_model::ModelHeader header,
                        cost_model::ReadModelHeader(row.bytes));
  if (is_draft && !can_learn && header.columns == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the results on ", recorded.target,
        " are of one task, and no draft of another machine orders them better than the constants"));
  }
  row.version = header.version;
  row.records = material.features.candidates();
  row.created_unix_ms = absl::ToUnixMillis(services_.clock->Now());
  return row;
}

void ModelWork::Train(TrainingQuery query, WorkLimit limit,
                      absl::AnyInvocable<void(absl::StatusOr<store::ModelRow>) &&> done) {
  if (absl::Status turn = TakeTurn(); !turn.ok()) return std::move(done)(std::move(turn));
  services_.executor->Schedule(
      [this, query = std::move(query), limit = std::move(limit), done = std::move(done)]() mutable {
        store::ModelRow row, kept;
        const absl::Status status = Attempt([&]() -> absl::Status {
          HONE_ASSIGN_OR_RETURN(row, MakeModel(query, Services(std::move(limit))));
          kept = row;
          kept.size = static_cast<int64_t>(row.bytes.size());
          kept.bytes.clear();
          return absl::OkStatus();
        });
        busy_ = false;
        if (!status.ok()) return std::move(done)(status);
        services_.store->PutModel(std::move(row), [kept = std::move(kept), done = std::move(done)](
                                                      absl::StatusOr<int64_t> id) mutable {
          if (!id.ok()) return std::move(done)(id.status());
          kept.id = *id;
          kept.in_use = true;
          std::move(done)(std::move(kept));
        });
      });
}

void ModelWork::NoteResult(const std::string& target_key) {
  absl::MutexLock lock(&mutex_);
  ++fresh_[target_key];
}

void ModelWork::CountKnown(const std::string& target) {
  int64_t known = 0, fresh = 0;
  const absl::Cleanup note = [&] {  // also after an exception
    absl::MutexLock lock(&mutex_);
    known_[target] = known;
    fresh_[target] += fresh;
    learning_ = false;
  };
  // Records that an earlier server made are new to this one, also if it uses a draft that another
  // server learned.
  const absl::StatusOr<store::ModelRow> row = services_.store->GetModel(
      {.name = kLearnedDraft, .feature_set = kLearnedDraft, .target = target});
  if (row.ok() && row->origin.empty()) {
    known = row->records;
    return;
  }
  const auto records =
      services_.store->Query({.target = target, .page_size = static_cast<int>(kLearningStep)});
  if (records.ok()) fresh = static_cast<int64_t>(records->size());
}

void ModelWork::Tick() {
  std::string target, unknown;
  int64_t counted = 0;
  const absl::Time began = services_.SteadyNow();
  {
    absl::MutexLock lock(&mutex_);
    if (learning_ || stopped_ || began < next_learning_) return;
    for (auto& [key, fresh] : fresh_) {
      const auto known = known_.find(key);
      if (known == known_.end()) {
        unknown = key;
        learning_ = true;
        break;
      }
      if (fresh < std::max(kLearningStep, known->second / 4)) continue;
      target = key;
      counted = std::exchange(fresh, 0);
      learning_ = true;
      break;
    }
  }
  if (!unknown.empty()) {
    // A tick must not read the store.
    return services_.executor->Schedule([this, unknown] {
      CountKnown(unknown);
      Tick();
    });
  }
  if (target.empty()) return;
  Train({.records = {.target = target, .max_records = kLearningRecords},
         .model = {.name = kLearnedDraft}},
        WorkLimit{}, [this, target, counted, began](const absl::StatusOr<store::ModelRow>& row) {
          const absl::Time now = services_.SteadyNow();
          absl::MutexLock lock(&mutex_);
          learning_ = false;
          next_learning_ = now + kLearningRest * (now - began);
          if (row.ok()) {
            known_[target] = row->records;
            spdlog::info("learned from {} results of {} tasks of {}: {}", row->records,
                         row->workloads, target, row->metrics);
          } else if (absl::IsResourceExhausted(row.status())) {
            fresh_[target] += counted;  // after the request of a client
          } else if (absl::IsFailedPrecondition(row.status())) {
            spdlog::info("nothing was learned: {}", std::string(row.status().message()));
          } else {
            spdlog::warn("learning from the results of {}: {}", target,
                         std::string(row.status().message()));
          }
        });
}

}  // namespace hone::job
