// EvaluateModels (model_work.h).

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "server/job/search/model_work.h"
#include "server/tuner/cost_model/metric.h"

namespace hone::job {
namespace {

constexpr double kDefaultShare = 0.3;
constexpr size_t kMaxFolds = 5;        // if tasks are held out in turn
constexpr size_t kLeastPrefix = 6;     // of a digest, in digits
constexpr int kLeastTraining = 16;     // candidates
constexpr int kLeastHeldOut = 8;       // candidates of a task
constexpr double kTimingNoise = 0.03;  // of throughputs; smaller differences say nothing

// The held-out candidates of one training.
using Fold = std::vector<std::vector<bool>>;  // [task][candidate]

// The predictions for one task's held-out candidates.
struct Answers {
  std::vector<double> mean, spread, throughput, latency_ns;
};

Fold HoldOutTasks(const std::vector<TaskRows>& tasks, const std::set<size_t>& held_out) {
  Fold fold;
  for (size_t t = 0; t < tasks.size(); ++t) {
    fold.emplace_back(tasks[t].candidates(), held_out.contains(t));
  }
  return fold;
}

// Returns the tasks that the words name.
absl::StatusOr<std::set<size_t>> FindTasks(const std::vector<TaskRows>& tasks,
                                           const std::vector<std::string>& words) {
  std::set<size_t> found;
  for (const std::string& word : words) {
    const size_t before = found.size();
    for (size_t t = 0; t < tasks.size(); ++t) {
      if (tasks[t].op == word ||
          (word.size() >= kLeastPrefix && absl::StartsWith(tasks[t].workload_digest, word))) {
        found.insert(t);
      }
    }
    if (found.size() > before) continue;
    std::vector<std::string> known;
    for (const TaskRows& task : tasks) {
      known.push_back(absl::StrCat(task.op, " ", task.workload_digest.substr(0, 8)));
    }
    return absl::NotFoundError(absl::StrCat(
        "held out: no measured workload is of operator '", word,
        "' or has a digest that begins with it; there are: ", absl::StrJoin(known, ", ")));
  }
  return found;
}

// Returns one fold for each of the tasks with the most candidates.
std::vector<Fold> TasksInTurn(const std::vector<TaskRows>& tasks) {
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return tasks[a].candidates() > tasks[b].candidates();
  });
  order.resize(std::min(order.size(), kMaxFolds));
  std::vector<Fold> folds;
  for (const size_t t : order) folds.push_back(HoldOutTasks(tasks, {t}));
  return folds;
}

// Holds out a random share of every task's candidates.
Fold HoldOutTrials(const std::vector<TaskRows>& tasks, double share, uint64_t seed) {
  Fold fold;
  for (size_t t = 0; t < tasks.size(); ++t) {
    Rng rng(seed, t);
    std::vector<int> order(tasks[t].candidates());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
    std::vector<bool> held(order.size(), false);
    const auto count = static_cast<size_t>(std::lround(share * static_cast<double>(order.size())));
    for (size_t i = 0; i < count; ++i) held[order[i]] = true;
    fold.push_back(std::move(held));
  }
  return fold;
}

int CountHeld(const Fold& fold, size_t task) {
  return static_cast<int>(std::count(fold[task].begin(), fold[task].end(), true));
}

// Returns the folds with enough training candidates and enough held-out candidates.
absl::StatusOr<std::vector<Fold>> Usable(const std::vector<TaskRows>& tasks,
                                         std::vector<Fold> folds, absl::string_view what) {
  int most_training = 0, most_held = 0;
  std::erase_if(folds, [&](const Fold& fold) {
    int training = 0, held = 0;
    for (size_t t = 0; t < tasks.size(); ++t) {
      const int of_task = CountHeld(fold, t);
      training += tasks[t].candidates() - of_task;
      if (tasks[t].best_ns > 0) held = std::max(held, of_task);
    }
    most_training = std::max(most_training, training);
    most_held = std::max(most_held, held);
    return training < kLeastTraining || held < kLeastHeldOut;
  });
  if (!folds.empty()) return folds;
  return absl::NotFoundError(
      absl::StrCat("too few measurements to hold out ", what, ": ", most_training,
                   " to train on and ", most_held, " of a workload held out; at least ",
                   kLeastTraining, " and ", kLeastHeldOut, " are needed; hone tune makes more"));
}

// Returns the fold for a stored model, which is not trained and is asked for all candidates.
absl::StatusOr<Fold> EveryTask(const std::vector<TaskRows>& tasks) {
  int most = 0;
  std::set<size_t> all;
  for (size_t t = 0; t < tasks.size(); ++t) {
    all.insert(t);
    if (tasks[t].best_ns > 0) most = std::max(most, tasks[t].candidates());
  }
  if (most >= kLeastHeldOut) return HoldOutTasks(tasks, all);
  return absl::NotFoundError(absl::StrCat("too few measurements to judge stored models: ", most,
                                          " of a workload; at least ", kLeastHeldOut,
                                          " are needed; hone tune makes more"));
}

double MeanOver(const std::vector<Answers>& answers,
                const std::function<double(const Answers&)>& metric) {
  double sum = 0;
  int count = 0;
  for (const Answers& each : answers) {
    const double value = metric(each);
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / count;
}

void FillMetrics(const std::vector<Answers>& answers, int k, ModelScore& score) {
  std::vector<cost_model::RankedTask> ranked;
  Answers all;
  for (const Answers& each : answers) {
    ranked.push_back({.score = each.mean, .latency_ns = each.latency_ns});
    all.mean.insert(all.mean.end(), each.mean.begin(), each.mean.end());
    all.spread.insert(all.spread.end(), each.spread.begin(), each.spread.end());
    all.throughput.insert(all.throughput.end(), each.throughput.begin(), each.throughput.end());
  }
  score.tasks = static_cast<int64_t>(answers.size());
  score.evaluated_on = static_cast<int64_t>(all.mean.size());
  score.top1 = cost_model::TopK(ranked, 1);
  score.top5 = cost_model::TopK(ranked, 5);
  score.peak = MeanOver(
      answers, [&](const Answers& a) { return cost_model::PeakAtK(a.mean, a.throughput, k); });
  score.recall = MeanOver(
      answers, [&](const Answers& a) { return cost_model::RecallAtK(a.mean, a.throughput, k); });
  score.pairwise = MeanOver(answers, [&](const Answers& a) {
    return cost_model::PairwiseAccuracy(a.mean, a.throughput, kTimingNoise);
  });
  score.rmse = cost_model::Rmse(all.mean, all.throughput);
  score.calibration_error = cost_model::CalibrationError(all.mean, all.throughput);
  if (all.spread.size() == all.mean.size()) {
    score.coverage1 = cost_model::Coverage(all.mean, all.spread, all.throughput, 1);
    score.coverage2 = cost_model::Coverage(all.mean, all.spread, all.throughput, 2);
  }
}

// A model to evaluate.
struct Contender {
  ModelChoice choice;
  store::ModelRow row;  // of a stored model

  absl::StatusOr<std::unique_ptr<cost_model::CostModel>> Make(const TaskEnvironment& environment,
                                                              uint64_t seed) const {
    HONE_ASSIGN_OR_RETURN(
        std::unique_ptr<cost_model::CostModel> model,
        environment.CreateModel(choice.name,
                                {.seed = seed, .feature_set = choice.feature_set, .threads = 1}));
    if (choice.stored == 0) return model;
    if (const absl::Status loaded = model->Load(row.bytes); !loaded.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("stored model ", choice.stored, ": ", loaded.message()));
    }
    return model;
  }
};

absl::StatusOr<ModelScore> ScoreModel(const EvaluationServices& services,
                                      const Contender& contender, const EvaluationQuery& query,
                                      const std::vector<TaskRows>& tasks,
                                      const std::vector<Fold>& folds) {
  ModelScore score{.stored = contender.choice.stored};
  std::vector<Answers> answers;
  absl::Duration training, predicting;
  for (const Fold& fold : folds) {
    HONE_RETURN_IF_ERROR(services.pause());
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> model,
                          contender.Make(*services.environment, query.seed));
    score.model = std::string(model->name());
    score.feature_set = std::string(model->feature_set());
    if (score.stored == 0) {
      LabelledRows material;
      for (size_t t = 0; t < tasks.size(); ++t) {
        for (int i = 0; i < tasks[t].candidates(); ++i) {
          if (!fold[t][i]) material.Add(tasks[t], static_cast<int32_t>(t), i);
        }
      }
      score.trained_on += material.features.candidates();
      const absl::Time begin = services.clock->Now();
      HONE_RETURN_IF_ERROR(model->Update(material.features, material.labels()));
      training += services.clock->Now() - begin;
    }
    for (size_t t = 0; t < tasks.size(); ++t) {
      if (tasks[t].best_ns == 0 || CountHeld(fold, t) < kLeastHeldOut) continue;
      LabelledRows asked;
      Answers answer;
      for (int i = 0; i < tasks[t].candidates(); ++i) {
        if (!fold[t][i]) continue;
        asked.Add(tasks[t], static_cast<int32_t>(t), i);
        answer.latency_ns.push_back(tasks[t].latency_ns[i]);
      }
      HONE_RETURN_IF_ERROR(services.pause());
      const absl::Time asking = services.clock->Now();
      HONE_ASSIGN_OR_RETURN(cost_model::Prediction prediction, model->Predict(asked.features));
      predicting += services.clock->Now() - asking;
      answer.mean = std::move(prediction.mean);
      answer.spread = std::move(prediction.spread);
      answer.throughput = std::move(asked.throughput);
      answers.push_back(std::move(answer));
    }
  }
  FillMetrics(answers, query.k, score);
  score.trained_on /= static_cast<int64_t>(folds.size());
  score.train_ms = absl::ToDoubleMilliseconds(training) / static_cast<double>(folds.size());
  score.predict_us =
      absl::ToDoubleMicroseconds(predicting) / static_cast<double>(score.evaluated_on);
  if (score.stored != 0) {
    score.trained_on = contender.row.records;
    score.train_ms = std::numeric_limits<double>::quiet_NaN();
  }
  return score;
}

absl::Status Check(const EvaluationQuery& query) {
  if (query.models.empty()) return absl::InvalidArgumentError("no models to evaluate");
  if (!(query.held_out_trials >= 0 && query.held_out_trials < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the share of held-out trials must be in [0, 1), not ", query.held_out_trials));
  }
  if (query.k < 1)
    return absl::InvalidArgumentError(absl::StrCat("k must be at least 1, not ", query.k));
  if (query.records.max_records < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("at least one record is needed, not ", query.records.max_records));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelEvaluation> EvaluateModels(const EvaluationServices& services,
                                               const EvaluationQuery& query) {
  HONE_RETURN_IF_ERROR(Check(query));
  RecordedTaskQuery records = query.records;
  // Checks first whether all models can be made.
  std::vector<Contender> contenders;
  for (const ModelChoice& choice : query.models) {
    Contender& contender = contenders.emplace_back(Contender{.choice = choice});
    if (choice.stored != 0) {
      HONE_ASSIGN_OR_RETURN(contender.row, services.store->GetModelById(choice.stored));
      const store::ModelKey& key = contender.row.key;
      contender.choice.name = key.name;
      contender.choice.feature_set = key.feature_set;
      if (records.target.empty()) records.target = key.target;
    }
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> model,
                          contender.Make(*services.environment, query.seed));
    contender.choice.feature_set = std::string(model->feature_set());
  }
  HONE_ASSIGN_OR_RETURN(const RecordedTasks recorded,
                        ReadRecordedTasks(*services.store, records, services.pause));
  const bool in_turn = query.held_out.empty() && query.held_out_trials == 0;
  ModelEvaluation evaluation{.target = recorded.target,
                             .tasks = static_cast<int64_t>(recorded.tasks.size()),
                             .left_out = recorded.left_out};
  for (const RecordedTask& task : recorded.tasks) {
    evaluation.candidates += static_cast<int64_t>(task.candidates.size());
  }
  std::map<std::string, std::vector<TaskRows>> rows;  // by feature set
  for (size_t m = 0; m < contenders.size(); ++m) {
    const std::string& feature_set = contenders[m].choice.feature_set;
    auto [entry, fresh] = rows.try_emplace(feature_set);
    std::vector<TaskRows>& tasks = entry->second;
    if (fresh) {
      HONE_ASSIGN_OR_RETURN(tasks, ExtractRows(*services.environment, *services.store,
                                               recorded.tasks, feature_set, services.pause));
      int64_t stale = 0;
      for (const TaskRows& task : tasks) stale += task.left_out;
      evaluation.left_out.not_replayed = std::max(evaluation.left_out.not_replayed, stale);
    }
    const auto score = [&](const std::vector<Fold>& folds, const char* what) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(ModelScore scored,
                            ScoreModel(services, contenders[m], query, tasks, folds));
      scored.held_out = what;
      evaluation.scores.push_back(std::move(scored));
      return absl::OkStatus();
    };
    const auto hold_out = [&](std::vector<Fold> folds, const char* what) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(folds, Usable(tasks, std::move(folds), what));
      return score(folds, what);
    };
    if (contenders[m].choice.stored != 0) {
      HONE_ASSIGN_OR_RETURN(const Fold all, EveryTask(tasks));
      HONE_RETURN_IF_ERROR(score({all}, "stored"));
    } else {
      if (!query.held_out.empty()) {
        HONE_ASSIGN_OR_RETURN(const std::set<size_t> held, FindTasks(tasks, query.held_out));
        HONE_RETURN_IF_ERROR(hold_out({HoldOutTasks(tasks, held)}, "tasks"));
      } else if (in_turn && tasks.size() > 1) {
        // With one large task and a few tiny ones, models are evaluated only on trials.
        const absl::StatusOr<std::vector<Fold>> folds = Usable(tasks, TasksInTurn(tasks), "tasks");
        if (folds.ok()) {
          HONE_RETURN_IF_ERROR(score(*folds, "tasks"));
        }
      }
      const double share = in_turn ? kDefaultShare : query.held_out_trials;
      if (share > 0) {
        HONE_RETURN_IF_ERROR(hold_out({HoldOutTrials(tasks, share, query.seed)}, "trials"));
      }
    }
    // Rows that no later model reads would only occupy memory.
    const bool needed = std::any_of(
        contenders.begin() + static_cast<long>(m) + 1, contenders.end(),
        [&](const Contender& later) { return later.choice.feature_set == feature_set; });
    if (!needed) rows.erase(entry);
  }
  return evaluation;
}

}  // namespace hone::job
